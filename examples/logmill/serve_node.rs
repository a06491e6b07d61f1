//! One node of a mill over two nodes, as a process of its own, over a server of NATS.

use crate::mill::Settings;
use crate::pipeline;
use crate::reading_node::ReadingNode;
use crate::writing_node::WritingNode;
use pointsman::events::Subscription;
use pointsman::prelude::*;
use pointsman::remote::{Node, NodeEvent};
use pointsman_nats::Nats;
use std::error::Error;
use std::str::FromStr;

/// The server, unless another one is named.
const SERVER: &str = "nats://127.0.0.1:4222";

/// The part of a node in the mill, which is its name too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// n1 reads lines.
    Reading,
    /// n2 writes them.
    Writing,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        [Part::Reading, Part::Writing]
            .into_iter()
            .find(|part| part.name() == name)
            .ok_or_else(|| format!("there is no node {name}: n1 reads lines, and n2 writes them"))
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Reading => "n1",
            Part::Writing => "n2",
        }
    }
}

/// Runs a node until a signal ends it. Returns whether its books are exact.
pub fn serve(part: Part, server: Option<&str>, settings: &Settings) -> Result<bool, Box<dyn Error>> {
    let node = Node::new(part.name()).engine(Nats::servers([server.unwrap_or(SERVER)]));
    let builder = System::builder("logmill");
    match part {
        Part::Reading => {
            let running = ReadingNode::start(builder, node, Part::Writing.name(), settings)?;
            let _told = tell_events(running.system());
            running.system().coordinated_shutdown().on_signals()?;
            println!("logmill: listening on {}", running.addr());
            let (books, report) = running.wait()?;
            println!("{books}\n{report}");
            Ok(books.balance() && books.lines.lost.get() == 0 && report.is_exact())
        }
        Part::Writing => {
            let running = WritingNode::start(builder, node, settings, pipeline::files(settings)?)?;
            let _told = tell_events(running.system());
            running.system().coordinated_shutdown().on_signals()?;
            println!("logmill: takes lines");
            let (books, report) = running.wait()?;
            println!("{books}\n{report}");
            Ok(books.balance() && books.lost.get() == 0 && report.is_exact())
        }
    }
}

/// Prints what the node tells of the other one, and of its server.
fn tell_events(system: &System) -> Subscription {
    system.events().on(|event: &NodeEvent| match event {
        NodeEvent::Up { node, uid } => println!("logmill: {node} is up ({uid:016x})"),
        NodeEvent::Down { node, uid, reason } => {
            println!("logmill: {node} is down ({uid:016x}): {reason:?}");
        }
        NodeEvent::EngineDown { why } => eprintln!("logmill: {why}"),
        _ => {}
    })
}
