//! Two nodes: one counts words, and the other one asks it to.
//!
//! Two processes over a server of NATS, which runs on this machine (`nats-server`):
//!
//!     cargo run --release -p pointsman-nats --example two_processes -- n2
//!     cargo run --release -p pointsman-nats --example two_processes -- n1
//!
//! `--server URL` names another server, and `--in-process` runs both nodes in one process without any. Both print their books
//! at the end: what n1 has shipped, n2 has received.

use pointsman::prelude::*;
use pointsman::remote::{Engine, InProcess, LinkReport, Node, Policy, Wire};
use pointsman_nats::Nats;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::time::{Duration, Instant};

/// The messages that n1 tells.
const NOTES: u64 = 100_000;
const PATH: &str = "pointsman://demo@n2/user/worker";
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Count {
    text: String,
}

impl Request for Count {
    type Reply = usize;
}

/// The notes that have come so far.
#[derive(Serialize, Deserialize)]
struct Total;

impl Request for Total {
    type Reply = u64;
}

#[derive(Message, Wire, Serialize, Deserialize)]
#[wire(name = "demo.Work", version = 1)]
enum Work {
    Count(Call<Count>),
    Note(String),
    Total(Call<Total>),
    Finish,
}

#[derive(Default)]
struct Worker {
    notes: u64,
}

impl Actor for Worker {
    type Message = Work;

    fn receive(&mut self, work: Work, ctx: &mut Context<Work>) -> HandlerResult {
        match work {
            Work::Count(call) => call.answer(|Count { text }| text.split_whitespace().count()),
            Work::Note(_) => self.notes += 1,
            Work::Total(call) => {
                let notes = self.notes;
                call.answer(|Total| notes);
            }
            Work::Finish => ctx.stop(),
        }
        Ok(())
    }
}

fn start(name: &str, engine: impl Engine) -> Result<System, Box<dyn Error>> {
    let policy = Policy::closed().allow_path("/user/*");
    let node = Node::new(name).engine(engine).message::<Work>().policy(policy);
    Ok(System::builder("demo").node(node).build()?)
}

/// Does the work of n2: it serves until n1 tells it to finish.
fn serve(system: &System) -> Result<(), Box<dyn Error>> {
    let worker = system.actor("worker").spawn(Worker::default)?;
    println!("n2: {} serves", worker.path());
    worker.when_ended().wait()?;
    Ok(())
}

/// Does the work of n1.
fn ask(system: &System) -> Result<(), Box<dyn Error>> {
    let far = system.resolve::<Work>(PATH, PATIENCE).wait()?;
    println!("n1: found {}", far.path());
    let text = "over the hills and far away".to_owned();
    let words = far.ask(Count { text }).within(PATIENCE).wait()?;
    println!("n1: {words} words");
    let began = Instant::now();
    for number in 0..NOTES {
        let mut note = Work::Note(format!("note {number}"));
        // A full link is no fault: the other node, or the network, is slower.
        while let Err(error) = far.try_tell(note) {
            note = error.into_inner();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let total = far.ask(Total).within(PATIENCE).wait()?;
    println!("n1: {total} of {NOTES} notes have come, after {:.1?}", began.elapsed());
    far.tell(Work::Finish);
    if total != NOTES {
        return Err(format!("{} notes are missing", NOTES - total).into());
    }
    Ok(())
}

fn print_books(system: System) -> Result<(), Box<dyn Error>> {
    let remote = system.remote().ok_or("it is no node")?;
    for LinkReport { node, shipped, confirmed, lost, in_doubt, received, .. } in remote.links() {
        println!(
            "{}: to {node}: {shipped} shipped = {confirmed} confirmed + {lost} lost + {in_doubt} in doubt; {received} received",
            remote.node()
        );
    }
    let name = remote.node().to_owned();
    println!("{name}: {}", system.shutdown(PATIENCE)?);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let server = arguments.iter().position(|argument| argument == "--server");
    let server = server.and_then(|at| arguments.get(at + 1)).map_or("nats://127.0.0.1:4222", String::as_str);
    match arguments.first().map(String::as_str) {
        Some("--in-process") => {
            let network = InProcess::new();
            let (n1, n2) = (start("n1", network.clone())?, start("n2", network)?);
            std::thread::scope(|scope| {
                let serving = scope.spawn(|| serve(&n2).map_err(|error| error.to_string()));
                ask(&n1)?;
                serving.join().map_err(|_| "n2 has panicked")?.map_err(Box::<dyn Error>::from)
            })?;
            print_books(n1)?;
            print_books(n2)
        }
        Some("n2") => {
            let system = start("n2", Nats::servers([server]))?;
            serve(&system)?;
            print_books(system)
        }
        Some("n1") => {
            let system = start("n1", Nats::servers([server]))?;
            ask(&system)?;
            print_books(system)
        }
        _ => Err("one of n1, n2, --in-process; and perhaps --server URL".into()),
    }
}
