//! Nothing fails silently where no logger is installed. Each test runs itself again in a process of its own, whose
//! standard error it reads.

use crate::support::LONG;
use pointsman::prelude::*;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

/// Says to the second process that it is the second, and what it is to do.
const ROLE: &str = "POINTSMAN_STDERR_TEST";

/// Runs a test of this file again, in this role; returns the lines of Pointsman on standard error.
fn lines(test: &str, role: &str) -> Vec<String> {
    let module = module_path!().split_once("::").map_or("", |(_, module)| module);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(ROLE, role)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
    err.lines().filter(|line| line.starts_with("pointsman: ")).map(str::to_owned).collect()
}

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Fails with each message but the last, with which it stops.
struct Fails;
impl Actor for Fails {
    type Message = u32;
    fn receive(&mut self, message: u32, ctx: &mut Context<u32>) -> HandlerResult {
        if message == 20 {
            ctx.stop();
            return Ok(());
        }
        Err(Failure::msg(format!("message {message}")))
    }
}

/// Stops with its first message.
struct Stops;
impl Actor for Stops {
    type Message = u32;
    fn receive(&mut self, _: u32, ctx: &mut Context<u32>) -> HandlerResult {
        ctx.stop();
        Ok(())
    }
}

/// A logger that writes nothing, but has a size, as those have that are silenced by their level.
struct Silent(#[allow(dead_code)] u64); // for its size
impl log::Log for Silent {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        false
    }
    fn log(&self, _: &log::Record<'_>) {}
    fn flush(&self) {}
}

static SILENT: Silent = Silent(1);

/// An actor fails 20 times, 20 messages become dead letters, and a pool ends with its only routee.
fn everything_goes_wrong(system: &System) {
    let fails = system.actor("fails").spawn(|| Fails).unwrap();
    (0..=20u32).for_each(|number| fails.tell(number));
    fails.when_ended().wait().unwrap();
    (0..20u32).for_each(|number| fails.tell(number));
    let pool = system.router("pool").pool(1, |_| Stops).spawn().unwrap();
    pool.tell(1u32);
    pool.head().when_ended().wait().unwrap();
}

#[test]
fn without_a_logger_the_first_lines_of_each_kind_go_to_standard_error() {
    const THIS: &str = "without_a_logger_the_first_lines_of_each_kind_go_to_standard_error";
    if let Some(role) = role() {
        let mut builder = System::builder("shop");
        match role.as_str() {
            "default" => {}
            "off" => builder = builder.stderr_without_logger(false),
            "configured" => builder = builder.config("stderr-without-logger = false").unwrap(),
            "silenced" => log::set_logger(&SILENT).unwrap(),
            "log of letters off" => {
                builder = builder.log_dead_letters(pointsman::dead_letters::DeadLetterLog::off())
            }
            other => panic!("{other}"),
        }
        let system = builder.build().unwrap();
        everything_goes_wrong(&system);
        system.shutdown(LONG).unwrap();
        return;
    }
    let lines_of = |role: &str| lines(THIS, role);
    let said = lines_of("default");
    let having = |part: &str| said.iter().filter(|line| line.contains(part)).collect::<Vec<_>>();
    assert!(
        said[0].contains("no logger is installed") && said[0].contains("stderr_without_logger(false)"),
        "{said:#?}"
    );
    let failures = having("failed and is restarted");
    assert_eq!(failures.len(), 5, "{said:#?}");
    assert!(failures[0].contains("/user/fails") && failures[0].contains("message 0"), "{said:#?}");
    assert!(failures[4].ends_with("; no more failures are written"), "{said:#?}");
    let letters = having("dead letter in system \"shop\": u32 to /user/fails");
    assert_eq!(letters.len(), 5, "{said:#?}");
    let ends = having("ends by itself");
    assert_eq!(ends.len(), 1, "{said:#?}");
    assert!(ends[0].contains("pool ") && ends[0].contains("/user/pool"), "{said:#?}");
    assert!(ends[0].contains("its last routee, ") && ends[0].contains("has ended"), "{said:#?}");
    assert_eq!(said.len(), 1 + 5 + 5 + 1, "{said:#?}");

    for role in ["off", "configured", "silenced"] {
        assert_eq!(lines_of(role), [""; 0], "{role}");
    }
    let without_letters = lines_of("log of letters off");
    assert_eq!(without_letters.len(), 1 + 5 + 1, "{without_letters:#?}");
}

#[test]
fn routers_that_are_told_to_end_say_nothing_and_those_that_lose_their_routees_say_why() {
    const THIS: &str = "routers_that_are_told_to_end_say_nothing_and_those_that_lose_their_routees_say_why";
    if role().is_some() {
        let system = System::builder("shop").build().unwrap();
        let stopped = system.router("stopped").pool(2, |_| Stops).spawn().unwrap();
        stopped.stop();
        let drained = system.router("drained").pool(2, |_| Stops).spawn().unwrap();
        drained.drain().unwrap();
        let routee = system.actor("routee").spawn(|| Stops).unwrap();
        let group = system.router("group").group([routee.clone()]).spawn().unwrap();
        assert!(group.remove(&routee).unwrap());
        for head in [stopped.head(), drained.head(), group.head()] {
            head.when_ended().wait().unwrap();
        }
        let _lives = system.router("lives").pool(2, |_| Stops).spawn().unwrap();
        system.shutdown(LONG).unwrap();
        return;
    }
    let said = lines(THIS, "routers");
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(said[1].contains("router ") && said[1].contains("/user/group ends by itself"), "{said:#?}");
    assert!(said[1].contains("its last routee was removed"), "{said:#?}");
}

/// Holds a system, which it drops with its first message.
struct Owner(Option<System>, std::sync::mpsc::Sender<()>);
impl Actor for Owner {
    type Message = ();
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        self.0 = None;
        self.1.send(())?;
        Ok(())
    }
}

#[test]
fn a_system_dropped_in_a_handler_and_tasks_that_have_not_run_are_reported() {
    const THIS: &str = "a_system_dropped_in_a_handler_and_tasks_that_have_not_run_are_reported";
    if role().is_some() {
        let inner = System::builder("inner").build().unwrap();
        let shutdown = inner.coordinated_shutdown();
        shutdown.add_task(pointsman::shutdown::Phase::SERVICE_STOP, "close the port", || Ok(())).unwrap();
        let ended = inner.handle().clone();
        let outer = System::builder("outer").build().unwrap();
        let (sender, dropped) = channel();
        let mut inner = Some(inner);
        let owner = outer.actor("owner").spawn(move || Owner(inner.take(), sender.clone())).unwrap();
        owner.tell(());
        dropped.recv().unwrap();
        ended.wait_until_ended(LONG).unwrap();
        outer.shutdown(LONG).unwrap();
        return;
    }
    let said = lines(THIS, "dropped");
    let having = |part: &str| said.iter().filter(|line| line.contains(part)).count();
    assert_eq!(having("system \"inner\" was dropped on a thread that may not wait"), 1, "{said:#?}");
    assert_eq!(having("tasks not run: \"close the port\" of phase \"service-stop\""), 1, "{said:#?}");
}
