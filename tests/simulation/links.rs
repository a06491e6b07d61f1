//! Links under faults of each kind, by seed.

use crate::checker::{Event, Log, Start, check};
use crate::cluster::{Cluster, name_of, seed_count};
use pointsman::testkit::TestSystem;
use std::time::Duration;

/// The logs, with a number for each UID in the order in which it comes.
fn course(logs: &[Log]) -> Vec<String> {
    let mut uids: Vec<u64> = logs.iter().map(|log| log.start.uid).collect();
    let mut text = |start: Start| {
        let number = uids.iter().position(|uid| *uid == start.uid).unwrap_or_else(|| {
            uids.push(start.uid);
            uids.len() - 1
        });
        format!("n{}:{number}", start.node)
    };
    let events = logs.iter().flat_map(|log| {
        let down = log.events.iter().filter_map(|event| match event {
            Event::Down { of } => Some((log.start, *of)),
            _ => None,
        });
        [(log.start, log.start)].into_iter().chain(down)
    });
    events.map(|(by, of)| format!("{} {}", text(by), text(of))).collect()
}

/// Disturbs a cluster, and lets it heal. Then each node is linked with each other, by the UIDs that they have.
fn run(seed: u64) -> Vec<Log> {
    let mut cluster = Cluster::new(seed, 3, |node| node, |_| {});
    for _ in 0..30 {
        if let Some(node) = cluster.any() {
            let other = cluster.random.below(3) as usize;
            cluster.members[node].as_ref().expect("it runs").remote().connect(&name_of(other));
        }
        if cluster.random.below(2) == 0 {
            cluster.disturb();
        }
        let by = Duration::from_millis(1 + cluster.random.below(4_000));
        cluster.advance(by);
    }
    cluster.heal();
    // Long enough for each pair to find out that the other one was declared down, and for a refused one to try again.
    for _ in 0..3 {
        cluster.advance(Duration::from_secs(60));
        for member in cluster.members.iter().flatten() {
            (0..3)
                .filter(|node| name_of(*node) != member.name)
                .for_each(|node| member.remote().connect(&name_of(node)));
        }
    }
    cluster.advance(Duration::from_secs(60));
    cluster.is_linked().unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    let logs = cluster.end();
    let violations = check(&logs);
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    logs
}

#[test]
fn one_seed_takes_one_course() {
    for seed in 1..4 {
        assert_eq!(course(&run(seed)), course(&run(seed)), "seed {seed}");
    }
}

#[test]
fn all_nodes_are_linked_again_when_the_network_has_healed() {
    let (mut logs, mut count) = (Vec::new(), 0);
    for seed in TestSystem::seeds(seed_count(50)) {
        count += 1;
        eprintln!("seed {seed}");
        logs.extend(run(seed));
    }
    // The faults were such that nodes have given each other up.
    let downs = logs.iter().flat_map(|log| &log.events).filter(|event| matches!(event, Event::Down { .. }));
    let (starts, downs) = (logs.len(), downs.count());
    eprintln!("{starts} starts, {downs} declared down");
    assert!(count < 50 || starts > 3 * count && downs > count, "{starts} {downs}");
}
