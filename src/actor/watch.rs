//! Death watch: who wants to know when whom has ended.

use crate::actor::cell::Control;
use crate::actor::turn::drop_guarded;
use crate::actor::{Context, Terminated};
use crate::actor_ref::{AnyRef, Watchable};

impl<M: Send + 'static> Context<M> {
    /// Asks for one [`Terminated`] when `actor` has ended for good; at once if it has already. Watching
    /// oneself or an actor that is watched already changes nothing.
    ///
    /// Takes an [`AnyRef`], an [`ActorRef`] or a [`Router`](crate::Router). Behind a reference to what is no
    /// actor there is nothing to watch: false then.
    pub fn watch(&mut self, actor: &(impl Watchable + ?Sized)) -> bool {
        let Some(actor) = actor.watched() else { return false };
        self.begin_watch(&actor, None);
        true
    }

    /// As [`watch`](Self::watch), but the notice is `message`, which goes to [`Actor::receive`]. The
    /// latest call for an actor counts.
    ///
    /// # Errors
    ///
    /// Gives the message back if there is nothing to watch.
    pub fn watch_with(&mut self, actor: &(impl Watchable + ?Sized), message: M) -> Result<(), M> {
        let Some(actor) = actor.watched() else { return Err(message) };
        self.begin_watch(&actor, Some(message));
        Ok(())
    }

    fn begin_watch(&mut self, actor: &AnyRef, message: Option<M>) {
        let me = self.me().any_local();
        if *actor == me {
            drop_guarded(message);
            return;
        }
        let (known, replaced) = self.extras(|extras| match extras.watching.entry(actor.clone()) {
            std::collections::hash_map::Entry::Occupied(mut entry) => match message {
                Some(message) => (true, entry.insert(Some(message))),
                None => (true, None),
            },
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(message);
                (false, None)
            }
        });
        drop_guarded(replaced);
        if !known && actor.send_system(Control::Watch(me.clone())).is_err() {
            me.notify_terminated(actor.clone());
        }
    }

    /// Takes a watch back: no notice about `actor` arrives from now on, not even one on its way.
    pub fn unwatch(&mut self, actor: &(impl Watchable + ?Sized)) {
        if let Some(actor) = actor.watched() {
            self.end_watch(&actor);
        }
    }

    pub(super) fn end_watch(&mut self, actor: &AnyRef) {
        self.forget_stashed(actor);
        let watched =
            self.private(|private| private.extras.as_mut().and_then(|extras| extras.watching.remove(actor)));
        if let Some(message) = watched {
            drop_guarded(message);
            let _ = actor.send_system(Control::Unwatch(self.me().any_local()));
        }
    }

    pub(crate) fn unwatch_all(&mut self) {
        let watched = self
            .private(|private| private.extras.as_mut().map(|extras| std::mem::take(&mut extras.watching)));
        let me = self.me().any_local();
        for (actor, message) in watched.into_iter().flatten() {
            drop_guarded(message);
            let _ = actor.send_system(Control::Unwatch(me.clone()));
        }
    }
}

impl AnyRef {
    /// Tells this actor that another one has ended. The notice takes its place behind what is queued.
    pub(crate) fn notify_terminated(&self, actor: AnyRef) {
        let _ = self.send_positioned(Control::Terminated(Terminated { actor }));
    }
}
