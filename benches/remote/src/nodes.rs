//! Two nodes in this process, over a server.

use crate::{MESSAGE, OUTSTANDING, REQUESTS, REQUESTS_BESIDE, TELLS, p50};
use pointsman::ask::Ask;
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy, Wire};
use pointsman_nats::{DevServer, Nats};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// As many bytes as a raw message has: eight of the number, and a text with its length before it.
const TEXT: usize = MESSAGE - 9;

#[derive(Serialize, Deserialize)]
struct Double(u64);

impl Request for Double {
    type Reply = u64;
}

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "bench.Work", version = 1)]
enum Work {
    Note([u8; 8], #[serde(with = "text")] [u8; TEXT]),
    Double(Call<Double>),
}

/// The bytes of a text, in one piece.
mod text {
    use super::TEXT;
    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;
    use std::fmt;

    pub fn serialize<S: Serializer>(text: &[u8; TEXT], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; TEXT], D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = [u8; TEXT];
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{TEXT} bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                bytes.try_into().map_err(|_| E::invalid_length(bytes.len(), &self))
            }
        }
        from.deserialize_bytes(Text)
    }
}

/// Counts its notes, and sees to their order.
struct Worker {
    next: u64,
    handled: Arc<AtomicU64>,
}

impl Actor for Worker {
    type Message = Work;

    fn receive(&mut self, work: Work, _: &mut Context<Work>) -> HandlerResult {
        match work {
            Work::Note(number, _) => {
                if u64::from_le_bytes(number) != self.next {
                    return Err(Failure::msg("a note is missing, or comes late"));
                }
                self.next += 1;
                self.handled.store(self.next, Ordering::Relaxed);
            }
            Work::Double(call) => call.answer(|Double(number)| 2 * number),
        }
        Ok(())
    }
}

/// Two nodes, and a reference from the first one to the worker of the second.
pub struct Nodes {
    n1: System,
    n2: System,
    far: ActorRef<Work>,
    handled: Arc<AtomicU64>,
}

impl Nodes {
    pub fn start(server: &DevServer) -> Result<Self, Box<dyn Error>> {
        let start = |name| {
            let policy = Policy::closed().allow_path("/user/worker");
            let node = Node::new(name).engine(Nats::servers([server.url()])).message::<Work>().policy(policy);
            System::builder("bench").node(node).build()
        };
        let (n1, n2) = (start("n1")?, start("n2")?);
        let handled = Arc::new(AtomicU64::new(0));
        let count = handled.clone();
        n2.actor("worker").spawn(move || Worker { next: 0, handled: count.clone() })?;
        let far = n1.resolve::<Work>("pointsman://bench@n2/user/worker", LONG).wait()?;
        Ok(Self { n1, n2, far, handled })
    }

    /// The tells that are handled in a second.
    pub fn tells(&self) -> Result<f64, Box<dyn Error>> {
        let (first, began) = (self.handled.load(Ordering::Relaxed), Instant::now());
        for number in first..first + TELLS {
            let mut note = Work::Note(number.to_le_bytes(), [7; TEXT]);
            // A full link: the receiver is slower.
            while let Err(error) = self.far.try_tell(note) {
                note = error.into_inner();
                thread::yield_now();
            }
        }
        while self.handled.load(Ordering::Relaxed) < first + TELLS {
            if began.elapsed() > LONG {
                return Err("tells are missing".into());
            }
            thread::yield_now();
        }
        Ok(TELLS as f64 / began.elapsed().as_secs_f64())
    }

    /// The median of asks, one outstanding, in microseconds.
    pub fn ask(&self) -> Result<f64, Box<dyn Error>> {
        let mut times = Vec::new();
        for number in 0..REQUESTS as u64 {
            let began = Instant::now();
            let answer = self.far.ask(Double(number)).within(LONG).wait()?;
            times.push(began.elapsed());
            assert_eq!(answer, 2 * number);
        }
        Ok(p50(times))
    }

    /// The asks that are answered in a second, with several outstanding.
    pub fn asks_beside(&self) -> Result<f64, Box<dyn Error>> {
        let began = Instant::now();
        let mut outstanding: VecDeque<Ask<u64>> = VecDeque::new();
        for number in 0..REQUESTS_BESIDE as u64 {
            if outstanding.len() == OUTSTANDING {
                outstanding.pop_front().map(Ask::wait).transpose()?;
            }
            outstanding.push_back(self.far.ask(Double(number)).within(LONG));
        }
        for ask in outstanding {
            ask.wait()?;
        }
        Ok(REQUESTS_BESIDE as f64 / began.elapsed().as_secs_f64())
    }

    /// Ends both, whose books must balance.
    pub fn end(self) -> Result<(), Box<dyn Error>> {
        let Self { n1, n2, .. } = self;
        let remote = n1.remote().ok_or("it is no node")?;
        let balances = [n1.shutdown(LONG)?.balance(), n2.shutdown(LONG)?.balance()];
        for link in remote.links() {
            println!(
                "books: {} shipped = {} confirmed + {} lost + {} in doubt",
                link.shipped, link.confirmed, link.lost, link.in_doubt
            );
        }
        match balances {
            [0, 0] => Ok(()),
            _ => Err(format!("the books do not balance: {balances:?}").into()),
        }
    }
}
