//! What an inner router answers.

/// Which actors of a group get a message: the answer of the group's inner router.
///
/// What each means depends on whether an actor of that key is present, and takes messages:
///
/// | outcome | absent | present | its actor is ending |
/// |---|---|---|---|
/// | [`Unicast`](Self::Unicast) | is created, and gets the message as its first | gets it | closed |
/// | [`GentleUnicast`](Self::GentleUnicast) | closed | gets it | the same |
/// | [`Multicast`](Self::Multicast) | all that are absent are created first | get a copy | the same, that copy alone |
/// | [`GentleMulticast`](Self::GentleMulticast) | are passed over | get a copy | the same, that copy alone |
/// | [`Broadcast`](Self::Broadcast) | – | get a copy, in no order | the same, that copy alone |
/// | [`Discard`](Self::Discard), [`Default`](Self::Default) | discarded | discarded | discarded |
///
/// Where an actor is about to be created again, the group [says](crate::topology::WhileRestarting) what becomes of the message.
///
/// *Closed* means that the message comes back as [`SendError::Closed`](crate::SendError::Closed), or is a dead letter
/// of `tell`. Of several copies it is enough that one is taken: the others are dead letters then. An empty list is
/// closed; a key that comes twice in a list gets two copies.
///
/// *Discarded* is the same as [`SendError::Discarded`](crate::SendError::Discarded): elfo's closed, told apart. A router
/// among whose routees the group is takes it for final, where for a closed message it chooses another routee.
///
/// The outcomes are elfo's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<K> {
    /// The actor of this key, which is created if there is none.
    Unicast(K),
    /// The actor of this key, if there is one.
    GentleUnicast(K),
    /// The actors of these keys: those that are absent first, which are created, and then the others, each in this order.
    Multicast(Vec<K>),
    /// Those of these keys that there are, in this order.
    GentleMulticast(Vec<K>),
    /// All that there are.
    Broadcast,
    /// Nobody.
    Discard,
    /// The router has no opinion: for a message as [`Discard`](Self::Discard), unless [`or`](Self::or) says
    /// otherwise.
    Default,
}

const _: () = assert!(size_of::<Outcome<u128>>() <= 32 && size_of::<Outcome<u64>>() <= 32);

impl<K> Outcome<K> {
    /// The same with what `change` makes of each key.
    ///
    /// ```
    /// use pointsman::topology::Outcome;
    ///
    /// assert_eq!(Outcome::Unicast(3).map(|key| key * 2), Outcome::Unicast(6));
    /// assert_eq!(Outcome::<u8>::Broadcast.map(u64::from), Outcome::Broadcast);
    /// ```
    pub fn map<N>(self, change: impl FnMut(K) -> N) -> Outcome<N> {
        let mut change = change;
        match self {
            Self::Unicast(key) => Outcome::Unicast(change(key)),
            Self::GentleUnicast(key) => Outcome::GentleUnicast(change(key)),
            Self::Multicast(keys) => Outcome::Multicast(keys.into_iter().map(change).collect()),
            Self::GentleMulticast(keys) => Outcome::GentleMulticast(keys.into_iter().map(change).collect()),
            Self::Broadcast => Outcome::Broadcast,
            Self::Discard => Outcome::Discard,
            Self::Default => Outcome::Default,
        }
    }

    /// This, or `other` instead of [`Default`](Self::Default).
    ///
    /// ```
    /// use pointsman::topology::Outcome;
    ///
    /// assert_eq!(Outcome::Default.or(Outcome::Unicast(1)), Outcome::Unicast(1));
    /// assert_eq!(Outcome::Discard.or(Outcome::Unicast(1)), Outcome::Discard);
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match self {
            Self::Default => other,
            said => said,
        }
    }
}
