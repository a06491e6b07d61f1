//! The nodes: n1 is this process; the others are processes of their own, or systems of this one.

use crate::books::Books;
use crate::counter::{Counter, Work};
use pointsman::events::Subscription;
use pointsman::prelude::*;
use pointsman::remote::{Deploy, DetectorSettings, Engine, InProcess, Node, NodeEvent, Policy};
use pointsman_nats::{DevServer, Nats};
use std::error::Error;
use std::io::{Read, copy, sink, stdin};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Only what fails takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The node that has the pool.
pub const FIRST: &str = "n1";

/// The network between the nodes.
pub enum Network {
    /// A server of this program, which ends with the value: the other nodes are processes.
    Server(DevServer),
    /// No server: the other nodes are systems of this process.
    InProcess(InProcess),
}

impl Network {
    /// Starts the node of this process.
    pub fn first(&self) -> Result<System, Box<dyn Error>> {
        let node = match self {
            Network::Server(server) => node(FIRST, Nats::servers([server.url()])),
            Network::InProcess(network) => node(FIRST, network.clone()),
        };
        Ok(System::builder("farm").node(node.message::<Work>()).build()?)
    }

    /// Starts another node, which joins the first one.
    pub fn start(&self, name: &str) -> Result<OtherNode, Box<dyn Error>> {
        match self {
            Network::Server(server) => {
                let mut program = Command::new(std::env::current_exe()?);
                program.args(["--node", name, "--server", &server.url()]);
                let child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                Ok(OtherNode::Process(Process(child)))
            }
            Network::InProcess(network) => Ok(OtherNode::System(other(name, network.clone())?)),
        }
    }
}

/// Describes a node that is declared down after some 2 s of silence, so that the program ends soon. By default it takes 15 s,
/// which a slow network needs.
fn node(name: &str, engine: impl Engine) -> Node {
    let detector = DetectorSettings::new()
        .heartbeat(Duration::from_millis(200))
        .acceptable_pause(Duration::from_secs(1));
    Node::new(name).engine(engine).detector(detector).down_after(Duration::from_millis(500))
}

/// Makes the system of a node that works for the first one.
fn other(name: &str, engine: impl Engine) -> Result<System, Box<dyn Error>> {
    let policy = Policy::closed().allow_factory(Counter::FACTORY, [FIRST]);
    let node = node(name, engine).factory::<Counter>().policy(policy);
    let system = System::builder("farm").node(node).build()?;
    system.remote().ok_or("this system is no node")?.connect(FIRST);
    Ok(system)
}

/// Runs another node in this process until the standard input ends, which it does with the program that has started this one.
/// The books of the node go to the standard output.
pub fn serve(name: &str, server: &str) -> Result<(), Box<dyn Error>> {
    let system = other(name, Nats::servers([server]))?;
    copy(&mut stdin(), &mut sink())?;
    println!("{}", serde_json::to_string(&Books::close(system)?)?);
    Ok(())
}

/// A node that works for the first one.
pub enum OtherNode {
    Process(Process),
    System(System),
}

/// A process that is killed when the value is dropped.
pub struct Process(Child);

impl OtherNode {
    /// Kills the node: a process by SIGKILL, so that there are no books. A system cannot be killed: it ends in the middle of its
    /// work.
    pub fn kill(self) -> Result<Option<Books>, Box<dyn Error>> {
        match self {
            OtherNode::Process(process) => {
                drop(process);
                Ok(None)
            }
            OtherNode::System(system) => Books::close(system).map(Some),
        }
    }

    /// Ends the node, and returns its books.
    pub fn end(self) -> Result<Books, Box<dyn Error>> {
        match self {
            OtherNode::Process(mut process) => {
                drop(process.0.stdin.take());
                let mut books = String::new();
                process.0.stdout.take().ok_or("the process has no output")?.read_to_string(&mut books)?;
                Ok(serde_json::from_str(&books)?)
            }
            OtherNode::System(system) => Books::close(system),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors say that it has ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The events of the other nodes, as the first node tells them.
pub struct NodeEvents {
    events: Receiver<NodeEvent>,
    _subscription: Subscription,
}

impl NodeEvents {
    pub fn of(system: &System) -> Self {
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let subscription = system.events().on(move |event: &NodeEvent| {
            if let Ok(sender) = sender.lock() {
                // Without a receiver the program ends.
                let _ = sender.send(event.clone());
            }
        });
        Self { events, _subscription: subscription }
    }

    /// Waits for an event.
    pub fn wait(&self, is_it: impl Fn(&NodeEvent) -> bool) -> Result<(), Box<dyn Error>> {
        loop {
            let event = self.events.recv_timeout(PATIENCE).map_err(|_| "no event comes from the nodes")?;
            if is_it(&event) {
                println!("n1: {event}");
                return Ok(());
            }
        }
    }
}
