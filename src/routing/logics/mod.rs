//! routing/logics

pub(crate) mod broadcast;
pub(crate) mod broadcast_if;
pub(crate) mod consistent_hashing;
pub(crate) mod first_reply;
pub(crate) mod hash_key;
pub(crate) mod hash_ring;
pub(crate) mod random;
pub(crate) mod round_robin;
pub(crate) mod scatter_gather;
pub(crate) mod smallest_mailbox;
pub(crate) mod tail_chopping;
pub(crate) mod thread_rng;
pub(crate) mod two_choices;
