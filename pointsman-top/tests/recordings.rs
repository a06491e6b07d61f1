//! Recordings: a replay shows what was shown live, and the pictures of the documentation are those of their commands.

mod support;

use pointsman::net::SocketAddress;
use pointsman::prelude::*;
use pointsman::telemetry::Telemetry;
use pointsman_top::client::{Client, Limits};
use pointsman_top::model::model::Model;
use pointsman_top::printed;
use pointsman_top::query::{Order, Query};
use pointsman_top::reader::{Reader, SharedQuery};
use pointsman_top::recording::{self, Player, Recorder};
use pointsman_top::screen::Situation;
use pointsman_top::view::{Page, View};
use std::process::Command;
use std::time::Duration;
use support::{expect_file, path};

struct Worker;

impl Actor for Worker {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
        Ok(())
    }
}

#[test]
fn a_replay_shows_what_was_shown_live() {
    let system = System::builder("shop")
        .stderr_without_logger(false)
        .telemetry(Telemetry::sampled())
        .build()
        .expect("a system");
    let workers = system.router("workers").pool(3, |_| Worker).spawn().expect("a router");
    let server = system.serve_stats(SocketAddress::tcp("127.0.0.1:0")).expect("a server");
    let address = server.local_addr().expect("a port").to_string().parse().expect("an address");

    let file = std::env::temp_dir().join(format!("pointsman-top-replay-{}.jsonl", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let query = SharedQuery::new(Query { order: Order::Tree, pattern: None, limit: 100 });
    let recorder = Recorder::create(&file).expect("a new file");
    let limits = Limits { within: Duration::from_secs(30), ..Limits::default() };
    let mut reader = Reader::new(Client::new(address, limits), query, Some(recorder));
    let (mut live, mut screens) = (Model::default(), Vec::new());
    let all_pages = |model: &Model, now: f64| {
        let situation = Situation { source: "here".to_owned(), now, interval: 1.0, replay: None };
        printed::text(model, &View::default(), &situation, &Page::ALL, None)
    };
    for round in 0..6 {
        (0..1000_u64).for_each(|number| workers.tell(number));
        if round == 4 {
            // The server goes, and the recording says so.
            server.stop();
            while server.connections() > 0 {
                std::thread::yield_now();
            }
        }
        let (reading, fault) = reader.read();
        assert_eq!(fault, None);
        let now = reading.at;
        live.take(reading);
        screens.push(all_pages(&live, now));
    }
    assert!(screens[3].contains("/user/workers/$a") && screens[5].contains("STALE"), "{}", screens[5]);

    let mut replayed = Model::default();
    let mut player = Player::new(recording::load(&file).expect("a recording"), 1.0);
    for screen in &screens {
        let reading = player.step().expect("a reading for each screen").clone();
        let now = reading.at;
        replayed.take(reading);
        assert_eq!(&all_pages(&replayed, now), screen);
    }
    assert_eq!(player.step(), None);
    std::fs::remove_file(file).expect("the file");
}

/// The pictures of the documentation, and the options that make them of the recording beside this file.
const PICTURES: [(&str, &[&str]); 5] = [
    ("tree", &["--picture", "tree", "--until", "20s", "--sort", "queued", "--size", "140x26"]),
    ("routers", &["--picture", "routers", "--until", "44s", "--size", "120x30"]),
    ("latency", &["--picture", "latency", "--until", "23s", "--sort", "wait", "--size", "140x34"]),
    ("workers", &["--picture", "workers", "--until", "23s", "--size", "140x15"]),
    ("books", &["--picture", "books", "--until", "23s", "--size", "110x38"]),
];

#[test]
fn the_pictures_of_the_documentation_are_made_by_their_commands() {
    for (name, options) in PICTURES {
        let output = Command::new(env!("CARGO_BIN_EXE_pointsman-top"))
            .arg("--replay")
            .arg(path("tests/data/demo.jsonl"))
            .args(options)
            .env_remove("NO_COLOR")
            .output()
            .expect("the program");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let svg = String::from_utf8(output.stdout).expect("UTF-8");
        expect_file(&path(&format!("pictures/top-{name}.svg")), &svg);
    }
}

#[test]
fn what_cannot_be_shown_is_said_in_a_line() {
    let run = |options: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_pointsman-top")).args(options).output().expect("the program");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (options, text) in [
        (&["--replay", "/nowhere", "--once"] as &[&str], "the recording cannot be read"),
        (&["127.0.0.1:1", "--once"], "127.0.0.1:1: cannot connect"),
        (&["127.0.0.1:1"], "standard input and output are no terminal: use --once"),
    ] {
        let (status, said) = run(options);
        assert_eq!(status, Some(1), "{options:?}: {said}");
        assert!(
            said.starts_with("pointsman-top: ") && said.contains(text) && said.lines().count() == 1,
            "{said}"
        );
    }
    assert_eq!(run(&["--page", "cellar", "127.0.0.1:1"]).0, Some(2));
}
