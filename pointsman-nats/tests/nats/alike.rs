//! A pool behaves alike wherever its routees are: the suite of the library over a real server.

#[path = "../../../tests/remote/same_pool.rs"]
mod same_pool;

use crate::support::{LIMIT, server_or_skip};
use pointsman::prelude::*;
use pointsman::remote::{Deploy, Node, NodeEvent, Policy};
use pointsman_nats::{DevServer, Nats};
use same_pool::{Worker, run_here, run_there};
use std::sync::Mutex;
use std::sync::mpsc::channel;

/// The histories of a run.
const SEEDS: u64 = 6;

#[test]
fn pools_behave_alike_over_a_server() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    for seed in 1000..1000 + SEEDS {
        let node = |cluster: &str, name: &str| {
            let policy = Policy::closed().allow_factory(Worker::FACTORY, ["n1"]);
            let engine = Nats::servers([server.url()]);
            let node = Node::new(name).engine(engine).cluster(cluster).factory::<Worker>().policy(policy);
            System::builder("demo").node(node).build().expect("a sound node")
        };
        let run = 3 * seed;
        let n1 = node(&format!("here-{seed}"), "n1");
        let here = run_here(seed, run, &n1, "n1");
        assert_eq!(n1.shutdown(LIMIT).expect("it ends").balance(), 0);
        let elsewhere: [&[&str]; 2] = [&["n2", "n3"], &["n1", "n2"]];
        for (step, nodes) in elsewhere.into_iter().enumerate() {
            let cluster = format!("there-{seed}-{step}");
            let systems = ["n1", "n2", "n3"].map(|name| node(&cluster, name));
            let (up_to, ups) = channel();
            let up_to = Mutex::new(up_to);
            let told = systems[0].events().on(move |event: &NodeEvent| {
                if matches!(event, NodeEvent::Up { .. }) {
                    let _ = up_to.lock().expect("no panic").send(());
                }
            });
            let [n1, n2, n3] = systems;
            for peer in ["n2", "n3"] {
                n1.remote().expect("it is a node").connect(peer);
            }
            (0..2).for_each(|_| ups.recv_timeout(LIMIT).expect("they are linked"));
            run_there(seed, run + 1 + step as u64, &[&n1, &n2, &n3], nodes, &here, std::thread::yield_now);
            drop(told);
            let ledgers = [n1, n2, n3].map(|system| system.shutdown(LIMIT).expect("it ends"));
            assert!(
                ledgers.iter().all(|ledger| ledger.balance() == 0),
                "seed {seed} on {nodes:?}: {ledgers:?}"
            );
        }
    }
}
