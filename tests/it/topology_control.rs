//! A topology as a whole: its start, its configuration, its end, and whether it is alive.

use crate::support::{Stage, run_turns, wait_until};
use pointsman::group::GroupConfig;
use pointsman::prelude::*;
use pointsman::shutdown::Phase;
use pointsman::topology::{DeclaredGroup, GroupMember, Topology, TopologyError};
use pointsman::{AnyActorRef, SystemBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

struct Idle(&'static str, Sender<String>);

impl Actor for Idle {
    type Message = u32;
    fn receive(&mut self, number: u32, _: &mut Context<u32>) -> HandlerResult {
        self.1.send(format!("{} handled {number}", self.0))?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<u32>) {
        let _ = self.1.send(format!("{} stopped", self.0));
    }
}

/// A group that notes what the topology does with it.
#[derive(Clone)]
struct Noting {
    name: &'static str,
    log: Sender<String>,
    actor: ActorRef<u32>,
    rejects: Arc<AtomicBool>,
    panics: bool,
}

impl From<Noting> for ActorRef<u32> {
    fn from(noting: Noting) -> Self {
        noting.actor
    }
}

fn text(config: &GroupConfig) -> String {
    #[cfg(feature = "config")]
    return config.table().to_string().trim().to_owned();
    #[cfg(not(feature = "config"))]
    format!("{config:?}")
}

impl GroupMember for Noting {
    fn validate(&self, config: &GroupConfig) -> Result<(), String> {
        self.log.send(format!("{} validates {}", self.name, text(config))).expect("it is kept");
        assert!(!self.panics, "planted");
        if self.rejects.load(Ordering::SeqCst) { Err("as told".to_owned()) } else { Ok(()) }
    }
    fn update(&self, config: &GroupConfig) {
        self.log.send(format!("{} updates {}", self.name, text(config))).expect("it is kept");
    }
    fn terminate(&self, reason: &str) {
        self.log.send(format!("{} terminates: {reason}", self.name)).expect("it is kept");
        self.actor.poison();
    }
    fn watched(&self) -> Option<AnyActorRef> {
        self.actor.untyped()
    }
    fn actors(&self) -> Vec<AnyActorRef> {
        self.actor.untyped().into_iter().collect()
    }
}

struct Whole {
    stage: Stage,
    topology: Topology,
    rejects: Arc<AtomicBool>,
}

impl Whole {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(change: impl FnOnce(SystemBuilder) -> SystemBuilder + 'static) -> Self {
        let stage = Stage::turns_with(change);
        let topology = stage.system.topology();
        Self { stage, topology, rejects: Arc::default() }
    }

    fn declare(&self, name: &'static str) -> (DeclaredGroup<u32>, Noting) {
        let log = self.stage.log.clone();
        let noted = log.clone();
        let actor = self.stage.system.actor(name).spawn(move || Idle(name, log.clone())).expect("free");
        let noting = Noting { name, log: noted, actor, rejects: self.rejects.clone(), panics: false };
        (self.topology.local(name).expect("free"), noting)
    }

    fn mount(&self, name: &'static str) {
        let (group, noting) = self.declare(name);
        group.mount(&noting);
    }

    fn notes(&self) -> Vec<String> {
        run_turns();
        self.stage.notes.try_iter().collect()
    }
}

#[test]
fn entrypoints_start_first_with_an_empty_configuration() {
    let whole = Whole::new();
    whole.mount("a");
    let (group, noting) = whole.declare("b");
    group.entrypoint().mount(&noting);
    whole.topology.start().expect("all are mounted");
    let empty = text(&GroupConfig::default());
    let notes: Vec<String> =
        whole.notes().iter().map(|note| note.replace(&empty, "").trim().to_owned()).collect();
    assert_eq!(notes, ["b validates", "b updates", "a validates", "a updates"]);
    assert_eq!(whole.topology.start(), Err(TopologyError::Started));
    whole.stage.end(&["a stopped", "b stopped"]);
}

#[cfg(feature = "config")]
mod configured {
    use super::*;

    fn two() -> Whole {
        let whole = Whole::with(|builder| {
            builder.config("[topology.a]\nsize = 1\n[topology.b]\nsize = 2\n").expect("sound")
        });
        whole.mount("a");
        whole.mount("b");
        whole
    }

    #[test]
    fn groups_get_their_sections_in_two_phases() {
        let whole = two();
        whole.topology.start().expect("all are mounted");
        let notes =
            ["a validates size = 1", "b validates size = 2", "a updates size = 1", "b updates size = 2"];
        assert_eq!(whole.notes(), notes);
        assert!(whole.stage.system.settings().contains("[topology.b]\nsize = 2"));
        whole.stage.end(&["a stopped", "b stopped"]);
    }

    #[test]
    fn nobody_is_updated_when_one_rejects_and_all_reasons_are_collected() {
        let whole = two();
        whole.topology.start().expect("all are mounted");
        whole.notes();
        whole.rejects.store(true, Ordering::SeqCst);
        let text = "[topology.a]\nsize = 3\n[topology.b]\nsize = 4\n";
        let error = whole.topology.reconfigure(text, false).expect_err("rejected");
        let TopologyError::Rejected { rejections } = &error else { panic!("{error}") };
        let who: Vec<_> = rejections.iter().map(|(group, reason)| (&**group, &**reason)).collect();
        assert_eq!(who, [("a", "as told"), ("b", "as told")]);
        assert!(error.to_string().contains("`topology.b`: as told"), "{error}");
        assert_eq!(whole.notes(), ["a validates size = 3", "b validates size = 4"]);
        // The old one counts: the new one is still new.
        whole.rejects.store(false, Ordering::SeqCst);
        assert_eq!(whole.topology.reconfigure(text, false), Ok(vec!["a".to_owned(), "b".to_owned()]));
        whole.notes();
        whole.stage.end(&["a stopped", "b stopped"]);
    }

    #[test]
    fn a_group_whose_part_has_not_changed_is_left_out_unless_forced() {
        let whole = two();
        whole.topology.start().expect("all are mounted");
        whole.notes();
        let text = "[topology.a]\nsize = 1\n[topology.b]\nsize = 5\n[dispatcher.x]\nthreads = 1\n";
        assert_eq!(whole.topology.reconfigure(text, false), Ok(vec!["b".to_owned()]));
        assert_eq!(whole.notes(), ["b validates size = 5", "b updates size = 5"]);
        assert_eq!(whole.topology.reconfigure(text, true), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(whole.notes().len(), 4);
        whole.stage.end(&["a stopped", "b stopped"]);
    }

    #[test]
    fn a_panic_in_a_group_is_a_reason_to_reject() {
        let whole = Whole::new();
        let (group, mut noting) = whole.declare("a");
        noting.panics = true;
        group.mount(&noting);
        let error = whole.topology.start().expect_err("it panics");
        assert!(error.to_string().contains("planted"), "{error}");
        whole.notes();
        whole.stage.end(&["a stopped"]);
    }

    #[test]
    fn wrong_configurations_are_told_apart() {
        let whole = two();
        assert_eq!(whole.topology.reconfigure("", false), Err(TopologyError::NotStarted));
        whole.topology.start().expect("all are mounted");
        assert!(matches!(whole.topology.reconfigure("[", false), Err(TopologyError::Syntax { .. })));
        let deep = format!("[topology.a]\n{}a = 1", "a.".repeat(65));
        let error = whole.topology.reconfigure(&deep, false).unwrap_err();
        assert!(
            error.to_string().contains("section `topology.a`: tables or lists in it are nested 65 deep"),
            "{error}"
        );
        let known = vec!["a".to_owned(), "b".to_owned()];
        let unknown = TopologyError::UnknownSection { name: "c".to_owned(), known };
        assert_eq!(whole.topology.reconfigure("[topology.c]\n", false), Err(unknown));
        whole.notes();
        whole.stage.end(&["a stopped", "b stopped"]);
    }

    #[test]
    fn a_section_is_decoded_with_the_key_that_is_wrong() {
        #[derive(serde::Deserialize, Debug, PartialEq)]
        struct Limits {
            most: u32,
        }
        #[derive(Clone)]
        struct Decodes(ActorRef<u32>);
        impl From<Decodes> for ActorRef<u32> {
            fn from(group: Decodes) -> Self {
                group.0
            }
        }
        impl GroupMember for Decodes {
            fn validate(&self, config: &GroupConfig) -> Result<(), String> {
                config.decode::<Limits>().map(drop)
            }
            fn terminate(&self, _: &str) {}
            fn watched(&self) -> Option<AnyActorRef> {
                None
            }
            fn actors(&self) -> Vec<AnyActorRef> {
                Vec::new()
            }
        }
        let whole = Whole::with(|builder| builder.config("[topology.a]\nmost = \"many\"\n").expect("sound"));
        whole.topology.local("a").expect("free").mount(&Decodes(ActorRef::from_fn(|_| {})));
        let error = whole.topology.start().expect_err("not a number");
        assert!(error.to_string().contains("`topology.a`: key `most`"), "{error}");
        whole.stage.end(&[]);
    }
}

#[test]
fn groups_end_in_ascending_order_each_after_those_before() {
    let whole = Whole::new();
    for (name, order) in [("late", 2), ("early", -1), ("middle", 0), ("beside", 0)] {
        let (group, noting) = whole.declare(name);
        group.stop_order(order).mount(&noting);
    }
    let second = Duration::from_secs(1);
    let shutdown = whole.stage.system.coordinated_shutdown();
    whole.topology.stop_in(Phase::SERVICE_STOP, second).expect("the phase exists");
    let run = shutdown.run("a test");
    let mut notes = Vec::new();
    // The shutdown's thread notes first and stops the actor then: turns are needed after each note, too.
    wait_until(|| {
        notes.extend(whole.stage.notes.try_iter());
        notes.len() == 8
    });
    let order: Vec<&str> = notes.iter().map(|note| note.split(' ').next().expect("a name")).collect();
    assert_eq!((&order[..2], &order[6..]), (&["early"; 2][..], &["late"; 2][..]), "{notes:?}");
    assert_eq!(notes[0], "early terminates: shutdown");
    drop(run);
    whole.stage.end(&[]);
}

#[test]
fn all_actors_are_pinged_and_their_code_does_not_see_it() {
    let whole = Whole::new();
    whole.mount("a");
    whole.mount("b");
    let ping = whole.topology.ping();
    run_turns();
    let mut alive: Vec<String> = ping
        .wait()
        .expect("they answer")
        .into_iter()
        .map(|answer| answer.expect("alive").path().to_string())
        .collect();
    alive.sort();
    assert_eq!(alive, ["/user/a", "/user/b"]);
    assert!(whole.notes().is_empty());
    whole.stage.end(&["a stopped", "b stopped"]);
}

#[test]
fn who_ends_before_it_answers_a_ping_has_failed() {
    let whole = Whole::new();
    let (group, noting) = whole.declare("a");
    let actor = noting.actor.clone();
    group.mount(&noting);
    let ping = whole.topology.ping();
    actor.stop();
    run_turns();
    let answers = ping.wait().expect("it comes back");
    assert!(matches!(answers[..], [Err(AskError::Undeliverable { .. })]), "{answers:?}");
    whole.stage.end(&["a stopped"]);
}

#[test]
fn a_plain_actor_that_is_terminated_handles_what_it_has() {
    let whole = Whole::new();
    let log = whole.stage.log.clone();
    let actor = whole.stage.system.actor("plain").spawn(move || Idle("plain", log.clone())).expect("free");
    let group = whole.topology.local("plain").expect("free");
    group.mount(&actor);
    actor.tell(1u32);
    actor.tell(2u32);
    actor.terminate("enough");
    run_turns();
    assert!(actor.try_tell(3u32).is_err());
    assert_eq!(whole.notes(), ["plain handled 1", "plain handled 2", "plain stopped"]);
    whole.stage.end(&[]);
}

#[test]
fn a_mounted_router_that_is_terminated_has_its_routees_handle_what_they_have() {
    let whole = Whole::new();
    let log = whole.stage.log.clone();
    let workers = whole
        .stage
        .system
        .router("workers")
        .pool(2, move |_| Idle("worker", log.clone()))
        .spawn()
        .expect("the name is free");
    let group = whole.topology.local("workers").expect("free");
    group.mount(&workers);
    run_turns();
    (1..=4u32).for_each(|number| workers.tell(number));
    workers.terminate("enough");
    workers.terminate("enough, I said");
    run_turns();
    assert!(workers.try_tell(5u32).is_err());
    let mut notes = whole.notes();
    notes.sort();
    let handled = ["worker handled 1", "worker handled 2", "worker handled 3", "worker handled 4"];
    assert_eq!(notes, [&handled[..], &["worker stopped", "worker stopped"]].concat());
    assert!(workers.head().is_closed());
    whole.stage.end(&[]);
}
