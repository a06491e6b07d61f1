//! Groups: actors of one kind, one for each key, created when their first message comes.

pub(crate) mod builder; // describes and creates a group
pub(crate) mod group; // the handle
pub(crate) mod key; // what tells actors apart
pub(crate) mod key_name; // what an actor is called by its key
pub(crate) mod key_router; // which keys a message is for
pub(crate) mod outcome; // what a key router answers
pub(crate) mod state; // what the references, the handle and the head share
pub(crate) mod key_table; // the actor of each key
pub(crate) mod entry; // what an actor is made from, over all its lives
pub(crate) mod recipe; // makes it
pub(crate) mod route; // a message on its way to its keys
pub(crate) mod forward; // a message that goes on to the next actor of its key
pub(crate) mod successors; // actors that wait for the end of those before them
pub(crate) mod head; // the parent of the actors
pub(crate) mod supervision; // what the head does about failures and ends
pub(crate) mod restart_policy; // when an actor is created again
pub(crate) mod effective_policy; // which policy counts
pub(crate) mod pending_restarts; // actors that wait for their restart, as data
pub(crate) mod delayed_restart; // what happens when their time has come
pub(crate) mod termination; // how a group ends
pub(crate) mod status; // how actors are, and who is told
pub(crate) mod subscribe; // subscriptions to that
pub(crate) mod self_report; // what an actor says of itself
pub(crate) mod config; // the section of a group
pub(crate) mod config_hooks; // groups that go by a section
