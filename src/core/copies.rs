//! The mark of actors that get copies of messages that others get, too.
//!
//! The leftovers of a routee are routed again, but a copy must not be: under a broadcast it would reach every routee
//! once more, elsewhere another routee twice. A message does not tell whether it is a copy. So an actor is marked
//! before the first copy is sent to it, once for its life, and hands nothing to its router from then on. The mark costs
//! other messages nothing, and each copy one load.
//!
//! Each part of this crate that sends a message to several recipients marks them: a way through a router
//! (`RouteContext::deliver`), a race (`routing/logics/first_reply.rs`), a path (`routing/path_group.rs`), a selection, a
//! topology (`multi_send.rs`), listeners, and the event stream, whose every event counts as a copy. A recipient that
//! stands for others (`routing/routee_set.rs`, an adapter) passes the mark on to them. A router does not, since a copy
//! that one of its own routees leaves behind is for another of these. User code that clones a message and tells two routees sends two
//! messages, and each of them may be routed again. A logic that delivers copies later says so by
//! `RouteContext::copies_later`.

use crate::core::actor_ref::{ActorRef, Target};
use crate::failure::guarded;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::util::panic::drop_guarded;

impl<M: Send + 'static> ActorRef<M> {
    /// Marks the recipient before a copy is delivered to it. May run user code, that of a recipient which is no actor.
    #[inline]
    pub(crate) fn expect_copies(&self) {
        let mark = match self.target() {
            Target::Local(local) => &local.core.takes_copies,
            Target::Foreign(foreign) => &foreign.told_of_copies,
        };
        // Ordering: Acquire; pairs with the Release store in `mark_for_copies`: a thread that finds a recipient told
        // knows that the actor behind it is marked.
        if !mark.load(Ordering::Acquire) {
            self.mark_for_copies();
        }
    }

    /// Whether the recipient has been told that it gets copies.
    pub(crate) fn may_have_copies(&self) -> bool {
        let mark = match self.target() {
            Target::Local(local) => &local.core.takes_copies,
            Target::Foreign(foreign) => &foreign.told_of_copies,
        };
        // Ordering: Acquire; pairs with the Release store in `mark_for_copies`.
        mark.load(Ordering::Acquire)
    }

    #[cold]
    #[inline(never)]
    fn mark_for_copies(&self) {
        // Ordering: Release, in both; the push that follows publishes the mark to the actor with the copy,
        // and the second pairs with the Acquire load in `expect_copies`.
        let set = |mark: &AtomicBool| mark.store(true, Ordering::Release);
        match self.target() {
            Target::Local(local) => set(&local.core.takes_copies),
            Target::Foreign(foreign) => {
                let told = guarded(|| {
                    // An actor elsewhere gets no copies but what was encoded.
                    if foreign.recipient.elsewhere().is_some() {
                        return Ok(());
                    }
                    if let Some(actor) = foreign.recipient.untyped() {
                        set(&actor.core().takes_copies);
                    }
                    foreign.recipient.expect_copies();
                    Ok(())
                });
                match told {
                    Ok(()) => set(&foreign.told_of_copies),
                    // A user's recipient that panics is asked again, and no other recipient loses its copy.
                    Err(failure) => drop_guarded(failure),
                }
            }
        }
    }
}
