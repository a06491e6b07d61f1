//! Routees that are paths: whoever stands there when a message is sent.
//!
//! A message has been counted as sent to the router when it comes here. What becomes of it is settled here:
//! each copy of it is handed on or a dead letter, with the path at which it came to nothing.

use super::plan::{Initial, RouterPlan};
use super::reference::RouterInfo;
use super::{RoundRobin, RouteContext, Routee, RouterBuilder};
use crate::actor::{ActorPath, Found, Selection, SystemRef};
use crate::actor_ref::{Accepted, ActorRef, Alike, AnyRef, DeadLetterReason, Meaning, Recipient, WrongType};
use crate::error::{SendError, SpawnError};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc as StdArc;

impl RouterBuilder {
    /// A router over paths: each is one routee, and stands for whoever is there when a message is sent. So
    /// actors may come, go and come again, before and after the router is created. As in Akka's groups,
    /// nobody is watched, and no path ever leaves the list by itself.
    ///
    /// A relative path begins at the router's head: `"../b"` is a sibling of the router. `*` and `?` are
    /// wildcards within one name, as in a [selection](crate::SystemRef::select); a path with wildcards is one
    /// routee too, and each actor that it selects gets a copy. The router itself is never selected by a
    /// wildcard.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let group: Router<u64> = system.router("group").group_at(["/user/a", "../b"]).spawn()?;
    /// system.actor("a").spawn(|| Worker)?;
    /// system.actor("b").spawn(|| Worker)?;
    /// group.tell(7u64);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Delivery
    ///
    /// Where nobody is, and where the only actors take another type of message, the message is a dead letter
    /// whose recipient is that path ([`DeadLetterReason::NoActor`],
    /// [`OtherType`](DeadLetterReason::OtherType)); it does not go to the next routee, and
    /// [`try_tell`](ActorRef::try_tell) does not get it back. Of several selected actors those of another
    /// type are passed over.
    ///
    /// # Cost
    ///
    /// Each message walks the tree: a lock for each name of the path, and where there is a wildcard an
    /// allocation and a comparison for each child. [`group`](Self::group) costs none of that.
    ///
    /// # Errors
    ///
    /// [`spawn`](RouterPlan::spawn) returns [`SpawnError::RouteePath`] for what is no path in this system.
    pub fn group_at<M: Clone + Send + 'static>(
        self,
        paths: impl IntoIterator<Item = impl Into<String>>,
    ) -> RouterPlan<M, RoundRobin> {
        let paths = paths.into_iter().map(Into::into).collect();
        self.plan(Initial::Paths { paths, fan_out: Some(fan_out) })
    }

    /// As [`group_at`](Self::group_at), for messages that cannot be cloned: paths without wildcards.
    ///
    /// # Errors
    ///
    /// [`spawn`](RouterPlan::spawn) returns [`SpawnError::RouteePath`] for what is no path in this system,
    /// and [`SpawnError::RouteeWildcard`] for one with a wildcard.
    pub fn group_at_exact<M: Send + 'static>(
        self,
        paths: impl IntoIterator<Item = impl Into<String>>,
    ) -> RouterPlan<M, RoundRobin> {
        let paths = paths.into_iter().map(Into::into).collect();
        self.plan(Initial::Paths { paths, fan_out: None })
    }
}

/// Delivers a copy to each of several actors.
pub type FanOut<M> = fn(&RouterInfo, M, &[ActorRef<M>]);

pub fn fan_out<M: Clone + Send + 'static>(info: &RouterInfo, message: M, targets: &[ActorRef<M>]) {
    let Some((last, others)) = targets.split_last() else { return };
    let cx = RouteContext::new(info.system.ledger().mine(), info);
    cx.copies(targets.len());
    for target in others {
        cx.deliver_copy(target, message.clone());
    }
    cx.deliver_copy(last, message);
    cx.settle();
}

/// Says what is wrong with a routee's path, seen from a router's parent or head.
pub fn check<M: Send + 'static>(
    paths: &[String],
    fan_out: Option<FanOut<M>>,
    anchor: &AnyRef,
    router: &dyn Fn() -> String,
) -> Result<(), SpawnError> {
    for path in paths {
        let selection = Selection::from_actor(anchor, path)
            .map_err(|error| SpawnError::RouteePath { router: router(), error })?;
        if fan_out.is_none() && selection.has_wildcard() {
            return Err(SpawnError::RouteeWildcard { router: router(), path: path.clone() });
        }
    }
    Ok(())
}

/// The routees of these paths, which have been [checked](check).
pub fn routees<M: Send + 'static>(
    paths: &[String],
    fan_out: Option<FanOut<M>>,
    info: &StdArc<RouterInfo>,
) -> Result<Vec<Routee<M>>, SpawnError> {
    let routee = |path: &String| {
        let selection = Selection::from_actor(&info.head, path)
            .map_err(|error| SpawnError::RouteePath { router: info.head.path().to_string(), error })?;
        let recipient = PathRecipient { selection: selection.clone(), info: info.clone(), fan_out };
        Ok(Routee::at(selection, path, ActorRef::to_own_recipient(recipient)))
    };
    paths.iter().map(routee).collect()
}

/// What stands behind the reference of such a routee.
struct PathRecipient<M> {
    selection: Selection,
    info: StdArc<RouterInfo>,
    /// There if there may be wildcards.
    fan_out: Option<FanOut<M>>,
}

impl<M: Send + 'static> PathRecipient<M> {
    /// Whom a message goes to now, and where nobody takes it.
    fn find(&self) -> Result<Vec<ActorRef<M>>, Lost> {
        let mut actors = match self.selection.resolve() {
            Found::Missing(path) => return Err(Lost::Nobody(path)),
            Found::Actors(actors) => actors,
        };
        if self.selection.has_wildcard() {
            actors.retain(|actor| *actor != self.info.head);
        }
        let mut other = None;
        let typed = |actor: AnyRef| actor.typed().map_err(|wrong| other = Some(wrong)).ok();
        let targets: Vec<ActorRef<M>> = actors.into_iter().filter_map(typed).collect();
        match (targets.is_empty(), other) {
            (false, _) => Ok(targets),
            (true, Some(wrong)) => Err(Lost::OtherType(wrong)),
            (true, None) => Err(Lost::Nobody(self.selection.path())),
        }
    }

    /// Passes the message on as a copy. It may be one: who sends copies tells the routee so once, and that is the path,
    /// where somebody else may stand by now. So whoever is found by a path is told before each message.
    fn pass_on(target: &ActorRef<M>, message: M) -> Result<Accepted, SendError<M>> {
        target.expect_copies();
        target.pass_on(message)
    }

    fn bury(&self, message: M, reason: DeadLetterReason, path: ActorPath) {
        let system = &self.info.system;
        system.ledger().mine().dead_lettered(1);
        system.dead_letters().bury(message, reason, || path);
    }
}

/// Why nobody is there.
enum Lost {
    Nobody(ActorPath),
    OtherType(WrongType),
}

impl<M: Send + 'static> Recipient<M> for PathRecipient<M> {
    fn deliver(&self, message: M) -> Result<Accepted, SendError<M>> {
        match self.find() {
            Err(Lost::Nobody(path)) => self.bury(message, DeadLetterReason::NoActor, path),
            Err(Lost::OtherType(wrong)) => self.bury(message, DeadLetterReason::OtherType, wrong.path),
            Ok(targets) => match (&*targets, self.fan_out) {
                ([_, _, ..], Some(fan_out)) => fan_out(&self.info, message, &targets),
                ([target, ..], _) => match Self::pass_on(target, message) {
                    // It is as if it had gone: the path is taken or not.
                    Err(SendError::Closed(message)) => {
                        self.bury(message, DeadLetterReason::Stopped, target.path());
                    }
                    done => return done,
                },
                ([], _) => unreachable!("somebody was found"),
            },
        }
        Ok(Accepted::Passed)
    }

    /// Who is there now, if it can only be one.
    fn any(&self) -> Option<AnyRef> {
        match self.selection.resolve() {
            Found::Actors(mut actors) if !self.selection.has_wildcard() => actors.pop(),
            _ => None,
        }
    }

    fn system(&self) -> Option<SystemRef> {
        Some(SystemRef::new(self.info.system.clone()))
    }

    fn meaning(&self) -> Option<&dyn Meaning> {
        Some(self)
    }
}

/// One path of one router is one place.
impl<M: 'static> Alike for PathRecipient<M> {
    fn is_like(&self, other: &Self) -> bool {
        self.selection == other.selection && self.info.head == other.info.head
    }

    fn feed(&self, mut state: &mut dyn Hasher) {
        self.selection.hash(&mut state);
    }

    fn order(&self, other: &Self) -> Ordering {
        self.info.head.cmp(&other.info.head).then_with(|| self.selection.order(&other.selection))
    }
}
