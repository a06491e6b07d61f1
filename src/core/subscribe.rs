use crate::core::actor_ref::ActorRef;
use crate::core::event_stream::{EventGroup, EventStream, Member, Subscriber};
use std::any::Any;
use std::any::TypeId;
use std::sync::Arc as StdArc;
struct ByReference<G, M> {
    actor: ActorRef<M>,
    convert: fn(&dyn Any) -> Option<G>,
}

impl<G: 'static, M: From<G> + Send + 'static> Subscriber for ByReference<G, M> {
    fn take(&self, event: &dyn Any) {
        if let Some(event) = (self.convert)(event) {
            // Other subscribers may get the event, too.
            self.actor.expect_copies();
            self.actor.tell(event);
        }
    }

    fn is_gone(&self) -> bool {
        self.actor.is_closed()
    }

    fn tells(&self, reference: &dyn Any) -> bool {
        reference.downcast_ref() == Some(&self.actor)
    }
}

impl EventStream {
    /// Tells `subscriber` of every event of type `E` from now on, as the message that it makes of the event. Returns
    /// true if the subscription is new. Returns false if an [equal](ActorRef#equality) reference has subscribed to this
    /// type already, or if the subscriber has stopped.
    ///
    /// A reference that has subscribed to a type and to [groups](Self::subscribe_group) that the type belongs to gets
    /// an event once, as the message of the first of these subscriptions. (In Pekko as well.)
    pub fn subscribe<E, M>(&self, subscriber: &ActorRef<M>) -> bool
    where
        E: Clone + Send + 'static,
        M: From<E> + Send + 'static,
    {
        let member: Member<E> = (TypeId::of::<E>(), |event| event.downcast_ref::<E>().cloned());
        self.add_reference(vec![member], subscriber)
    }

    /// Subscribes as [`subscribe`](Self::subscribe) does, to every type of the group. Returns true if that is new for
    /// at least one of them. The type `G` names the group: a group of the same `G` adds to it.
    ///
    /// [`unsubscribe`](Self::unsubscribe) takes back all of it, or one of its types.
    pub fn subscribe_group<G, M>(&self, group: EventGroup<G>, subscriber: &ActorRef<M>) -> bool
    where
        G: Send + 'static,
        M: From<G> + Send + 'static,
    {
        self.add_reference(group.0, subscriber)
    }

    /// Takes back the subscription to the group of events that become an `E`; or tells `subscriber` of no event of the type `E` any more,
    /// whether it has subscribed to that type or to groups that the type belongs to. The other types of such a group
    /// stay. Returns false if there was no subscription.
    ///
    /// ```
    /// use pointsman::dead_letters::SuppressedDeadLetter;
    /// use pointsman::events::EventGroup;
    /// use pointsman::prelude::*;
    /// use pointsman::DeadLetter;
    ///
    /// enum Letter {
    ///     Dead(DeadLetter),
    ///     Suppressed(SuppressedDeadLetter),
    /// }
    /// impl From<DeadLetter> for Letter {
    ///     fn from(letter: DeadLetter) -> Self {
    ///         Letter::Dead(letter)
    ///     }
    /// }
    /// impl From<SuppressedDeadLetter> for Letter {
    ///     fn from(letter: SuppressedDeadLetter) -> Self {
    ///         Letter::Suppressed(letter)
    ///     }
    /// }
    ///
    /// # struct Monitor;
    /// # impl Actor for Monitor {
    /// #     type Message = Letter;
    /// #     fn receive(&mut self, _: Letter, _: &mut Context<Letter>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let monitor: ActorRef<Letter> = system.spawn(|| Monitor)?;
    /// let letters = EventGroup::<Letter>::new().with::<DeadLetter>().with::<SuppressedDeadLetter>();
    /// system.events().subscribe_group(letters, &monitor);
    /// // All letters but these:
    /// assert!(system.events().unsubscribe::<SuppressedDeadLetter, _>(&monitor));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An event that is published after this has returned does not reach the subscriber through that subscription. An
    /// event that another thread is publishing meanwhile may. An event that was told before lies in the mailbox of the
    /// subscriber.
    pub fn unsubscribe<E: 'static, M: Send + 'static>(&self, subscriber: &ActorRef<M>) -> bool {
        let (meant, who) = (TypeId::of::<E>(), self.shared.telling(subscriber));
        self.shared.remove(|event, entry| (event == meant || entry.by == meant) && who.contains(&entry.who))
    }

    /// Takes back all subscriptions of `subscriber`, as [`unsubscribe`](Self::unsubscribe). False if there were
    /// none.
    pub fn unsubscribe_all<M: Send + 'static>(&self, subscriber: &ActorRef<M>) -> bool {
        let who = self.shared.telling(subscriber);
        self.shared.remove(|_, entry| who.contains(&entry.who))
    }

    fn add_reference<G, M>(&self, members: Vec<Member<G>>, subscriber: &ActorRef<M>) -> bool
    where
        G: 'static,
        M: From<G> + Send + 'static,
    {
        if subscriber.is_closed() {
            return false;
        }
        members.iter().for_each(|(event, _)| self.shared.sweep(*event));
        let subscribers = members.into_iter().map(|(event, convert)| {
            let told: StdArc<dyn Subscriber> =
                StdArc::new(ByReference { actor: subscriber.clone(), convert });
            (event, told)
        });
        self.shared.add_reference(TypeId::of::<G>(), subscribers.collect(), subscriber)
    }
}
