//! The engine: what carries frames between nodes. The hub knows it by these traits alone.

use crate::remote::peer_outbox::PeerOutbox;
use crate::util::debug_by_display::debug_by_display;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Carries the frames of a node to other nodes, and theirs to it.
///
/// An engine is given to the node of a system, and started with the system. It promises:
///
/// - the frames of one channel arrive in the order in which they were sent, each at most once. Frames may be lost;
/// - the name of the sender that it tells with a frame is the one that the fabric vouches for, not one that the frame claims;
/// - it calls [`Inbound`] from threads of its own, **never from inside** [`start`](Self::start), [`Fabric::publish`],
///   [`Fabric::wants_out`] or [`Fabric::set_uid`]: the caller holds locks that `Inbound` takes, so the call would wait for itself.
///
/// An engine that tells the length of each frame, and carries none:
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::remote::{Channel, Engine, EngineError, Fabric, Identity, Inbound, Node, NotNow, PeerOutbox};
/// use std::sync::{Arc, Mutex, mpsc::Sender};
/// use std::thread::{self, JoinHandle};
/// use std::time::Duration;
///
/// struct Lengths(Sender<usize>);
///
/// struct Started {
///     lengths: Mutex<Sender<usize>>,
///     thread: Mutex<Option<JoinHandle<()>>>,
/// }
///
/// impl Engine for Lengths {
///     fn start(
///         self: Box<Self>,
///         _node: &Identity,
///         inbound: Arc<dyn Inbound>,
///     ) -> Result<Arc<dyn Fabric>, EngineError> {
///         let thread = thread::spawn(move || inbound.up(1 << 20)); // not from inside `start`
///         Ok(Arc::new(Started { lengths: Mutex::new(self.0), thread: Mutex::new(Some(thread)) }))
///     }
/// }
///
/// impl Fabric for Started {
///     fn publish(&self, _to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
///         let lengths = self.lengths.lock().map_err(|_| NotNow)?;
///         lengths.send(frame.len()).map_err(|_| NotNow)
///     }
///     fn wants_out(&self, _outbox: &PeerOutbox) {} // batches stay: there is no node to write them to
///     fn set_uid(&self, _uid: u64) {}
///     fn stop(&self, _by: Duration) {
///         // Afterwards `Inbound` is not called any more.
///         let thread = self.thread.lock().ok().and_then(|mut thread| thread.take());
///         let _ = thread.map(JoinHandle::join);
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (sender, lengths) = std::sync::mpsc::channel();
/// let system = System::builder("shop").node(Node::new("n1").engine(Lengths(sender))).build()?;
/// system.remote().expect("a node was described").connect("n2");
/// assert!(lengths.recv()? > 0); // a heartbeat, or the greeting
/// system.shutdown(Duration::from_secs(10))?;
/// # Ok(())
/// # }
/// ```
pub trait Engine: Send + 'static {
    /// Takes the settings that the configuration of the system has for an engine: the section `[remote.<section>]` (`nats`), as
    /// TOML without its head. They come before those that the code gives. Called before [`start`](Self::start), if the
    /// section is there and not empty.
    ///
    /// # Errors
    ///
    /// An [`EngineError`] names the key that cannot be used. An engine that does not implement this refuses each section, so
    /// that settings for another engine are not passed over in silence.
    fn configure(&mut self, section: &str, toml: &str) -> Result<(), EngineError> {
        let _ = toml;
        Err(EngineError::new(format!(
            "the configuration has a section `[remote.{section}]`, and this engine has no such settings: take the section out, or \
             give the node the engine that it is for"
        )))
    }

    /// Begins to carry frames of this node. A server that cannot be reached now is no error: the engine tries again, and
    /// tells [`Inbound::up`] when it is connected.
    ///
    /// # Errors
    ///
    /// An [`EngineError`] for settings that can never work.
    fn start(
        self: Box<Self>,
        node: &Identity,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Arc<dyn Fabric>, EngineError>;
}

/// A started engine, as the node calls it. It is called from any thread, under locks of the node, so it waits for nothing.
pub trait Fabric: Send + Sync + 'static {
    /// Sends a frame that is no batch.
    ///
    /// # Errors
    ///
    /// [`NotNow`] if the engine is not connected, or too much waits already. The frame is lost; the node sends again what
    /// matters.
    fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow>;

    /// The outbox has batches. From now on the engine takes them when it has room to write, until
    /// [`PeerOutbox::next`] returns `None`; then it forgets the outbox until the next call.
    fn wants_out(&self, outbox: &PeerOutbox);

    /// The node has another UID: questions for [`Channel::Probe`] reach it by this one alone.
    fn set_uid(&self, uid: u64);

    /// Writes what waits, for at most so long, and ends. When it returns, the engine calls [`Inbound`] no more. A
    /// second call does nothing. The caller holds no lock.
    fn stop(&self, by: Duration);
}

/// The node, as an engine calls it. It does little work and waits for nothing but short locks.
pub trait Inbound: Send + Sync + 'static {
    /// The engine is connected, and carries frames of at most so many bytes.
    fn up(&self, max_frame: usize);

    /// The engine is not connected any more, for this reason, and tries again.
    fn down(&self, why: &str);

    /// A frame came. `from` is the name of the node that has sent it, as the engine vouches for it.
    fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>);

    /// No node of this name and UID listens: the answer to a [`Channel::Probe`], or a hint at any other time.
    fn no_listener(&self, node: &str, uid: u64);
}

/// The node that an engine serves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The name of the node: up to 64 ASCII letters, digits, `_` and `-`.
    pub node: String,
    /// The name of the cluster, which keeps apart clusters of one fabric.
    pub cluster: String,
    /// The UID of this start of the system; never 0.
    pub uid: u64,
}

impl Identity {
    /// Describes a node, for tests of engines: the node of a system describes itself.
    ///
    /// ```
    /// use pointsman::remote::Identity;
    ///
    /// let identity = Identity::new("n1", "shop", 7);
    /// assert_eq!((identity.node.as_str(), identity.cluster.as_str(), identity.uid), ("n1", "shop", 7));
    /// ```
    pub fn new(node: &str, cluster: &str, uid: u64) -> Self {
        Self { node: node.to_owned(), cluster: cluster.to_owned(), uid }
    }
}

/// The channel that a frame is published to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Channel<'a> {
    /// Control of the association with the node of this name.
    Control(&'a str),
    /// Heartbeats of this node, which all nodes of the cluster hear.
    Heartbeat,
    /// Names that this node registers, which all nodes of the cluster hear.
    Registry,
    /// A question whether the node has a listener with this UID; the frame is empty. The answer is
    /// [`Inbound::no_listener`], or nothing.
    Probe {
        /// The name of the node.
        node: &'a str,
        /// The UID of its start.
        uid: u64,
    },
}

/// The channel that a frame came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelKind {
    /// Batches, which the sender's engine has taken from a [`PeerOutbox`] for this node.
    Batch,
    /// Control for this node.
    Control,
    /// Heartbeats of the sender.
    Heartbeat,
    /// Names that the sender registers.
    Registry,
}

/// A frame cannot be sent now: the engine is not connected, or too much waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NotNow;

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the engine is not connected, or too much waits to be written: the frame is lost")
    }
}

impl Error for NotNow {}

debug_by_display! { NotNow }

/// An engine could not be started. The cause is an error of the engine's own type, which
/// [`source`](Error::source) returns.
///
/// ```
/// use pointsman::remote::EngineError;
/// use std::error::Error;
///
/// let error = EngineError::new(std::io::Error::other("no such file: n1.pem"));
/// assert_eq!(error.to_string(), "the engine cannot start: no such file: n1.pem");
/// assert!(error.source().is_some_and(|cause| cause.is::<std::io::Error>()));
/// ```
pub struct EngineError(Box<dyn Error + Send + Sync>);

impl EngineError {
    /// Wraps the cause: an error, or a text.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine cannot start: {}", self.0)
    }
}

impl Error for EngineError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

debug_by_display! { EngineError }
