//! Every question to all routees, and the first success back.

use crate::ask::fork::{Answerable, port_of};
use crate::core::error::SendError;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::broadcast;
use crate::routing::logics::first_reply::{Rules, WITHIN_DEFAULT, ask_all, check_within, refuse_at_once};
use crate::routing::pick::Pick;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::Routees;
use crate::settings::router::RouterSettings;
use std::time::Duration;

/// Asks all routees at once, and passes the first success on to the asker.
///
/// A reply is a success if [`Request::is_success`](crate::Request::is_success) says so. With
/// [`first_completion`](Self::first_completion) the first reply is passed on, whatever it is. If there is
/// none, the ask fails with
///
/// | [`AskError`](crate::AskError) | when |
/// |---|---|
/// | [`AllFailed`](crate::AskError::AllFailed), with the cause for each routee | as soon as the last attempt has failed |
/// | [`Timeout`](crate::AskError::Timeout) | after [`within`](Self::within), by the system's clock |
/// | [`NoRoutees`](crate::AskError::NoRoutees) | at once, if the router is empty; the message is a dead letter |
///
/// Give the ask itself more time than the router has, or its own timeout hides the router's error.
///
/// Each routee gets a copy of the message with a reply port of its own, so the messages must be `Clone` and
/// [`Answerable`]. An attempt fails when its port is dropped unanswered, when its reply is no success, and
/// when the routee does not take the copy, which is then a dead letter. Once there is an outcome, the other
/// routees see it by [`ReplyTo::wanted`](crate::ReplyTo::wanted), and their replies are
/// [late](crate::ask::ReplyCounts::late). An asker that wants to know who answered asks by
/// [`ask_traced`](crate::ActorRef::ask_traced). A message without a port goes to all, as by
/// [`Broadcast`](crate::routing::Broadcast).
///
/// As Akka's, but that there the first completion wins.
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::ScatterGatherFirstCompleted;
/// use std::time::Duration;
///
/// #[derive(Clone)]
/// struct Square(u64);
/// impl Request for Square {
///     type Reply = u64;
/// }
///
/// struct Worker;
/// impl Actor for Worker {
///     type Message = Call<Square>;
///     fn receive(&mut self, call: Call<Square>, _: &mut Context<Call<Square>>) -> HandlerResult {
///         call.answer(|Square(number)| number * number);
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("demo").build()?;
/// let workers = system
///     .router("workers")
///     .pool(3, |_| Worker)
///     .logic(ScatterGatherFirstCompleted::within(Duration::from_secs(1)))
///     .spawn()?;
/// assert_eq!(workers.ask(Square(4)).wait()?, 16);
/// # Ok(())
/// # }
/// ```
///
/// # When an asker gives up
///
/// That is seen with the next reply, with the end of the last attempt, or when the time is up. Until then the
/// router keeps the question, but no copy of the message: those are the routees'.
///
/// # Concurrency
///
/// The copies are made and delivered on the sender's thread. A panic in `clone` or
/// [`fork`](Answerable::fork) unwinds to the sender: copies that were not delivered are dead letters, and
/// what is under way goes on. `is_success` runs where the reply is given; a panic in it is a failed attempt.
///
/// # Cost
///
/// For a question four allocations, a timer, and a few read-modify-writes that the router's senders share;
/// for each attempt one allocation, which is all that is left for a loser to keep.
#[derive(Debug, Clone, Copy)]
pub struct ScatterGatherFirstCompleted {
    rules: Rules,
}

impl ScatterGatherFirstCompleted {
    /// Within 5 seconds.
    pub const fn new() -> Self {
        Self::within(WITHIN_DEFAULT)
    }

    /// Gives all routees this time. Zero is an error when the router is created.
    pub const fn within(within: Duration) -> Self {
        Self { rules: Rules { within, first_completion: false } }
    }

    /// Lets the first reply win, be it a success or not. An attempt that ends without a reply still leaves it
    /// to the others.
    pub const fn first_completion(mut self) -> Self {
        self.rules.first_completion = true;
        self
    }
}

impl Default for ScatterGatherFirstCompleted {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Answerable + Clone + Send + 'static> RoutingLogic<M> for ScatterGatherFirstCompleted {
    /// Asked only for what a routee has left behind, which was for that one: any other gets it.
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Pick {
        cx.next_in_turn(routees)
    }

    fn route(&self, mut message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        match port_of(&mut message) {
            Some(asker) => {
                if let Some(message) = refuse_at_once(message, &asker, routees, cx) {
                    ask_all(message, asker, self.rules, routees, cx);
                }
            }
            None if routees.is_empty() => return Err(SendError::NoRoutee(message)),
            None => broadcast::to_all(message, routees, cx),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        check_within(self.rules.within)
    }

    fn name(&self) -> Option<&str> {
        Some("scatter-gather")
    }

    fn configure(&mut self, settings: &RouterSettings) {
        self.rules.configure(settings);
    }
}
