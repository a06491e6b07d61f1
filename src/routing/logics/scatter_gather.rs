//! Scatter-gather: sends every request to all routees, and passes on the first success.

use crate::ask::fork::{Answerable, port_of};
use crate::core::error::SendError;
use crate::routing::logic::RoutingLogic;
use crate::routing::logics::broadcast;
use crate::routing::logics::first_reply::{Rules, WITHIN_DEFAULT, ask_all, refuse_at_once};
use crate::routing::route_context::RouteContext;
use crate::routing::routees::Routees;
use crate::settings::router::RouterSettings;
use crate::settings::setting_error::SettingError;
use std::time::Duration;

/// Asks all routees at once, and passes the first success on to the asker.
///
/// A reply is a success if [`Request::is_success`](crate::Request::is_success) says so. With
/// [`first_completion`](Self::first_completion) the first reply is passed on, whatever it is. If there is none, the ask
/// fails with
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
/// [`Answerable`]. An attempt fails when its port is dropped unanswered, when its reply is no success, and when the
/// routee does not take the copy, which is then a dead letter. After the outcome, the other routees see by
/// [`ReplyTo::wanted`](crate::ReplyTo::wanted) that no reply is wanted, and their replies are
/// [late](crate::ask::ReplyCounts::late). An asker that wants to know the replier asks by
/// [`ask_traced`](crate::ActorRef::ask_traced). A message without a port goes to all, as by
/// [`Broadcast`](crate::routing::Broadcast).
///
/// As Akka's, except that in Akka the first completion wins.
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
/// The router sees that with the next reply, with the end of the last attempt, or when the time is up. Until then the
/// router keeps the request, but no copy of the message: the routees have the copies.
///
/// # Concurrency
///
/// The copies are made and delivered on the sender's thread. A panic in `clone` or [`fork`](Answerable::fork) unwinds
/// to the sender: copies that were not delivered are dead letters, and attempts under way go on. `is_success` runs
/// where the reply is given; a panic in it is a failed attempt.
///
/// # Cost
///
/// A request costs four allocations, a timer, and a few read-modify-writes that the router's senders share; each
/// attempt costs an allocation, which a losing attempt keeps until its end.
#[derive(Debug, Clone, Copy)]
pub struct ScatterGatherFirstCompleted {
    rules: Rules,
}

impl ScatterGatherFirstCompleted {
    /// Waits 5 seconds at most.
    pub const fn new() -> Self {
        Self::within(WITHIN_DEFAULT)
    }

    /// Gives all routees this time. Zero is an error when the router is created.
    pub const fn within(within: Duration) -> Self {
        Self { rules: Rules { within, first_completion: false } }
    }

    /// Lets the first reply win, also if it is no success. An attempt that ends without a reply still leaves the race
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
    /// Called only for a leftover of a routee, which was for that routee alone: any other routee gets it.
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
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

    fn check(&self) -> Result<(), SettingError> {
        SettingError::unless_positive("within", self.rules.within)
    }

    fn name(&self) -> Option<&str> {
        Some("scatter-gather")
    }

    fn configure(&mut self, settings: &RouterSettings) {
        self.rules.configure(settings);
    }
}
