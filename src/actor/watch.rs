//! Death watch: an actor watches another actor, and gets a notice when that actor ends.

use crate::actor::context::Context;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::{Control, Terminated};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::drop_guarded;
use std::collections::hash_map::Entry;
use std::fmt;

/// The reason why an actor is not watched as asked. The intended notice comes back: a message, or `()` for the hook.
#[non_exhaustive]
pub enum WatchError<N = ()> {
    /// There is no actor behind the reference, as behind a function: no end will ever come.
    NoActor {
        /// The intended notice.
        notice: N,
    },
    /// The actor is watched already, with another notice.
    OtherNotice {
        /// The watched actor.
        watched: AnyActorRef,
        /// The intended notice.
        notice: N,
    },
}

impl<N> WatchError<N> {
    /// Returns the intended notice.
    pub fn into_inner(self) -> N {
        match self {
            WatchError::NoActor { notice } | WatchError::OtherNotice { notice, .. } => notice,
        }
    }
}

impl<N> fmt::Display for WatchError<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchError::NoActor { .. } => {
                f.write_str("there is no actor behind the reference: watch the actor that it sends to")
            }
            WatchError::OtherNotice { watched, .. } => {
                write!(f, "{} is watched already with another notice: unwatch it first", watched.path())
            }
        }
    }
}

impl<N> std::error::Error for WatchError<N> {}

debug_by_display! { WatchError<N> }

impl<M: Send + 'static> Context<M> {
    /// Asks for one [`Terminated`] when `actor` has ended for good. The notice comes at once if the actor has ended
    /// already. A watch of the actor itself, or of an actor that it watches already, changes nothing.
    ///
    /// Takes a reference to an [`ActorRef`](crate::ActorRef), an [`AnyActorRef`], a [`Router`](crate::Router), a
    /// [`Group`](crate::group::Group) or a [`BackoffSupervisor`](crate::supervision::BackoffSupervisor), or an untyped
    /// reference that may be missing, as [`ActorRef::untyped`](crate::ActorRef::untyped) returns. Watches survive a
    /// restart of either side, except that [children that a restart stops](Self::stop_children) are unwatched first.
    ///
    /// # Errors
    ///
    /// [`WatchError::NoActor`] if there is no actor to watch; [`WatchError::OtherNotice`] if the actor is watched with
    /// a message already: [unwatch](Self::unwatch) it first.
    #[doc(alias = "monitor")]
    #[doc(alias = "Watchable")]
    pub fn watch(&mut self, actor: impl Into<Option<AnyActorRef>>) -> Result<(), WatchError> {
        let Some(actor) = actor.into() else { return Err(WatchError::NoActor { notice: () }) };
        if actor == self.me().any_local() {
            return Ok(());
        }
        let other = self.extras(|extras| match extras.watching.get(&actor) {
            None => {
                extras.watching.insert(actor.clone(), None);
                None
            }
            Some(notice) => Some(notice.is_some()),
        });
        match other {
            None => self.begin_watch(actor),
            Some(false) => {}
            Some(true) => return Err(WatchError::OtherNotice { watched: actor, notice: () }),
        }
        Ok(())
    }

    /// Watches as [`watch`](Self::watch) does, but the notice is `message`, which goes to
    /// [`Actor::receive`](crate::Actor::receive). A watch of the actor itself drops the message.
    ///
    /// ```
    /// use pointsman::prelude::*;
    ///
    /// struct Worker;
    /// impl Actor for Worker {
    ///     type Message = ();
    ///     fn receive(&mut self, (): (), ctx: &mut Context<()>) -> HandlerResult {
    ///         ctx.stop();
    ///         Ok(())
    ///     }
    /// }
    ///
    /// enum BossMsg {
    ///     Ended(u32),
    /// }
    /// struct Boss(std::sync::mpsc::Sender<u32>);
    /// impl Actor for Boss {
    ///     type Message = BossMsg;
    ///     fn started(&mut self, ctx: &mut Context<BossMsg>) -> HandlerResult {
    ///         let worker = ctx.spawn(|| Worker)?;
    ///         ctx.watch_with(&worker, BossMsg::Ended(7))?;
    ///         worker.tell(());
    ///         Ok(())
    ///     }
    ///     fn receive(&mut self, BossMsg::Ended(job): BossMsg, _: &mut Context<BossMsg>) -> HandlerResult {
    ///         self.0.send(job)?;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("firm").build()?;
    /// let (sender, jobs) = std::sync::mpsc::channel();
    /// system.spawn(move || Boss(sender.clone()))?;
    /// assert_eq!(jobs.recv()?, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Gives the message back: [`WatchError::NoActor`] if there is no actor to watch; [`WatchError::OtherNotice`] if
    /// the actor is watched already: [unwatch](Self::unwatch) it first.
    pub fn watch_with(
        &mut self,
        actor: impl Into<Option<AnyActorRef>>,
        message: M,
    ) -> Result<(), WatchError<M>> {
        let Some(actor) = actor.into() else { return Err(WatchError::NoActor { notice: message }) };
        if actor == self.me().any_local() {
            drop_guarded(message);
            return Ok(());
        }
        let refused = self.extras(|extras| match extras.watching.entry(actor.clone()) {
            Entry::Occupied(_) => Some(message),
            Entry::Vacant(entry) => {
                entry.insert(Some(message));
                None
            }
        });
        match refused {
            None => self.begin_watch(actor),
            Some(notice) => return Err(WatchError::OtherNotice { watched: actor, notice }),
        }
        Ok(())
    }

    /// Sends the request to `actor`, which is in the list already.
    fn begin_watch(&mut self, actor: AnyActorRef) {
        if actor.core().parent.as_ref().is_some_and(|parent| parent.is(self.me())) {
            // The name of a child is free before its parent sees the notice.
            self.core().children.want_notices();
        }
        let me = self.me().any_local();
        if actor.send_system(Control::Watch(me.clone())).is_err() {
            me.notify_terminated(actor, false);
        }
    }

    /// Takes a watch back: no notice about `actor` arrives from now on, not even a notice on its way.
    pub fn unwatch(&mut self, actor: impl Into<Option<AnyActorRef>>) {
        if let Some(actor) = actor.into() {
            self.end_watch(&actor);
        }
    }

    pub(crate) fn end_watch(&mut self, actor: &AnyActorRef) {
        self.forget_stashed(actor);
        let watched =
            self.private(|private| private.extras.as_mut().and_then(|extras| extras.watching.remove(actor)));
        if let Some(message) = watched {
            drop_guarded(message);
            let _ = actor.send_system(Control::Unwatch(self.me().any_local()));
        }
    }

    pub(crate) fn unwatch_all(&mut self) {
        let watched = self.private(|private| Some(std::mem::take(&mut private.extras.as_mut()?.watching)));
        let Some(watched) = watched else { return };
        let me = self.me().any_local();
        for (actor, message) in watched {
            drop_guarded(message);
            let _ = actor.send_system(Control::Unwatch(me.clone()));
        }
    }
}

impl AnyActorRef {
    /// Tells this actor that another actor has ended. The notice takes its place behind the queued messages.
    pub(crate) fn notify_terminated(&self, actor: AnyActorRef, existence_confirmed: bool) {
        let _ = self.send_positioned(Control::Terminated(actor.termination(existence_confirmed)));
    }

    /// The notice of the end of this actor.
    pub(crate) fn termination(&self, existence_confirmed: bool) -> Terminated {
        let end = self.core().standing().and_then(|standing| standing.end.get());
        Terminated {
            actor: self.clone(),
            existence_confirmed: existence_confirmed && end.is_none_or(|end| end.existed),
            node_down: end.is_some_and(|end| end.node_down),
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::prelude::*;

    /// Asks for the number of actors in the list of watchers.
    struct Watchers;

    impl Request for Watchers {
        type Reply = usize;
    }

    struct Watched;

    impl Actor for Watched {
        type Message = Call<Watchers>;
        fn receive(&mut self, call: Call<Watchers>, ctx: &mut Context<Call<Watchers>>) -> HandlerResult {
            let count =
                ctx.private(|private| private.extras.as_ref().map_or(0, |extras| extras.watchers.len()));
            call.answer(|_| count);
            Ok(())
        }
    }

    #[derive(Clone, Copy)]
    enum Order {
        Watch,
        Unwatch,
        UnwatchAll,
    }

    impl Request for Order {
        type Reply = ();
    }

    struct Watcher(ActorRef<Call<Watchers>>);

    impl Actor for Watcher {
        type Message = Call<Order>;
        fn receive(&mut self, call: Call<Order>, ctx: &mut Context<Call<Order>>) -> HandlerResult {
            match call.request {
                Order::Watch => ctx.watch(&self.0)?,
                Order::Unwatch => ctx.unwatch(&self.0),
                Order::UnwatchAll => ctx.unwatch_all(),
            }
            call.answer(|_| ());
            Ok(())
        }
    }

    #[test]
    fn the_watched_actor_forgets_who_has_unwatched_it() {
        let system = System::builder("forgets").build().expect("the settings are sound");
        let watched = system.spawn(|| Watched).expect("there is room");
        let count = || watched.ask(Watchers).wait().expect("it lives");
        for way in [Order::Unwatch, Order::UnwatchAll] {
            let watchers = [(); 3].map(|()| {
                let watched = watched.clone();
                system.spawn(move || Watcher(watched.clone())).expect("there is room")
            });
            let order = |order| watchers.iter().for_each(|one| one.ask(order).wait().expect("it lives"));
            order(Order::Watch);
            assert_eq!(count(), 3);
            order(way);
            assert_eq!(count(), 0, "it would keep each watcher in memory, also when that has ended");
        }
    }

    #[test]
    fn the_watched_actor_forgets_a_watcher_that_has_ended() {
        let system = System::builder("ends").build().expect("the settings are sound");
        let watched = system.spawn(|| Watched).expect("there is room");
        let given = watched.clone();
        let watcher = system.spawn(move || Watcher(given.clone())).expect("there is room");
        watcher.ask(Order::Watch).wait().expect("it lives");
        watcher.stop();
        watcher.when_ended().wait().expect("it was told to stop");
        assert_eq!(watched.ask(Watchers).wait().expect("it lives"), 0);
    }
}
