//! Settings from a file, in code, and printed.

use crate::support::*;
use pointsman::config::EngineConfig;
use pointsman::dispatch::DispatcherKind;
use pointsman::mailbox::MailboxRequirement;
use pointsman::prelude::*;
use pointsman::settings::Deployment;
use pointsman::shutdown::Phase;
use pointsman::{BuildError, SpawnError};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// The key and the fault of a configuration that is wrong.
fn refused(toml: &str) -> (String, String) {
    let builder = System::builder("refused")
        .dispatcher("files", Dispatcher::blocking())
        .mailbox("first", Mailbox::priority(|number: &u32| i64::from(*number)));
    match builder.config(toml) {
        Err(BuildError::ConfigKey { key, fault }) => (key, fault),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is accepted: {toml}"),
    }
}

#[test]
fn unknown_keys_are_refused_with_the_sections_around_them_and_what_there_is() {
    for (toml, key, known) in [
        ("sede = 1", "sede", "`seed`"),
        ("[dispatcher.files]\nthread = 1", "dispatcher.files.thread", "`threads-min`"),
        ("[deployment.\"/a\"]\nmailbocks = \"x\"", "deployment.\"/a\".mailbocks", "`mailbox`"),
        #[cfg(feature = "net")]
        (
            "[deployment.\"/a\".listener]\nbacklog = 1",
            "deployment.\"/a\".listener.backlog",
            "`max-connections`",
        ),
        ("[shutdown.phase.flush]\ntime-out = \"1s\"", "shutdown.phase.flush.time-out", "`timeout`"),
        ("[dead-letter]\nlog = 1", "dead-letter", "`dead-letters`"),
        ("\"\" = 1", "\"\"", "`seed`"),
        ("[mailbox.\"a.b\"]\nsize = 1", "mailbox.\"a.b\".size", "`capacity`"),
    ] {
        let (refused_key, fault) = refused(toml);
        assert_eq!(refused_key, key, "{fault}");
        assert!(fault.contains("unknown field") && fault.contains(known), "{fault}");
    }
}

/// A program's own file, with the engine's settings in a section.
#[derive(Debug, serde::Deserialize)]
struct Own {
    port: u16,
    #[serde(default)]
    engine: EngineConfig,
}

#[test]
fn the_settings_may_stand_in_a_section_of_a_file_of_the_programs_own() {
    let own: Own = toml::from_str(
        "port = 7000\n[engine]\nseed = 7\n[engine.mailbox.small]\ntype = \"bounded\"\ncapacity = 3\n\
         [engine.deployment.\"/a\"]\nmailbox = \"small\"",
    )
    .unwrap();
    assert_eq!(own.port, 7000);
    let system = System::builder("own").config_section("engine", &own.engine).unwrap().build().unwrap();
    let printed = system.settings();
    assert!(printed.contains("seed = 7") && printed.contains("capacity = 3"), "{printed}");
    // The same from a table, and from a file without the section.
    let table = EngineConfig::from_table(own.engine.as_table().clone());
    assert_eq!(EngineConfig::from(own.engine.as_table().clone()), table);
    let again = System::builder("own").config_section("engine", &table).unwrap().build().unwrap();
    assert_eq!(again.settings(), printed);
    let without: Own = toml::from_str("port = 1").unwrap();
    assert_eq!(without.engine, EngineConfig::default());
    assert!(System::builder("own").config_section("engine", &without.engine).is_ok());
}

#[test]
fn a_fault_in_a_section_of_the_programs_own_file_has_the_name_of_the_section() {
    for (text, section, wanted, part) in [
        ("[engine]\nsead = 7", "engine", "engine.sead", "unknown field"),
        (
            "[engine.dispatcher.default]\nthreads = 0",
            "engine",
            "engine.dispatcher.default.threads",
            "from 1 to 1024",
        ),
        (
            "[engine.deployment.\"/a.b\"]\nmailbox = \"x\"",
            "engine",
            "engine.deployment.\"/a.b\".mailbox",
            "\"x\"",
        ),
        ("[engine]\nseed = -1", "services.engine", "services.engine.seed", "at least 0"),
        ("[engine]\nseed = -1", "", "seed", "at least 0"),
    ] {
        let own: Own = toml::from_str(&format!("port = 1\n{text}")).unwrap();
        match System::builder("own").config_section(section, &own.engine) {
            Err(BuildError::ConfigKey { key, fault }) => {
                assert_eq!(key, wanted, "{fault}");
                assert!(fault.contains(part), "{fault}");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it is accepted: {text}"),
        }
    }
    let error = toml::from_str::<Own>("port = 1\nengine = 5").unwrap_err();
    assert!(error.to_string().contains("a section with keys"), "{error}");
}

#[test]
fn wrong_values_are_refused_with_what_stands_there_and_what_may_stand_there() {
    for (toml, key, stands, may_stand) in [
        ("seed = -1", "seed", "-1", "at least 0"),
        ("seed = \"x\"", "seed", "\"x\"", "a number in quotes"),
        ("inbox-capacity = 0", "inbox-capacity", "0", "at least 1"),
        ("stderr-without-logger = 1", "stderr-without-logger", "`1`", "boolean"),
        (
            "[shutdown.phase.srevice-stop]\ntimeout = \"1s\"",
            "shutdown.phase.srevice-stop",
            "no such phase",
            "service-stop",
        ),
        ("[dispatcher.default]\nthreads = 0", "dispatcher.default.threads", "0", "from 1 to 1024"),
        ("[dispatcher.default]\nthreads = 1025", "dispatcher.default.threads", "1025", "from 1 to 1024"),
        ("[dispatcher.default]\nthreads = \"4\"", "dispatcher.default.threads", "\"4\"", "from 1 to 1024"),
        ("[dispatcher.default]\nspin = 5", "dispatcher.default.spin", "5", "\"250ms\""),
        ("[dispatcher.default]\nspin = \"5 parsecs\"", "dispatcher.default.spin", "5 parsecs", "\"250ms\""),
        (
            "[dispatcher.default]\ntype = \"fork-join\"",
            "dispatcher.default.type",
            "fork-join",
            "`work-stealing`",
        ),
        ("[dead-letters]\nlog = \"some\"", "dead-letters.log", "some", "\"all\""),
        ("[mailbox.x]\ntype = \"bounded\"\ncapacity = 0", "mailbox.x.capacity", "0", "at least 1"),
        ("[mailbox.x]\non-full = \"explode\"", "mailbox.x.on-full", "explode", "`drop-oldest`"),
        ("[shutdown.phase.x]\nrecover = \"yes\"", "shutdown.phase.x.recover", "\"yes\"", "boolean"),
    ] {
        let (refused_key, fault) = refused(toml);
        assert_eq!(refused_key, key, "{fault}");
        assert!(fault.contains(stands) && fault.contains(may_stand), "{key}: {fault}");
    }
}

#[test]
fn a_section_that_is_a_list_is_refused() {
    for (toml, key) in [
        ("supervision = [\"stop\"]", "supervision"),
        ("dead-letters = []", "dead-letters"),
        ("shutdown = [true]", "shutdown"),
        ("[[dispatcher.default]]\ntype = \"work-stealing\"", "dispatcher.default"),
        ("[mailbox]\nx = [\"unbounded\"]", "mailbox.x"),
        ("[deployment.\"/a\"]\nrouter = [\"round-robin-pool\"]", "deployment.\"/a\".router"),
        ("[deployment.\"/a\"]\nrouter.resizer = [true]", "deployment.\"/a\".router.resizer"),
        ("[shutdown.phase]\nflush = [[\"service-stop\"]]", "shutdown.phase.flush"),
    ] {
        let (refused_key, fault) = refused(toml);
        assert_eq!(refused_key, key, "{fault}");
        assert!(fault.contains("sequence") && fault.contains("a section with keys"), "{key}: {fault}");
    }
}

#[test]
fn keys_that_do_not_go_together_are_refused() {
    for (toml, key, text) in [
        ("[dispatcher.files]\nspin = \"1ms\"", "dispatcher.files.spin", "\"blocking\""),
        ("[dispatcher.one]\ntype = \"pinned\"\nthreads = 2", "dispatcher.one.threads", "\"pinned\""),
        ("[dispatcher.files]\nthreads-min = 70", "dispatcher.files.threads-min", "above threads-max 64"),
        ("[dispatcher.io]\ntype = \"alias\"", "dispatcher.io.of", "stands for"),
        ("[dispatcher.io]\nmailbox = \"none\"", "dispatcher.io.mailbox", "[\"first\"]"),
        ("[mailbox.x]\ntype = \"bounded\"", "mailbox.x.capacity", "needs one"),
        ("[mailbox.x]\ntype = \"unbounded\"\ncapacity = 1", "mailbox.x.capacity", "has none"),
        ("[mailbox.x]\ntype = \"bounded\"\ncapacity = 1\non-full = \"wait\"", "mailbox.x.wait", "how long"),
        ("[mailbox.x]\nwait = \"1s\"", "mailbox.x.wait", "on-full"),
        ("[mailbox.first]\nguard = 3", "mailbox.first", "guard"),
        (
            "[deployment.\"/a\"]\ndispatcher = \"none\"",
            "deployment.\"/a\".dispatcher",
            "[\"default\", \"files\"]",
        ),
        ("[deployment.\"/a\"]\nmailbox = \"none\"", "deployment.\"/a\".mailbox", "[\"first\"]"),
        ("[deployment.\"a\"]", "deployment.a", "begin with '/'"),
        #[cfg(feature = "net")]
        (
            "[deployment.\"/a\".listener]\nlow-mark = 2\nhigh-mark = 1",
            "deployment.\"/a\".listener.low-mark",
            "2 is above high-mark 1",
        ),
        (
            "[supervision]\non-failure = \"stop\"\nrestarts = 3",
            "supervision.restarts",
            "nothing is restarted",
        ),
    ] {
        let (refused_key, fault) = refused(toml);
        assert_eq!(refused_key, key, "{fault}");
        assert!(fault.contains(text), "{key}: {fault}");
    }
}

#[test]
fn what_is_no_toml_and_a_file_that_is_not_there_are_told_apart() {
    let error = System::builder("x").config("seed = ").unwrap_err();
    assert!(matches!(&error, BuildError::ConfigSyntax { fault } if fault.contains("line 1")), "{error}");
    let deep = format!("[topology.x]\n{}a = 1", "a.".repeat(20_000));
    let error = System::builder("x").config(&deep).unwrap_err();
    assert!(
        matches!(&error, BuildError::ConfigSyntax { fault } if fault.contains("nested too deeply")),
        "{error}"
    );
    let deep = format!("seed = {}", "[".repeat(20_000));
    let error = System::builder("x").config(&deep).unwrap_err();
    assert!(matches!(&error, BuildError::ConfigSyntax { fault } if fault.contains("line 1")), "{error}");
    let error = System::builder("x").config_file("/nowhere/pointsman.toml").unwrap_err();
    assert!(error.to_string().contains("/nowhere/pointsman.toml"), "{error}");
    assert!(matches!(error, BuildError::ConfigFile { .. }));
}

#[test]
fn a_groups_section_that_could_not_be_printed_is_refused_for_its_depth() {
    let dotted = |depth: usize| format!("[topology.x]\n{}a = 1\n", "a.".repeat(depth));
    let in_headers = |depth: usize| {
        format!("[topology.x{}]\n{}a = 1\n", ".b".repeat(depth / 2), "a.".repeat(depth - depth / 2))
    };
    let lists = |depth: usize| format!("[topology.x]\na = {}{}\n", "[".repeat(depth), "]".repeat(depth));
    let tables =
        |depth: usize| format!("[topology.x]\na = {}1{}\n", "{ a = ".repeat(depth), " }".repeat(depth));
    let mixed = |depth: usize| format!("[[topology.x.{}a]]\nb = 1\n", "a.".repeat(depth - 2));
    for nested in [&dotted as &dyn Fn(usize) -> String, &in_headers, &lists, &tables, &mixed] {
        let system = System::builder("deep").config(&nested(64)).unwrap().build().unwrap();
        let printed = system.settings();
        assert!(system.shutdown(Duration::from_secs(60)).is_ok());
        let again = System::builder("deep").config(&printed).unwrap().build().unwrap();
        assert_eq!(again.settings(), printed);
        assert!(again.shutdown(Duration::from_secs(60)).is_ok());

        let (key, fault) = refused(&nested(65));
        assert_eq!(key, "topology.x");
        assert!(fault.contains("nested 65 deep, must be at most 64"), "{fault}");
    }
    assert_eq!(refused(&dotted(65).replace("topology.x", "topology.'a.b'")).0, "topology.\"a.b\"");
}

#[test]
fn the_file_changes_what_the_code_has_said_key_by_key() {
    let system = System::builder("changed")
        .seed(1)
        .dispatcher("default", Dispatcher::work_stealing().threads(1).spin(7 * MS))
        .dispatcher(
            "files",
            Dispatcher::blocking().thread_range(2..=3).keep_alive(9 * MS).mailbox(Mailbox::bounded(3)),
        )
        .mailbox("first", Mailbox::priority(|number: &u32| i64::from(*number)))
        .supervision(Strategy::default().max_restarts(3).quiet())
        .deploy("/a", Deployment::new().dispatcher("files"))
        .config(
            r#"
            [supervision]
            on-failure = "default"
            within = "1m"
            [deployment."/a"]
            stash-capacity = 7
            [dispatcher.default]
            throughput = 5
            [dispatcher.files]
            threads-max = 4
            [mailbox.first]
            capacity = 10
            [shutdown.phase.service-stop]
            timeout = "30s"
            "#,
        )
        .unwrap()
        .build()
        .unwrap();
    let printed = system.settings();
    for line in [
        "seed = 1",
        "restarts = 3",
        "within = \"1m\"",
        "# supervision: quiet, in the code",
        "# dispatcher.files.mailbox: without a name, in the code: bounded mailbox (capacity 3, on full Reject)",
        "dispatcher = \"files\"",
        "stash-capacity = 7",
        "threads = 1",
        "spin = \"7ms\"",
        "throughput = 5",
        "threads-min = 2",
        "threads-max = 4",
        "keep-alive = \"9ms\"",
        "capacity = 10",
        "# mailbox.first: sorts by a function in the code: bounded priority mailbox (capacity 10, on full Reject)",
        "depends-on = [\"service-requests-done\"]",
        "timeout = \"30s\"",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}\n{printed}");
    }
}

#[test]
fn the_file_changes_one_key_of_what_needs_two() {
    let builder = || {
        System::builder("keys")
            .dispatcher("one", Dispatcher::blocking())
            .dispatcher("two", Dispatcher::blocking())
            .dispatcher_alias("files", "one")
            .mailbox("waits", Mailbox::bounded(10).on_full(OverflowPolicy::Wait(7 * MS)))
            .mailbox(
                "sorts",
                Mailbox::priority(|number: &u32| i64::from(*number)).capacity(10).never_discard(3),
            )
    };
    for (toml, expected) in [
        ("[dispatcher.files]\nof = \"two\"", "[dispatcher.files]\ntype = \"alias\"\nof = \"two\"\n"),
        ("[dispatcher.files]\ntype = \"alias\"", "[dispatcher.files]\ntype = \"alias\"\nof = \"one\"\n"),
        ("[mailbox.waits]\nwait = \"9ms\"", "capacity = 10\non-full = \"wait\"\nwait = \"9ms\"\n"),
        ("[mailbox.waits]\non-full = \"wait\"", "capacity = 10\non-full = \"wait\"\nwait = \"7ms\"\n"),
        (
            "[mailbox.waits]\ntype = \"bounded\"\nwait = \"9ms\"",
            "capacity = 10\non-full = \"wait\"\nwait = \"9ms\"\n",
        ),
        (
            "[mailbox.sorts]\ntype = \"bounded\"\ncapacity = 20",
            "# mailbox.sorts: sorts by a function in the code: bounded priority mailbox (capacity 20, on full Reject, \
             never discards up to class 3)\n",
        ),
    ] {
        let system = builder().config(toml).unwrap().build().unwrap();
        let printed = system.settings();
        assert!(printed.contains(expected), "{toml}\n{printed}");
    }
    // An alias is not replaced by a dispatcher of its name unless that is said.
    let Err(BuildError::ConfigKey { key, fault }) = builder().config("[dispatcher.files]\nthroughput = 5")
    else {
        panic!("it is accepted")
    };
    assert_eq!(key, "dispatcher.files.throughput");
    assert!(fault.contains("alias"), "{fault}");
    let anew = builder().config("[dispatcher.files]\ntype = \"pinned\"\nthroughput = 5").unwrap();
    assert!(anew.build().unwrap().settings().contains("[dispatcher.files]\ntype = \"pinned\""));
}

#[test]
fn a_second_file_changes_the_section_of_a_group_key_by_key() {
    let first = "[topology.shop]\nopen = true\nlist = [1, 2]\n[topology.shop.till]\ncount = 1\nname = \"a\"";
    let second = "[topology.shop]\nlist = [3]\n[topology.shop.till]\ncount = 2";
    let system = System::builder("files").config(first).unwrap().config(second).unwrap().build().unwrap();
    let printed = system.settings();
    let both = "[topology.shop]\nlist = [3]\nopen = true\n\n[topology.shop.till]\ncount = 2\nname = \"a\"\n";
    assert!(printed.ends_with(both), "{printed}");
}

#[test]
fn printed_settings_make_the_same_system() {
    let full = include_str!("../../examples/pointsman.toml");
    // Without sockets there are no listeners to say anything of.
    let (before, listener) = full.split_once("[deployment.\"/gate\".listener]").unwrap();
    let (_, behind) = listener.split_once("\n[").unwrap();
    let full = if cfg!(feature = "net") { full.to_owned() } else { format!("{before}[{behind}") };
    let system = System::builder("first").config(&full).unwrap().build().unwrap();
    let printed = system.settings();
    let again = System::builder("second").config(&printed).unwrap().build().unwrap();
    assert_eq!(again.settings(), printed);
    for on_failure in ["default", "stop", "resume", "escalate"] {
        let said = format!("on-failure = \"{on_failure}\"");
        let system =
            System::builder("verdict").config(&format!("[supervision]\n{said}")).unwrap().build().unwrap();
        let printed = system.settings();
        assert!(printed.lines().any(|line| line == said), "{said}\n{printed}");
        let again = System::builder("again").config(&printed).unwrap().build().unwrap();
        assert_eq!(again.settings(), printed);
    }
    // What is a function is told.
    let strategy = Strategy::decide(|_| Directive::Stop).all_for_one();
    let printed = System::builder("told").supervision(strategy).build().unwrap().settings();
    assert!(
        printed.starts_with(
            "# supervision.on-failure: a function in the code decides\n# supervision: all for one"
        )
    );
    // The defaults print, too.
    let printed = System::builder("third").build().unwrap().settings();
    let again = System::builder("fourth").config(&printed).unwrap().build().unwrap();
    assert_eq!(again.settings(), printed);
    let large = System::builder("fifth").seed(u64::MAX).build().unwrap().settings();
    assert!(large.contains(&format!("seed = \"{}\"", u64::MAX)), "{large}");
    assert!(System::builder("sixth").config(&large).is_ok());
    // What may not stand in a file as it was said.
    let said = || {
        let builder = System::builder("odd")
            .mailbox("two\nlines", Mailbox::priority(|number: &u32| i64::from(*number)));
        #[cfg(feature = "net")]
        let gate = Deployment::new().listener(pointsman::net::ListenerSettings::new().marks(10, 5));
        #[cfg(feature = "net")]
        let none = Deployment::new().listener(pointsman::net::ListenerSettings::new().marks(0, 5));
        #[cfg(feature = "net")]
        let builder = builder.deploy("/gate", gate).deploy("/none", none);
        builder.deploy("/stash", Deployment::new().stash_capacity(usize::MAX))
    };
    let printed = said().build().unwrap().settings();
    // The file changes what the code has said.
    let sorts =
        System::builder("even").mailbox("two\nlines", Mailbox::priority(|number: &u32| i64::from(*number)));
    let again = sorts.config(&printed).unwrap().build().unwrap();
    assert_eq!(again.settings(), printed);
}

#[test]
fn settings_from_a_file_have_their_effect() {
    let system = System::builder("effect")
        .config(
            r#"
            inbox-capacity = 2
            [supervision]
            restarts = 1
            [dead-letters]
            log = 0
            [dispatcher.io]
            type = "blocking"
            threads-max = 2
            [dispatcher.files]
            type = "alias"
            of = "io"
            [dispatcher.strict]
            type = "pinned"
            requires-mailbox = "bounded"
            [mailbox.two]
            type = "bounded"
            capacity = 2
            on-full = "drop-newest"
            [deployment."/held/*"]
            dispatcher = "files"
            mailbox = "two"
            stash-capacity = 1
            [shutdown.phase.flush]
            depends-on = ["service-stop"]
            enabled = false
            "#,
        )
        .unwrap()
        .build()
        .unwrap();
    // The code says otherwise, and the file wins.
    let parent = system.actor("held").spawn(Role::new("parent", &channel_of_notes()).recipe()).unwrap();
    let (sender, made) = std::sync::mpsc::channel();
    act(&parent, move |_, ctx| {
        let role = Role::new("child", &channel_of_notes());
        let child =
            ctx.actor("child").mailbox(Mailbox::bounded(100)).stash_capacity(9).spawn(role.recipe())?;
        sender.send(child)?;
        Ok(())
    });
    let child: ActorRef<Tell> = made.soon().unwrap();
    let thread = query(&child, |_, _| std::thread::current().name().map(str::to_owned)).unwrap();
    assert!(thread.as_deref().is_some_and(|name| name.starts_with("effect-io")), "{thread:?}");
    let stashed = query(&child, |_, ctx| {
        let stash = |ctx: &mut Context<Tell>| ctx.stash(Tell::new(|_, _| Ok(()))).is_ok();
        (stash(ctx), stash(ctx))
    });
    assert_eq!(stashed, Ok((true, false)));
    let release = hold(&child);
    for _ in 0..5 {
        note(&child, "x");
    }
    assert_eq!(system.ledger().dropped, 3);
    drop(release);
    let inbox = system.inbox::<u32>().unwrap();
    (0..5u32).for_each(|number| inbox.to_ref().tell(number));
    wait_until(|| system.ledger().dropped == 3 + 3);
    crate::logged::listen();
    child.poison();
    wait_until(|| child.is_closed());
    note(&child, "too late");
    // The inbox may have warned of its surplus; no letter is told.
    let lines = crate::logged::lines("effect");
    assert!(lines.iter().all(|line| line.starts_with("! inbox")), "{lines:?}");
    // A dispatcher's requirement.
    let refused = system.actor("strict").dispatcher("strict").mailbox(Mailbox::unbounded()).spawn(|| Idle);
    assert!(matches!(refused, Err(SpawnError::Mailbox { .. })), "{refused:?}");
    // The strategy of `/user`.
    let failing = system.actor("failing").spawn(Role::new("failing", &channel_of_notes()).recipe()).unwrap();
    fail(&failing);
    fail(&failing);
    wait_until(|| failing.is_closed());
    // The phases.
    let shutdown = system.coordinated_shutdown();
    let phases = shutdown.phases();
    assert!(
        phases.iter().position(|name| *name == "flush")
            > phases.iter().position(|name| *name == Phase::SERVICE_STOP)
    );
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

struct Idle;
impl Actor for Idle {
    type Message = u32;
    fn receive(&mut self, _: u32, _: &mut Context<u32>) -> HandlerResult {
        Ok(())
    }
}

fn channel_of_notes() -> std::sync::mpsc::Sender<String> {
    std::sync::mpsc::channel().0
}

#[test]
fn a_deployment_is_for_paths_and_wins_over_the_code() {
    let system = System::builder("deployed")
        .dispatcher("own", Dispatcher::pinned())
        .dispatcher("other", Dispatcher::pinned().requires_mailbox(MailboxRequirement::Bounded))
        .mailbox("one", Mailbox::bounded(1))
        .deploy("/a", Deployment::new().dispatcher("own"))
        .deploy("/c", Deployment::new().dispatcher("other").mailbox("one"))
        .build()
        .unwrap();
    let thread = |name: &str| {
        let role = Role::new("x", &channel_of_notes());
        let actor = system.actor(name).spawn(role.recipe())?;
        Ok::<_, SpawnError>(query(&actor, |_, _| std::thread::current().name().map(str::to_owned)).unwrap())
    };
    assert!(thread("a").unwrap().is_some_and(|name| name.starts_with("deployed-own")));
    assert!(thread("d").unwrap().is_some_and(|name| name.starts_with("deployed-default")));
    assert!(thread("c").is_ok());
    let unknown =
        System::builder("x").deploy("/b*", Deployment::new().mailbox("unknown")).build().unwrap_err();
    assert!(matches!(unknown, BuildError::Section { .. }), "{unknown}");
    let refused = System::builder("x").deploy("/a/**/b", Deployment::new()).build().unwrap_err();
    assert!(matches!(refused, BuildError::PatternRestInside { .. }), "{refused}");
    // The engine's own actors are not meant.
    let system = System::builder("own")
        .dispatcher("strict", Dispatcher::work_stealing().threads(1))
        .mailbox("one", Mailbox::bounded(1).on_full(OverflowPolicy::DropNewest))
        .deploy("/**", Deployment::new().dispatcher("strict").mailbox("one"))
        .build()
        .unwrap();
    let inbox = system.inbox::<u32>().unwrap();
    (0..100u32).for_each(|number| inbox.to_ref().tell(number));
    assert_eq!(inbox.receive(LONG), Ok(0));
    assert_eq!((system.ledger().dropped, system.ledger().queued), (0, 99));
    assert_eq!(DispatcherKind::Pinned, Dispatcher::pinned().kind());
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let system = System::builder("defaults")
        .dispatcher("default", Dispatcher::work_stealing().threads(2))
        .dispatcher("blocking", Dispatcher::blocking())
        .build()
        .unwrap();
    let printed = system.settings();
    let until_phases = printed.split("[shutdown.phase").next().unwrap();
    assert_eq!(
        until_phases.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [
            "seed = 0",
            "inbox-capacity = 1000",
            "stderr-without-logger = true",
            "[supervision]",
            "on-failure = \"default\"",
            "[dead-letters]",
            "log = 10",
            "pause = \"5m\"",
            "log-during-shutdown = false",
            "[dispatcher.blocking]",
            "type = \"blocking\"",
            "threads-min = 1",
            "threads-max = 64",
            "throughput = 64",
            "keep-alive = \"10s\"",
            "[dispatcher.default]",
            "type = \"work-stealing\"",
            "threads = 2",
            "throughput = 64",
            "spin = \"5us\"",
            "lifo = true",
            "[mailbox]",
            "[deployment]",
            "[shutdown]",
            "terminate-actor-system = true",
        ]
    );
    for (phase, timeout) in [("service-stop", "5s"), ("actor-system-terminate", "10s")] {
        let section = printed.split(&format!("[shutdown.phase.{phase}]")).nth(1).unwrap();
        let lines: Vec<&str> = section.lines().skip(1).take(4).collect();
        assert_eq!(
            lines[1..],
            [&format!("timeout = \"{timeout}\""), "recover = true", "enabled = true"],
            "{phase}"
        );
    }
}

/// How many of 5 messages an actor can stash.
fn stashes(actor: &ActorRef<Tell>) -> usize {
    let stash = |ctx: &mut Context<Tell>| ctx.stash(Tell::new(|_, _| Ok(()))).is_ok();
    query(actor, move |_, ctx| (0..5).filter(|_| stash(ctx)).count()).unwrap()
}

#[test]
fn a_section_of_a_mailbox_says_how_much_is_stashed_unless_the_deployment_or_the_builder_does() {
    let system = System::builder("stashes")
        .clock(pointsman::time::ManualClock::new())
        .mailbox("ranked", Mailbox::priority(|_: &Tell| 0))
        .dispatcher("narrow", Dispatcher::pinned().mailbox("two"))
        .config(
            r#"
            [mailbox.two]
            stash-capacity = 2
            [mailbox.none]
            type = "bounded"
            capacity = 7
            stash-capacity = 0
            [mailbox.ranked]
            stash-capacity = 4
            [deployment."/deployed"]
            mailbox = "two"
            [deployment."/both"]
            mailbox = "two"
            stash-capacity = 3
            [deployment."/pool/*"]
            mailbox = "two"
            "#,
        )
        .unwrap()
        .build()
        .unwrap();
    let actor = |name: &str| system.actor(name);
    let role = || Role::new("role", &channel_of_notes()).recipe();
    let spawned = [
        (actor("plain").spawn(role()), 5),
        (actor("named").mailbox("two").spawn(role()), 2),
        (actor("nothing").mailbox("none").spawn(role()), 0),
        (actor("ranked").mailbox("ranked").spawn(role()), 4),
        (actor("narrow").dispatcher("narrow").spawn(role()), 2),
        (actor("deployed").spawn(role()), 2),
        (actor("builder").mailbox("two").stash_capacity(1).spawn(role()), 1),
        (actor("both").stash_capacity(1).spawn(role()), 3),
    ];
    for (actor, count) in spawned {
        let actor = actor.unwrap();
        assert_eq!((stashes(&actor), actor.path().name()), (count, actor.path().name()));
    }
    let pool = system.router("pool").pool(1, move |_| role()()).spawn().unwrap();
    assert_eq!(stashes(&pool), 2);
    let printed = system.settings();
    assert_eq!(printed.matches("stash-capacity = ").count(), 4, "{printed}");
    assert!(printed.contains("stash-capacity = 0"), "{printed}");
    system.shutdown(LONG).unwrap();
}
