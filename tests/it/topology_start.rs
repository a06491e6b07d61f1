//! The first configuration of a topology: each group gets it once, whoever brings it.

use crate::support::{LONG, Stage, run_turns};
use pointsman::group::{Group, GroupConfig, Singleton};
use pointsman::prelude::*;
use pointsman::topology::{Topology, TopologyError};
use std::sync::{Arc, Mutex};

/// What a configurer is told to do, with the topology and the log of its stage.
type Act = Arc<dyn Fn(&Topology, &dyn Fn(String)) + Send + Sync>;

/// An entrypoint's actor: acts when it is started, and when it is told to.
struct Configurer {
    topology: Topology,
    log: std::sync::mpsc::Sender<String>,
    at_start: Act,
}

enum Configuring {
    Bring(&'static str),
    Stop,
}

impl Actor for Configurer {
    type Message = Configuring;
    fn started(&mut self, _: &mut Context<Configuring>) -> HandlerResult {
        (self.at_start)(&self.topology, &|text| _ = self.log.send(text));
        Ok(())
    }
    fn receive(&mut self, message: Configuring, ctx: &mut Context<Configuring>) -> HandlerResult {
        match message {
            Configuring::Bring(text) => {
                let brought = self.topology.reconfigure(text, false);
                self.log.send(format!("brought {}", brought.is_ok()))?;
            }
            Configuring::Stop => ctx.stop(),
        }
        Ok(())
    }
}

fn bring(topology: &Topology, text: &str) -> String {
    format!("{:?}", topology.reconfigure(text, false))
}

struct Idle;
impl Actor for Idle {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

/// The texts that a group was told to go by.
type Applied = Arc<Mutex<Vec<String>>>;

fn applied(applied: &Applied) -> Vec<String> {
    applied.lock().expect("not poisoned").clone()
}

/// A group that notes what it goes by, and rejects a section with the key `wrong`.
fn noting(stage: &Stage, name: &str) -> (Group<u32, u32>, Applied) {
    let applied = Applied::default();
    let goes = applied.clone();
    let decode = |config: &GroupConfig| match config.table().contains_key("wrong") {
        true => Err("as told".to_owned()),
        false => Ok(config.table().to_string().trim().to_owned()),
    };
    let plan = stage.system.group(name).by_key(|number: &u32| *number, |_, _| Idle);
    let apply = move |_: &Group<u32, u32>, text| goes.lock().expect("not poisoned").push(text);
    (plan.config(decode, apply).spawn().expect("sound"), applied)
}

/// A topology of a group `shards` and an entrypoint that is not declared yet.
struct Whole {
    stage: Stage,
    topology: Topology,
    shards: Applied,
    configurer: Group<Configuring, Singleton>,
}

fn whole(stage: Stage, at_start: Act) -> Whole {
    let topology = stage.system.topology();
    let (group, shards) = noting(&stage, "shards");
    topology.local("shards").expect("free").mount(&group);
    let (handle, log) = (topology.clone(), stage.log.clone());
    let recipe = move |_: &mut Context<Configuring>| Configurer {
        topology: handle.clone(),
        log: log.clone(),
        at_start: at_start.clone(),
    };
    let configurer = stage.system.group("configurer").singleton(recipe).spawn().expect("sound");
    Whole { stage, topology, shards, configurer }
}

const FOUR: &str = "[topology.shards]\nsize = 4";

fn both_stages(name: &str) -> [Stage; 2] {
    [Stage::turns(), Stage::threads(name)]
}

#[test]
fn an_entrypoint_whose_actor_distributes_configurations_configures_each_group_once() {
    for stage in both_stages("first-1") {
        let act: Act = Arc::new(|topology, log| log(bring(topology, FOUR)));
        let whole = whole(stage, act);
        whole.topology.local("configurer").expect("free").entrypoint().mount(&whole.configurer);
        assert_eq!(whole.topology.start(), Ok(()));
        run_turns();
        assert_eq!(whole.stage.note(), r#"Ok(["shards"])"#);
        assert_eq!(applied(&whole.shards), ["size = 4"]);
        assert_eq!(whole.topology.start(), Err(TopologyError::Started));
        assert_eq!(whole.topology.reconfigure(FOUR, false), Ok(Vec::new()), "it goes by that already");
        whole.stage.end(&[]);
    }
}

#[test]
fn an_entrypoint_may_distribute_configurations_as_soon_as_it_gets_its_own() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let (group, shards) = noting(&stage, "shards");
    topology.local("shards").expect("free").mount(&group);
    let (log, handle) = (stage.log.clone(), topology.clone());
    let has_begun = std::sync::atomic::AtomicBool::new(false);
    let text = "[topology.shards]\nsize = 4\n[topology.first]\nof = 'it'";
    let apply = move |_: &Group<u32, u32>, own: String| {
        let _ = log.send(format!("it goes by {own:?}"));
        if !has_begun.swap(true, std::sync::atomic::Ordering::SeqCst) {
            let _ = log.send(bring(&handle, text));
            let _ = log.send(format!("{:?}", handle.start()));
        }
    };
    let decode = |config: &GroupConfig| Ok::<_, String>(config.table().to_string().trim().to_owned());
    let plan = stage.system.group("first").by_key(|number: &u32| *number, |_, _| Idle);
    let first = plan.config(decode, apply).spawn().expect("sound");
    topology.local("first").expect("free").entrypoint().mount(&first);
    assert_eq!(topology.start(), Ok(()));
    stage.expect(&[
        r#"it goes by """#,
        r#"Ok(["shards"])"#,
        "Err(another configuration is on its way: try again when it has arrived)",
        // Its own part comes when it has done with the empty one.
        r#"it goes by "of = \"it\"""#,
    ]);
    assert_eq!(applied(&shards), ["size = 4"]);
    assert_eq!(topology.reconfigure(text, false), Ok(Vec::new()), "both go by it");
    stage.end(&[]);
}

#[test]
fn without_an_entrypoint_that_brings_one_the_text_of_the_builder_is_the_first_configuration() {
    let said = "[topology.shards]\nsize = 7";
    let stage = Stage::turns_with(move |builder| builder.config(said).expect("sound"));
    let whole = whole(stage, Arc::new(|_, _| {}));
    // It is not waited for, though nothing of it comes.
    whole.topology.local("configurer").expect("free").configurer().mount(&whole.configurer);
    assert_eq!(whole.topology.start(), Ok(()));
    assert_eq!(applied(&whole.shards), ["size = 7"]);
    whole.configurer.tell(Configuring::Bring(FOUR));
    run_turns();
    whole.stage.expect(&["brought true"]);
    assert_eq!(applied(&whole.shards), ["size = 7", "size = 4"]);
    whole.stage.end(&[]);

    let whole = self::whole(Stage::turns(), Arc::new(|_, _| {}));
    whole.topology.local("configurer").expect("free").entrypoint().mount(&whole.configurer);
    assert_eq!(whole.topology.start(), Ok(()));
    assert_eq!(applied(&whole.shards), [""]);
    whole.stage.end(&[]);
}

#[test]
fn the_start_waits_for_the_first_configuration_of_a_configurer() {
    let act: Act = Arc::new(|_, log| log("started".to_owned()));
    let whole = whole(Stage::threads("first-2"), act);
    whole.topology.local("configurer").expect("free").configurer().mount(&whole.configurer);
    assert_eq!(bring(&whole.topology, FOUR), "Err(the topology has not started yet: call `start` first)");
    let (topology, log) = (whole.topology.clone(), whole.stage.log.clone());
    let starter = std::thread::spawn(move || {
        let started = topology.start();
        log.send("the start is over".to_owned()).expect("it is kept");
        started
    });
    whole.stage.expect(&["started"]);
    assert_eq!(whole.topology.start(), Err(TopologyError::Busy));
    // What is rejected configures nobody, and the start goes on waiting.
    whole.configurer.tell(Configuring::Bring("[topology.shards]\nwrong = 1"));
    whole.stage.expect(&["brought false"]);
    assert_eq!(applied(&whole.shards), [""; 0]);
    whole.configurer.tell(Configuring::Bring(FOUR));
    let mut notes = [whole.stage.note(), whole.stage.note()];
    notes.sort();
    assert_eq!(notes, ["brought true", "the start is over"]);
    assert_eq!(starter.join().expect("no panic"), Ok(()));
    assert_eq!(applied(&whole.shards), ["size = 4"]);
    whole.stage.end(&[]);
}

#[test]
fn a_start_whose_configurers_end_without_a_configuration_is_a_typed_error() {
    let act: Act = Arc::new(|_, log| log("started".to_owned()));
    let whole = whole(Stage::threads("first-3"), act);
    let configurer = whole.stage.system.actor("one").spawn({
        let (topology, log) = (whole.topology.clone(), whole.stage.log.clone());
        move || Configurer { topology: topology.clone(), log: log.clone(), at_start: Arc::new(|_, _| {}) }
    });
    let configurer = configurer.expect("free");
    whole.topology.local("configurer").expect("free").configurer().mount(&configurer);
    whole.topology.local("other").expect("free").entrypoint().mount(&whole.configurer);
    let topology = whole.topology.clone();
    let starter = std::thread::spawn(move || topology.start());
    whole.stage.expect(&["started"]);
    configurer.tell(Configuring::Stop);
    let error = starter.join().expect("no panic").expect_err("nobody configures");
    assert_eq!(error, TopologyError::Unconfigured { entrypoints: vec!["configurer".to_owned()] });
    assert!(error.to_string().contains("let one call `reconfigure`"), "{error}");
    assert_eq!(applied(&whole.shards), [""; 0]);
    whole.stage.end(&[]);
}

#[test]
fn a_thread_that_must_not_wait_leaves_the_first_configuration_to_the_configurer() {
    // On the thread of a test system there is nothing to wait for once all turns are run.
    let here = whole(Stage::turns(), Arc::new(|_, _| {}));
    here.topology.local("configurer").expect("free").configurer().mount(&here.configurer);
    assert_eq!(here.topology.start(), Ok(()));
    assert_eq!(applied(&here.shards), [""; 0]);
    here.configurer.tell(Configuring::Bring(FOUR));
    run_turns();
    here.stage.expect(&["brought true"]);
    assert_eq!(applied(&here.shards), ["size = 4"]);
    here.stage.end(&[]);

    // Nor may an actor wait.
    for is_configurer in [true, false] {
        let whole = whole(Stage::threads("first-4"), Arc::new(|_, _| {}));
        let local = whole.topology.local("configurer").expect("free");
        let local = if is_configurer { local.configurer() } else { local.entrypoint() };
        local.mount(&whole.configurer);
        let topology = whole.topology.clone();
        let (sender, started) = std::sync::mpsc::channel();
        let starter = whole.stage.spawn(&whole.stage.role("starter"));
        crate::support::act(&starter, move |_, _| Ok(sender.send(topology.start())?));
        assert_eq!(started.recv_timeout(LONG), Ok(Ok(())));
        let expected: &[&str] = if is_configurer { &[] } else { &[""] };
        assert_eq!(applied(&whole.shards), expected);
        assert_eq!(bring(&whole.topology, FOUR), r#"Ok(["shards"])"#);
        assert_eq!(applied(&whole.shards).last().map(String::as_str), Some("size = 4"));
        whole.stage.expect(&["starter Started 1"]);
        whole.stage.end(&["starter Stopped 1"]);
    }
}

#[test]
fn a_start_that_is_rejected_for_an_entrypoints_own_part_configures_nobody_twice() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let (group, shards) = noting(&stage, "shards");
    topology.local("shards").expect("free").mount(&group);
    let (log, handle) = (stage.log.clone(), topology.clone());
    // The other entrypoint has not got its own yet.
    let text = "[topology.shards]\nsize = 4\n[topology.picky]\nwrong = 1";
    let plan = stage.system.group("first").by_key(|number: &u32| *number, |_, _| Idle);
    let apply = move |_: &Group<u32, u32>, ()| _ = log.send(bring(&handle, text));
    let first = plan.config(|_| Ok(()), apply).spawn().expect("sound");
    let (picky, chosen) = noting(&stage, "picky");
    topology.local("first").expect("free").entrypoint().mount(&first);
    topology.local("picky").expect("free").entrypoint().mount(&picky);
    let error = topology.start().expect_err("its own part is wrong");
    let TopologyError::Rejected { rejections } = &error else { panic!("{error}") };
    assert_eq!((rejections.len(), &*rejections[0].0), (1, "picky"));
    assert_eq!(topology.start(), Ok(()), "it goes by the empty one");
    stage.expect(&[r#"Ok(["shards"])"#]);
    assert_eq!((applied(&shards), applied(&chosen)), (vec!["size = 4".to_owned()], vec![String::new()]));
    stage.end(&[]);
}
