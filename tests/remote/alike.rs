//! Pools whose routees are here, elsewhere, and both, by one suite.

use crate::network::{Network, TestNode, link};
use crate::same_pool::{Worker, run_here, run_there};
use pointsman::remote::{Deploy, Node, Policy};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The histories of a run. `POINTSMAN_SEEDS` asks for more, and `POINTSMAN_SEED` for a single one.
const SEEDS: u64 = 40;

fn node(network: &Network, name: &str) -> TestNode {
    let policy = Policy::closed().allow_factory(Worker::FACTORY, ["n1"]);
    network.node_with(name, |node: Node| node.factory::<Worker>().policy(policy))
}

#[test]
fn pools_behave_alike_wherever_their_routees_are() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let next = || RUNS.fetch_add(1, Ordering::Relaxed);
    let told = |name| std::env::var(name).ok().and_then(|told| told.parse::<u64>().ok());
    let seeds = match told("POINTSMAN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..told("POINTSMAN_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let alone = Network::new();
        let n1 = node(&alone, "n1");
        let here = run_here(seed, next(), &n1, "n1");
        assert_eq!(n1.end().balance(), 0, "seed {seed}");
        let elsewhere: [&[&str]; 3] = [&["n2", "n3"], &["n1", "n2"], &["n3"]];
        for nodes in elsewhere {
            let network = Network::new();
            let [n1, n2, n3] = ["n1", "n2", "n3"].map(|name| node(&network, name));
            link(&n1, &n2);
            link(&n1, &n3);
            let mut nudged = Instant::now();
            run_there(seed, next(), &[&n1, &n2, &n3], nodes, &here, || {
                // Requests to leave may wait for a table, for a second at most.
                if nudged.elapsed() > Duration::from_millis(50) {
                    network.seconds(1);
                    nudged = Instant::now();
                }
                std::thread::yield_now();
            });
            network.settle();
            let ledgers = [n1, n2, n3].map(TestNode::end);
            assert!(
                ledgers.iter().all(|ledger| ledger.balance() == 0),
                "seed {seed} on {nodes:?}: {ledgers:?}"
            );
        }
    }
}
