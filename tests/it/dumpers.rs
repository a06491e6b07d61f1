//! Dumpers: which messages are shown, as which lines, and what becomes of those for which there is no room.

use crate::support::{LONG, Stage, run_turns};
use pointsman::dump::{DumpDirection, DumpRecord, Dumper, DumperBuilder};
use pointsman::prelude::*;
use pointsman::{Failure, SendError};
use proptest::prelude::*;
use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone)]
struct Order {
    account: u64,
    #[allow(dead_code, reason = "for the text that `Debug` makes of it")]
    text: String,
}

#[derive(Debug, Clone)]
struct Note;

#[derive(Debug, Clone, Message)]
enum LedgerMsg {
    Order(Order),
    Note(Note),
}

fn order(account: u64) -> Order {
    Order { account, text: "\"quoted\"\n".to_owned() }
}

struct Ledger {
    key: u64,
    log: Sender<String>,
}

impl Actor for Ledger {
    type Message = LedgerMsg;
    fn receive(&mut self, message: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
        if let LedgerMsg::Order(order) = &message {
            if order.account == 13 {
                return Err(Failure::msg("bad luck"));
            }
        }
        self.log.send(format!("{} handles {}", self.key, matches!(message, LedgerMsg::Order(_))))?;
        Ok(())
    }
    fn started(&mut self, _: &mut Context<LedgerMsg>) -> HandlerResult {
        self.log.send(format!("{} started", self.key))?;
        Ok(())
    }
    fn stopped(&mut self, _: &mut Context<LedgerMsg>) {
        let _ = self.log.send(format!("{} stopped", self.key));
    }
    fn mailbox() -> Option<pointsman::Mailbox> {
        Some(pointsman::Mailbox::bounded(2).on_full(pointsman::OverflowPolicy::Reject))
    }
}

/// A writer that the test reads.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics here").write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Page {
    fn lines(&self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(self.0.lock().expect("as above").clone()).expect("text");
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

fn records(builder: DumperBuilder) -> (Dumper, Receiver<DumpRecord>) {
    let (sender, records) = channel();
    let dumper = builder.to_fn(move |record| drop(sender.send(record.clone()))).expect("a thread");
    (dumper, records)
}

#[test]
fn the_messages_of_a_dumped_group_are_lines_of_json_and_its_actors_do_as_before() {
    let stage = Stage::turns();
    let page = Page::default();
    let dumper = Dumper::builder(&stage.system).to_writer(page.clone()).expect("a thread");
    let (log, wraps) = (stage.log.clone(), dumper.clone());
    let ledgers = stage.system.group("ledgers").by_key(
        |message: &LedgerMsg| if let LedgerMsg::Order(order) = message { order.account } else { 0 },
        move |_, key| wraps.actor(Ledger { key: *key, log: log.clone() }),
    );
    let ledgers = ledgers.spawn().expect("a free name");
    ledgers.tell(order(7));
    run_turns();
    ledgers.tell(LedgerMsg::Note(Note));
    stage.expect(&["7 started", "7 handles true", "0 started", "0 handles false"]);
    dumper.flush();
    let lines = page.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["path"], "/user/ledgers/7");
    assert_eq!(lines[0]["direction"], "in");
    assert_eq!(lines[0]["type"], std::any::type_name::<LedgerMsg>());
    assert_eq!(lines[0]["message"], format!("{:?}", LedgerMsg::Order(order(7))));
    assert!(lines[0]["time"].as_f64().expect("a number") > 1.7e9, "{}", lines[0]["time"]);
    assert_eq!(lines[1]["path"], "/user/ledgers/0");
    assert_eq!(lines[1]["message"], "Note(Note)");
    let counts = dumper.counts();
    assert_eq!((counts.written, counts.omitted, counts.lost), (2, 0, 0));
    stage.end(&["0 stopped", "7 stopped"]);
}

#[test]
fn a_dumped_actor_has_the_mailbox_and_the_fate_of_the_actor_inside() {
    let stage = Stage::turns();
    let (dumper, records) = records(Dumper::builder(&stage.system));
    let (log, wraps) = (stage.log.clone(), dumper.clone());
    let recipe = move || wraps.actor(Ledger { key: 1, log: log.clone() });
    let ledger = stage.system.actor("ledger").spawn(recipe).expect("a free name");
    stage.expect(&["1 started"]);
    ledger.tell(order(13));
    ledger.tell(LedgerMsg::Note(Note));
    let refused = ledger.try_tell(LedgerMsg::Note(Note)).expect_err("the mailbox has two places");
    assert!(matches!(refused, SendError::Full(_)), "{refused}");
    stage.expect(&["1 stopped", "1 started", "1 handles false"]);
    dumper.flush();
    let shown: Vec<String> = records.try_iter().map(|record| record.message).collect();
    assert_eq!(shown.len(), 2, "a refused message is not handled: {shown:?}");
    assert!(shown[0].contains("account: 13"), "a message that fails its actor is shown before: {shown:?}");
    stage.end(&["1 stopped"]);
}

#[test]
fn only_messages_for_which_the_condition_holds_are_dumped() {
    let stage = Stage::turns();
    let (dumper, records) = records(Dumper::builder(&stage.system));
    let (log, wraps) = (stage.log.clone(), dumper.clone());
    let recipe = move || {
        let ledger = Ledger { key: 1, log: log.clone() };
        wraps.actor(ledger).when(|message| matches!(message, LedgerMsg::Note(_)))
    };
    let ledger = stage.system.spawn(recipe).expect("it lives");
    ledger.tell(order(1));
    ledger.tell(LedgerMsg::Note(Note));
    stage.expect(&["1 started", "1 handles true", "1 handles false"]);
    dumper.flush();
    let shown: Vec<String> = records.try_iter().map(|record| record.message).collect();
    assert_eq!(shown, ["Note(Note)"]);
    stage.end(&["1 stopped"]);
}

#[test]
fn a_group_shows_what_it_sends_of_a_type_and_to_which_groups() {
    let stage = Stage::turns();
    let (dumper, records) = records(Dumper::builder(&stage.system));
    let topology = stage.system.topology();
    let gateway = topology.local::<u8>("gateway").expect("free");
    let (ledgers, audit) = (topology.local("ledgers").expect("free"), topology.local("audit").expect("free"));
    gateway.route_all_to::<Order, LedgerMsg>(&ledgers).route_all_to::<Note, LedgerMsg>(&ledgers);
    gateway.route_to(&audit, |order: &Order| order.account > 10);
    gateway.dump_sent::<Order>(&dumper);
    let log = stage.log.clone();
    let ledger = stage.system.spawn(move || Ledger { key: 1, log: log.clone() }).expect("it lives");
    ledgers.mount(&ledger);
    audit.mount(&ActorRef::from_fn(|_: Order| {}));
    let out = gateway.outlets();
    struct Idle;
    impl Actor for Idle {
        type Message = u8;
        fn receive(&mut self, _: u8, _: &mut Context<u8>) -> HandlerResult {
            Ok(())
        }
    }
    gateway.mount(&stage.system.actor("gate").spawn(|| Idle).expect("free"));
    out.try_send(order(1)).expect("it is taken");
    run_turns();
    out.try_send(order(11)).expect("it is taken");
    run_turns();
    out.try_send(Note).expect("it is taken");
    run_turns();
    dumper.flush();
    let shown: Vec<_> = records.try_iter().collect();
    let to: Vec<_> = shown.iter().map(|record| record.to.as_deref().expect("a group")).collect();
    assert_eq!(to, ["ledgers", "ledgers", "audit"], "notes are of another type");
    for record in &shown {
        assert_eq!((record.direction, &*record.path), (DumpDirection::Out, "/user/gate"));
        assert_eq!(record.message_type, std::any::type_name::<Order>());
    }
    let notes: Vec<String> = stage.notes.try_iter().collect();
    assert_eq!(notes, ["1 started", "1 handles true", "1 handles true", "1 handles false"]);
    stage.end(&["1 stopped"]);
}

#[test]
fn a_wrapped_reference_shows_what_is_sent_by_it() {
    let stage = Stage::turns();
    let (dumper, records) = records(Dumper::builder(&stage.system));
    let log = stage.log.clone();
    let to = ActorRef::from_fn(move |note: Note| log.send(format!("{note:?}")).expect("kept"));
    dumper.sent_to(&to, "/user/a").tell(Note);
    stage.expect(&["Note"]);
    dumper.flush();
    let record = records.try_recv().expect("shown");
    assert_eq!((record.direction, &*record.path, &*record.message), (DumpDirection::Out, "/user/a", "Note"));
    assert_eq!(record.to, Some(to.path().to_string()));
    stage.end(&[]);
}

#[test]
fn beyond_the_rate_records_are_omitted_and_the_next_one_says_how_many() {
    let stage = Stage::turns();
    let page = Page::default();
    let dumper =
        Dumper::builder(&stage.system).lines_per_second(2).to_writer(page.clone()).expect("a thread");
    let shown = dumper.sent_to(&ActorRef::from_fn(|_: Note| {}), "/a");
    for _ in 0..5 {
        shown.tell(Note);
    }
    stage.clock.advance(Duration::from_millis(999));
    shown.tell(Note);
    stage.clock.advance(Duration::from_millis(1));
    for _ in 0..4 {
        shown.tell(Note);
    }
    dumper.flush();
    let counts = dumper.counts();
    assert_eq!((counts.written, counts.omitted), (4, 6));
    let omitted: Vec<_> = page.lines().iter().map(|line| line["omitted"].as_u64()).collect();
    assert_eq!(omitted, [None, None, Some(4), None]);
    let lines = page.lines();
    let seconds = |line: usize| lines[line]["time"].as_f64().expect("a number");
    assert!((seconds(2) - seconds(1) - 1.0).abs() < 1e-4, "the time is that of the system: {lines:?}");
    drop((shown, dumper));
    crate::support::wait_until(|| page.lines().len() == 5); // the thread of the dumper ends by itself
    assert_eq!(page.lines()[4]["omitted"], 2);
    stage.end(&[]);
}

#[test]
fn the_last_line_tells_of_records_that_were_omitted_after_the_last_record() {
    let stage = Stage::turns();
    let page = Page::default();
    let dumper =
        Dumper::builder(&stage.system).lines_per_second(0).to_writer(page.clone()).expect("a thread");
    dumper.sent_to(&ActorRef::from_fn(|_: Note| {}), "/a").tell(Note);
    assert_eq!(dumper.counts().omitted, 1);
    drop(dumper);
    let seen = page.clone();
    crate::support::wait_until(move || !seen.lines().is_empty());
    assert_eq!(page.lines()[0]["omitted"], 1);
    assert!(page.lines()[0].get("message").is_none());
    stage.end(&[]);
}

#[test]
fn a_slow_sink_keeps_no_sender_waiting_and_what_the_queue_cannot_hold_is_omitted() {
    let stage = Stage::turns();
    let ((entered, waits), (release, released)) = (channel(), channel::<()>());
    let slow = move |_: &DumpRecord| {
        let _ = entered.send(());
        let _ = released.recv();
    };
    let dumper = Dumper::builder(&stage.system).queue_limit(3).to_fn(slow).expect("a thread");
    let shown = dumper.sent_to(&ActorRef::from_fn(|_: Note| {}), "/a");
    shown.tell(Note);
    waits.recv_timeout(LONG).expect("the sink has it");
    for _ in 0..5 {
        shown.tell(Note);
    }
    assert_eq!(dumper.counts().omitted, 2);
    drop(release);
    dumper.flush();
    assert_eq!(dumper.counts().written, 4);
    stage.end(&[]);
}

#[test]
fn a_sink_that_fails_loses_records_which_are_counted_and_harms_no_actor() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no room"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let stage = Stage::turns();
    let dumper = Dumper::builder(&stage.system).to_writer(Full).expect("a thread");
    let panics = Dumper::builder(&stage.system).to_fn(|_| panic!("planted")).expect("a thread");
    for dumper in [dumper, panics] {
        let shown = dumper.sent_to(&ActorRef::from_fn(|_: Note| {}), "/a");
        shown.tell(Note);
        shown.tell(Note);
        dumper.flush();
        assert_eq!((dumper.counts().written, dumper.counts().lost), (0, 2));
    }
    stage.end(&[]);
}

#[test]
fn a_file_is_appended_to() {
    let path = std::env::temp_dir().join(format!("pointsman-dump-{}.json", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let stage = Stage::turns();
    for count in 1..=2 {
        let dumper = Dumper::builder(&stage.system).to_file(&path).expect("it can be written");
        dumper.sent_to(&ActorRef::from_fn(|_: Note| {}), "/a").tell(Note);
        dumper.flush();
        assert_eq!(std::fs::read_to_string(&path).expect("it is there").lines().count(), count);
    }
    std::fs::remove_file(&path).expect("it is there");
    let nowhere = Dumper::builder(&stage.system).to_file("/nowhere/at/all");
    assert_eq!(nowhere.expect_err("no such folder").kind(), io::ErrorKind::NotFound);
    stage.end(&[]);
}

/// Shows itself as its text.
#[derive(Clone)]
struct Raw(String);

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_comes_back_from_its_line(
        texts in proptest::collection::vec(any::<String>(), 1..20),
        more in "[\\x00-\\x20\"\\\\/\u{7f}-\u{a0}\u{2028}\u{2029}\u{feff}]{0,20}",
        limit in 0_usize..40,
    ) {
        let stage = Stage::turns();
        let page = Page::default();
        let builder = Dumper::builder(&stage.system).text_limit(limit);
        let dumper = builder.to_writer(page.clone()).expect("a thread");
        let to = ActorRef::from_fn(|_: Raw| {});
        let texts: Vec<String> = texts.into_iter().chain([more]).collect();
        for text in &texts {
            dumper.sent_to(&to, text).tell(Raw(text.clone()));
        }
        dumper.flush();
        let lines = page.lines();
        prop_assert_eq!(lines.len(), texts.len());
        for (line, text) in lines.iter().zip(&texts) {
            prop_assert_eq!(line["path"].as_str(), Some(&**text));
            let shown = line["message"].as_str().expect("a text");
            let cut = line["cut"].as_u64().unwrap_or(0);
            prop_assert!(text.starts_with(shown) && shown.len() <= limit);
            prop_assert_eq!(shown.len() as u64 + cut, text.len() as u64);
        }
        stage.end(&[]);
    }
}
