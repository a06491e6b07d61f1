//! The accounts of a node that has ended: those of its links, and its ledger.

use pointsman::Ledger;
use pointsman::prelude::*;
use pointsman::remote::LinkReport;
use pointsman::shutdown::ShutdownReport;
use std::error::Error;
use std::fmt;
use std::time::Duration;

pub struct NodeReport {
    pub shutdown: ShutdownReport,
    pub links: Vec<LinkReport>,
    pub ledger: Ledger,
}

impl NodeReport {
    /// Waits until the coordinated shutdown of a system with a node has run, and ends the system.
    pub fn wait(system: System) -> Result<Self, Box<dyn Error>> {
        let remote = system.remote().ok_or("the system is no node: describe one by `SystemBuilder::node`")?;
        let shutdown = system.coordinated_shutdown().wait()?;
        // The node waits here until the other one has confirmed what it has sent.
        let ledger = system.shutdown(Duration::from_secs(10))?;
        Ok(Self { shutdown, links: remote.links(), ledger })
    }

    /// Whether each message is accounted for, in this node and on each link.
    pub fn is_exact(&self) -> bool {
        let is_exact = |link: &LinkReport| {
            link.queued == 0 && link.shipped == link.confirmed + link.lost + link.in_doubt
        };
        self.ledger.balance() == 0 && self.links.iter().all(is_exact)
    }
}

impl fmt::Display for NodeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.shutdown)?;
        for LinkReport { node, uid, shipped, confirmed, lost, in_doubt, received, .. } in &self.links {
            writeln!(
                f,
                "link to {node} ({uid:016x}): {shipped} shipped = {confirmed} confirmed + {lost} lost + {in_doubt} in doubt; \
                 {received} received"
            )?;
        }
        write!(f, "at the end: {}", self.ledger)
    }
}
