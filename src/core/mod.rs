//! The core that every feature rests on: references, the cell of an actor, control, waiting sends, the ledger, and the
//! state that all actors of a system share. It names no feature.

pub(crate) mod into_message; // values that can be sent to an actor
pub(crate) mod accounting;
pub(crate) mod actor_ref; // ActorRef<M>: tell, try_tell
pub(crate) mod tell_many; // ActorRef<M>: tell_many
pub(crate) mod any_actor_ref; // AnyActorRef: a reference without the type of the messages
pub(crate) mod ref_identity; // when two references are equal
pub(crate) mod recipient_identity; // recipients that are equal because they mean the same
pub(crate) mod recipient; // recipients behind a reference that are no actors
pub(crate) mod elsewhere; // recipients that stand for actors of other systems
pub(crate) mod fn_recipient; // a function behind a reference
pub(crate) mod cell; // the memory of an actor, counted
pub(crate) mod children; // a parent's children
pub(crate) mod classes; // the classes by which actors are counted
pub(crate) mod class_counters; // what is counted by class
pub(crate) mod measured; // where measurements go
pub(crate) mod control; // what governs an actor's life
pub(crate) mod strategy; // what a parent does about a failure
pub(crate) mod cancellable; // the handle of work that runs later
pub(crate) mod restart_delay; // how long restarts wait
pub(crate) mod pending_send; // sends that wait for room
pub(crate) mod deferred_send; // requests that wait for room with their asker
pub(crate) mod send_future; // ActorRef<M>: send, a future that waits for room
pub(crate) mod multi_send; // one message to several recipients, with its accounting
pub(crate) mod copies; // the mark of actors that get copies
pub(crate) mod passivated; // whether an actor has ended without leaving a message behind
pub(crate) mod full_policy; // the effect of a full mailbox
pub(crate) mod ledger; // counts every message
pub(crate) mod ask_counts; // counts every ask
pub(crate) mod routed_asks; // the references that asks through a router hold
pub(crate) mod dead_letter; // a dead letter and its reason
pub(crate) mod dead_letters; // the publication of dead letters
pub(crate) mod dead_letter_log;
pub(crate) mod dead_letter_sinks;
pub(crate) mod lifecycle; // events of the lives of actors
#[cfg(all(feature = "tracing", not(any(pointsman_loom, pointsman_shuttle))))]
pub(crate) mod lifecycle_tracing; // the same as events of `tracing`
pub(crate) mod event_stream; // the events of a system
pub(crate) mod subscribe; // subscriptions of references to it
pub(crate) mod home; // where an actor runs
pub(crate) mod dispatchers; // the dispatchers of a system by name
pub(crate) mod named_mailboxes;
pub(crate) mod extensions; // the values that features keep for a system
pub(crate) mod polls_within; // what surrounds the polls of users' futures
pub(crate) mod system; // SystemRef, and the state that all actors of a system share
pub(crate) mod deploy_fault; // why an actor cannot be deployed elsewhere
pub(crate) mod error; // the errors of sending, creating and ending
