//! Listeners: a set of references that an actor tells of its events.
//!
//! The actor owns the set, so the engine knows nothing of it. From Akka's `Listeners`.

use crate::core::actor_ref::ActorRef;
use crate::path::actor_path::ActorPath;
use std::fmt;

/// The listeners of one actor: a set of references, in the order of their paths.
///
/// The actor embeds [`ListenerMessage`] in its messages and hands it over. Listeners are not watched: a listener that
/// has ended stays until it is [deafened](Self::deafen), and each message to it is a dead letter.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::pattern::{ListenerMessage, Listeners};
///
/// enum MeterMsg {
///     Reading(u32),
///     ListenerMessage(ListenerMessage<u32>),
/// }
///
/// #[derive(Default)]
/// struct Meter {
///     listeners: Listeners<u32>,
/// }
///
/// impl Actor for Meter {
///     type Message = MeterMsg;
///     fn receive(&mut self, message: MeterMsg, _: &mut Context<MeterMsg>) -> HandlerResult {
///         match message {
///             MeterMsg::ListenerMessage(request) => self.listeners.handle(request),
///             MeterMsg::Reading(value) => _ = self.listeners.gossip(value),
///         }
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let meter = system.spawn(Meter::default)?;
/// let (sender, readings) = std::sync::mpsc::channel();
/// let display = ActorRef::from_fn(move |value: u32| sender.send(value).expect("it is kept"));
/// meter.tell(MeterMsg::ListenerMessage(ListenerMessage::Listen(display)));
/// meter.tell(MeterMsg::Reading(230));
/// assert_eq!(readings.recv()?, 230);
/// # Ok(())
/// # }
/// ```
pub struct Listeners<M> {
    /// In the order of the paths and incarnations at the time of their addition, and then of their addition.
    list: Vec<(ActorPath, u32, ActorRef<M>)>,
}

type Visit<M> = dyn FnMut(&ActorRef<M>) + Send;

/// A request to a [set of listeners](Listeners) from outside.
#[non_exhaustive]
pub enum ListenerMessage<M> {
    /// The reference listens from now on; if it does already, nothing happens.
    Listen(ActorRef<M>),
    /// The reference listens no more.
    Deafen(ActorRef<M>),
    /// The function runs in the actor, with each of its listeners in order. (Akka's `WithListeners`.)
    ForEach(Box<Visit<M>>),
}

impl<M: Send + 'static> Listeners<M> {
    /// No listeners.
    pub fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// Handles a request.
    pub fn handle(&mut self, request: ListenerMessage<M>) {
        match request {
            ListenerMessage::Listen(listener) => _ = self.listen(listener),
            ListenerMessage::Deafen(listener) => _ = self.deafen(&listener),
            ListenerMessage::ForEach(act) => self.for_each(act),
        }
    }

    /// Adds a listener. Returns whether it is new: a reference that listens already is not added again.
    ///
    /// It listens already if an [equal](ActorRef#equality) reference does.
    pub fn listen(&mut self, listener: ActorRef<M>) -> bool {
        if self.position(&listener).is_some() {
            return false;
        }
        let path = listener.path();
        let uid = listener.uid();
        let key = (path.as_str(), uid);
        let place = self.list.partition_point(|(known, uid, _)| (known.as_str(), *uid) <= key);
        self.list.insert(place, (path, uid, listener));
        true
    }

    /// Removes a listener. Returns whether the reference was a listener.
    pub fn deafen(&mut self, listener: &ActorRef<M>) -> bool {
        let found = self.position(listener);
        found.map(|place| self.list.remove(place)).is_some()
    }

    /// Returns the place of a listener. The search does not use its path, which may be another path by now.
    fn position(&self, listener: &ActorRef<M>) -> Option<usize> {
        self.list.iter().position(|(_, _, known)| known == listener)
    }

    /// Calls `act` with each listener, in order.
    pub fn for_each(&self, act: impl FnMut(&ActorRef<M>)) {
        self.iter().for_each(act);
    }

    /// The listeners, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ActorRef<M>> {
        self.list.iter().map(|(_, _, listener)| listener)
    }

    /// Tells each listener, in order, and returns how many there are.
    pub fn gossip(&self, message: impl Into<M>) -> usize
    where
        M: Clone,
    {
        if let Some(((_, _, last), others)) = self.list.split_last() {
            let message = message.into();
            if !others.is_empty() {
                self.iter().for_each(ActorRef::expect_copies);
            }
            others.iter().for_each(|(_, _, listener)| listener.tell(message.clone()));
            last.tell(message);
        }
        self.list.len()
    }

    /// Returns the number of listeners.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no listeners.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<M: Send + 'static> Default for Listeners<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + 'static> fmt::Debug for Listeners<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<M: Send + 'static> fmt::Debug for ListenerMessage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenerMessage::Listen(listener) => f.debug_tuple("Listen").field(listener).finish(),
            ListenerMessage::Deafen(listener) => f.debug_tuple("Deafen").field(listener).finish(),
            ListenerMessage::ForEach(_) => f.write_str("ForEach(..)"),
        }
    }
}
