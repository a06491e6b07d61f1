//! What is under way on the calling thread.

pub(crate) mod sender; // which actor sends, and its positions in routers
pub(crate) mod hops; // how many routers a message has gone through
