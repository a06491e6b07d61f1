//! The books of nodes that have ended.

use crate::nodes::PATIENCE;
use pointsman::prelude::*;
use pointsman::remote::{LinkReport, Remote};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;

#[derive(Debug, Serialize, Deserialize)]
pub struct Books {
    pub node: String,
    uid: u64,
    ledger: String,
    balance: i64,
    links: Vec<Link>,
}

/// The account of a link to one start of another node.
#[derive(Debug, Serialize, Deserialize)]
pub struct Link {
    to: String,
    uid: u64,
    queued: u64,
    shipped: u64,
    confirmed: u64,
    lost: u64,
    in_doubt: u64,
    received: u64,
}

impl Books {
    /// Ends a node, which waits for the receipts of the others.
    pub fn close(system: System) -> Result<Self, Box<dyn Error>> {
        let remote: Remote = system.remote().ok_or("this system is no node")?;
        let (node, uid) = (remote.node().to_owned(), remote.uid());
        let ledger = system.shutdown(PATIENCE)?;
        let links = remote.links().into_iter().map(Link::from).collect();
        Ok(Self { node, uid, balance: ledger.balance(), ledger: ledger.to_string(), links })
    }

    /// Whether the ledger balances, and each link agrees with the books of its other end, where these are there.
    pub fn is_exact(&self, all: &[Books]) -> bool {
        self.balance == 0 && self.links.iter().all(|link| link.is_exact(self.uid, all))
    }
}

impl Link {
    fn is_exact(&self, from: u64, all: &[Books]) -> bool {
        let Self { uid, queued, shipped, confirmed, lost, in_doubt, .. } = *self;
        let adds_up = queued == 0 && shipped == confirmed + lost + in_doubt;
        let peer = all.iter().find(|books| books.uid == uid);
        let back = peer.map(|books| books.links.iter().find(|link| link.uid == from));
        // An envelope that is in doubt has come, or has not.
        let agrees = |back: &Link| (confirmed..=confirmed + in_doubt).contains(&back.received);
        adds_up && back.is_none_or(|back| back.is_some_and(agrees))
    }
}

impl From<LinkReport> for Link {
    fn from(link: LinkReport) -> Self {
        let LinkReport { node: to, uid, queued, shipped, confirmed, lost, in_doubt, received, .. } = link;
        Self { to, uid, queued, shipped, confirmed, lost, in_doubt, received }
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, ledger, links, .. } = self;
        for Link { to, shipped, confirmed, lost, in_doubt, received, .. } in links {
            writeln!(
                f,
                "{node}: link to {to}: {shipped} shipped = {confirmed} confirmed + {lost} lost + {in_doubt} in doubt; \
                 {received} received"
            )?;
        }
        write!(f, "{node}: {ledger}")
    }
}
