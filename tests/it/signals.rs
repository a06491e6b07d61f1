//! Real signals to a real process: this test binary, started again.

use crate::support::LONG;
use pointsman::prelude::*;
use pointsman::shutdown::{Phase, Phases};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Says to the second process that it is the second.
const ROLE: &str = "POINTSMAN_SIGNAL_TEST";

/// Runs a test in a second process until it says that it is ready; returns what it says then.
#[cfg(unix)]
fn start(test: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(ROLE, "second")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "ready"));
    (child, lines)
}

#[cfg(unix)]
fn send(child: &Child, signal: libc::c_int) {
    let id = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: a system call without pointers; the process is our child and not waited for yet.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
}

struct Counter(u64);
impl Actor for Counter {
    type Message = u64;
    fn receive(&mut self, message: u64, _: &mut Context<u64>) -> HandlerResult {
        self.0 += message;
        Ok(())
    }
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn a_service_that_waits_for_its_end() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let system = System::builder("service").build().unwrap();
    let counter = system.actor("counter").spawn(|| Counter(0)).unwrap();
    let shutdown = system.coordinated_shutdown();
    shutdown.on_signals().unwrap();
    let any = counter.untyped().unwrap();
    shutdown.add_drain(Phase::SERVICE_REQUESTS_DONE, "drain", [any]).unwrap();
    for number in 0..100u64 {
        counter.tell(number);
    }
    println!("\nready");
    let report = shutdown.wait().unwrap();
    println!("{report}");
    let ledger = system.shutdown(LONG).unwrap();
    println!("end {} {} {}", ledger.sent, ledger.handled, ledger.balance());
}

#[cfg(unix)]
#[test]
fn sigterm_and_sigint_drain_the_service_and_the_books_balance() {
    for (signal, text) in [(libc::SIGTERM, "(signal 15)"), (libc::SIGINT, "(signal 2)")] {
        let (mut child, lines) = start("signals::a_service_that_waits_for_its_end");
        send(&child, signal);
        let said: Vec<String> = lines.collect();
        assert!(child.wait().unwrap().success(), "{said:?}");
        let first = said.iter().find(|line| line.contains("shut down")).expect("a report");
        assert!(first.contains(text), "{first}");
        assert!(said.iter().any(|line| line.contains("service-requests-done: done")), "{said:?}");
        assert!(said.iter().any(|line| line == "end 100 100 0"), "{said:?}");
    }
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn a_process_that_outlives_its_system() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let system = System::builder("short").build().unwrap();
    system.coordinated_shutdown().on_signals().unwrap();
    system.shutdown(LONG).unwrap();
    println!("\nready");
    std::thread::park_timeout(LONG);
}

#[cfg(unix)]
#[test]
fn when_the_system_has_ended_a_signal_does_again_what_it_does_by_default() {
    use std::os::unix::process::ExitStatusExt;
    let (mut child, _lines) = start("signals::a_process_that_outlives_its_system");
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn a_service_whose_end_takes_long() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let phases = Phases::default().change(Phase::SERVICE_STOP, |stop| stop.timeout(LONG));
    let system = System::builder("long").shutdown_phases(phases).build().unwrap();
    let shutdown = system.coordinated_shutdown();
    shutdown.on_signals().unwrap();
    let long = || {
        println!("\nbegun");
        std::thread::park_timeout(LONG);
        Ok(())
    };
    shutdown.add_task(Phase::SERVICE_STOP, "long", long).unwrap();
    println!("\nready");
    shutdown.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn a_second_signal_in_the_run_ends_the_process_at_once() {
    use std::os::unix::process::ExitStatusExt;
    let (mut child, mut lines) = start("signals::a_service_whose_end_takes_long");
    send(&child, libc::SIGTERM);
    assert!(lines.any(|line| line == "begun"));
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
#[ignore = "run by the test below in a process of its own"]
fn a_service_whose_predecessor_has_ended() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let predecessor = System::builder("first").build().unwrap();
    predecessor.coordinated_shutdown().on_signals().unwrap();
    let system = System::builder("second").build().unwrap();
    let shutdown = system.coordinated_shutdown();
    shutdown.on_signals().unwrap();
    predecessor.shutdown(LONG).unwrap();
    println!("\nready");
    println!("{}", shutdown.wait().unwrap());
}

/// Not the default of the one that has ended.
#[cfg(unix)]
#[test]
fn a_signal_shuts_down_the_system_that_lives_though_another_has_ended() {
    let (mut child, lines) = start("signals::a_service_whose_predecessor_has_ended");
    send(&child, libc::SIGTERM);
    let said: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{said:?}");
    assert!(said.iter().any(|line| line.contains("\"second\" shut down (signal 15)")), "{said:?}");
}

#[cfg(unix)]
#[test]
#[ignore = "run by the test below in a process of its own"]
fn a_process_that_has_no_files_left_to_listen_with() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let system = System::builder("deaf").build().unwrap();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a system call that writes to the struct that it is given.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
    limit.rlim_cur = 0;
    // SAFETY: a system call that reads the struct that it is given.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let refused = system.coordinated_shutdown().on_signals();
    assert!(refused.is_err());
    println!("\nready");
    std::thread::park_timeout(LONG);
}

#[cfg(unix)]
#[test]
fn where_listening_was_refused_a_signal_does_what_it_does_by_default() {
    use std::os::unix::process::ExitStatusExt;
    let (mut child, _lines) = start("signals::a_process_that_has_no_files_left_to_listen_with");
    send(&child, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}
