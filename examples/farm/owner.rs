//! The owner of the work: it asks for each file until it has the answer.

use crate::counter::{CountFile, Counted, Work};
use pointsman::ask::{Ask, NoReplyCause};
use pointsman::prelude::*;
use std::collections::VecDeque;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Asks that are under way at once.
const WINDOW: usize = 48;
/// The deadline of an ask: for an answer that is lost on a link that lives on.
const WITHIN: Duration = Duration::from_secs(10);
/// An owner that has asked so often for one file gives up.
const ATTEMPTS_MAX: u32 = 100;

/// Each file is uncounted, asked for once, or counted: an answer that comes behind the end of its ask is not taken. So a file is
/// counted at least once, and stands in the result exactly once.
pub struct Owner {
    pool: ActorRef<Work>,
    files: Vec<PathBuf>,
    /// The files that have to be asked for, by their numbers.
    uncounted: VecDeque<Attempt>,
    asked: VecDeque<(Attempt, Ask<Counted>)>,
    /// The answers, by the numbers of the files.
    pub counted: Vec<Option<Counted>>,
    /// Asks that have ended without an answer, by a panic of the routee.
    pub panics: u64,
    /// Asks that have ended without an answer for another reason: the node was lost.
    pub lost: u64,
}

struct Attempt {
    file: usize,
    attempts: u32,
}

impl Owner {
    pub fn new(pool: ActorRef<Work>, files: Vec<PathBuf>) -> Self {
        let uncounted = (0..files.len()).map(|file| Attempt { file, attempts: 0 }).collect();
        let counted = vec![None; files.len()];
        Self { pool, files, uncounted, asked: VecDeque::new(), counted, panics: 0, lost: 0 }
    }

    /// Goes on until so many files are counted.
    pub fn count_until(&mut self, files: usize) -> Result<(), Box<dyn Error>> {
        let mut missing = files.saturating_sub(self.counted.iter().flatten().count());
        while missing > 0 {
            self.fill_window();
            let (attempt, ask) = self.asked.pop_front().ok_or("there are not so many files")?;
            match ask.wait() {
                Ok(counted) => {
                    self.counted[attempt.file] = Some(counted);
                    missing -= 1;
                }
                Err(error) => {
                    match error {
                        AskError::NoReply { cause: NoReplyCause::Failed, .. } => self.panics += 1,
                        _ => self.lost += 1,
                    }
                    let attempts = attempt.attempts + 1;
                    if attempts == ATTEMPTS_MAX {
                        return Err(format!("{}: {error}", self.files[attempt.file].display()).into());
                    }
                    self.uncounted.push_back(Attempt { attempts, ..attempt });
                }
            }
        }
        Ok(())
    }

    /// Asks for as many files as may be under way at once.
    pub fn fill_window(&mut self) {
        let free = WINDOW - self.asked.len();
        for attempt in self.uncounted.drain(..free.min(self.uncounted.len())) {
            let file = self.files[attempt.file].clone();
            let ask = self.pool.ask(CountFile { file, attempts: attempt.attempts }).within(WITHIN);
            self.asked.push_back((attempt, ask));
        }
    }
}
