//! Routees that are paths: each stands for the actors at the path when a message is sent.
//!
//! A message has been counted as sent to the router when it comes here. Its outcome is settled here: each copy of it is
//! handed on, or is a dead letter with the path at which it found no recipient.

use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::error::SpawnError;
use crate::path::error::{PathError, PathFault};
use crate::routing::builder::RouterBuilder;
use crate::routing::logics::round_robin::RoundRobin;
use crate::routing::path_routee::{FanOut, WrittenPath};
use crate::routing::plan::{Initial, RouterPlan};
use crate::routing::route_context::RouteContext;
use crate::routing::routees::{Routee, text_for_nodes};
use crate::routing::router_info::RouterInfo;
use crate::selection::lookup::LookupError;
use crate::selection::selection::Selection;
use crate::sync::OnceLock;
use std::sync::Arc as StdArc;

impl RouterBuilder {
    /// A router over paths: each path is a routee, and stands for the actors there when a message is sent. So actors
    /// may come, go and come again, before and after the router is created. As in Akka's groups, no actor is watched,
    /// and no path ever leaves the list by itself.
    ///
    /// A relative path begins at the router's head: `"../b"` is a sibling of the router. `*` and `?` are wildcards
    /// within a name, as in a [selection](crate::SystemRef::select); a path with wildcards is a single routee too, and
    /// each actor that it selects gets a copy. The router itself is never selected by a wildcard. Paths can be added
    /// and removed while the router runs: see [`Routee::selected`].
    ///
    /// A path may be that of another node, `pointsman://shop@n2/user/a` (feature `remote`); `M` must be registered at this
    /// node. The actors are looked up there, and each that a wildcard selects gets a copy there, if the policy of that node allows it.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
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
    /// Where no actor is, or only actors of another message type, the message is a dead letter with that path as its
    /// recipient ([`DeadLetterReason::NoActor`](crate::DeadLetterReason::NoActor),
    /// [`OtherType`](crate::DeadLetterReason::OtherType)); it does not go to the next routee, and
    /// [`try_tell`](ActorRef::try_tell) does not get it back. Of several selected actors, actors of another type are
    /// passed over.
    ///
    /// # Cost
    ///
    /// Each message walks the tree: a lock for each name of the path, and where there is a wildcard an
    /// allocation and a comparison for each child. [`group`](Self::group) costs none of that.
    ///
    /// # Errors
    ///
    /// [`spawn`](RouterPlan::spawn) returns [`SpawnError::RouteePath`] for an invalid path.
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
    /// [`spawn`](RouterPlan::spawn) returns [`SpawnError::RouteePath`] for an invalid path, and
    /// [`SpawnError::RouteeWildcard`] for a path with a wildcard.
    pub fn group_at_exact<M: Send + 'static>(
        self,
        paths: impl IntoIterator<Item = impl Into<String>>,
    ) -> RouterPlan<M, RoundRobin> {
        let paths = paths.into_iter().map(Into::into).collect();
        self.plan(Initial::Paths { paths, fan_out: None })
    }
}

impl<M: Clone + Send + 'static> Routee<M> {
    /// A path as a routee: it stands for the actors that the selection finds when a message is sent. Akka's
    /// `ActorSelectionRoutee`. `Routee::from(selection)` is the same, so a selection can be given wherever a routee is
    /// taken: to [`Router::add`](super::Router::add) and [`remove`](super::Router::remove), to
    /// [`group_of`](RouterBuilder::group_of), to a [`RouterValue`](crate::routing::RouterValue).
    ///
    /// The routee equals every routee of an equal selection, and is removed by such a routee. Its identity on hash
    /// rings is the selection's text (in a system with a node, see [`identity`](Self::identity)). Its load is unknown, so [`SmallestMailbox`](crate::routing::SmallestMailbox)
    /// takes it last, as in Akka. The selected actors are not watched, and the routee never leaves a router by itself.
    /// A path with wildcards is a single routee, and each actor that it selects gets a copy; the router itself is never
    /// selected by a wildcard.
    ///
    /// ```
    /// use pointsman::prelude::*;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let pool = system.router("pool").pool(2, |_| Worker).spawn()?;
    /// pool.add(system.select("/user/spare-*")?)?;
    /// system.actor("spare-1").spawn(|| Worker)?; // has a share from now on
    /// pool.tell(7u64);
    /// assert!(pool.remove(system.select("/user/spare-*")?)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Delivery
    ///
    /// As in a [group by path](RouterBuilder::group_at): where no actor is, or only actors of another message type, the
    /// message is a dead letter with that path, and does not go to the next routee.
    pub fn selected(selection: Selection) -> Self {
        selected(selection, Some(fan_out))
    }
}

impl<M: Send + 'static> Routee<M> {
    /// As [`selected`](Self::selected), for messages that cannot be cloned: of a selection without wildcards.
    ///
    /// # Errors
    ///
    /// [`LookupError::Wildcard`] hands back a selection with a wildcard.
    #[doc(alias = "WildcardError")]
    pub fn selected_one(selection: Selection) -> Result<Self, LookupError> {
        if selection.has_wildcard() {
            return Err(LookupError::Wildcard { selection });
        }
        Ok(selected(selection, None))
    }
}

impl<M: Clone + Send + 'static> From<Selection> for Routee<M> {
    fn from(selection: Selection) -> Self {
        Self::selected(selection)
    }
}

impl<M: Clone + Send + 'static> From<&Selection> for Routee<M> {
    fn from(selection: &Selection) -> Self {
        Self::selected(selection.clone())
    }
}

/// The path of a selection, whose identity on hash rings is `text` unless its system has a node.
fn written<M>(selection: Selection, text: &str, fan_out: Option<FanOut<M>>) -> WrittenPath<M> {
    let text = match selection.system().core().node_address() {
        None => text.into(),
        Some(own) => text_for_nodes(selection.path(), own).into(),
    };
    WrittenPath { selection, text, fan_out, elsewhere: OnceLock::new() }
}

/// The routee of a selection before it belongs to a router.
fn selected<M: Send + 'static>(selection: Selection, fan_out: Option<FanOut<M>>) -> Routee<M> {
    let info = StdArc::new(RouterInfo::without_router::<M>(selection.system()));
    let text = selection.to_string();
    Routee::at_path(StdArc::new(written(selection, &text, fan_out)), info)
}

pub(crate) fn fan_out<M: Clone + Send + 'static>(info: &RouterInfo, message: M, targets: &[ActorRef<M>]) {
    let Some((last, others)) = targets.split_last() else { return };
    let cx = RouteContext::new(info);
    cx.copies(targets.len());
    for target in others {
        cx.deliver_copy(target, message.clone());
    }
    cx.deliver_copy(last, message);
    cx.settle();
}

/// Checks the path of a routee, seen from a router's parent or head.
pub(crate) fn check<M: Send + 'static>(
    paths: &[String],
    fan_out: Option<FanOut<M>>,
    anchor: &AnyActorRef,
    router: &dyn Fn() -> String,
) -> Result<(), SpawnError> {
    for path in paths {
        let selection = Selection::from_actor(anchor, path)
            .map_err(|error| SpawnError::RouteePath { router: router(), error })?;
        if fan_out.is_none() && selection.has_wildcard() {
            return Err(SpawnError::RouteeWildcard { router: router(), path: path.clone() });
        }
        if !selection.takes::<M>() {
            let error = PathError::new(path, std::any::type_name::<M>(), 0, PathFault::Unregistered);
            return Err(SpawnError::RouteePath { router: router(), error });
        }
    }
    Ok(())
}

/// The routees of these paths, which have been [checked](check).
pub(crate) fn routees<M: Send + 'static>(
    paths: &[String],
    fan_out: Option<FanOut<M>>,
    info: &StdArc<RouterInfo>,
) -> Result<Vec<Routee<M>>, SpawnError> {
    let routee = |path: &String| {
        let selection = Selection::from_actor(&info.head, path)
            .map_err(|error| SpawnError::RouteePath { router: info.head.path().to_string(), error })?;
        Ok(Routee::at_path(StdArc::new(written(selection, path, fan_out)), info.clone()))
    };
    paths.iter().map(routee).collect()
}
