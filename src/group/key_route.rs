//! A key route is the answer of a key router.

use crate::util::panic::Guarded;

/// A key router names the keys of a group whose actors get a message.
pub(crate) type KeyRouter<M, K> = Guarded<Box<dyn Fn(&M) -> KeyRoute<K> + Send + Sync>>;

/// A key route names the actors of a group that get a message: it is the answer of the group's key router.
///
/// The effect depends on whether the key has an actor, and whether that actor takes messages:
///
/// | outcome | absent | present | its actor is ending |
/// |---|---|---|---|
/// | [`Unicast`](Self::Unicast) | is created, and gets the message as its first | gets it | closed |
/// | [`GentleUnicast`](Self::GentleUnicast) | closed | gets it | closed |
/// | [`Multicast`](Self::Multicast) | all that are absent are created first | get a copy | closed, that copy alone |
/// | [`GentleMulticast`](Self::GentleMulticast) | are passed over | get a copy | closed, that copy alone |
/// | [`Broadcast`](Self::Broadcast) | – | get a copy, in no order | closed, that copy alone |
/// | [`Discard`](Self::Discard), [`Default`](Self::Default) | discarded | discarded | discarded |
///
/// For an actor that waits for its restart, the group's [`WhileRestarting`](crate::group::WhileRestarting) says what
/// happens to the message.
///
/// *Closed* means that the message comes back as [`SendError::Closed`](crate::SendError::Closed), or is a dead letter
/// of `tell`. Of several copies it is enough that a single copy is taken: the refused copies are dead letters then. An
/// empty list is closed. A key that is twice in a list gets two copies.
///
/// *Discarded* means the same as closed, with [`SendError::Discarded`](crate::SendError::Discarded); elfo does not tell
/// the two apart. A router that has the group as a routee takes a discarded message as final, whereas it chooses
/// another routee for a closed message.
///
/// The outcomes are elfo's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRoute<K> {
    /// The message goes to the actor of this key, which is created if it is absent.
    Unicast(K),
    /// The message goes to the actor of this key, if there is such an actor.
    GentleUnicast(K),
    /// The message goes to the actors of these keys: first to those that are absent, which are created, and then to the
    /// present ones, each in this order.
    Multicast(Vec<K>),
    /// The message goes to those of these keys that have an actor, in this order.
    GentleMulticast(Vec<K>),
    /// The message goes to all actors of the group.
    Broadcast,
    /// The message goes to no actor.
    Discard,
    /// The key router has no opinion: the message is handled as by [`Discard`](Self::Discard), unless [`or`](Self::or)
    /// gives another outcome.
    Default,
}

const _: () = assert!(size_of::<KeyRoute<u128>>() <= 32 && size_of::<KeyRoute<u64>>() <= 32);

impl<K> KeyRoute<K> {
    /// Returns the outcome with each key replaced by the result of `change`.
    ///
    /// ```
    /// use pointsman::group::KeyRoute;
    ///
    /// assert_eq!(KeyRoute::Unicast(3).map(|key| key * 2), KeyRoute::Unicast(6));
    /// assert_eq!(KeyRoute::<u8>::Broadcast.map(u64::from), KeyRoute::Broadcast);
    /// ```
    pub fn map<N>(self, change: impl FnMut(K) -> N) -> KeyRoute<N> {
        let mut change = change;
        match self {
            Self::Unicast(key) => KeyRoute::Unicast(change(key)),
            Self::GentleUnicast(key) => KeyRoute::GentleUnicast(change(key)),
            Self::Multicast(keys) => KeyRoute::Multicast(keys.into_iter().map(change).collect()),
            Self::GentleMulticast(keys) => KeyRoute::GentleMulticast(keys.into_iter().map(change).collect()),
            Self::Broadcast => KeyRoute::Broadcast,
            Self::Discard => KeyRoute::Discard,
            Self::Default => KeyRoute::Default,
        }
    }

    /// Returns this outcome, or `other` in the place of [`Default`](Self::Default).
    ///
    /// ```
    /// use pointsman::group::KeyRoute;
    ///
    /// assert_eq!(KeyRoute::Default.or(KeyRoute::Unicast(1)), KeyRoute::Unicast(1));
    /// assert_eq!(KeyRoute::Discard.or(KeyRoute::Unicast(1)), KeyRoute::Discard);
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Default => other,
            said => said,
        }
    }
}
