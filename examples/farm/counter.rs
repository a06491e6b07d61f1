//! The routees: each counts the words of one file after the other, and panics at some.

use pointsman::prelude::*;
use pointsman::remote::{Deploy, Wire};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// A routee panics at one attempt of so many, on average.
const PANIC_ONE_IN: u64 = 40;

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "farm.Work", version = 1)]
pub enum Work {
    Count(Call<CountFile>),
}

/// Asks for the words of a file. To count a file again does no harm, so an owner without an answer asks again.
#[derive(Serialize, Deserialize)]
pub struct CountFile {
    /// The path below the tree.
    pub file: PathBuf,
    /// The attempts before this one.
    pub attempts: u32,
}

impl Request for CountFile {
    type Reply = Counted;
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Counted {
    pub words: u64,
    /// The node and the name of the routee.
    pub node: String,
    pub routee: String,
}

/// The arguments of all routees.
#[derive(Clone, Serialize, Deserialize)]
pub struct CounterArgs {
    /// The folder above all files. Each node has it.
    pub tree: PathBuf,
    pub seed: u64,
}

pub struct Counter {
    args: CounterArgs,
    node: String,
    name: String,
}

impl Deploy for Counter {
    const FACTORY: &'static str = "farm.Counter";
    type Args = CounterArgs;

    fn deploy(args: &CounterArgs, ctx: &mut Context<Work>) -> Result<Self, Failure> {
        let remote = ctx.system().remote().ok_or_else(|| Failure::msg("this system is no node"))?;
        Ok(Self { args: args.clone(), node: remote.node().to_owned(), name: ctx.path().name().to_owned() })
    }
}

impl Actor for Counter {
    type Message = Work;

    fn receive(&mut self, work: Work, _: &mut Context<Work>) -> HandlerResult {
        let Work::Count(call) = work;
        call.try_answer(|CountFile { file, attempts }| {
            if self.panics_at(&file, attempts) {
                // A panic that prints nothing.
                std::panic::resume_unwind(Box::new("planted"));
            }
            let words = words_of(&self.args.tree.join(file))?;
            Ok(Counted { words, node: self.node.clone(), routee: self.name.clone() })
        })
    }
}

impl Counter {
    /// The same for all routees: two runs with one seed have the same panics, unless a node is lost before one of them.
    fn panics_at(&self, file: &Path, attempts: u32) -> bool {
        let mut hasher = DefaultHasher::new();
        (self.args.seed, file, attempts).hash(&mut hasher);
        hasher.finish() % PANIC_ONE_IN == 0
    }
}

/// Counts the words of a file.
pub fn words_of(file: &Path) -> io::Result<u64> {
    let text = fs::read(file)?;
    Ok(text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count() as u64)
}
