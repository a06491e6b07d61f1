//! Promises: short-lived actors under `/temp` that serve one ask each.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::builder::ActorBuilder;
use crate::actor::context::Context;
use crate::ask::ask;
use crate::ask::ask::Ask;
use crate::ask::ask_clock::AskClock;
use crate::ask::reply::ReplyTo;
use crate::core::actor_ref::ActorRef;
use crate::core::system::{SystemCore, SystemRef};
use crate::failure::Failure;
use std::sync::Arc as StdArc;

impl SystemRef {
    /// Returns a reference whose first message is the answer of the ask that comes with it; later messages are dead
    /// letters.
    ///
    /// For protocols whose replies go to an [`ActorRef`]. Behind it is a temporary actor under `/temp`, found by its
    /// exact path, which ends with the ask: when it is answered, when its deadline has passed, or when it is dropped.
    /// It can be watched.
    ///
    /// If the actor ends otherwise, as all do at a shutdown, the ask fails with
    /// [`AskError::NoReply`](crate::AskError::NoReply).
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("shop").build()?;
    /// let (reply_here, reply) = system.promise::<u32>();
    /// std::thread::spawn(move || reply_here.tell(7u32));
    /// assert_eq!(reply.within(std::time::Duration::from_secs(5)).wait()?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub fn promise<R: Send + 'static>(&self) -> (ActorRef<R>, Ask<R>) {
        let (made, ask) = self.core().serve(|port| TempActor { port: Some(port) });
        (made.unwrap_or_else(|| self.dead_letters_ref()), ask)
    }
}

impl SystemCore {
    /// Begins an ask that a temporary actor under `/temp` serves, and that actor, which ends with the ask. Returns no
    /// actor if the system is at its end; the ask has failed then.
    pub(crate) fn serve<R: Send + 'static, A: Actor>(
        self: &StdArc<Self>,
        make: impl FnOnce(ReplyTo<R>) -> A,
    ) -> (Option<ActorRef<A::Message>>, Ask<R>) {
        let tree = self.tree();
        let ask_clock = match &tree {
            Some(tree) => AskClock::System(tree.temp.clone()),
            None => AskClock::Static(&crate::time::no_system::NO_SYSTEM),
        };
        let (reply_to, mut ask) = ask::begin(ask_clock);
        let mut state = Some(make(reply_to));
        let parent = tree.map(|tree| tree.temp).ok_or_else(|| self.name.clone());
        let recipe = move || state.take().ok_or_else(|| Failure::msg("it serves one ask"));
        let made = ActorBuilder::new(parent, None).internal().spawn(recipe).ok();
        if let Some(actor) = &made {
            ask::served_by(&mut ask, actor.any_local());
        }
        (made, ask)
    }
}

/// Waits for a single message.
struct TempActor<R: Send + 'static> {
    port: Option<ReplyTo<R>>,
}

impl<R: Send + 'static> Actor for TempActor<R> {
    type Message = R;

    fn receive(&mut self, message: R, ctx: &mut Context<R>) -> HandlerResult {
        // Stops before the next message is looked at, which is a dead letter then.
        ctx.stop();
        let refused = match self.port.take() {
            Some(port) => port.send(message),
            None => Err(message),
        };
        if let Err(message) = refused {
            ctx.handled_to_dead_letter(message);
        }
        Ok(())
    }
}
