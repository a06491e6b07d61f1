//! The clients that are connected, the oldest first.
//!
//! A client that takes the last place ends the oldest connection. So clients that say nothing, that never end their
//! requests or never read keep no other client from the pages, however many there are.

use crate::console::connection::Message;
use crate::core::actor_ref::ActorRef;
use crate::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc as StdArc;

/// The clients of a server.
pub(crate) struct Clients {
    places: usize,
    connected: Mutex<Connected>,
}

#[derive(Default)]
struct Connected {
    entered: u64,
    clients: VecDeque<(u64, ActorRef<Message>)>,
}

/// The entry of a client, which is taken out when the value is dropped.
pub(crate) struct ClientEntry {
    clients: StdArc<Clients>,
    number: u64,
}

impl Clients {
    pub(crate) fn new(places: usize) -> Self {
        Self { places, connected: Mutex::default() }
    }

    /// Adds a client. If it takes the last place, and not the only one, the oldest client is told to give way.
    pub(crate) fn enter(self: &StdArc<Self>, client: &ActorRef<Message>) -> ClientEntry {
        let (number, oldest) = {
            let mut connected = lock(&self.connected);
            connected.entered += 1;
            let number = connected.entered;
            connected.clients.push_back((number, client.clone()));
            let is_last = connected.clients.len() >= self.places.max(2);
            (number, if is_last { connected.clients.pop_front() } else { None })
        };
        if let Some((_, oldest)) = oldest {
            oldest.tell(Message::GiveWay);
        }
        ClientEntry { clients: self.clone(), number }
    }
}

impl Drop for ClientEntry {
    fn drop(&mut self) {
        let mut connected = lock(&self.clients.connected);
        let position = connected.clients.iter().position(|&(number, _)| number == self.number);
        // Outside the lock: the reference may be the last one of its actor.
        let client = position.and_then(|position| connected.clients.remove(position));
        drop(connected);
        drop(client);
    }
}
