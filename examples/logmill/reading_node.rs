//! The node of a mill over two nodes that reads lines: it has the reception, and a forwarder in the place of the stages.

use crate::forwarder::{Forwarder, ForwarderMsg};
use crate::forwarding_books::ForwardingBooks;
use crate::mill::Settings;
use crate::node_report::NodeReport;
use crate::reception::Reception;
use crate::shipment;
use crate::writing_node;
use pointsman::SystemBuilder;
use pointsman::prelude::*;
use pointsman::remote::Node;
use pointsman::shutdown::Phase;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

/// A running node.
pub struct ReadingNode {
    system: System,
    reception: Reception,
    pub books: Arc<ForwardingBooks>,
}

impl ReadingNode {
    /// Starts the node, which listens when this returns. The node `peer` writes the lines, whether it is there already or not.
    pub fn start(
        builder: SystemBuilder,
        node: Node,
        peer: &str,
        settings: &Settings,
    ) -> Result<Self, Box<dyn Error>> {
        let Settings { line_max, write_for, in_flight, .. } = *settings;
        if line_max > shipment::LINE_MAX {
            let most = shipment::LINE_MAX;
            return Err(
                format!("lines of {line_max} bytes: must be at most {most} to go to another node").into()
            );
        }
        let system = builder.node(node).shutdown_phases(settings.phases()).build()?;
        let books = Arc::new(ForwardingBooks::new(in_flight));
        let (path, forwarder_books) = (writing_node::path(&system, peer), books.clone());
        let forwarder =
            system.actor("forwarder").spawn(move || Forwarder::new(path.clone(), forwarder_books.clone()))?;
        let to = forwarder.contramap(ForwarderMsg::Line);
        let reception = Reception::spawn(&system, settings, &books.lines, to)?;

        let hurried = forwarder.clone();
        system.coordinated_shutdown().add_task(Phase::SERVICE_UNBIND, "bound the wait", move || {
            hurried.tell(ForwarderMsg::GiveUpAfter(write_for));
            Ok(())
        })?;
        reception.plan_end(&system, settings.end_within(), move || {
            forwarder.tell(ForwarderMsg::Finish);
            Ok(forwarder.when_ended().wait()?)
        })?;
        Ok(Self { system, reception, books })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.reception.addr()
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    /// Waits for the end, which a signal or the coordinated shutdown begins.
    pub fn wait(self) -> Result<(Arc<ForwardingBooks>, NodeReport), Box<dyn Error>> {
        Ok((self.books, NodeReport::wait(self.system)?))
    }
}
