//! The head of a router: the actor that creates, watches and replaces its routees.

pub(crate) mod messages; // what the head is asked
pub(crate) mod state; // what it keeps over its own restarts
pub(crate) mod head; // the actor
pub(crate) mod old_tables; // changes that wait until old tables are freed
pub(crate) mod removal; // how routees leave, and how a router ends
pub(crate) mod empty_pool; // pools that end when a message finds them empty
pub(crate) mod controller; // an actor that changes the logic
