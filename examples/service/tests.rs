//! The service by its clients. Times pass by a clock that the tests move.

use crate::{Config, start};
use pointsman::dead_letters::DeadLetterReason;
use pointsman::net::Listener;
use pointsman::prelude::*;
use pointsman::shutdown::PhaseOutcome;
use pointsman::time::ManualClock;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Only failing tests wait for so long.
const LONG: Duration = Duration::from_secs(30);

/// The file that comes with the example, on free ports and with a pool that is soon full.
fn settings() -> String {
    let file = include_str!("service.toml");
    let changes = [
        (":7070", ":0"),
        (":9464", ":0"),
        ("calculators = 2", "calculators = 1"),
        ("capacity = 8", "capacity = 1"),
    ];
    changes.iter().fold(file.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "the file has no {old}");
        text.replace(old, new)
    })
}

struct Stage {
    system: System,
    clock: ManualClock,
    clients: SocketAddr,
    metrics: SocketAddr,
    _listener: Listener,
}

fn stage() -> Stage {
    let (clock, config) = (ManualClock::new(), toml::from_str::<Config>(&settings()).unwrap());
    let (system, listener, stats) = start(System::builder("service").clock(clock.clone()), config).unwrap();
    let (clients, metrics) = (listener.local_addr().unwrap(), stats.local_addr().unwrap());
    Stage { system, clock, clients, metrics, _listener: listener }
}

impl Stage {
    /// Ends in phases, with exact books.
    fn end(self) {
        let report = self.system.coordinated_shutdown().run("the test is over").wait().unwrap();
        assert_eq!(report.ledger.balance(), 0, "{report}");
        assert!(report.phases.iter().all(|phase| phase.outcome != PhaseOutcome::Failed), "{report}");
        self.system.shutdown(LONG).unwrap();
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

/// Returns the answers to `lines`, up to the end of the connection.
fn answers(address: SocketAddr, lines: &str) -> Vec<String> {
    let mut client = connect(address);
    client.write_all(lines.as_bytes()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    BufReader::new(client).lines().map(Result::unwrap).collect()
}

/// Sends a line from a client of its own, for as many clients as said. Their answers come as they are given.
fn answers_to_each(address: SocketAddr, line: &'static str, count: usize) -> Receiver<String> {
    let (sender, receiver) = channel();
    for _ in 0..count {
        let sender = sender.clone();
        std::thread::spawn(move || sender.send(answers(address, line).concat()));
    }
    receiver
}

/// Moves the clock until a message comes.
fn while_time_passes(clock: &ManualClock, messages: &Receiver<String>) -> String {
    let began = Instant::now();
    loop {
        if let Ok(message) = messages.try_recv() {
            return message;
        }
        assert!(began.elapsed() < LONG, "no message comes");
        clock.advance(Duration::from_millis(500));
        std::thread::yield_now();
    }
}

#[test]
fn each_name_has_an_account_of_its_own_and_answers_come_in_order() {
    let stage = stage();
    let lines =
        "deposit ada 500\ndeposit bob 7\r\nwithdraw ada 100\nwithdraw bob 8\nbalance ada\nforecast ada 2\n";
    let expected = [
        "ok 500",
        "ok 7",
        "ok 400",
        "refused the balance would be below zero or too large",
        "ok 400",
        "ok 416",
    ];
    assert_eq!(answers(stage.clients, lines), expected);
    assert_eq!(
        answers(stage.clients, "balance ada\nbalance nobody\nwithdraw bob 7"),
        ["ok 400", "ok 0", "ok 0"]
    );
    stage.end();
}

#[test]
fn a_wrong_line_is_refused_and_one_that_is_too_long_ends_its_client() {
    let stage = stage();
    let long = "x".repeat(crate::LINE_MAX + 1);
    let answers =
        answers(stage.clients, &format!("deposit ada\ndeposit ada -1\n\nbalance ada\n{long}\nbalance ada\n"));
    assert!(answers[0].starts_with("error use deposit NAME CENTS"), "{answers:?}");
    assert_eq!(answers[1], "error \"-1\": invalid digit found in string");
    assert_eq!(answers[2], answers[0]);
    assert_eq!(answers[3], "ok 0");
    assert!(answers[4].starts_with("error the line at byte"), "{answers:?}");
    assert_eq!(answers.len(), 5);
    stage.end();
}

/// The pool has a calculator, with room for one more forecast than it computes. Both end when their time is up.
#[test]
fn a_full_pool_answers_busy_and_a_long_forecast_is_late() {
    let stage = stage();
    let received = answers_to_each(stage.clients, "forecast ada 4294967295\n", 8);
    let mut answers: Vec<String> = (0..5).map(|_| received.recv_timeout(LONG).unwrap()).collect();
    assert_eq!(answers, ["busy"; 5]);
    answers.extend((5..8).map(|_| while_time_passes(&stage.clock, &received)));
    assert!(answers[5..].iter().all(|answer| answer == "late" || answer == "busy"), "{answers:?}");
    assert!(answers.contains(&"late".to_owned()), "{answers:?}");
    let asks = stage.system.ledger().asks;
    let count = |wanted: &str| answers.iter().filter(|answer| *answer == wanted).count() as u64;
    assert_eq!((asks.timed_out, asks.undeliverable), (count("late"), count("busy")));
    assert!(stage.system.stats().dead_letters.contains(&(DeadLetterReason::Full, count("busy"))));
    stage.end();
}

#[test]
fn the_numbers_show_accounts_and_calculators() {
    let stage = stage();
    assert_eq!(answers(stage.clients, "deposit ada 1\nforecast ada 0\n"), ["ok 1", "ok 1"]);
    // An answer may come before its handler is counted.
    let wanted = ["accounts\"} 2", "calculators\"} 1"];
    let wanted = wanted.map(|class| format!("\npointsman_handled_total{{class=\"/user/{class}"));
    let began = Instant::now();
    loop {
        let mut client = connect(stage.metrics);
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        client.read_to_string(&mut page).unwrap();
        if wanted.iter().all(|line| page.contains(line)) {
            break;
        }
        assert!(began.elapsed() < LONG, "{page}");
    }
    stage.end();
}

#[test]
fn the_file_is_refused_with_the_key_at_fault() {
    let wrong = settings().replace("listen =", "listens =");
    assert!(toml::from_str::<Config>(&wrong).err().unwrap().to_string().contains("listens"));
    let wrong =
        settings().replace("capacity = 1\n", "capacity = 0\n").replace("capacity = 1 ", "capacity = 0 ");
    let config = toml::from_str::<Config>(&wrong).unwrap();
    let error = start(System::builder("service"), config).err().unwrap().to_string();
    assert!(error.contains("engine.mailbox.calculators.capacity"), "{error}");
}

/// The signal goes to a second process, which runs this test as the service.
#[cfg(unix)]
#[test]
fn sigterm_drains_the_clients_and_the_books_are_exact() {
    use std::process::{Command, Stdio};
    /// Says to the second process that it is the second.
    const ROLE: &str = "SERVICE_TEST_PROCESS";
    if std::env::var_os(ROLE).is_some() {
        println!(); // behind what the harness has written
        return crate::run(&settings()).unwrap();
    }
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::sigterm_drains_the_clients_and_the_books_are_exact", "--nocapture"])
        .env(ROLE, "second")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = output.find(|line| line.starts_with("serving clients at ")).unwrap();
    let address = first["serving clients at ".len()..].split(',').next().unwrap().parse().unwrap();
    let mut client = BufReader::new(connect(address));
    let mut answer = String::new();
    client.get_mut().write_all(b"deposit ada 500\n").unwrap();
    client.read_line(&mut answer).unwrap();
    assert_eq!(answer, "ok 500\n");

    let id = libc::pid_t::try_from(process.id()).unwrap();
    // SAFETY: a system call without pointers; the process is our child and not waited for yet.
    assert_eq!(unsafe { libc::kill(id, libc::SIGTERM) }, 0);
    answer.clear();
    assert_eq!(client.read_to_string(&mut answer).unwrap(), 0, "the connection ends: {answer}");
    let report: Vec<String> = output.collect();
    assert!(process.wait().unwrap().success(), "{report:?}");
    let has =
        |text: &str| assert!(report.iter().any(|line| line.contains(text)), "no {text:?} in {report:#?}");
    has("shut down (signal 15)");
    has("service-unbind: done");
    has("service-stop: done");
    has("dead-lettered 0 + handed back 0 + dropped 0 + skipped 0 + queued 0 (balance 0)");
}
