//! Two nodes: an actor of one is found by its path from the other, asked, and watched; at the end both books are shown.
//!
//! `cargo run --release --example two_nodes --features remote -- --in-process` runs both nodes in this process.

use pointsman::prelude::*;
use pointsman::remote::{InProcess, Node, NodeEvent, Policy, Wire};
use pointsman::{Ledger, Terminated};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(10);

#[derive(Clone, Serialize, Deserialize)]
struct Count {
    text: String,
}

impl Request for Count {
    type Reply = usize;
}

#[derive(Clone, Message, Wire, Serialize, Deserialize)]
#[wire(name = "demo.Work", version = 1)]
enum Work {
    Count(Call<Count>),
    Note(String),
    Stop,
}

/// Counts words, and writes notes.
struct Worker {
    notes: Sender<String>,
}

impl Actor for Worker {
    type Message = Work;
    fn receive(&mut self, work: Work, ctx: &mut Context<Work>) -> HandlerResult {
        match work {
            Work::Count(call) => call.answer(|Count { text }| text.split_whitespace().count()),
            Work::Note(text) => {
                self.notes.send(format!("{} at {}: {text}", ctx.path(), ctx.system().address()))?
            }
            Work::Stop => ctx.stop(),
        }
        Ok(())
    }
}

/// Watches a worker of the other node.
struct Watcher {
    target: ActorRef<Work>,
    ended: Sender<String>,
}

impl Actor for Watcher {
    type Message = ();
    fn started(&mut self, ctx: &mut Context<()>) -> HandlerResult {
        Ok(ctx.watch(&self.target)?)
    }
    fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
        Ok(())
    }
    fn terminated(&mut self, end: Terminated, ctx: &mut Context<()>) -> HandlerResult {
        self.ended.send(format!("{} has ended, node down: {}", end.actor.path(), end.node_down))?;
        ctx.stop();
        Ok(())
    }
}

/// The results of the two nodes.
struct Shown {
    words: usize,
    notes: Vec<String>,
    end: String,
    books: [Ledger; 2],
}

fn node(name: &str, network: &InProcess) -> Node {
    Node::new(name).engine(network.clone()).message::<Work>().policy(Policy::closed().allow_path("/user/*"))
}

/// Creates the worker of a node.
fn worker(system: &System) -> Result<(ActorRef<Work>, Receiver<String>), Box<dyn Error>> {
    let (notes, written) = channel();
    Ok((system.actor("worker").spawn(move || Worker { notes: notes.clone() })?, written))
}

fn run() -> Result<Shown, Box<dyn Error>> {
    let network = InProcess::new();
    let n1 = System::builder("demo").node(node("n1", &network)).build()?;
    let n2 = System::builder("demo").node(node("n2", &network)).build()?;
    let (_, written) = worker(&n2)?;

    // Found by its path; the reference is like any other from here on.
    let far = n1.resolve::<Work>("pointsman://demo@n2/user/worker", LONG).wait()?;
    let words = far.ask(Count { text: "over the hills and far away".into() }).within(LONG).wait()?;
    for number in 1..=3 {
        far.tell(Work::Note(format!("note {number}")));
    }
    let notes = written.iter().take(3).collect();

    // Watched from the other node.
    let (sender, ended) = channel();
    let target = far.clone();
    n1.spawn(move || Watcher { target: target.clone(), ended: sender.clone() })?;
    far.tell(Work::Stop);
    let end = ended.recv_timeout(LONG)?;

    // The second node ends, and says so.
    let downs = Arc::new(Mutex::new(channel()));
    let sender = Mutex::new(downs.lock().expect("no panic").0.clone());
    let _subscription = n1.events().on(move |event: &NodeEvent| {
        if let NodeEvent::Down { node, .. } = event {
            let _ = sender.lock().expect("no panic").send(node.clone());
        }
    });
    let second = n2.shutdown(LONG)?;
    downs.lock().expect("no panic").1.recv_timeout(LONG)?;
    Ok(Shown { words, notes, end, books: [n1.shutdown(LONG)?, second] })
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(other) = std::env::args().skip(1).find(|argument| argument != "--in-process") {
        return Err(format!(
            "`{other}` is no argument: both nodes run in this process, as with `--in-process`"
        )
        .into());
    }
    let Shown { words, notes, end, books } = run()?;
    println!("{words} words");
    notes.iter().for_each(|note| println!("{note}"));
    println!("{end}");
    for (name, ledger) in ["n1", "n2"].iter().zip(books) {
        println!("{name}: {ledger}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_nodes_show_what_they_have_done_and_their_books_balance() {
        let shown = super::run().expect("both nodes run here");
        assert_eq!(shown.words, 6);
        assert_eq!(shown.notes[0], "/user/worker at pointsman://demo@n2: note 1");
        assert_eq!(shown.end, "pointsman://demo@n2/user/worker has ended, node down: false");
        let [first, second] = shown.books;
        assert_eq!((first.balance(), second.balance()), (0, 0));
        assert_eq!((first.shipped, second.received), (5, 5)); // a count, three notes, and the end
    }
}
