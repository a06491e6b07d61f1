//! The pages as a terminal shows them, against the texts in `tests/pages`.

mod support;

use pointsman_top::filter::Filter;
use pointsman_top::model::model::Model;
use pointsman_top::reading::Reading;
use pointsman_top::screen::{Replay, Situation};
use pointsman_top::snapshot::{
    Actor, Asks, Class, Dispatcher, Ledger, Routee, Router, Running, Snapshot, Stuck, VERSION, Worker,
};
use pointsman_top::view::{Page, Sort, View};
use support::{expect_file, path, shown};

/// The messages that the routees handle in each second.
const RATES: [u64; 4] = [100, 300, 90, 10];

/// A shop at a second: a pool whose fourth routee joins at second 5, and a slow actor that is stuck from second 8 on.
fn shop(at: u64) -> Snapshot {
    let handled: Vec<u64> = RATES
        .iter()
        .enumerate()
        .map(|(at_routee, rate)| rate * if at_routee == 3 { at.saturating_sub(5) } else { at })
        .collect();
    let size = if at < 5 { 3 } else { 4 };
    let sum: u64 = handled.iter().sum();
    let routees = (0..size).map(|number| Routee {
        identity: format!("/user/pool/$r{number}"),
        uid: 10 + number as u32,
        load: if number == 1 { "busy" } else { "idle" }.to_owned(),
        queued: if number == 2 { None } else { Some(7 * number as u64) },
        handled: handled[number],
    });
    let mut actors: Vec<Actor> = [("/", 1), ("/user", 2), ("/user/pool", 3), ("/user/slow", 4)]
        .into_iter()
        .map(|(path, uid)| Actor {
            path: path.to_owned(),
            uid,
            class: if uid == 4 { "slow" } else { "shop::Guardian" }.to_owned(),
            queued: if uid == 4 { at } else { 0 },
            handled: 0,
            restarts: 0,
            state: if uid == 4 { "busy" } else { "idle" }.to_owned(),
        })
        .collect();
    actors.extend((0..size).map(|number| Actor {
        path: format!("/user/pool/$r{number}"),
        uid: 10 + number as u32,
        class: "/user/pool".to_owned(),
        queued: 7 * number as u64,
        handled: handled[number],
        restarts: number as u32,
        state: if number == 1 { "busy" } else { "idle" }.to_owned(),
    }));
    let slow = Running { path: "/user/slow".to_owned(), uid: 4, class: "slow".to_owned() };
    Snapshot {
        version: VERSION,
        system: "shop".to_owned(),
        sequence: at,
        at: at as f64,
        ledger: Ledger {
            sent: sum + 3 * at + 9 + at,
            handled: sum,
            dead_lettered: 3 * at,
            handed_back: 9,
            queued: at,
            ticked: 2 * at,
            ..Ledger::default()
        },
        asks: Asks { begun: 10 * at, answered: 9 * at, timed_out: at, ..Asks::default() },
        dead_letters: [
            ("no_recipient".to_owned(), 2 * at),
            ("stopped".to_owned(), at),
            ("full".to_owned(), 0),
        ]
        .into(),
        living: actors.len() as u64 + 1000,
        created: 1234,
        ended: 226,
        failures: at / 4,
        restarts: at / 4,
        classes: vec![
            Class {
                name: "/user/pool".to_owned(),
                actors: size as u64 + 1,
                handled: sum,
                queued: 21,
                queued_max: 40,
                failures: at / 4,
                wait: vec![(1024, 60 * at), (2048, 30 * at), (65_536, 9 * at), (1_048_576, at)],
                handle: vec![(320, 50 * at), (640, 50 * at)],
                depth: vec![(1, at)],
                ..Class::default()
            },
            Class { name: "slow".to_owned(), actors: 1, queued: at, ..Class::default() },
        ],
        routers: vec![Router {
            path: "/user/pool".to_owned(),
            logic: "consistent-hashing".to_owned(),
            version: 2,
            routees: routees.collect(),
            refused: 5,
            ..Router::default()
        }],
        dispatchers: vec![
            Dispatcher {
                name: "default".to_owned(),
                kind: "work-stealing".to_owned(),
                workers: (0..2)
                    .map(|number| Worker {
                        thread: format!("shop-default-{number}"),
                        turns: 40 * at,
                        messages: sum / 2,
                        parks: 30 * at,
                        steals: number * at,
                        searching: at as f64 * 0.05,
                        running: None,
                    })
                    .collect(),
            },
            Dispatcher {
                name: "slow".to_owned(),
                kind: "pinned".to_owned(),
                workers: vec![Worker {
                    thread: "shop-slow-0".to_owned(),
                    turns: 7,
                    messages: 7,
                    running: Some(slow.clone()),
                    ..Worker::default()
                }],
            },
        ],
        stuck_reports: u64::from(at >= 8),
        stuck: (at >= 8)
            .then(|| Stuck {
                actor: slow,
                message_type: "shop::Report".to_owned(),
                thread: "shop-slow-0".to_owned(),
                since: 7.0,
                lasted: at as f64 - 7.0,
            })
            .into_iter()
            .collect(),
        actors_since: None,
        actors,
    }
}

/// A model that has read the shop at each second from 1 to `last`.
fn model(last: u64) -> Model {
    let mut model = Model::default();
    (1..=last).for_each(|at| model.take(Reading { at: at as f64, outcome: Ok(shop(at)) }));
    model
}

fn situation(now: f64) -> Situation {
    Situation { source: "127.0.0.1:9464".to_owned(), now, interval: 1.0, replay: None }
}

fn view(page: Page) -> View {
    View { page, ..View::default() }
}

fn expect(name: &str, text: &str) {
    expect_file(&path(&format!("tests/pages/{name}.txt")), text);
}

#[test]
fn each_page_is_as_expected() {
    let model = model(10);
    for page in Page::ALL {
        expect(page.name(), &shown(&model, &view(page), &situation(10.3), 140, 45));
    }
}

#[test]
fn each_page_is_as_expected_on_a_small_screen() {
    let model = model(10);
    let screens = Page::ALL.map(|page| shown(&model, &view(page), &situation(10.3), 40, 10));
    expect("small", &screens.join("\n"));
}

#[test]
fn no_screen_is_too_small() {
    let model = model(10);
    for page in Page::ALL {
        for (columns, rows) in
            [(1, 1), (1, 40), (140, 1), (2, 2), (9, 3), (3, 5), (20, 4), (300, 6), (33, 200)]
        {
            let text = shown(&model, &view(page), &situation(10.3), columns, rows);
            assert_eq!(text.lines().count(), usize::from(rows), "{page:?} {columns} x {rows}");
        }
    }
}

#[test]
fn the_keys_are_explained() {
    let help = View { has_help: true, ..View::default() };
    expect("help", &shown(&model(2), &help, &situation(2.0), 120, 26));
}

#[test]
fn before_the_first_snapshot_the_screen_says_what_it_waits_for() {
    let mut model = Model::default();
    let waiting = shown(&model, &view(Page::Tree), &situation(0.1), 80, 8);
    assert!(waiting.contains("waiting for the first snapshot of 127.0.0.1:9464"), "{waiting}");
    model.take(Reading { at: 0.2, outcome: Err("cannot connect: connection refused".to_owned()) });
    let refused = shown(&model, &view(Page::Tree), &situation(0.2), 30, 8);
    assert!(refused.contains(" no snapshot yet: cannot\n connect: connection refused\n"), "{refused}");
}

#[test]
fn a_server_that_is_away_and_a_new_start_are_told() {
    let mut model = model(10);
    for at in 11..14 {
        model.take(Reading { at: at as f64, outcome: Err("cannot connect: connection refused".to_owned()) });
    }
    let stale = shown(&model, &view(Page::Routers), &situation(13.5), 140, 16);
    (1..=3).for_each(|at| model.take(Reading { at: 13.0 + at as f64, outcome: Ok(shop(at)) }));
    let again = shown(&model, &view(Page::Routers), &situation(16.0), 140, 16);
    expect("away", &format!("{stale}\n{again}"));
    assert!(
        stale.contains("STALE 3 s: cannot connect: connection refused") && stale.contains("!!!"),
        "{stale}"
    );
    assert!(again.contains("NEW START 2 s ago") && !again.contains("STALE"), "{again}");
    for page in Page::ALL {
        let text = shown(&model, &view(page), &situation(16.0), 140, 45);
        assert!(!text.contains(" -1") && !text.contains("-1/s"), "a negative rate:\n{text}");
    }
}

#[test]
fn a_replay_shows_its_moment() {
    let replay = Some(Replay { position: 9.0, length: 75.0 });
    let text = shown(&model(3), &view(Page::Books), &Situation { replay, ..situation(3.0) }, 120, 12);
    assert!(text.lines().next().is_some_and(|title| title.ends_with("REPLAY 9 s of 1 min 15 s")), "{text}");
}

/// The names in the first column of the tree.
fn actors_shown(view: &View, rows: u16) -> Vec<String> {
    let text = shown(&model(10), view, &situation(10.0), 140, rows);
    let lines = text
        .lines()
        .skip(4)
        .filter(|line| line.contains("idle") || line.contains("busy") || line.contains("STUCK"));
    lines.map(|line| line[1..].split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn actors_are_sorted_and_filtered() {
    let sorted = |sort| actors_shown(&View { sort, filter: Filter::new("/user/"), ..View::default() }, 30);
    let pool = |number: u32| format!("/user/pool/$r{number}");
    assert_eq!(sorted(Sort::Rate)[..4], [pool(1), pool(0), pool(2), pool(3)]);
    assert_eq!(sorted(Sort::Handled)[..4], [pool(1), pool(0), pool(2), pool(3)]);
    assert_eq!(sorted(Sort::Queued)[..4], [pool(3), pool(2), "/user/slow".to_owned(), pool(1)]);
    assert_eq!(sorted(Sort::Wait)[..4], [pool(0), pool(1), pool(2), pool(3)]);
    let one = View { filter: Filter::new("/user/*/$r3"), ..View::default() };
    assert_eq!(actors_shown(&one, 30), [pool(3)]);
    let slow = shown(
        &model(10),
        &View { filter: Filter::new("slow"), ..view(Page::Workers) },
        &situation(10.0),
        140,
        20,
    );
    assert!(
        slow.contains("shop-slow-0") && slow.contains("STUCK 3 s") && !slow.contains("shop-default-0"),
        "{slow}"
    );
}

#[test]
fn ten_thousand_actors_are_scrolled() {
    let mut many = shop(10);
    many.actors = (0..10_000)
        .map(|number| Actor {
            path: format!("/user/{number:05}"),
            uid: number,
            class: "c".to_owned(),
            state: "idle".to_owned(),
            ..Actor::default()
        })
        .collect();
    let mut model = Model::default();
    model.take(Reading { at: 1.0, outcome: Ok(many) });
    let mut view = View::default();
    for (row, seen, unseen) in [(0, "00000", "00050"), (5000, "05000", "00000"), (20_000, "09999", "05000")] {
        view.rows[0] = row;
        let text = shown(&model, &view, &situation(1.0), 100, 40);
        assert!(text.contains(seen) && !text.contains(unseen), "{row}:\n{text}");
        assert_eq!(text.matches('>').count(), 1, "{row}:\n{text}");
    }
}

#[test]
fn routees_are_scrolled() {
    let skipped = View { routees_skipped: 2, ..view(Page::Routers) };
    let text = shown(&model(10), &skipped, &situation(10.0), 140, 20);
    assert!(text.contains("/user/pool (without the first 2 routees)"), "{text}");
    assert!(text.contains("$r2") && !text.contains("$r1"), "{text}");
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let mut odd = shop(3);
    odd.system = "sh\u{1b}]0;title\u{7}op".to_owned();
    odd.actors[0].path = "/a\u{1b}[2J\u{1b}[1;1H\nb\u{202e}c".to_owned();
    odd.classes[0].name = "漢字".repeat(40);
    odd.routers[0].path = "\r\r\r".to_owned();
    let mut model = Model::default();
    model.take(Reading { at: 1.0, outcome: Ok(odd) });
    for page in Page::ALL {
        let text = shown(&model, &view(page), &situation(1.0), 100, 30);
        let is_hostile = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.contains(is_hostile), "{page:?}: {text:?}");
        assert_eq!(text.lines().count(), 30);
    }
}

#[test]
fn counts_without_bounds_are_shown() {
    let mut odd = shop(3);
    let ledger = &mut odd.ledger;
    (ledger.sent, ledger.handled, ledger.queued) = (0, u64::MAX, u64::MAX);
    odd.classes[0].wait = vec![(0, u64::MAX), (u64::MAX, u64::MAX)];
    odd.at = 1e300;
    odd.stuck = shop(9).stuck;
    odd.stuck[0].lasted = -5.0;
    odd.routers[0].routees.iter_mut().for_each(|routee| routee.handled = u64::MAX);
    let mut model = Model::default();
    for at in [1.0, 2.0] {
        odd.at *= at;
        model.take(Reading { at, outcome: Ok(odd.clone()) });
    }
    for page in Page::ALL {
        let text = shown(&model, &view(page), &situation(2.0), 140, 45);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{page:?}:\n{text}");
    }
}
