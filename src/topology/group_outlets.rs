//! Group outlets are all outlets of a group in a single object: an actor keeps it in a single field.
//!
//! The mount of the group freezes a table with the outlet of each type that the group routes. A send finds its outlet
//! there by the identity of the type, and goes on as the send of that [`Outlet`]: the look-up takes no lock and allocates
//! nothing. An outlet that an actor keeps in a field of its own spares the look-up.

use crate::ask::reply::{Call, Request};
use crate::core::error::SendError;
use crate::core::multi_send::{SendMode, SendReport};
use crate::core::system::SystemRef;
use crate::sync::OnceLock;
use crate::topology::outlet::{Outlet, Table};
use crate::topology::request::RequestBuilder;
use crate::util::debug_by_display::debug_by_display;
use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Group outlets send messages of every type for which their group has a route, without naming a recipient.
///
/// They are elfo's `Context::send`: an actor needs a single field, whatever it sends. They are made by
/// [`DeclaredGroup::outlets`](super::DeclaredGroup::outlets), and a clone costs a count. The verbs are those of an
/// [`Outlet`], which they look up by the type of the message in a small table that the mount of the group has frozen:
/// a send takes 472 instructions where that of a kept outlet takes 409, for a group of one type and of eight.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::topology::{GroupOutlets, GroupSendError};
///
/// #[derive(Debug, Clone)]
/// struct Order(u64);
/// #[derive(Debug, Clone)]
/// struct Refund(u64);
///
/// /// Sends orders and refunds wherever the topology routes them.
/// struct Gateway {
///     out: GroupOutlets,
/// }
/// impl Actor for Gateway {
///     type Message = u64;
///     fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
///         self.out.try_send(Order(number))?;
///         self.out.try_send(Refund(number))?;
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let topology = system.topology();
/// let (gateway, ledgers) = (topology.local("gateway")?, topology.local("ledgers")?);
/// gateway.route_all_to::<Order, Order>(&ledgers);
/// let out = gateway.outlets();
/// let actor = {
///     let out = out.clone();
///     system.spawn(move || Gateway { out: out.clone() })?
/// };
/// ledgers.mount(&ActorRef::from_fn(|_: Order| {}));
/// gateway.mount(&actor);
///
/// out.try_send(Order(7))?;
/// let refused = out.try_send(Refund(7)).expect_err("the group has no route for it");
/// assert!(matches!(&refused, GroupSendError::Unrouted { message: Refund(7), .. }));
/// assert!(refused.to_string().contains("\"gateway\" routes no messages of type"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct GroupOutlets {
    shared: StdArc<Shared>,
}

struct Shared {
    group: StdArc<str>,
    system: SystemRef,
    /// Fixed when the group is mounted.
    types: OnceLock<TypeTable>,
}

/// A type table finds a routed type by its identity: at the place that the identity names, or at the next places up to
/// a vacant place. At least three in four places are vacant.
///
/// The table tries multipliers until no two types share a place, so a send costs the same for each type and in each
/// build. Beyond some 40 types none may be found; a few types are then displaced, and cost some instructions more.
struct TypeTable {
    /// Their number is a power of two.
    places: Box<[Option<RoutedType>]>,
    /// An odd number: its product with an identity's hash names the place.
    multiplier: u64,
}

/// How many multipliers a table tries.
const MULTIPLIERS_TRIED: u64 = 1_000;

impl TypeTable {
    fn new(types: Vec<RoutedType>) -> Self {
        let count = (4 * types.len()).next_power_of_two();
        let mut table = Self { places: Box::default(), multiplier: 1 };
        for attempt in 0..MULTIPLIERS_TRIED {
            table.multiplier = 2 * attempt + 1;
            let mut taken: Vec<_> =
                types.iter().map(|routed| table.place_of(routed.id) & (count - 1)).collect();
            taken.sort_unstable();
            taken.dedup();
            if taken.len() == types.len() {
                break;
            }
        }
        let mut places: Box<[Option<RoutedType>]> = (0..count).map(|_| None).collect();
        for routed in types {
            let mut place = table.place_of(routed.id) & (count - 1);
            while places[place].is_some() {
                place = (place + 1) & (count - 1);
            }
            places[place] = Some(routed);
        }
        Self { places, ..table }
    }

    /// Returns a number whose lowest bits are the place of a type: the middle of the product, on which all lower bits
    /// of the hash have an influence.
    #[inline]
    fn place_of(&self, id: TypeId) -> usize {
        (hash_of(id).wrapping_mul(self.multiplier) >> 32) as usize
    }

    #[inline]
    fn find(&self, id: TypeId) -> Option<&RoutedType> {
        let mask = self.places.len() - 1;
        let mut place = self.place_of(id) & mask;
        // A vacant place ends the search.
        while let Some(routed) = &self.places[place & mask] {
            if routed.id == id {
                return Some(routed);
            }
            place += 1;
        }
        None
    }
}

/// Returns the number that a type identity hashes to: it is a hash already, so nothing is mixed.
#[inline]
fn hash_of(id: TypeId) -> u64 {
    struct AsItIs(u64);
    impl Hasher for AsItIs {
        #[inline]
        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
        }
        #[inline]
        fn finish(&self) -> u64 {
            self.0
        }
    }
    let mut hasher = AsItIs(0);
    id.hash(&mut hasher);
    hasher.finish()
}

/// A routed type is a type of message for which a group has a route.
pub(crate) struct RoutedType {
    id: TypeId,
    name: &'static str,
    /// The `Outlet` of the type.
    outlet: Box<dyn Any + Send + Sync>,
}

impl RoutedType {
    pub(crate) fn of<M: Send + 'static>(table: StdArc<Table<M>>) -> Self {
        let outlet = Box::new(Outlet { table });
        Self { id: TypeId::of::<M>(), name: std::any::type_name::<M>(), outlet }
    }
}

impl GroupOutlets {
    pub(crate) fn new(group: StdArc<str>, system: SystemRef) -> Self {
        Self { shared: StdArc::new(Shared { group, system, types: OnceLock::new() }) }
    }

    /// Freezes the table.
    pub(crate) fn fix(&self, types: Vec<RoutedType>) {
        let unfixed = self.shared.types.set(TypeTable::new(types)).is_ok();
        debug_assert!(unfixed, "a handle is consumed by its mount");
    }

    /// Returns the group that the routes belong to.
    pub fn group(&self) -> &str {
        &self.shared.group
    }

    /// Returns the names of the types for which the group has routes, in order; there are none until the group is
    /// mounted.
    pub fn message_types(&self) -> Vec<&'static str> {
        let types = self.shared.types.get();
        let routed = types.into_iter().flat_map(|types| types.places.iter().flatten());
        let mut names: Vec<_> = routed.map(|routed| routed.name).collect();
        names.sort_unstable();
        names
    }

    #[inline]
    fn find<M: Send + 'static>(&self) -> Option<&Outlet<M>> {
        self.shared.types.get()?.find(TypeId::of::<M>())?.outlet.downcast_ref()
    }

    #[cold]
    fn unrouted<M>(&self) -> UnroutedType {
        UnroutedType {
            group: self.group().to_owned(),
            message_type: std::any::type_name::<M>(),
            is_mounted: self.shared.types.get().is_some(),
            routed: self.message_types(),
        }
    }

    /// Returns the outlet of a type of message, for all verbs of [`Outlet`], and to be kept where the search should be
    /// spared.
    ///
    /// # Errors
    ///
    /// [`UnroutedType`] if the group has no route for messages of this type, or is not mounted yet.
    pub fn outlet<M: Send + 'static>(&self) -> Result<&Outlet<M>, UnroutedType> {
        self.find().ok_or_else(|| self.unrouted::<M>())
    }

    /// Sends by a mode, as [`Outlet::send_by`]. Returns the outcomes of the copies, and whether a recipient has
    /// accepted the message.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), in the second value.
    ///
    /// # Panics
    ///
    /// As [`Outlet::send_by`].
    #[inline]
    pub fn send_by<M: Send + 'static>(
        &self,
        message: M,
        mode: SendMode,
    ) -> (SendReport, Result<(), GroupSendError<M>>) {
        match self.find() {
            Some(outlet) => {
                let (report, sent) = outlet.send_by(message, mode);
                (report, sent.map_err(GroupSendError::Refused))
            }
            None => self.hand_back(message, mode),
        }
    }

    /// Accounts for a message of a type without a route, as an outlet that leads nowhere does.
    #[cold]
    fn hand_back<M: Send + 'static>(
        &self,
        message: M,
        mode: SendMode,
    ) -> (SendReport, Result<(), GroupSendError<M>>) {
        let Shared { group, system, .. } = &*self.shared;
        let table = Table { group: group.clone(), system: system.clone(), routes: OnceLock::new() };
        let (report, sent) = Outlet { table: StdArc::new(table) }.send_by(message, mode);
        let unrouted = |error: SendError<M>| GroupSendError::Unrouted {
            message: error.into_inner(),
            fault: self.unrouted::<M>(),
        };
        (report, sent.map_err(unrouted))
    }

    /// Sends, and waits for room in full mailboxes that let senders wait: as [`Outlet::send`].
    ///
    /// # Errors
    ///
    /// [`GroupSendError::Unrouted`] if the group has no route for messages of this type, or is not mounted yet;
    /// [`GroupSendError::Refused`] if no recipient has accepted the message. The message comes back.
    #[inline]
    pub fn send<M: Send + 'static>(&self, message: M) -> Result<(), GroupSendError<M>> {
        match self.find() {
            Some(outlet) => outlet.send(message).map_err(GroupSendError::Refused),
            None => self.hand_back(message, SendMode::Wait).1,
        }
    }

    /// As [`send`](Self::send), but waits for `limit` instead of for as long as the mailboxes say.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[inline]
    pub fn send_within<M: Send + 'static>(
        &self,
        message: M,
        limit: Duration,
    ) -> Result<(), GroupSendError<M>> {
        match self.find() {
            Some(outlet) => outlet.send_within(message, limit).map_err(GroupSendError::Refused),
            None => self.hand_back(message, SendMode::Within(limit)).1,
        }
    }

    /// Sends without waiting.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[inline]
    pub fn try_send<M: Send + 'static>(&self, message: M) -> Result<(), GroupSendError<M>> {
        match self.find() {
            Some(outlet) => outlet.try_send(message).map_err(GroupSendError::Refused),
            None => self.hand_back(message, SendMode::Try).1,
        }
    }

    /// Sends beyond the capacity of mailboxes: as [`Outlet::unbounded_send`].
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    #[inline]
    pub fn unbounded_send<M: Send + 'static>(&self, message: M) -> Result<(), GroupSendError<M>> {
        match self.find() {
            Some(outlet) => outlet.unbounded_send(message).map_err(GroupSendError::Refused),
            None => self.hand_back(message, SendMode::Unbounded).1,
        }
    }

    /// Begins to describe a request to all recipients to which the topology routes it: as [`Outlet::request`], for a
    /// group that routes [`Call<Q>`](Call).
    ///
    /// # Errors
    ///
    /// [`GroupSendError::Unrouted`] with the request if the group has no route for messages of type `Call<Q>`, or is
    /// not mounted yet.
    pub fn request<Q: Request>(
        &self,
        request: Q,
    ) -> Result<RequestBuilder<'_, Call<Q>, Q>, GroupSendError<Q>> {
        match self.find::<Call<Q>>() {
            Some(outlet) => Ok(outlet.request(request)),
            None => Err(GroupSendError::Unrouted { message: request, fault: self.unrouted::<Call<Q>>() }),
        }
    }
}

impl fmt::Debug for GroupOutlets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupOutlets({} -> {:?})", self.group(), self.message_types())
    }
}

/// The group has no route for messages of this type, or none yet.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnroutedType {
    /// The name of the sending group.
    pub group: String,
    /// The name of the type of message.
    pub message_type: &'static str,
    /// Whether the group is mounted: before its mount, outlets lead nowhere.
    pub is_mounted: bool,
    /// The names of the types for which the group has routes.
    pub routed: Vec<&'static str>,
}

impl fmt::Display for UnroutedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, message_type, is_mounted, routed } = self;
        match is_mounted {
            true => write!(
                f,
                "group {group:?} routes no messages of type {message_type}: define a route with `route_to` before the \
                 group is mounted, or send one of {routed:?}"
            ),
            false => write!(
                f,
                "group {group:?} is not mounted, so a message of type {message_type} leads nowhere: mount the group \
                 before its actors send"
            ),
        }
    }
}

impl std::error::Error for UnroutedType {}

debug_by_display! { UnroutedType }

/// The reason why [`GroupOutlets`] have not sent a message; the message comes back.
#[derive(PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupSendError<M> {
    /// The group has no route for messages of this type, or is not mounted yet.
    Unrouted {
        /// The message.
        message: M,
        /// The group and the type.
        fault: UnroutedType,
    },
    /// No recipient has accepted the message.
    Refused(SendError<M>),
}

impl<M> GroupSendError<M> {
    /// Returns the message that was not sent.
    pub fn into_inner(self) -> M {
        match self {
            Self::Unrouted { message, .. } => message,
            Self::Refused(error) => error.into_inner(),
        }
    }
}

impl<M> fmt::Display for GroupSendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrouted { fault, .. } => fault.fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl<M> std::error::Error for GroupSendError<M> {}

debug_by_display! { GroupSendError<M> }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    struct Typed<const N: usize>;

    #[test]
    fn types_of_a_small_group_share_no_place_and_each_is_found() {
        let system = System::builder("types").build().expect("the settings are valid");
        macro_rules! routed {
            ($($number:literal)*) => {
                vec![$({
                    let routes = OnceLock::new();
                    let table = Table { group: "from".into(), system: system.handle().clone(), routes };
                    RoutedType::of::<Typed<$number>>(StdArc::new(table))
                }),*]
            };
        }
        let types = routed!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23);
        let ids: Vec<_> = types.iter().map(|routed| routed.id).collect();
        let table = TypeTable::new(types);
        for id in ids {
            let place = table.place_of(id) & (table.places.len() - 1);
            assert!(
                table.places[place].as_ref().is_some_and(|routed| routed.id == id),
                "{id:?} is displaced"
            );
            assert!(table.find(id).is_some());
        }
        assert!(table.find(TypeId::of::<Typed<24>>()).is_none());
        assert!(TypeTable::new(Vec::new()).find(TypeId::of::<Typed<0>>()).is_none());
    }
}
