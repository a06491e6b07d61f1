//! The farm in one process.

use crate::nodes::Network;
use crate::run;
use pointsman::remote::InProcess;

#[test]
fn each_file_is_counted_once_although_routees_panic_and_a_node_is_lost() {
    let outcome = run(&Network::InProcess(InProcess::new())).expect("all nodes run here");
    outcome.show().expect("the words and the books are exact");
    assert!(outcome.panics > 0);
    // n1, n2, and both starts of n3.
    assert_eq!(outcome.books.len(), 4);
    let shares = ["n1", "n2", "n3"].map(|wanted| outcome.shares.sum(|node| node == wanted).files);
    assert!(shares.iter().all(|files| *files > 0), "{shares:?}");
    assert_eq!(shares.iter().sum::<u64>(), outcome.local.len() as u64);
}
