//! What actors do, whichever library they belong to: a [`Recipe`] says it for all actors of a workload, and makes each
//! one's own [`Work`].
//!
//! These are plain types, not closures, so that each library is compiled once and not once for each workload.

use crate::latency::OpenLoop;
use crate::living::Living;
use crate::peer::{Tell, Words};
use crate::tally::{Tallies, Tally};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Where work is skewed, one message in so many is long, and this is how much work each is.
const LONG_EVERY: u64 = 100;
const LONG: u64 = 1_000;
const SHORT: u64 = 10;

/// In place of an actor's number, where actors talk at random: this is an answer, not a question.
pub const ANSWER: u64 = u64::MAX;

/// Where actors find each other, since none can be named before it is made.
pub struct Directory<T>(Arc<OnceLock<Vec<T>>>);

impl<T> Clone for Directory<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Directory<T> {
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub fn fill(&self, targets: Vec<T>) {
        assert!(self.0.set(targets).is_ok(), "a directory is filled once");
    }

    fn all(&self) -> &[T] {
        self.0.get().expect("nothing is sent before the directory is filled")
    }
}

impl<T: Tell> Directory<T> {
    pub fn tell(&self, number: usize, words: Words) {
        self.all()[number].tell(words);
    }
}

/// What all actors of a workload do.
pub enum Recipe<T> {
    /// Count and add.
    Sink(Tallies),
    /// Work, count and add.
    Worker(Tallies),
    /// Send to and fro: the even numbers serve.
    PingPong(Directory<T>, Tallies),
    /// Send on to the next.
    Ring(Directory<T>, Tallies),
    /// Ask others at random.
    Big(Directory<T>, Tallies),
    /// Count and add; so many in a row share a tally, of which one is told something.
    Hot(Tallies, usize),
    /// Have 64 bytes of state.
    Idle(Arc<AtomicU64>),
    /// Nothing but live.
    Live(Living),
    /// Note how late a message is.
    OpenLoop(OpenLoop),
}

/// What one actor does.
pub enum Work<T> {
    Sink(&'static Tally),
    Worker(&'static Tally),
    Serve(Directory<T>, usize, &'static Tally),
    Return(Directory<T>, usize),
    Ring(Directory<T>, usize, &'static Tally),
    Big(Directory<T>, usize, u64, &'static Tally),
    Idle([u64; 8], Arc<AtomicU64>),
    Live(Living),
    OpenLoop(OpenLoop, usize),
}

impl<T> Clone for Recipe<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Sink(tallies) => Self::Sink(*tallies),
            Self::Worker(tallies) => Self::Worker(*tallies),
            Self::PingPong(directory, tallies) => Self::PingPong(directory.clone(), *tallies),
            Self::Ring(directory, tallies) => Self::Ring(directory.clone(), *tallies),
            Self::Big(directory, tallies) => Self::Big(directory.clone(), *tallies),
            Self::Hot(tallies, in_a_row) => Self::Hot(*tallies, *in_a_row),
            Self::Idle(handled) => Self::Idle(handled.clone()),
            Self::Live(living) => Self::Live(living.clone()),
            Self::OpenLoop(open_loop) => Self::OpenLoop(open_loop.clone()),
        }
    }
}

impl<T> Recipe<T> {
    /// The work of the actor of this number.
    pub fn make(&self, number: usize) -> Work<T> {
        match self {
            Self::Sink(tallies) => Work::Sink(tallies.of(number)),
            Self::Worker(tallies) => Work::Worker(tallies.of(number)),
            Self::PingPong(directory, tallies) if number.is_multiple_of(2) => {
                Work::Serve(directory.clone(), number + 1, tallies.of(number / 2))
            }
            Self::PingPong(directory, _) => Work::Return(directory.clone(), number - 1),
            Self::Ring(directory, tallies) => Work::Ring(directory.clone(), number, tallies.of(0)),
            Self::Big(directory, tallies) => {
                Work::Big(directory.clone(), number, number as u64 + 1, tallies.of(number))
            }
            Self::Hot(tallies, in_a_row) => Work::Sink(tallies.of(number / in_a_row)),
            Self::Idle(handled) => Work::Idle([1; 8], handled.clone()),
            Self::Live(living) => Work::Live(living.clone()),
            Self::OpenLoop(open_loop) => Work::OpenLoop(open_loop.clone(), number),
        }
    }
}

impl<T: Tell> Work<T> {
    /// Handles a message.
    pub fn handle(&mut self, [first, second]: Words) {
        match self {
            Self::Sink(tally) => tally.add(first),
            Self::Worker(tally) => {
                let turns = if first % LONG_EVERY == 0 { LONG } else { SHORT };
                (0..turns).for_each(|turn| _ = black_box(turn));
                tally.add(first);
            }
            // [returns left, returns made]
            Self::Serve(_, _, tally) if first == 0 => tally.add(second),
            Self::Serve(directory, partner, _) => directory.tell(*partner, [first - 1, second]),
            Self::Return(directory, partner) => directory.tell(*partner, [first, second + 1]),
            // [hops left, hops made]
            Self::Ring(_, _, tally) if first == 0 => tally.add(second),
            Self::Ring(directory, number, _) => {
                let all = directory.all();
                all[(*number + 1) % all.len()].tell([first - 1, second + 1]);
            }
            // [who asks or that this is an answer, questions that the asker has left]
            Self::Big(directory, number, random, tally) => match (first, second) {
                (ANSWER, 0) => tally.add(1),
                (ANSWER, left) => {
                    // Marsaglia's xorshift.
                    *random ^= *random << 13;
                    *random ^= *random >> 7;
                    *random ^= *random << 17;
                    let all = directory.all();
                    all[*random as usize % all.len()].tell([*number as u64, left - 1]);
                }
                (asker, left) => directory.tell(asker as usize, [ANSWER, left]),
            },
            Self::Idle(state, handled) => {
                state[first as usize % state.len()] += second;
                black_box(state);
                handled.fetch_add(1, Ordering::Relaxed);
            }
            Self::Live(living) => _ = black_box(living),
            Self::OpenLoop(open_loop, number) => open_loop.handle(*number, first, second),
        }
    }
}
