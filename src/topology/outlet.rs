//! Level one: which groups a message goes to that is sent without an address.
//!
//! There is a table for each sending group and type of message. Who sends resolves it once; then every message walks a
//! slice of routes, without hashing, locks or allocation.

use crate::core::actor_ref::ActorRef;
use crate::core::dead_letter::DeadLetterReason;
use crate::core::multi_send::{Copier, Copies, Way};
use crate::core::system::SystemRef;
use crate::sync::OnceLock;
use crate::topology::wraps::{Carries, taken_back};
use crate::util::panic::drop_guarded;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc as StdArc;

/// What members of a group send messages of one type by, that are to go wherever the topology routes them.
///
/// Resolved once, by [`Local::outlet`](super::Local::outlet) or [`Mounted::outlet`](super::Mounted::outlet),
/// and kept: cloning it costs a count, and sending by it looks up nothing. Until its group is mounted it leads nowhere.
pub struct Outlet<M: Send + 'static> {
    pub(crate) table: StdArc<Table<M>>,
}

/// Where messages of one type go that one group sends.
pub struct Table<M> {
    /// The sending group.
    pub group: StdArc<str>,
    pub system: SystemRef,
    /// Fixed when the group is mounted.
    pub routes: OnceLock<Routes<M>>,
}

/// In the order of their definition, one for each destination.
pub struct Routes<M> {
    pub list: Vec<Route<M>>,
    /// There is one wherever there are two routes.
    pub clone: Option<fn(&M) -> M>,
}

impl<M> Drop for Routes<M> {
    /// Each condition is the user's, and its drop may panic: of two panics at once the second would abort the process.
    fn drop(&mut self) {
        self.list.drain(..).flat_map(|route| route.conditions).for_each(drop_guarded);
    }
}

/// Whether a message goes by a route.
pub type Condition<M> = Box<dyn Fn(&M) -> bool + Send + Sync>;

/// All that one group routes to another of one type of message.
pub struct Route<M> {
    pub to: StdArc<str>,
    /// It holds if one of them does. All are asked.
    pub conditions: Vec<Condition<M>>,
    /// It holds always.
    pub always: bool,
    pub port: Box<dyn Port<M>>,
}

impl<M> Route<M> {
    #[inline]
    fn holds(&self, message: &M) -> bool {
        self.conditions.iter().fold(self.always, |holds, condition| condition(message) | holds)
    }
}

/// Where a group's reference is once it is mounted.
pub struct Berth<D> {
    pub name: StdArc<str>,
    pub group: OnceLock<ActorRef<D>>,
}

/// The entrance of a destination for messages of one type.
pub trait Port<M>: Send + Sync {
    /// As [`Spread::spread`](crate::core::multi_send::Spread::spread).
    fn offer(&self, message: M, way: &Way<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M>;

    /// Turns back what this port has changed.
    fn turn_back(&self, message: Box<dyn Any + Send>) -> M;
}

/// The entrance of a group whose messages carry those of type `M`.
pub struct Entrance<M, D> {
    berth: StdArc<Berth<D>>,
    carried: PhantomData<fn(M)>,
}

impl<M, D> Entrance<M, D> {
    pub fn new(berth: StdArc<Berth<D>>) -> Self {
        Self { berth, carried: PhantomData }
    }
}

impl<M: Send + 'static, D: Carries<M> + Send + 'static> Port<M> for Entrance<M, D> {
    fn offer(&self, message: M, way: &Way<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M> {
        let Some(group) = self.berth.group.get() else {
            way.refuse_nowhere::<M>(DeadLetterReason::NoActor);
            return Err(message);
        };
        let inside = copier.map(|copier| Inside { copier, carrier: PhantomData::<fn(D)> });
        let inside = inside.as_ref().map(|inside| inside as &dyn Copier<D>);
        way.delivery(inside).offer(group, D::from(message)).map_err(taken_back)
    }

    fn turn_back(&self, message: Box<dyn Any + Send>) -> M {
        taken_back(*message.downcast::<D>().expect("what waited is what was offered here"))
    }
}

/// Sets copies of a carrier apart by what they carry.
struct Inside<'a, M, D> {
    copier: &'a dyn Copier<M>,
    carrier: PhantomData<fn(D)>,
}

impl<M, D: Carries<M>> Copier<D> for Inside<'_, M, D> {
    fn set_apart(&self, clone: D) -> D {
        D::from(self.copier.set_apart(taken_back(clone)))
    }
}

impl<M: Send + 'static> Table<M> {
    /// Offers the message to every group to which a route leads. Every condition is asked, in the order of definition.
    pub fn offer(&self, message: M, way: &Way<'_>, copier: Option<&dyn Copier<M>>) -> Result<(), M> {
        let Some(routes) = self.routes.get() else { return Err(message) };
        let mut copies = Copies::of(message);
        let mut chosen: Option<(usize, &Route<M>)> = None;
        for (index, route) in routes.list.iter().enumerate() {
            if copies.message().is_some_and(|message| route.holds(message)) {
                // Nobody gets a copy before it is known that another one needs one, too.
                if let Some((index, before)) = chosen.replace((index, route)) {
                    way.offers_copies();
                    let copy = copies.next(|message| routes.copy(message, copier));
                    copies.take_back(before.offer(index, copy, way, copier).err());
                }
            }
        }
        if let Some((index, last)) = chosen {
            let copy = copies.last();
            copies.take_back(last.offer(index, copy, way, copier).err());
        }
        copies.left_over()
    }

    /// Turns a message back that has waited in vain.
    pub fn turn_back(&self, message: Box<dyn Any + Send>, route: usize) -> M {
        let route = self.routes.get().and_then(|routes| routes.list.get(route));
        route.expect("it was sent on its way by this route").port.turn_back(message)
    }
}

impl<M> Routes<M> {
    fn copy(&self, message: &M, copier: Option<&dyn Copier<M>>) -> M {
        let clone = self.clone.expect("two routes are only for messages that can be cloned")(message);
        match copier {
            None => clone,
            Some(copier) => copier.set_apart(clone),
        }
    }
}

impl<M> Route<M> {
    fn offer(
        &self,
        index: usize,
        message: M,
        way: &Way<'_>,
        copier: Option<&dyn Copier<M>>,
    ) -> Result<(), M> {
        way.enter(index, || self.port.offer(message, way, copier))
    }
}

impl<M: Send + 'static> Outlet<M> {
    /// The group whose routes these are.
    pub fn group(&self) -> &str {
        &self.table.group
    }

    /// The groups to which a route leads, in the order of definition; none until the sending group is mounted.
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
