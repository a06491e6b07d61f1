//! Two nodes in this process, over a server.

use crate::{MESSAGE, OUTSTANDING, REQUESTS, REQUESTS_BESIDE, TELLS, TIMED, p50};
use pointsman::ask::Ask;
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy, Wire};
use pointsman_nats::Nats;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// As many bytes as a raw message has: the number of the variant, that of the note (as a varint, mostly three bytes), and a text with its
/// length before it.
const TEXT: usize = MESSAGE - 5;

#[derive(Serialize, Deserialize)]
struct Double(u64);

impl Request for Double {
    type Reply = u64;
}

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "bench.Work", version = 1)]
enum Work {
    Note(u64, #[serde(with = "text")] [u8; TEXT]),
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
                if number != self.next {
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

/// A worker of the second node, as the first one has it.
struct Far {
    worker: ActorRef<Work>,
    handled: Arc<AtomicU64>,
}

/// Two nodes, and references from the first one to two workers of the second.
pub struct Nodes {
    n1: System,
    n2: System,
    workers: [Far; 2],
}

/// The processor time of this thread so far, in nanoseconds.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// The processor time so far of the threads of a system's internal dispatcher, in nanoseconds, as soon as they sleep.
fn lanes_time(system: &str) -> Result<f64, Box<dyn Error>> {
    // The kernel keeps 15 bytes of the name of a thread.
    let name: String = format!("{system}-internal-").chars().take(15).collect();
    let read = || -> Result<(usize, u64), Box<dyn Error>> {
        let (mut threads, mut time) = (0, 0);
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            if fs::read_to_string(task.join("comm"))?.starts_with(&name) {
                threads += 1;
                let text = fs::read_to_string(task.join("schedstat"))?;
                time += text.split(' ').next().ok_or("no time")?.parse::<u64>()?;
            }
        }
        Ok((threads, time))
    };
    let mut before = read()?;
    loop {
        thread::sleep(Duration::from_millis(2));
        let now = read()?;
        match now {
            (0, _) => return Err("the lanes have no threads of their own".into()),
            (_, time) if now == before => return Ok(time as f64),
            _ => before = now,
        }
    }
}

impl Far {
    /// Sends so many notes, as fast as the link takes them.
    fn send(&self, count: u64) {
        let first = self.handled.load(Ordering::Relaxed);
        for number in first..first + count {
            let mut note = Work::Note(number, [7; TEXT]);
            // A full link: the receiver is slower.
            while let Err(error) = self.worker.try_tell(note) {
                note = error.into_inner();
                thread::yield_now();
            }
        }
    }

    fn wait(&self, handled: u64) -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        while self.handled.load(Ordering::Relaxed) < handled {
            if began.elapsed() > LONG {
                return Err("tells are missing".into());
            }
            thread::yield_now();
        }
        Ok(())
    }
}

impl Nodes {
    /// Starts a system of this name on two nodes, `n1` and `n2`, with these settings. The lanes of the second node have a
    /// dispatcher of their own if `lanes_apart`.
    pub fn start(
        system: &str,
        nats: impl Fn(&str) -> Nats,
        lanes_apart: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let start = |name: &str| {
            let policy = Policy::closed().allow_path("/user/*");
            let node = Node::new(name).engine(nats(name)).message::<Work>().policy(policy);
            let builder = System::builder(system).node(node);
            match lanes_apart && name == "n2" {
                // A thread that waits sleeps, so that its waits cost no processor time.
                true => builder
                    .dispatcher("internal", Dispatcher::work_stealing().threads(1).spin(Duration::ZERO))
                    .build(),
                false => builder.build(),
            }
        };
        let (n1, n2) = (start("n1")?, start("n2")?);
        let worker = |name: &str| -> Result<Far, Box<dyn Error>> {
            let handled = Arc::new(AtomicU64::new(0));
            let count = handled.clone();
            n2.actor(name).spawn(move || Worker { next: 0, handled: count.clone() })?;
            let worker = n1.resolve::<Work>(&format!("pointsman://{system}@n2/user/{name}"), LONG).wait()?;
            Ok(Far { worker, handled })
        };
        let workers = [worker("first")?, worker("second")?];
        Ok(Self { n1, n2, workers })
    }

    /// The tells that are handled in a second.
    pub fn tells(&self) -> Result<f64, Box<dyn Error>> {
        let far = &self.workers[0];
        let (first, began) = (far.handled.load(Ordering::Relaxed), Instant::now());
        far.send(TELLS);
        far.wait(first + TELLS)?;
        Ok(TELLS as f64 / began.elapsed().as_secs_f64())
    }

    /// The same by two threads, each to a worker of its own.
    pub fn tells_of_two(&self) -> Result<f64, Box<dyn Error>> {
        let first = self.workers.each_ref().map(|far| far.handled.load(Ordering::Relaxed));
        let began = Instant::now();
        thread::scope(|scope| {
            for far in &self.workers {
                scope.spawn(|| far.send(TELLS / 2));
            }
        });
        for (far, first) in self.workers.iter().zip(first) {
            far.wait(first + TELLS / 2)?;
        }
        Ok(TELLS as f64 / began.elapsed().as_secs_f64())
    }

    /// The processor time of a tell on the sender's thread, in nanoseconds. So few are sent that the link is never full.
    pub fn time_of_a_tell(&self) -> Result<f64, Box<dyn Error>> {
        let far = &self.workers[0];
        let (first, began) = (far.handled.load(Ordering::Relaxed), thread_time());
        far.send(TIMED);
        let time = thread_time() - began;
        far.wait(first + TIMED)?;
        Ok(time / TIMED as f64)
    }

    /// The processor time of the thread of the lanes for each tell, in nanoseconds, where `start` has given the lanes a
    /// dispatcher of their own: from a frame in the queue of its lane to a message in the mailbox of the worker, whose own
    /// dispatcher handles it.
    pub fn time_of_an_envelope(&self) -> Result<f64, Box<dyn Error>> {
        let began = lanes_time(self.n2.name())?;
        self.tells()?;
        Ok((lanes_time(self.n2.name())? - began) / TELLS as f64)
    }

    /// The median of asks, one outstanding, in microseconds.
    pub fn ask(&self) -> Result<f64, Box<dyn Error>> {
        let mut times = Vec::new();
        for number in 0..REQUESTS as u64 {
            let began = Instant::now();
            let answer = self.workers[0].worker.ask(Double(number)).within(LONG).wait()?;
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
            outstanding.push_back(self.workers[0].worker.ask(Double(number)).within(LONG));
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
