//! A routee set: several routees in the place of a single routee, or of none.

use crate::core::actor_ref::{ActorRef, RecipientLoad};
use crate::core::error::SendError;
use crate::core::recipient::{DeliveryStatus, OwnRecipient};
use crate::core::recipient_identity::{RecipientIdentity, SameRecipient};
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Parts, Routee, order};
use crate::routing::router_info::RouterInfo;
use crate::util::panic::drop_guarded;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::Arc as StdArc;

impl<M: Clone + Send + 'static> Routee<M> {
    /// A routee made of several: each gets a copy of every message, in this order. Each copy is a delivery of its own,
    /// and a dead letter of its own if it is not taken. The parts may be made of several, too.
    ///
    /// A set of no parts is as [`none`](Self::none). Its identity on hash rings is made of those of its parts; its load
    /// is that of its busiest part. A router's head does not watch the parts.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// use pointsman::routing::{RoundRobin, Routee, RouterValue};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let (left, mut lefts) = inbox(&system)?;
    /// let (right, mut rights) = inbox(&system)?;
    /// let both = Routee::several([&left, &right]);
    /// let router = RouterValue::new(&system, RoundRobin::new())?.with_routees([both, left.into()]);
    /// router.route(1u32); // to both
    /// router.route(2u32); // to the left
    /// assert_eq!((lefts.recv()?, lefts.recv()?, rights.recv()?), (1, 2, 1));
    /// # Ok(())
    /// # }
    /// # type Inbox = std::sync::mpsc::Receiver<u32>;
    /// # fn inbox(_: &System) -> Result<(ActorRef<u32>, Inbox), Box<dyn std::error::Error>> {
    /// #     let (sender, receiver) = std::sync::mpsc::channel();
    /// #     Ok((ActorRef::from_fn(move |number| sender.send(number).expect("it is kept")), receiver))
    /// # }
    /// ```
    pub fn several(parts: impl IntoIterator<Item = impl Into<Routee<M>>>) -> Self {
        let list: Box<[Routee<M>]> = parts.into_iter().map(Into::into).collect();
        let names: Vec<&str> = list.iter().map(Routee::identity).collect();
        let identity = format!("({})", names.join(", "));
        // The system of each part counts its copy, and the first system that counts also counts the message to all
        // parts.
        let system = list.iter().find_map(|part| part.actor().system());
        let info = system
            .map(|system| RouterInfo::without_router::<M>(&crate::core::system::SystemRef::new(system)));
        let again = |parts: Vec<Routee<M>>| Routee::several(parts);
        let parts = StdArc::new(Parts { list, identity, again });
        Routee::of_parts(ActorRef::to_own_recipient(RouteeSet { parts: parts.clone(), info }), parts)
    }
}

struct RouteeSet<M> {
    parts: StdArc<Parts<M>>,
    /// `None` if no system counts the copies of the parts.
    info: Option<RouterInfo>,
}

impl<M: Clone + Send + 'static> OwnRecipient<M> for RouteeSet<M> {
    fn deliver(&self, message: M) -> Result<DeliveryStatus, SendError<M>> {
        if let Some(info) = &self.info {
            let cx = RouteContext::new(info);
            let done = cx.deliver_to_each(message, self.parts.list.iter());
            cx.finish(&done);
            return done.map(|()| DeliveryStatus::Passed);
        }
        let Some((last, others)) = self.parts.list.split_last() else {
            return Err(SendError::NoRoutee(message));
        };
        // The caller counts this message once, and does not count its copies. So the message comes back only if no part
        // has taken a copy: otherwise another recipient would get the message, too.
        let mut taken = None;
        for part in others {
            taken = part.actor().forward_counted(message.clone()).ok().or(taken);
        }
        match (last.actor().forward_counted(message), taken) {
            (Err(refused), Some(taken)) => {
                drop_guarded(refused);
                Ok(taken)
            }
            (done, _) => done,
        }
    }

    fn is_closed(&self) -> bool {
        self.parts.list.iter().all(|part| part.actor().is_closed())
    }

    /// Returns the load of the busiest part that lives.
    fn load(&self) -> RecipientLoad {
        let loads = self.parts.list.iter().map(|part| part.actor().load());
        loads
            .filter(|load| *load != RecipientLoad::Closed)
            .max_by_key(|load| load.rank())
            .unwrap_or(RecipientLoad::Closed)
    }

    /// A single part gets the message itself, which then may be a copy.
    fn expect_copies(&self) {
        self.parts.list.iter().for_each(|part| part.actor().expect_copies());
    }

    fn system(&self) -> Option<crate::core::system::SystemRef> {
        self.info.as_ref().map(|info| crate::core::system::SystemRef::new(info.system.clone()))
    }

    fn meaning(&self) -> Option<&dyn RecipientIdentity> {
        Some(self)
    }
}

/// Equal parts in the same order get the same copies.
impl<M: 'static> SameRecipient for RouteeSet<M> {
    fn is_like(&self, other: &Self) -> bool {
        self.parts.list == other.parts.list
    }

    fn feed(&self, state: &mut dyn Hasher) {
        self.parts.list.iter().for_each(|part| part.feed(state));
    }

    fn order(&self, other: &Self) -> Ordering {
        order(&self.parts.list, &other.parts.list)
    }
}
