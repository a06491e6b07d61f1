//! The routing logics, one in each file, and what several of them need.

pub(crate) mod round_robin;
pub(crate) mod random;
pub(crate) mod smallest_mailbox;
pub(crate) mod two_choices;
pub(crate) mod broadcast;
pub(crate) mod broadcast_if;
pub(crate) mod scatter_gather;
pub(crate) mod tail_chopping;
pub(crate) mod consistent_hashing;
pub(crate) mod first_reply; // one question to several routees: for scatter_gather and tail_chopping
pub(crate) mod hash_ring; // who owns a key
pub(crate) mod hash_key; // what a key is hashed by
pub(crate) mod thread_rng; // random numbers
