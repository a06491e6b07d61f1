//! The head of a router: the actor that creates, watches and replaces its routees.

pub(crate) mod messages; // the messages that the head takes
pub(crate) mod state; // the state that it keeps over its own restarts
pub(crate) mod head; // the actor
pub(crate) mod old_tables; // changes that wait until old tables are freed
pub(crate) mod removal; // the removal of routees, and the end of a router
pub(crate) mod leaving_elsewhere; // the same for routees elsewhere
pub(crate) mod empty_pool; // pools that end when a message finds them empty
pub(crate) mod controller; // an actor that changes the logic
