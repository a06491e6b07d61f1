//! What is under way on the calling thread: who sends, and how far the message that is being sent has gone.

pub(crate) mod hops;
pub(crate) mod sender;
