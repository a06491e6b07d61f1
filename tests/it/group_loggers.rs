//! Group loggers: the group of the actor that logs decides, by rules that change at run time.

use crate::support::{Stage, run_turns};
use log::{Level, LevelFilter, Log, Metadata, Record};
use pointsman::logs::{GroupLoggers, LogGroup};
use pointsman::prelude::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The program's logger: notes each record, except those of one target.
#[derive(Clone)]
struct Notes(Arc<Mutex<Sender<String>>>);

impl Log for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() != "hidden"
    }
    fn log(&self, record: &Record<'_>) {
        let text = format!("{} {}", record.level(), record.args());
        self.0.lock().expect("no test panics here").send(text).expect("it is kept");
    }
    fn flush(&self) {}
}

/// Logs through loggers of its own, since a process has one logger of the crate `log`.
fn say(loggers: &GroupLoggers, level: Level, target: &str, text: &str) {
    loggers.log(&Record::builder().level(level).target(target).args(format_args!("{text}")).build());
}

struct Says(GroupLoggers);

impl Actor for Says {
    type Message = (Level, &'static str);
    fn receive(&mut self, (level, target): Self::Message, _: &mut Context<Self::Message>) -> HandlerResult {
        say(&self.0, level, target, target);
        if level == Level::Error {
            panic!("planted");
        }
        Ok(())
    }
}

fn loggers(stage: &Stage) -> (GroupLoggers, Receiver<String>) {
    let (sender, notes) = channel();
    (GroupLoggers::around(&stage.system, Notes(Arc::new(Mutex::new(sender)))), notes)
}

fn actor(stage: &Stage, loggers: &GroupLoggers, group: &LogGroup) -> ActorRef<(Level, &'static str)> {
    let (loggers, group) = (loggers.clone(), group.clone());
    stage.system.spawn(move || group.actor(Says(loggers.clone()))).expect("it lives")
}

fn seen(notes: &Receiver<String>) -> Vec<String> {
    run_turns();
    notes.try_iter().collect()
}

#[test]
fn the_group_of_the_actor_decides_and_its_level_changes_at_run_time() {
    let stage = Stage::turns();
    let (loggers, notes) = loggers(&stage);
    let ledgers = actor(&stage, &loggers, &loggers.group("ledgers"));
    let audit = actor(&stage, &loggers, &loggers.group("audit"));
    let outside = {
        let loggers = loggers.clone();
        stage.system.spawn(move || Says(loggers.clone())).expect("it lives")
    };
    loggers.set_level("ledgers", LevelFilter::Debug);
    loggers.set_level("audit", LevelFilter::Off);
    ledgers.tell((Level::Debug, "a"));
    assert_eq!(seen(&notes), ["DEBUG a"]);
    audit.tell((Level::Warn, "b"));
    outside.tell((Level::Debug, "c"));
    say(&loggers, Level::Debug, "d", "d");
    assert!(seen(&notes).is_empty(), "neither another group nor the default takes it");
    outside.tell((Level::Info, "e"));
    assert_eq!(seen(&notes), ["INFO e"]);
    loggers.set_level("ledgers", LevelFilter::Info);
    loggers.set_level("audit", LevelFilter::Warn);
    loggers.set_default_level(LevelFilter::Trace);
    ledgers.tell((Level::Debug, "f"));
    assert!(seen(&notes).is_empty());
    audit.tell((Level::Warn, "g"));
    assert_eq!(seen(&notes), ["WARN g"]);
    say(&loggers, Level::Trace, "h", "h");
    assert_eq!(seen(&notes), ["TRACE h"]);
    stage.end(&[]);
}

#[test]
fn a_panic_in_a_handler_leaves_no_group_behind_on_its_thread() {
    let stage = Stage::turns();
    let (loggers, notes) = loggers(&stage);
    loggers.set_default_level(LevelFilter::Off);
    let group = loggers.group("ledgers");
    loggers.set_level("ledgers", LevelFilter::Info);
    let ledgers = actor(&stage, &loggers, &group);
    ledgers.tell((Level::Error, "a"));
    assert_eq!(seen(&notes), ["ERROR a"]);
    say(&loggers, Level::Error, "b", "b");
    assert!(seen(&notes).is_empty(), "this thread runs no actor now");
    ledgers.tell((Level::Info, "c"));
    assert_eq!(seen(&notes), ["INFO c"], "the actor is of its group after its restart, too");
    stage.end(&[]);
}

#[test]
fn the_longest_target_has_the_last_word_in_a_group_and_the_logger_behind_keeps_its_own_filter() {
    let stage = Stage::turns();
    let (loggers, notes) = loggers(&stage);
    let ledgers = actor(&stage, &loggers, &loggers.group("ledgers"));
    loggers.set_target_level("ledgers", "shop", LevelFilter::Off);
    loggers.set_target_level("ledgers", "shop::books", LevelFilter::Trace);
    for target in ["shop::till", "shop::books::page", "other", "hidden"] {
        ledgers.tell((Level::Info, target));
    }
    assert_eq!(seen(&notes), ["INFO shop::books::page", "INFO other"]);
    loggers.set_target_level("ledgers", "shop", LevelFilter::Info);
    ledgers.tell((Level::Info, "shop::till"));
    assert_eq!(seen(&notes), ["INFO shop::till"]);
    stage.end(&[]);
}

#[test]
fn lines_beyond_the_limit_of_a_group_are_omitted_and_told_of() {
    let stage = Stage::turns();
    let (loggers, notes) = loggers(&stage);
    let ledgers = actor(&stage, &loggers, &loggers.group("ledgers"));
    loggers.set_lines_per_second("ledgers", 2);
    for target in ["a", "b", "c", "d", "e"] {
        ledgers.tell((Level::Info, target));
    }
    assert_eq!(seen(&notes), ["INFO a", "INFO b"]);
    say(&loggers, Level::Info, "f", "f");
    assert_eq!(seen(&notes), ["INFO f"], "the limit is the group's");
    stage.clock.advance(Duration::from_secs(1));
    ledgers.tell((Level::Info, "g"));
    let told = "WARN group `ledgers`: 3 log lines were omitted, by the limit of the group";
    assert_eq!(seen(&notes), [told, "INFO g"]);
    assert_eq!(format!("{loggers:?}"), "GroupLoggers { groups: [\"ledgers\"], .. }");
    stage.end(&[]);
}
