//! Outlets are level one of the routing: they take a message that names no recipient to groups.
//!
//! There is a routing table for each sending group and type of message. The sender resolves the table once. Each
//! message then walks a slice of routes, without hashing, locks or allocation.

use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::multi_send::{Copier, Copies, SendOp};
use crate::core::system::SystemRef;
use crate::sync::OnceLock;
#[cfg(feature = "remote")]
use crate::topology::node_choices::NodeChoices;
use crate::topology::wraps::{Wraps, taken_back};
use crate::util::panic::Guarded;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc as StdArc;

/// An outlet sends messages of a single type for the members of a group, to all groups that the topology routes them
/// to.
///
/// An outlet is resolved once, by [`DeclaredGroup::outlet`](super::DeclaredGroup::outlet), and kept: a clone costs a
/// count, and a send looks up nothing. Until its group is mounted, the outlet leads nowhere.
#[doc(alias = "SendExt")]
pub struct Outlet<M: Send + 'static> {
    pub(crate) table: StdArc<Table<M>>,
}

/// A routing table says where the messages of a single type go that a single group sends.
pub(crate) struct Table<M> {
    /// The sending group.
    pub group: StdArc<str>,
    pub system: SystemRef,
    /// Fixed when the group is mounted.
    pub routes: OnceLock<Routes<M>>,
}

/// Routes lie in the order of their definition, one for each destination.
pub(crate) struct Routes<M> {
    pub list: Vec<Route<M>>,
    /// Set wherever there are two routes.
    pub clone: Option<fn(&M) -> M>,
}

/// A condition says whether a message takes a route.
pub(crate) type Condition<M> = Guarded<Box<dyn Fn(&M) -> bool + Send + Sync>>;

/// A route is all routing of a single type of message from a group to another.
pub(crate) struct Route<M> {
    pub to: StdArc<str>,
    /// The route holds if any of these conditions holds. All conditions are evaluated.
    pub conditions: Vec<Condition<M>>,
    /// The route always holds.
    pub always: bool,
    pub port: Box<dyn MessageDestination<M>>,
}

impl<M> Route<M> {
    #[inline]
    fn holds(&self, message: &M) -> bool {
        self.conditions.iter().fold(self.always, |holds, condition| condition(message) | holds)
    }
}

/// A mount point holds the reference of a declared group after it is mounted.
pub(crate) struct MountPoint<D> {
    pub name: StdArc<str>,
    pub group: OnceLock<ActorRef<D>>,
}

/// This trait offers messages of a single type to a destination.
pub(crate) trait MessageDestination<M>: Send + Sync {
    /// As [`MultiRecipient::spread`](crate::core::multi_send::MultiRecipient::spread).
    fn offer(&self, message: M, way: &SendOp<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M>;

    /// Turns a message back that this port has wrapped.
    fn restore(&self, message: Box<dyn Any + Send>) -> M;

    /// The predicates that choose nodes, if the destination is a group of other nodes.
    #[cfg(feature = "remote")]
    fn node_choices(&mut self) -> Option<&mut NodeChoices<M>> {
        None
    }
}

/// A destination is the far end of a route, a group whose messages carry those of type `M`.
pub(crate) struct GroupDestination<M, D> {
    mount_point: StdArc<MountPoint<D>>,
    carried: PhantomData<fn(M)>,
}

impl<M, D> GroupDestination<M, D> {
    pub(crate) fn new(mount_point: StdArc<MountPoint<D>>) -> Self {
        Self { mount_point, carried: PhantomData }
    }
}

impl<M: Send + 'static, D: Wraps<M> + Send + 'static> MessageDestination<M> for GroupDestination<M, D> {
    fn offer(&self, message: M, way: &SendOp<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M> {
        let Some(group) = self.mount_point.group.get() else {
            way.refuse_nowhere::<M>(DeadLetterReason::NoActor);
            return Err(message);
        };
        let inside = copier.map(Inside::<M, D>::new);
        let inside = inside.as_ref().map(|inside| inside as &dyn Copier<D>);
        way.delivery(inside).offer(group, D::from(message)).map_err(taken_back)
    }

    fn restore(&self, message: Box<dyn Any + Send>) -> M {
        taken_back(*message.downcast::<D>().expect("the waiting message was offered here"))
    }
}

/// This copier sets copies of a carrier apart by the messages that they carry.
pub(crate) struct Inside<'a, M, D> {
    copier: &'a dyn Copier<M>,
    carrier: PhantomData<fn(D)>,
}

impl<'a, M, D> Inside<'a, M, D> {
    pub(crate) fn new(copier: &'a dyn Copier<M>) -> Self {
        Self { copier, carrier: PhantomData }
    }
}

impl<M, D: Wraps<M>> Copier<D> for Inside<'_, M, D> {
    fn with_own_ports(&self, clone: D) -> D {
        D::from(self.copier.with_own_ports(taken_back(clone)))
    }
}

impl<M: Send + 'static> Table<M> {
    /// Offers the message to every group whose route holds. Every condition is evaluated, in the order of definition.
    pub(crate) fn offer(
        &self,
        message: M,
        way: &SendOp<'_>,
        copier: Option<&dyn Copier<M>>,
    ) -> Result<(), M> {
        let Some(routes) = self.routes.get() else { return Err(message) };
        let mut copies = Copies::of(message);
        let mut chosen: Option<(usize, &Route<M>)> = None;
        for (index, route) in routes.list.iter().enumerate() {
            if copies.message().is_some_and(|message| route.holds(message)) {
                // No group gets a copy before another group is known to need one, too.
                if let Some((index, before)) = chosen.replace((index, route)) {
                    way.offers_copies();
                    let copy = copies.next(|message| routes.copy(message, copier));
                    copies.reclaim_copy(before.offer(index, copy, way, copier).err());
                }
            }
        }
        if let Some((index, last)) = chosen {
            let copy = copies.last();
            copies.reclaim_copy(last.offer(index, copy, way, copier).err());
        }
        copies.into_unsent()
    }

    /// Turns back a message that has waited in vain.
    pub(crate) fn restore(&self, message: Box<dyn Any + Send>, route: usize) -> M {
        let route = self.routes.get().and_then(|routes| routes.list.get(route));
        route.expect("it was sent on its way by this route").port.restore(message)
    }
}

impl<M> Routes<M> {
    fn copy(&self, message: &M, copier: Option<&dyn Copier<M>>) -> M {
        let clone = self.clone.expect("two routes are only for messages that can be cloned")(message);
        match copier {
            None => clone,
            Some(copier) => copier.with_own_ports(clone),
        }
    }
}

impl<M> Route<M> {
    fn offer(
        &self,
        index: usize,
        message: M,
        way: &SendOp<'_>,
        copier: Option<&dyn Copier<M>>,
    ) -> Result<(), M> {
        way.enter(index, || self.port.offer(message, way, copier))
    }
}

impl<M: Send + 'static> Outlet<M> {
    /// Returns the group that the routes belong to.
    pub fn group(&self) -> &str {
        &self.table.group
    }

    /// Returns the groups to which a route leads, in the order of definition; there are none until the sending group is
    /// mounted.
    pub fn destinations(&self) -> Vec<&str> {
        let routes = self.table.routes.get();
        routes.into_iter().flat_map(|routes| &routes.list).map(|route| &*route.to).collect()
    }
}

impl<M: Send + 'static> Clone for Outlet<M> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone() }
    }
}

impl<M: Send + 'static> fmt::Debug for Outlet<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outlet<{}>({} -> {:?})", std::any::type_name::<M>(), self.group(), self.destinations())
    }
}
