//! Configurers: a topology's configuration from a file, read again by a call and by SIGHUP, validated by the actors.

use crate::support::{LONG, Stage, run_turns, while_time_passes};
use pointsman::group::{Group, ValidateConfig};
use pointsman::prelude::*;
use pointsman::topology::{
    ConfigReloaded, ConfiguredActor, FileConfigurer, FileConfigurerError, Topology, TopologyError,
    UpdateConfig,
};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// A file that is removed at the end of the test.
struct TempFile(PathBuf);

impl TempFile {
    fn new(text: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pointsman-configurers-{}-{number}.toml", std::process::id());
        let file = Self(std::env::temp_dir().join(name));
        file.write(text);
        file
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.0, text).expect("the folder for temporary files can be written");
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Clone, Message)]
enum LedgerMsg {
    Validate(Call<ValidateConfig>),
    #[message(skip)]
    Open(u64),
    #[message(skip)]
    Limit(u64),
    #[message(skip)]
    End(u64),
}

/// An actor's answer to a validation depends on the limit that the section has.
struct Ledger {
    key: u64,
    log: Sender<String>,
    kept: Vec<Call<ValidateConfig>>,
}

fn limit_of(validate: &ValidateConfig) -> i64 {
    validate.config.table()["limit"].as_integer().expect("decoded before")
}

impl Actor for Ledger {
    type Message = LedgerMsg;
    fn receive(&mut self, message: LedgerMsg, ctx: &mut Context<LedgerMsg>) -> HandlerResult {
        match message {
            LedgerMsg::Open(_) => {}
            LedgerMsg::End(_) => ctx.stop(),
            LedgerMsg::Limit(limit) => self.log.send(format!("{} has limit {limit}", self.key))?,
            LedgerMsg::Validate(call) => {
                let limit = limit_of(&call.request);
                self.log.send(format!("{} is asked about {limit}", self.key))?;
                match (limit, self.key) {
                    (13, 2) => call.answer(|_| Err("13 brings bad luck".to_owned())),
                    (14, 2) => drop(call),
                    (15, 2) => self.kept.push(call),
                    _ => call.answer(|_| Ok(())),
                }
            }
        }
        Ok(())
    }
}

struct Office {
    stage: Stage,
    topology: Topology,
    ledgers: Group<LedgerMsg, u64>,
    configurer: FileConfigurer,
    file: TempFile,
}

impl Office {
    /// A group of ledgers 1 and 2, and another group that notes its sections.
    fn new(stage: Stage, text: &str) -> Self {
        let file = TempFile::new(text);
        let topology = stage.system.topology();
        let log = stage.log.clone();
        let ledgers = stage
            .system
            .group("ledgers")
            .keyed(
                |message: &LedgerMsg| match message {
                    LedgerMsg::Open(key) | LedgerMsg::End(key) => pointsman::group::KeyRoute::Unicast(*key),
                    _ => pointsman::group::KeyRoute::Broadcast,
                },
                move |_, key: &u64| Ledger { key: *key, log: log.clone(), kept: Vec::new() },
            )
            .config(
                |config| match config.table().get("limit").and_then(|limit| limit.as_integer()) {
                    Some(limit) if limit > 0 => Ok(limit.unsigned_abs()),
                    _ => Err("key `limit` must be a number above 0".to_owned()),
                },
                |group, limit| group.tell(LedgerMsg::Limit(limit)),
            )
            .validated_by_actors()
            .spawn()
            .expect("a free name");
        topology.local("ledgers").expect("a free name").mount(&ledgers);
        let other = stage.system.actor("audit").spawn({
            let log = stage.log.clone();
            move || Audit(log.clone())
        });
        topology.local("audit").expect("free").mount(&ConfiguredActor::new(&other.expect("a free name")));
        let configurer = FileConfigurer::from_path(&topology, &file.0);
        Self { stage, topology, ledgers, configurer, file }
    }

    fn started() -> Self {
        let office = Self::new(Stage::turns(), "[topology.ledgers]\nlimit = 1\n");
        office.configurer.start().expect("it is sound");
        for key in [1, 2] {
            office.ledgers.tell(LedgerMsg::Open(key));
        }
        run_turns();
        office.stage.notes.try_iter().for_each(drop);
        office
    }

    /// In order, since each seed has another course.
    fn notes(&self) -> Vec<String> {
        run_turns();
        let mut notes: Vec<String> = self.stage.notes.try_iter().collect();
        notes.sort();
        notes
    }
}

#[derive(Message)]
enum AuditMsg {
    Validate(Call<ValidateConfig>),
    Update(UpdateConfig),
}

/// Follows the configuration by messages.
struct Audit(Sender<String>);

impl Actor for Audit {
    type Message = AuditMsg;
    fn receive(&mut self, message: AuditMsg, _: &mut Context<AuditMsg>) -> HandlerResult {
        match message {
            AuditMsg::Validate(call) if call.request.config.table().contains_key("bad") => {
                call.answer(|_| Err("no bad things".to_owned()));
            }
            AuditMsg::Validate(call) => call.answer(|_| Ok(())),
            AuditMsg::Update(update) => {
                self.0.send(format!("audit: {}", update.config.table()).trim().to_owned())?
            }
        }
        Ok(())
    }
}

#[test]
fn the_file_is_the_first_configuration_and_no_actor_is_asked_about_it() {
    let text = "[topology.ledgers]\nlimit = 1\n[topology.audit]\nsize = 2\n[shop]\nname = \"x\"\n";
    let office = Office::new(Stage::turns(), text);
    office.ledgers.tell(LedgerMsg::Open(2));
    assert_eq!(office.configurer.reload(), Err(office.fault(TopologyError::NotStarted)));
    office.configurer.start().expect("it is sound");
    assert_eq!(office.notes(), ["2 has limit 1", "audit: size = 2"]);
    assert_eq!(office.topology.start(), Err(TopologyError::Started));
    office.stage.end(&[]);
}

impl Office {
    fn fault(&self, error: TopologyError) -> FileConfigurerError {
        FileConfigurerError::Topology { path: self.file.0.clone(), error }
    }
}

#[test]
fn a_reload_takes_what_has_changed_when_all_actors_agree() {
    let office = Office::started();
    office.file.write("[topology.ledgers]\nlimit = 7\n");
    assert_eq!(office.configurer.reload(), Ok(vec!["ledgers".to_owned()]));
    let asked = ["1 has limit 7", "1 is asked about 7", "2 has limit 7", "2 is asked about 7"];
    assert_eq!(office.notes(), asked);
    assert_eq!(office.configurer.reload(), Ok(vec![]), "nothing has changed");
    assert!(office.notes().is_empty());
    office.stage.end(&[]);
}

#[test]
fn one_actor_that_refuses_keeps_all_groups_from_changing_and_is_named() {
    let office = Office::started();
    office.file.write("[topology.ledgers]\nlimit = 13\n[topology.audit]\nsize = 9\nbad = true\n");
    let (sender, outcomes) = channel();
    let seen = move |event: &ConfigReloaded| sender.send(event.clone()).expect("it is kept");
    let _subscription = office.stage.system.events().on(seen);
    let error = office.configurer.reload().expect_err("refused");
    let text = error.to_string();
    for part in [
        office.file.0.to_str().expect("an ordinary path"),
        "`topology.ledgers`: actor ",
        "/user/ledgers/2: 13 brings bad luck",
        "`topology.audit`: actor ",
        "/user/audit: no bad things",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let FileConfigurerError::Topology { error: TopologyError::Refused { refusals }, .. } = &error else {
        panic!("{error}")
    };
    let who: Vec<_> = refusals.iter().map(|refusal| (&*refusal.group, &*refusal.reason)).collect();
    assert_eq!(who, [("ledgers", "13 brings bad luck"), ("audit", "no bad things")]);
    let event = outcomes.try_recv().expect("it is told");
    assert_eq!((event.path, event.outcome), (office.file.0.clone(), Err(error)));
    assert_eq!(office.notes(), ["1 is asked about 13", "2 is asked about 13"], "no group has changed");
    // The refused sections are still new.
    office.file.write("[topology.ledgers]\nlimit = 12\n[topology.audit]\nsize = 9\n");
    assert_eq!(office.configurer.reload(), Ok(vec!["ledgers".to_owned(), "audit".to_owned()]));
    assert_eq!(office.notes().len(), 5);
    office.stage.end(&[]);
}

#[test]
fn a_forced_reload_asks_no_actor_and_takes_unchanged_sections_too() {
    let office = Office::started();
    office.file.write("[topology.ledgers]\nlimit = 13\n[topology.audit]\nbad = true\n");
    assert_eq!(office.configurer.force(), Ok(vec!["ledgers".to_owned(), "audit".to_owned()]));
    assert_eq!(office.notes(), ["1 has limit 13", "2 has limit 13", "audit: bad = true"]);
    assert_eq!(office.configurer.force(), Ok(vec!["ledgers".to_owned(), "audit".to_owned()]));
    assert_eq!(office.notes().len(), 3);
    office.file.write("[topology.ledgers]\nlimit = 0\n");
    let error = office.configurer.force().expect_err("the group cannot read it");
    assert!(error.to_string().contains("`topology.ledgers`: key `limit` must be a number"), "{error}");
    assert!(office.notes().is_empty());
    office.stage.end(&[]);
}

#[test]
fn an_actor_without_an_answer_refuses_and_an_ended_actor_has_no_say() {
    let office = Office::started();
    for (limit, reason) in [(14, "dropped unanswered"), (15, "")] {
        office.file.write(&format!("[topology.ledgers]\nlimit = {limit}\n"));
        let error = office.configurer.reload().expect_err("2 does not answer");
        let text = error.to_string();
        assert!(text.contains("/user/ledgers/2: ") && text.contains(reason), "{text}");
        office.notes();
    }
    office.file.write("[topology.ledgers]\nlimit = 16\n");
    // The question is behind this message, and is never read.
    office.ledgers.tell(LedgerMsg::End(2));
    assert_eq!(office.configurer.reload(), Ok(vec!["ledgers".to_owned()]), "2 has ended");
    assert_eq!(office.notes(), ["1 has limit 16", "1 is asked about 16"]);
    office.stage.end(&[]);
}

#[test]
fn an_actor_whose_mailbox_has_no_room_for_the_question_refuses() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let log = stage.log.clone();
    let small = pointsman::Mailbox::bounded(1).on_full(pointsman::OverflowPolicy::Reject);
    let audit = stage.system.actor("audit").mailbox(small).spawn(move || Audit(log.clone())).expect("free");
    topology.local("audit").expect("free").mount(&ConfiguredActor::new(&audit));
    topology.start().expect("all are mounted");
    // The update of the first configuration fills the mailbox.
    let error = topology.reconfigure("[topology.audit]\nsize = 1\n", false).expect_err("not asked");
    assert!(error.to_string().contains("/user/audit: it has not read the question"), "{error}");
    run_turns();
    assert_eq!(topology.reconfigure("[topology.audit]\nsize = 1\n", false), Ok(vec!["audit".to_owned()]));
    stage.expect(&["audit:", "audit: size = 1"]);
    stage.end(&[]);
}

#[test]
fn an_actor_has_so_long_to_answer_by_the_clock_of_the_system() {
    let office = Office::new(Stage::threads("late"), "[topology.ledgers]\nlimit = 1\n");
    office.configurer.start().expect("it is sound");
    office.topology.validate_within(Duration::from_secs(60));
    office.ledgers.tell(LedgerMsg::Open(2));
    office.file.write("[topology.ledgers]\nlimit = 15\n");
    let error =
        while_time_passes(&office.stage.clock, || office.configurer.reload()).expect_err("2 keeps it");
    assert!(error.to_string().contains("/user/ledgers/2: ") && error.to_string().contains("60s"), "{error}");
    office.stage.system.shutdown(LONG).expect("all end");
}

#[test]
fn a_thread_that_must_not_wait_is_told_so_and_changes_nothing() {
    let stage =
        Stage::threads_with("reload", |builder| builder.dispatcher("blocking", Dispatcher::blocking()));
    let office = Office::new(stage, "[topology.ledgers]\nlimit = 1\n");
    office.configurer.start().expect("it is sound");
    office.ledgers.tell(LedgerMsg::Open(1));
    office.file.write("[topology.ledgers]\nlimit = 2\n");
    let configurer = office.configurer.clone();
    let (sender, outcomes) = channel();
    struct Reloads(FileConfigurer, Sender<Result<Vec<String>, FileConfigurerError>>);
    impl Actor for Reloads {
        type Message = bool;
        fn receive(&mut self, blocks: bool, ctx: &mut Context<bool>) -> HandlerResult {
            let (configurer, sender) = (self.0.clone(), self.1.clone());
            let reload = move || drop(sender.send(configurer.reload()));
            match blocks {
                true => ctx.pipe_blocking_to_self(reload, |_| false)?,
                false => reload(),
            }
            Ok(())
        }
    }
    let recipe = move || Reloads(configurer.clone(), sender.clone());
    let reloads = office.stage.system.spawn(recipe).expect("it lives");
    let next = || outcomes.recv_timeout(LONG).expect("it comes");
    reloads.tell(false);
    assert_eq!(next(), Err(office.fault(TopologyError::MustNotWait)), "by a worker");
    reloads.tell(true);
    assert_eq!(next(), Ok(vec!["ledgers".to_owned()]), "by a thread that may wait");
    assert_eq!(next(), Ok(vec![]), "there is nothing to ask any more");
    office.stage.system.shutdown(LONG).expect("all end");
}

#[test]
fn a_file_that_is_gone_or_no_toml_changes_nothing() {
    let office = Office::started();
    office.file.write("[topology");
    let error = office.configurer.reload().expect_err("no TOML");
    assert!(error.to_string().contains("configuration of the topology: "), "{error}");
    std::fs::remove_file(&office.file.0).expect("it is there");
    let error = office.configurer.force().expect_err("gone");
    assert!(
        matches!(&error, FileConfigurerError::Read { kind: std::io::ErrorKind::NotFound, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("the groups keep their configuration"), "{error}");
    let debug = format!("{:?}", office.configurer);
    assert!(debug.contains("pointsman-configurers"), "{debug}");
    office.stage.end(&[]);
}

#[cfg(all(unix, not(miri)))]
#[test]
fn sighup_reads_the_file_again_until_the_system_has_ended() {
    let office = Office::new(Stage::threads("sighup"), "[topology.ledgers]\nlimit = 1\n");
    office.configurer.start().expect("it is sound");
    let (sender, outcomes) = channel();
    let seen = move |event: &ConfigReloaded| sender.send(event.outcome.clone()).expect("it is kept");
    let _subscription = office.stage.system.events().on(seen);
    office.configurer.on_sighup().expect("a handler is granted");
    let signal = || {
        // SAFETY: a system call without pointers, to this very process, which has a handler for the signal.
        assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGHUP) }, 0);
        outcomes.recv_timeout(LONG).expect("the file is read again")
    };
    office.file.write("[topology.ledgers]\nlimit = 2\n");
    assert_eq!(signal(), Ok(vec!["ledgers".to_owned()]));
    office.file.write("[topology.ledgers]\nlimit = 0\n");
    let error = signal().expect_err("the group rejects it");
    assert!(error.to_string().contains("`topology.ledgers`"), "{error}");
    office.file.write("[topology.ledgers]\nlimit = 3\n");
    assert_eq!(signal(), Ok(vec!["ledgers".to_owned()]), "a rejected file does not end the listening");
    office.stage.system.shutdown(LONG).expect("all end");
}
