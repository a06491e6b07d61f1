//! Who takes part.

use crate::actix::Actix;
use crate::channels::{AsyncChannel, Flume, Kanal, Tasks, Threads, TokioMpsc};
use crate::elfo::Elfo;
use crate::kameo::Kameo;
use crate::kompact::Kompact;
use crate::pointsman::Pointsman;
use crate::ractor::{Ractor, RactorFactory};
use crate::scale::Scale;
use crate::workload::{Measured, Workload, run};
use crate::xtra::Xtra;
use std::time::Duration;

/// A library, or one way to use it.
pub struct Library {
    pub name: &'static str,
    /// The package whose version is reported.
    pub package: &'static str,
    pub kind: Kind,
    /// Whether it takes part in a workload at all.
    pub takes_part: fn(Workload) -> bool,
    /// Runs one repetition; `None` if it has nothing for the workload.
    pub run: fn(Workload, &Scale) -> Option<Measured>,
}

/// What a library is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Actors,
    /// A channel, with a task or a thread around each receiver.
    Channel,
}

impl Library {
    /// The version that this program was built with.
    pub fn version(&self) -> &'static str {
        let lock = include_str!("../Cargo.lock");
        let name = format!("name = \"{}\"\nversion = \"", self.package);
        // The last one: a peer may need an older version of it.
        let (begin, found) = lock.rmatch_indices(&name).next().expect("the lock file has every package");
        let rest = &lock[begin + found.len()..];
        rest.split_once('"').expect("a string ends").0
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        LIBRARIES.iter().find(|library| library.name == name)
    }
}

/// The name of the library that all are compared with.
pub const OURS: &str = "pointsman";

/// How long a worker searches where Pointsman is told to `spin`.
const SPIN: Duration = Duration::from_millis(1);

fn always(_: Workload) -> bool {
    true
}

fn only_latency(workload: Workload) -> bool {
    matches!(workload, Workload::Latency { .. })
}

/// What a factory is in front of.
fn only_routed(workload: Workload) -> bool {
    matches!(workload, Workload::Routed { .. } | Workload::SharedQueue { .. } | Workload::Latency { .. })
}

/// A thread for each actor: not where there are hundreds.
fn with_few_actors(workload: Workload) -> bool {
    !matches!(
        workload,
        Workload::SpawnAndStop
            | Workload::IdleBytes
            | Workload::Ring
            | Workload::Big
            | Workload::HotAmongIdle
    )
}

/// All, in the order in which they take turns.
pub const LIBRARIES: &[Library] = &[
    Library {
        name: OURS,
        package: "pointsman",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Pointsman::start(), workload, scale),
    },
    Library {
        name: "pointsman-spin",
        package: "pointsman",
        kind: Kind::Actors,
        takes_part: only_latency,
        run: |workload, scale| run(Pointsman::start_spinning(SPIN), workload, scale),
    },
    Library {
        name: "actix",
        package: "actix",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Actix::start(), workload, scale),
    },
    Library {
        name: "kameo",
        package: "kameo",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Kameo::start(), workload, scale),
    },
    Library {
        name: "ractor",
        package: "ractor",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Ractor::start(), workload, scale),
    },
    Library {
        name: "ractor-factory",
        package: "ractor",
        kind: Kind::Actors,
        takes_part: only_routed,
        run: |workload, scale| run(RactorFactory::start(), workload, scale),
    },
    Library {
        name: "xtra",
        package: "xtra",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Xtra::start(), workload, scale),
    },
    Library {
        name: "elfo",
        package: "elfo",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Elfo::start(), workload, scale),
    },
    Library {
        name: "kompact",
        package: "kompact",
        kind: Kind::Actors,
        takes_part: always,
        run: |workload, scale| run(Kompact::start(), workload, scale),
    },
    Library {
        name: "tokio-mpsc",
        package: "tokio",
        kind: Kind::Channel,
        takes_part: always,
        run: |workload, scale| run(Tasks::<TokioMpsc>::start(), workload, scale),
    },
    Library {
        name: "kanal",
        package: "kanal",
        kind: Kind::Channel,
        takes_part: always,
        run: |workload, scale| run(Tasks::<Kanal>::start(), workload, scale),
    },
    Library {
        name: "flume",
        package: "flume",
        kind: Kind::Channel,
        takes_part: always,
        run: |workload, scale| run(Tasks::<Flume>::start(), workload, scale),
    },
    Library {
        name: "async-channel",
        package: "async-channel",
        kind: Kind::Channel,
        takes_part: always,
        run: |workload, scale| run(Tasks::<AsyncChannel>::start(), workload, scale),
    },
    Library {
        name: "crossbeam",
        package: "crossbeam-channel",
        kind: Kind::Channel,
        takes_part: with_few_actors,
        run: |workload, scale| run(Threads::start(), workload, scale),
    },
];
