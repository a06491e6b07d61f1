//! Tail-chopping: asks the routees in sequence, until a success has come.

use crate::ask::fork::{Answerable, port_of};
use crate::core::error::SendError;
use crate::routing::logic::{RoutingLogic, deliver_to};
use crate::routing::logics::first_reply::{
    Rules, Shuffled, TailPolicy, WITHIN_DEFAULT, ask_in_turn, refuse_at_once,
};
use crate::routing::logics::thread_rng::Generators;
use crate::routing::route_context::RouteContext;
use crate::routing::routees::Routees;
use crate::settings::router::RouterSettings;
use crate::settings::setting_error::SettingError;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::fmt;
use std::time::Duration;

/// Asks a routee, and another each time that no success has come for an [`interval`](Self::interval). So a slow routee
/// does not make the answer slow, at the price of some work done twice.
///
/// The order is random, derived from the system's seed. The first routee is asked on the sender's thread, before `tell`
/// or `ask` returns; each next routee an interval after the last, and at once when an attempt fails (but see
/// [`wait_for_tick`](Self::wait_for_tick)); no routee twice. So at most 1 + within / interval routees are asked as long
/// as none fails.
///
/// Success, the failure of an ask, and late replies are all as with
/// [`ScatterGatherFirstCompleted`](crate::routing::ScatterGatherFirstCompleted). A message without a reply port goes to
/// a single routee, and to another if that has stopped.
///
/// As Akka's, except that in Akka the first send is not on the sender's thread, the first completion wins, and a
/// failure ends all. The idea is known as hedged requests, after Dean and Barroso, "The Tail at Scale" (2013).
///
/// ```
/// use pointsman::prelude::*;
/// use pointsman::routing::TailChopping;
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
///     .logic(TailChopping::within(Duration::from_secs(1)).interval(Duration::from_millis(20)))
///     .spawn()?;
/// assert_eq!(workers.ask(Square(4)).wait()?, 16);
/// # Ok(())
/// # }
/// ```
///
/// # When an asker gives up
///
/// The router sees that with the next attempt, which is not made then, with the next reply, or when the time is up.
/// Until then the router keeps the message.
///
/// # Concurrency
///
/// A later attempt is made on the thread that runs the system's timers, or where the attempt before has failed: the
/// message is cloned there, so `clone` should be short. A panic in it is a failed attempt there; on the sender's thread
/// it unwinds to the sender, and attempts under way go on.
///
/// Two requests of the same sender may reach the same routee in the opposite order, if one of them came there later.
///
/// # Cost
///
/// As for scatter-gather, and a clone of the message that is kept; a timer set anew for each attempt; and four bytes
/// for each routee, so requests to a thousand routees are not cheap.
pub struct TailChopping {
    rules: Rules,
    pace: TailPolicy,
    generators: Generators,
}

impl TailChopping {
    /// Waits 5 seconds at most, and asks a routee every 10 ms.
    pub fn new() -> Self {
        Self::within(WITHIN_DEFAULT)
    }

    /// Gives all attempts together this time. Zero is an error when the router is created.
    pub fn within(within: Duration) -> Self {
        Self {
            rules: Rules { within, first_completion: false },
            pace: TailPolicy {
                interval: Duration::from_millis(10),
                wait_for_tick: false,
                ends_before_deadline: false,
            },
            generators: Generators::new(None),
        }
    }

    /// Asks the next routee so long after the last: 10 ms by default. Zero is an error when the router is created;
    /// timers count milliseconds, and are never early.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.pace.interval = interval;
        self
    }

    /// Lets the first reply win, also if it is no success. An attempt that ends without a reply still leaves the race
    /// to the others.
    pub fn first_completion(mut self) -> Self {
        self.rules.first_completion = true;
        self
    }

    /// Keeps to the interval also when an attempt fails, so that failing routees are not asked faster.
    pub fn wait_for_tick(mut self) -> Self {
        self.pace.wait_for_tick = true;
        self
    }

    /// Starts no attempt on the very deadline: at most within / interval routees are asked, rounded up.
    #[cfg(feature = "goakt")]
    pub(crate) fn ends_before_deadline(mut self) -> Self {
        self.pace.ends_before_deadline = true;
        self
    }

    fn order<M: Send + 'static>(&self, routees: &Routees<M>, cx: &RouteContext<'_>) -> Shuffled {
        let seed = self.generators.draw(cx.seed(), RngExt::random);
        Shuffled::new(routees.len(), SmallRng::seed_from_u64(seed))
    }
}

impl Default for TailChopping {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Answerable + Clone + Send + 'static> RoutingLogic<M> for TailChopping {
    /// Called only for a leftover of a routee: any other routee gets it.
    fn select(&self, _: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        if cx.refusals() > 0 {
            return cx.next_in_turn(routees);
        }
        let first = self.order(routees, cx).next()?;
        routees.first_open(first as usize)
    }

    fn route(&self, mut message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        if let Some(asker) = port_of(&mut message) {
            if let Some(message) = refuse_at_once(message, &asker, routees, cx) {
                let order = self.order(routees, cx);
                ask_in_turn(message, asker, self.rules, self.pace, order, routees, cx);
            }
            return Ok(());
        }
        for index in self.order(routees, cx) {
            match deliver_to(index as usize, message, routees, cx) {
                Err(SendError::Closed(refused)) => message = refused,
                done => return done,
            }
        }
        Err(cx.no_routee_error(message))
    }

    fn check(&self) -> Result<(), SettingError> {
        SettingError::unless_positive("within", self.rules.within)?;
        SettingError::unless_positive("interval", self.pace.interval)
    }

    fn name(&self) -> Option<&str> {
        Some("tail-chopping")
    }

    fn configure(&mut self, settings: &RouterSettings) {
        self.rules.configure(settings);
        self.pace.interval = settings.interval.unwrap_or(self.pace.interval);
        self.pace.wait_for_tick = settings.wait_for_tick.unwrap_or(self.pace.wait_for_tick);
    }
}

impl fmt::Debug for TailChopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TailChopping")
            .field("within", &self.rules.within)
            .field("interval", &self.pace.interval)
            .finish_non_exhaustive()
    }
}
