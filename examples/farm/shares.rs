//! The table of shares: files, words and restarts of each routee.

use crate::counter::{Counted, Work};
use pointsman::routing::RouteeInfo;
use std::collections::BTreeMap;
use std::fmt;

/// The shares by node, and by the number of the routee.
#[derive(Debug, Default)]
pub struct Shares(BTreeMap<(String, u32), Share>);

#[derive(Debug, Default, Clone, Copy)]
pub struct Share {
    pub files: u64,
    pub words: u64,
    pub restarts: u32,
}

impl Shares {
    /// Adds the file that a routee has counted.
    pub fn add_file(&mut self, counted: &Counted) {
        let share = self.of(&counted.node, &counted.routee);
        share.files += 1;
        share.words += counted.words;
    }

    /// Sets the restarts of routees. Those that have left the pool keep what they had before.
    pub fn set_restarts(&mut self, routees: &[RouteeInfo<Work>], own_node: &str) {
        for info in routees {
            let path = info.routee.actor().path();
            let node = path.address().and_then(|address| address.node_name()).unwrap_or(own_node);
            self.of(node, path.name()).restarts = info.restarts;
        }
    }

    fn of(&mut self, node: &str, routee: &str) -> &mut Share {
        let number = routee.trim_start_matches('c').parse().unwrap_or_default();
        self.0.entry((node.to_owned(), number)).or_default()
    }

    /// The sum of all shares that are wanted.
    pub fn sum(&self, is_wanted: impl Fn(&str) -> bool) -> Share {
        let wanted = self.0.iter().filter(|((node, _), _)| is_wanted(node));
        wanted.fold(Share::default(), |sum, (_, share)| Share {
            files: sum.files + share.files,
            words: sum.words + share.words,
            restarts: sum.restarts + share.restarts,
        })
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, node: &str, routee: &str, share: Share| {
            let Share { files, words, restarts } = share;
            writeln!(f, "{node:>4} {routee:>6} {files:>7} {words:>9} {restarts:>9}")
        };
        writeln!(f, "node routee   files     words  restarts")?;
        let mut nodes: Vec<&str> = self.0.keys().map(|(node, _)| node.as_str()).collect();
        nodes.dedup();
        for ((node, number), share) in &self.0 {
            line(f, node, &format!("c{number}"), *share)?;
        }
        for wanted in nodes {
            line(f, wanted, "all", self.sum(|node| node == wanted))?;
        }
        line(f, "all", "all", self.sum(|_| true))
    }
}
