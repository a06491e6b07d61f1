//! The routing logics, each in a file, and their common parts.

pub(crate) mod round_robin;
pub(crate) mod random;
pub(crate) mod smallest_mailbox;
pub(crate) mod two_choices;
pub(crate) mod broadcast;
pub(crate) mod broadcast_if;
pub(crate) mod scatter_gather;
pub(crate) mod tail_chopping;
pub(crate) mod consistent_hashing;
pub(crate) mod direct_select; // the selection by the first four, without a context
pub(crate) mod first_reply; // the first-reply race of scatter_gather and tail_chopping
pub(crate) mod hash_ring; // the owners of keys
pub(crate) mod hash_key; // the encoding of keys
pub(crate) mod thread_rng; // random numbers
