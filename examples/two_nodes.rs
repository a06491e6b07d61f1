//! Two nodes: n1 finds an actor of n2 by its path, asks it, watches it, and sends to it through a group. Then n1 makes a pool, two
//! of whose routees n2 makes. At the end both nodes show their books: each balances alone, and what n1 has shipped, n2 has
//! received.
//!
//! Two processes over a server of NATS on this machine (`nats-server`, a Debian package):
//!
//! ```text
//! nats-server -a 127.0.0.1 &
//! cargo run --release --example two_nodes -- n2
//! cargo run --release --example two_nodes -- n1
//! ```
//!
//! `--server URL` behind that names another server. `--in-process`, or no argument, runs both nodes in one process without any
//! server.

use pointsman::events::Subscription;
use pointsman::prelude::*;
use pointsman::remote::{
    Deploy, Engine, InProcess, LinkReport, Node, NodeEvent, Policy, Remote, ResolveError, Wire,
};
use pointsman::{Ledger, SendError, Terminated};
use pointsman_nats::Nats;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// Only what fails takes so long. An n2 that is started first waits for its n1 without end.
const PATIENCE: Duration = Duration::from_secs(60);
const SERVER: &str = "nats://127.0.0.1:4222";
const USAGE: &str = "usage: two_nodes [--in-process | n1 [--server URL] | n2 [--server URL]]";
/// The notes that n1 sends to the worker, through the group, and through the pool.
const NOTES: u64 = 10_000;
const NOTES_BY_PATH: u64 = 1_000;
const NOTES_BY_POOL: u64 = 1_000;
/// The routees of the pool: in turn, one on n1 and one on n2.
const ROUTEES: usize = 4;

#[derive(Serialize, Deserialize)]
struct Count {
    text: String,
}

impl Request for Count {
    type Reply = usize;
}

/// Asks for the number of notes that have come.
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

/// Counts words and notes.
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

/// For the pool: a node makes workers for another one by this name, from no arguments.
impl Deploy for Worker {
    const FACTORY: &'static str = "demo.Worker";
    type Args = ();

    fn deploy((): &(), _: &mut Context<Work>) -> Result<Self, Failure> {
        Ok(Self::default())
    }
}

/// Watches a worker of the other node, and ends with it.
struct Watcher {
    target: ActorRef<Work>,
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
        println!("n1: {} has ended, node down: {}", end.actor.path(), end.node_down);
        ctx.stop();
        Ok(())
    }
}

/// The results of n1.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    words: usize,
    /// The notes of the worker, and of the clerk.
    totals: [u64; 2],
    /// The notes of each routee of the pool.
    shares: Vec<u64>,
}

/// A system that is a node, and tells when its server is not there.
struct Running {
    system: System,
    _told: Subscription,
}

fn start(name: &'static str, engine: impl Engine) -> Result<Running, Box<dyn Error>> {
    let policy = Policy::closed().allow_path("/user/*").allow_factory(Worker::FACTORY, ["n1"]);
    let node = Node::new(name).engine(engine).message::<Work>().factory::<Worker>().policy(policy);
    let system = System::builder("demo").node(node).build()?;
    let told = system.events().on(move |event: &NodeEvent| {
        if let NodeEvent::EngineDown { why } = event {
            eprintln!("{name}: {why}");
        }
    });
    Ok(Running { system, _told: told })
}

/// Makes the actors of n2, of which the worker is the last: where it is found, the clerk is there too.
fn open(system: &System) -> Result<[ActorRef<Work>; 2], Box<dyn Error>> {
    let clerk = system.actor("clerk").spawn(Worker::default)?;
    let worker = system.actor("worker").spawn(Worker::default)?;
    println!("n2: serves");
    Ok([clerk, worker])
}

/// Serves until n1 tells the actors of n2 to finish.
fn serve(actors: [ActorRef<Work>; 2]) -> Result<(), Box<dyn Error>> {
    for actor in actors {
        actor.when_ended().wait()?;
    }
    Ok(())
}

/// Finds an actor by its path. It is asked for again while its node is there and the actor is not: n2 makes its actors when its
/// node has begun.
fn find(system: &System, path: &str) -> Result<ActorRef<Work>, Box<dyn Error>> {
    let began = Instant::now();
    loop {
        match system.resolve::<Work>(path, PATIENCE).wait() {
            Err(ResolveError::NotFound { .. }) if began.elapsed() < PATIENCE => {}
            found => return Ok(found?),
        }
    }
}

/// Sends as fast as the actor takes it: a link that is full, or an actor elsewhere that has too many messages, refuses more.
fn offer(to: &ActorRef<Work>, mut work: Work) -> Result<(), SendError<Work>> {
    loop {
        match to.try_tell(work) {
            Err(SendError::Full(back)) => work = back,
            done => return done,
        }
        thread::yield_now();
    }
}

/// Does the work of n1.
fn work(system: &System) -> Result<Found, Box<dyn Error>> {
    let [worker, clerk] = ["worker", "clerk"].map(|name| format!("pointsman://demo@n2/user/{name}"));

    // Found by its path. The reference is like any other from here on.
    let far = find(system, &worker)?;
    println!("n1: found {}", far.path());
    let words = far.ask(Count { text: "over the hills and far away".into() }).within(PATIENCE).wait()?;
    println!("n1: {words} words");
    for number in 0..NOTES {
        offer(&far, Work::Note(format!("note {number}")))?;
    }

    // By their paths alone, in turn.
    let group = system.router("group").group_at_exact::<Work>([worker, clerk]).spawn()?;
    for number in 0..NOTES_BY_PATH {
        group.tell(Work::Note(format!("note {number} by path")));
    }

    // An answer comes behind all that was sent to the same actor before. The group asks one after the other.
    let mut totals = [0; 2];
    for total in &mut totals {
        *total = group.ask(Total).within(PATIENCE).wait()?;
    }
    println!("n1: the worker has {} notes, and the clerk {}", totals[0], totals[1]);

    let shares = share_notes(system)?;

    // Watched from here: the notice comes behind all that the actor has sent.
    let target = far.clone();
    let watcher = system.spawn(move || Watcher { target: target.clone() })?;
    for _ in totals {
        group.tell(Work::Finish);
    }
    watcher.when_ended().wait()?;
    Ok(Found { words, totals, shares })
}

/// Sends notes through a pool over both nodes. Returns how many each routee has got.
fn share_notes(system: &System) -> Result<Vec<u64>, Box<dyn Error>> {
    let pool = system.router("pool").deployable_pool::<Worker>(ROUTEES, ()).on_nodes(["n1", "n2"]).spawn()?;
    for number in 0..NOTES_BY_POOL {
        pool.tell(Work::Note(format!("note {number} by pool")));
    }
    let mut shares = Vec::new();
    for routee in pool.routees()? {
        let notes = routee.ask(Total).within(PATIENCE).wait()?;
        println!("n1: {} has {notes} notes", routee.path());
        shares.push(notes);
    }
    // Routees of both nodes handle what they have, and end.
    pool.drain()?;
    pool.when_ended().wait()?;
    Ok(shares)
}

/// The books of a node that has ended.
struct Books {
    node: String,
    ledger: Ledger,
    links: Vec<LinkReport>,
}

impl Books {
    /// Ends a node, which waits for the receipts of the other one.
    fn close(Running { system, .. }: Running) -> Result<Self, Box<dyn Error>> {
        let remote: Remote = system.remote().ok_or("it is no node")?;
        let ledger = system.shutdown(PATIENCE)?;
        Ok(Self { node: remote.node().to_owned(), ledger, links: remote.links() })
    }

    /// Shows the books. An error says that they are not exact.
    fn show(&self) -> Result<(), Box<dyn Error>> {
        let Self { node, ledger, links } = self;
        for LinkReport { node: peer, shipped, confirmed, lost, in_doubt, received, .. } in links {
            println!(
                "{node}: link to {peer}: {shipped} shipped = {confirmed} confirmed + {lost} lost + {in_doubt} in doubt; \
                 {received} received"
            );
        }
        println!("{node}: {ledger}");
        let is_exact = |link: &LinkReport| link.shipped == link.confirmed && link.queued == 0;
        match ledger.balance() == 0 && links.iter().all(is_exact) {
            true => Ok(()),
            false => Err(format!("the books of {node} are not exact").into()),
        }
    }
}

/// Runs both nodes in this process.
fn in_process() -> Result<(Found, [Books; 2]), Box<dyn Error>> {
    let network = InProcess::new();
    let (n1, n2) = (start("n1", network.clone())?, start("n2", network)?);
    let actors = open(&n2.system)?;
    let found = work(&n1.system)?;
    serve(actors)?;
    Ok((found, [Books::close(n1)?, Books::close(n2)?]))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, server) = match arguments[..] {
        [] | ["--in-process"] => {
            let (_, books) = in_process()?;
            return books.iter().try_for_each(Books::show);
        }
        [name @ ("n1" | "n2")] => (name, SERVER),
        [name @ ("n1" | "n2"), "--server", server] => (name, server),
        _ => return Err(USAGE.into()),
    };
    let engine = Nats::servers([server]);
    let node = if name == "n2" {
        let n2 = start("n2", engine)?;
        serve(open(&n2.system)?)?;
        n2
    } else {
        let n1 = start("n1", engine)?;
        work(&n1.system)?;
        n1
    };
    Books::close(node)?.show()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n1_gets_its_answers_and_the_books_of_both_nodes_are_exact() {
        let (found, [first, second]) = in_process().expect("both nodes run here");
        let by_path = NOTES_BY_PATH / 2;
        let shares = vec![NOTES_BY_POOL / 4; ROUTEES];
        assert_eq!(found, Found { words: 6, totals: [NOTES + by_path, by_path], shares });
        for books in [&first, &second] {
            books.show().expect("the books are exact");
        }
        // A count, the notes, two totals and two ends; of the pool, the notes and the totals of the routees of n2.
        let messages = 1 + NOTES + NOTES_BY_PATH + 2 + 2 + NOTES_BY_POOL / 2 + 2;
        assert_eq!((first.ledger.shipped, second.ledger.received), (messages, messages));
        assert_eq!(first.links[0].shipped, second.links[0].received);
    }
}
