//! The node of a mill over two nodes that writes lines: it has the stages, and an actor that takes lines of the other node.

use crate::books::Books;
use crate::mill::Settings;
use crate::node_report::NodeReport;
use crate::pipeline::{self, Outputs, Pipeline};
use crate::shipment::ToMill;
use crate::unpacker::Unpacker;
use pointsman::SystemBuilder;
use pointsman::prelude::*;
use pointsman::remote::{Node, Policy};
use pointsman::shutdown::Phase;
use std::error::Error;
use std::sync::Arc;

/// The name of the actor that the other node finds.
const UNPACKER: &str = "unpacker";

/// A running node.
pub struct WritingNode {
    system: System,
    pub books: Arc<Books>,
}

/// The path by which a node of the same system finds the actor at the node `peer`.
pub fn path(system: &System, peer: &str) -> String {
    format!("pointsman://{}@{peer}/user/{UNPACKER}", system.name())
}

impl WritingNode {
    /// Starts the node, which takes lines when this returns, and writes where it is told.
    pub fn start(
        builder: SystemBuilder,
        node: Node,
        settings: &Settings,
        outputs: Outputs,
    ) -> Result<Self, Box<dyn Error>> {
        let node = node.message::<ToMill>().policy(Policy::closed().allow_path(&format!("/user/{UNPACKER}")));
        let builder = builder.node(node).shutdown_phases(settings.phases());
        let system = pipeline::with_disk(builder, outputs.len()).build()?;
        let books = Arc::<Books>::default();
        let stages = Pipeline::spawn(&system, settings, &books, outputs)?;
        let (parsers, unpacker_books) = (stages.to_ref(), books.clone());
        let unpacker = system
            .actor(UNPACKER)
            .spawn(move || Unpacker { parsers: parsers.clone(), books: unpacker_books.clone() })?;

        let (shutdown, end_within) = (system.coordinated_shutdown(), settings.end_within());
        shutdown.add_task(Phase::SERVICE_REQUESTS_DONE, "take what has arrived", move || {
            Ok(unpacker.graceful_stop(end_within).wait()?)
        })?;
        shutdown.add_task(Phase::SERVICE_STOP, "drain the stages", move || stages.drain())?;
        Ok(Self { system, books })
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    /// Waits for the end, which a signal or the coordinated shutdown begins.
    pub fn wait(self) -> Result<(Arc<Books>, NodeReport), Box<dyn Error>> {
        Ok((self.books, NodeReport::wait(self.system)?))
    }
}
