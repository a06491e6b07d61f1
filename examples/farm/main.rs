//! A farm: a pool of 12 over three nodes counts the words of this repository's sources and pages, and gets the result of a plain
//! loop, although routees panic and a node is killed.
//!
//! ```text
//!                              ┌─▶ c1 c4 c7 c10      on n1
//!   owner ── asks ──▶ pool ────┼─▶ c2 c5 c8 c11      on n2
//!     ▲                        └─▶ c3 c6 c9 c12      on n3: killed, and started again
//!     └──────── answers ───────────┘
//! ```
//!
//! ```text
//! cargo run --release --example farm                  # all nodes in this process, without any server
//! cargo run --release --example farm -- --processes   # three processes, over a `nats-server` (a Debian package)
//! ```
//!
//! With `--processes` the program starts a private server, and itself twice more for n2 and n3. They end with it, also when it
//! fails; where the program is killed itself, the server stays.
//!
//! # What it shows
//!
//! - **Routees elsewhere** (`counter.rs`) are made by a factory, from arguments that are sent. n2 and n3 allow the factory to n1
//!   alone. All routees are children of the pool on n1, which restarts those that panic.
//! - **At least once, and counted once** (`owner.rs`). A message is delivered at most once, so the owner asks for each file until
//!   it has the answer: a panic, or the loss of a node, ends the ask with an error. To count a file twice does no harm, and each
//!   file has one place in the result.
//! - **A node that is lost** takes its routees out of the pool, which goes on with the others.
//! - **A node that joins** gets routees by a resize. The list of a pool's nodes is fixed when the pool is made, and a routee for a
//!   node that is not there fails in its initialization after 10 s and is stopped. So the node that joins has the name of the one
//!   that was lost, and the pool grows when it is up. To the other nodes it is another one, with a UID of its own.
//! - **Books**: the ledger of each node balances, and of each link `shipped = confirmed + lost + in doubt`. Messages that were under way to
//!   n3 when it was killed is in doubt. In one process n3 cannot be killed, and is shut down in the middle of its work.
//!
//! # Reading order
//!
//! `counter.rs`, `owner.rs`, `run` below, `nodes.rs`, `books.rs`, `shares.rs`.

mod books;
mod counter;
mod nodes;
mod owner;
mod shares;

#[cfg(test)]
mod tests;

use books::Books;
use counter::{Counter, CounterArgs, words_of};
use nodes::{FIRST, Network, NodeEvents};
use owner::Owner;
use pointsman::Strategy;
use pointsman::remote::{InProcess, NodeEvent};
use pointsman_nats::DevServer;
use shares::Shares;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: farm [--in-process | --processes]";
const TREE: &str = env!("CARGO_MANIFEST_DIR");
const NODES: [&str; 3] = [FIRST, "n2", "n3"];
const ROUTEES: usize = 12;
/// When n3 has joined again: the 8 that are left, and two more on each node.
const ROUTEES_AT_THE_END: usize = 14;
const SEED: u64 = 26;

/// The results of a run.
struct Outcome {
    /// The words of each file, as a plain loop has counted them, and as the farm has.
    local: Vec<u64>,
    counted: Vec<u64>,
    shares: Shares,
    panics: u64,
    lost: u64,
    /// The books of all nodes that have ended by themselves.
    books: Vec<Books>,
}

fn run(network: &Network) -> Result<Outcome, Box<dyn Error>> {
    let tree = PathBuf::from(TREE);
    let files = files(&tree)?;
    let local = files.iter().map(|file| words_of(&tree.join(file))).collect::<io::Result<Vec<u64>>>()?;
    let all = files.len();

    let n1 = network.first()?;
    let events = NodeEvents::of(&n1);
    let (n2, n3) = (network.start("n2")?, network.start("n3")?);
    for _ in ["n2", "n3"] {
        events.wait(|event| matches!(event, NodeEvent::Up { .. }))?;
    }
    let pool = n1
        .router("counters")
        .deployable_pool::<Counter>(ROUTEES, CounterArgs { tree, seed: SEED })
        .on_nodes(NODES)
        .on_failure(Strategy::default().quiet())
        .spawn()?;
    let (mut owner, mut shares) = (Owner::new(pool.to_ref(), files), Shares::default());

    owner.count_until(all / 3)?;
    shares.set_restarts(&pool.routees_info()?, FIRST);
    owner.fill_window();
    let mut books: Vec<Books> = n3.kill()?.into_iter().collect();
    println!("n3 is killed: {} of {all} files are counted", all / 3);
    owner.count_until(all / 2)?;
    events.wait(|event| matches!(event, NodeEvent::Down { node, .. } if node == "n3"))?;

    // The others count while n3 starts.
    let n3 = network.start("n3")?;
    owner.count_until(all * 2 / 3)?;
    events.wait(|event| matches!(event, NodeEvent::Up { node, .. } if node == "n3"))?;
    println!("the pool grows to {} routees", pool.resize_to(ROUTEES_AT_THE_END)?);
    owner.count_until(all)?;
    shares.set_restarts(&pool.routees_info()?, FIRST);

    pool.drain()?;
    pool.when_ended().wait()?;
    books.push(Books::close(n1)?);
    for other in [n2, n3] {
        books.push(other.end()?);
    }
    let counted: Vec<u64> = owner.counted.iter().flatten().map(|counted| counted.words).collect();
    owner.counted.iter().flatten().for_each(|counted| shares.add_file(counted));
    Ok(Outcome { local, counted, shares, panics: owner.panics, lost: owner.lost, books })
}

impl Outcome {
    /// Shows the results. An error says what is wrong with them.
    fn show(&self) -> Result<(), Box<dyn Error>> {
        let Self { local, counted, shares, panics, lost, books } = self;
        println!(
            "\n{shares}\nasked again: {panics} times after a panic, {lost} times after the loss of a node\n"
        );
        for books in books {
            println!("{books}");
        }
        let words = |counts: &[u64]| counts.iter().sum::<u64>();
        println!("\n{} words by the farm, {} by a plain loop", words(counted), words(local));
        if counted != local {
            return Err("the farm and a plain loop have not counted the same".into());
        }
        match books.iter().find(|own| !own.is_exact(books)) {
            Some(books) => Err(format!("the books of {} are not exact", books.node).into()),
            None => Ok(()),
        }
    }
}

/// The sources and pages of a tree, in order, by their paths below it.
fn files(tree: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir()? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let is_source = path.extension().is_some_and(|extension| extension == "rs" || extension == "md");
            let name = entry.file_name();
            if kind.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
                folders.push(path);
            } else if kind.is_file() && is_source {
                files.extend(path.strip_prefix(tree).map(Path::to_owned));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let network = match arguments[..] {
        [] | ["--in-process"] => Network::InProcess(InProcess::new()),
        ["--processes"] => Network::Server(DevServer::start()?),
        // The program starts itself as such a node.
        ["--node", name, "--server", server] => return nodes::serve(name, server),
        _ => return Err(USAGE.into()),
    };
    run(&network)?.show()
}
