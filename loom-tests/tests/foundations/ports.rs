//! Models of the table of reply ports that were sent to other nodes.
//!
//! Mutations that these were seen to catch: a slot that keeps its generation, and a token that is taken whatever its generation is
//! (an answer meets the next port of the slot).

use crate::support::model;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use pointsman::loom_hooks::ports::{NoPort, Port, Ports};

/// A port that counts its completions.
struct Ask(Arc<State>);

struct State {
    is_wanted: AtomicBool,
    /// How often it was answered, as one digit, and dropped unanswered, as ten.
    completions: AtomicUsize,
}

impl Port for Ask {
    fn is_wanted(&self) -> bool {
        self.0.is_wanted.load(Ordering::Relaxed)
    }
}

impl State {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_wanted: AtomicBool::new(true), completions: AtomicUsize::new(0) })
    }

    fn complete(&self) {
        self.completions.fetch_add(1, Ordering::Relaxed);
    }

    fn completions(&self) -> usize {
        self.completions.load(Ordering::Relaxed)
    }
}

const PEER: u64 = 7;
const OTHER: u64 = 8;

fn export(ports: &Ports<Ask>, state: &Arc<State>, peer: u64) -> [u8; 16] {
    let mut swept = Vec::new();
    let token = ports.export(Ask(state.clone()), peer, &mut swept);
    swept.iter().for_each(|swept| swept.port.0.complete());
    token.unwrap_or_else(|_| panic!("there is room"))
}

/// A reply, the loss of the peer, and the sweep after the asker has left race for a port, and the slot's next port is exported
/// meanwhile. The first port is completed once, and the next one is never touched. Three threads: bound 3.
#[test]
fn four_ways() {
    model("ports_four_ways", &[9], 3, 150, || {
        let ports = Arc::new(Ports::new(8));
        let (first, next) = (State::new(), State::new());
        let token = export(&ports, &first, PEER);
        let answer = thread::spawn({
            let ports = ports.clone();
            move || match ports.take(token, PEER) {
                Ok(port) => {
                    port.0.complete();
                    true
                }
                Err(why) => {
                    assert_eq!(why, NoPort::Late);
                    false
                }
            }
        });
        let sweeper = thread::spawn({
            let (ports, first) = (ports.clone(), first.clone());
            move || {
                first.is_wanted.store(false, Ordering::Relaxed);
                ports.sweep().iter().for_each(|swept| swept.port.0.complete());
            }
        });
        ports.peer_down(PEER).iter().for_each(|port| port.0.complete());
        // It has the slot of the first one, if that is gone.
        let later = export(&ports, &next, OTHER);
        let was_answered = answer.join().unwrap();
        sweeper.join().unwrap();
        // The answer comes again, and the peer is lost again.
        assert!(ports.take(token, PEER).is_err() && ports.peer_down(PEER).is_empty());
        assert_eq!(first.completions(), 1, "the first port");
        assert_eq!(ports.counts().late, 2 - u64::from(was_answered));
        assert_eq!(next.completions(), 0, "an answer of the first port meets the next one");
        ports.take(later, OTHER).unwrap_or_else(|_| panic!("it is still there")).0.complete();
        assert_eq!((next.completions(), ports.counts().pending), (1, 0));
    });
}

/// A reply and a refusal come for one port while another port goes out in a table of one: it waits for the slot or is refused, and
/// nothing of the first meets it. Three threads: bound 3.
#[test]
fn answers_race_export() {
    model("ports_answers_race_export", &[9, 18], 3, 50, || {
        let ports = Arc::new(Ports::new(1));
        let (first, next) = (State::new(), State::new());
        let token = export(&ports, &first, PEER);
        let answers: Vec<_> = (0..2)
            .map(|_| {
                let ports = ports.clone();
                thread::spawn(move || ports.take(token, PEER).map(|port| port.0.complete()).is_ok())
            })
            .collect();
        let mut swept = Vec::new();
        let later = ports.export(Ask(next.clone()), PEER, &mut swept);
        assert!(swept.is_empty(), "a port that is waited for was swept");
        let answered = answers.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(answered.filter(|is_first| *is_first).count(), 1, "both answers, or none, had the port");
        assert_eq!((first.completions(), next.completions()), (1, 0));
        match later {
            Ok(later) => assert!(ports.take(later, PEER).is_ok() && later != token),
            Err((port, full)) => assert!(full.max == 1 && Arc::ptr_eq(&port.0, &next)),
        }
        assert_eq!((ports.counts().pending, ports.counts().late), (0, 1));
    });
}
