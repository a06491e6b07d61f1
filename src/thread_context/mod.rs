//! The thread context says which actor sends on the calling thread, and how many routers the message being sent has
//! gone through.

pub(crate) mod sender; // the actor that sends, and its positions in routers
pub(crate) mod hops; // how many routers a message has gone through
