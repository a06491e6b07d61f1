//! A dumped actor shows each message to a dumper before it handles the message.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::forward_hooks::forward_hooks;
use crate::core::actor_ref::ActorRef;
use crate::dump::dumper::Dumper;
use crate::dump::record::DumpDirection;
use std::fmt::{self, Debug};

/// An actor whose messages are dumped before it handles them. Made by [`Dumper::actor`].
///
/// The actor behaves as the actor inside does, whose hooks and mailbox are its own. As any actor inside another, it
/// cannot use [`Context::hold`] and [`Context::attach`](crate::Context::attach).
pub struct Dumped<A: Actor> {
    actor: A,
    dumper: Dumper,
    #[allow(clippy::type_complexity, reason = "a name for it would be used once")]
    when: Option<Box<dyn Fn(&A::Message) -> bool + Send>>,
}

impl Dumper {
    /// Wraps an actor: each message that it is about to handle is dumped. A recipe returns it, of an actor, of the
    /// routees of a pool, or of a group:
    ///
    /// ```
    /// # use pointsman::dump::Dumper;
    /// # use pointsman::prelude::*;
    /// # #[derive(Debug)]
    /// # struct Deposit { account: u64 }
    /// # struct Account(u64);
    /// # impl Actor for Account {
    /// #     type Message = Deposit;
    /// #     fn receive(&mut self, _: Deposit, _: &mut Context<Deposit>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("bank").build()?;
    /// # let dumper = Dumper::builder(&system).to_fn(|_| {})?;
    /// let accounts = system
    ///     .group("accounts")
    ///     .by_key(|deposit: &Deposit| deposit.account, move |_, key| dumper.actor(Account(*key)))
    ///     .spawn()?;
    /// # drop(accounts);
    /// # Ok(())
    /// # }
    /// ```
    pub fn actor<A: Actor<Message: Debug>>(&self, actor: A) -> Dumped<A> {
        Dumped { actor, dumper: self.clone(), when: None }
    }

    /// Wraps a reference: each message that is sent by the new reference is dumped, before it is sent, as sent by `path`.
    /// An actor that should be shown as the sender gives its own path. A message that the recipient refuses is a dead
    /// letter, as for [`contramap`](ActorRef::contramap).
    pub fn sent_to<M: Debug + Send + 'static>(
        &self,
        recipient: &ActorRef<M>,
        path: impl fmt::Display,
    ) -> ActorRef<M> {
        let (dumper, path, to) = (self.clone(), path.to_string(), recipient.path().to_string());
        recipient.contramap(move |message: M| {
            dumper.dump(DumpDirection::Out, &message, || (path.clone(), Some(to.clone())));
            message
        })
    }
}

impl<A: Actor> Dumped<A> {
    /// Dumps only messages for which this holds, for example those of some variants.
    pub fn when(mut self, when: impl Fn(&A::Message) -> bool + Send + 'static) -> Self {
        self.when = Some(Box::new(when));
        self
    }
}

impl<A: Actor<Message: Debug>> Actor for Dumped<A> {
    type Message = A::Message;

    fn receive(&mut self, message: A::Message, ctx: &mut Context<A::Message>) -> HandlerResult {
        if self.when.as_ref().is_none_or(|when| when(&message)) {
            self.dumper.dump(DumpDirection::In, &message, || (ctx.path().to_string(), None));
        }
        self.actor.receive(message, ctx)
    }

    forward_hooks! { actor: A }
}

impl<A: Actor> fmt::Debug for Dumped<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dumped").field("actor", &std::any::type_name::<A>()).finish_non_exhaustive()
    }
}
