//! Asks that learn the path of the replier.

use crate::ask::ask::Ask;
use crate::ask::error::Outcome;
use crate::ask::reply::{AnsweredBy, Call, ReplyDestination, ReplyTo, Request};
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::dead_letter::nowhere;
use crate::path::actor_path::ActorPath;

impl<M: Send + 'static> ActorRef<M> {
    /// Asks as [`ask`](Self::ask) does; the answer is the reply with the path of the routee that has answered.
    ///
    /// [`ScatterGatherFirstCompleted`] and [`TailChopping`] name the routee whose reply was taken. If that routee is
    /// such a router itself, its routee is named: always the routee that the innermost of these routers asked. Any
    /// other recipient behind this reference is named itself: an actor by its path, and a router that only passes
    /// messages on by its own path.
    ///
    /// [`ScatterGatherFirstCompleted`]: crate::routing::ScatterGatherFirstCompleted
    /// [`TailChopping`]: crate::routing::TailChopping
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Double;
    /// # #[derive(Debug)] struct Of(u32);
    /// # impl Request for Of { type Reply = u32; }
    /// # impl Actor for Double {
    /// #     type Message = Call<Of>;
    /// #     fn receive(&mut self, call: Call<Of>, _: &mut Context<Call<Of>>) -> HandlerResult {
    /// #         call.answer(|Of(x)| 2 * x);
    /// #         Ok(())
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let double = system.actor("double").spawn(|| Double)?;
    /// let (four, replier) = double.ask_traced(Of(2)).within(std::time::Duration::from_secs(5)).wait()?;
    /// assert_eq!((four, replier.to_string()), (4, "/user/double".to_owned()));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "TracedReply")]
    pub fn ask_traced<Q>(&self, request: Q) -> Ask<(Q::Reply, ActorPath)>
    where
        Q: Request,
        M: From<Call<Q>>,
    {
        self.ask_with(|to| {
            let traced = Traced { to, asked: self.untyped() };
            M::from(Call::new(request, ReplyTo::to_own_sink(traced)))
        })
    }
}

/// Adds the path of the replier to the reply.
struct Traced<R> {
    to: ReplyTo<(R, ActorPath)>,
    asked: Option<AnyActorRef>,
}

impl<R: Send + 'static> ReplyDestination<R> for Traced<R> {
    fn take(&self, outcome: Outcome<R>, by: AnsweredBy<'_>) -> Result<(), Outcome<R>> {
        match outcome {
            Ok(reply) => {
                let routee = match (by, &self.asked) {
                    (Some(path), _) => path(),
                    (None, Some(asked)) => asked.path(),
                    (None, None) => nowhere(),
                };
                self.to.clone().deliver((reply, routee), None).map_err(|(late, _)| Ok(late))
            }
            Err(error) => {
                self.to.clone().fail(error);
                Ok(())
            }
        }
    }

    fn wanted(&self) -> bool {
        self.to.wanted()
    }
}
