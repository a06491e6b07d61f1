//! The use of a resizer's decisions: at the pool's creation, and on its head.

use crate::actor::actor::HandlerResult;
use crate::actor::context::Context;
use crate::core::actor_ref::RecipientLoad;
use crate::core::error::SpawnError;
use crate::failure::guarded;
use crate::routing::head::head::Head;
use crate::routing::head::messages::Manage;
use crate::routing::head::state::HeadState;
use crate::routing::logic::RoutingLogic;
use crate::routing::plan::{Initial, RouterPlan};
use crate::routing::resizer::loads::RouteeLoads;
use crate::routing::resizer::resizer::Resizer;
use crate::routing::resizer::trigger::Resizing;
use crate::routing::routees::Routees;
use crate::routing::routing_ref::SharedRouter;
use crate::settings::setting_error::SettingError;
use crate::sync::atomic::Ordering;
use crate::util::panic::{Guarded, drop_guarded};
use crate::util::reclaim;
use crate::util::stderr_log::report;

impl Resizing {
    /// Returns the loads that the resizer gets. Runs code of foreign routees.
    pub(crate) fn loads<M: Send + 'static>(
        &self,
        table: &Routees<M>,
        shared: &SharedRouter<M>,
    ) -> RouteeLoads {
        let mut loads = self.no_loads(shared);
        for routee in table.iter() {
            let load = routee.actor().load();
            let queued = match load {
                RecipientLoad::Busy { queued } => queued,
                RecipientLoad::Suspended => routee.actor().queued().unwrap_or(0),
                _ => 0,
            };
            loads.push(load, queued);
        }
        loads
    }

    /// Returns the loads of a pool without routees; counts the request.
    pub(crate) fn no_loads<M: Send + 'static>(&self, shared: &SharedRouter<M>) -> RouteeLoads {
        let mut messages = 0u64;
        // Relaxed: see `sent`.
        self.counts
            .for_each(|count| messages = messages.wrapping_add(count.messages.load(Ordering::Relaxed)));
        // Relaxed: only the head writes it.
        let before = self.asked_at.load(Ordering::Relaxed);
        self.asked_at.store(messages, Ordering::Relaxed);
        RouteeLoads::default()
            .with_messages(messages, messages.wrapping_sub(before))
            .at(shared.info.system.now())
            .with_seed(shared.info.seed)
    }
}

impl<M: Send + 'static, L> RouterPlan<M, L> {
    /// Lets this resizer decide how many routees the pool has. A pool with a resizer may be described with
    /// size 0, and stays when it is empty. A second call replaces the first.
    ///
    /// Invalid settings of the resizer are an error of [`spawn`](Self::spawn):
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// use pointsman::routing::DefaultResizer;
    /// # struct Worker;
    /// # impl Actor for Worker {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult { Ok(()) }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let system = System::builder("demo").build()?;
    /// let plan = system.router("workers").pool(4, |_| Worker);
    /// let error = plan.resizer(DefaultResizer::new().lower_bound(20)).spawn().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "resizer of /user/workers: upper_bound 10: must be at least lower_bound, 20"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// So is a resizer for a group, which makes no routees.
    pub fn resizer(mut self, resizer: impl Resizer) -> Self {
        self.resizer = Some(Guarded::new(Box::new(resizer)));
        self
    }
}

/// Refuses a resizer that the router cannot have.
pub(crate) fn check<M: Send + 'static>(
    resizer: &dyn Resizer,
    members: &Initial<M>,
    shares_queue: bool,
    path: &dyn Fn() -> String,
) -> Result<(), SpawnError> {
    if !matches!(members, Initial::Pool { .. }) {
        return Err(SpawnError::ResizerOfGroup { path: path() });
    }
    if shares_queue {
        return Err(SpawnError::ResizerOfSharedQueue { path: path() });
    }
    let tick = || resizer.tick().map_or(Ok(()), |every| SettingError::unless_positive("tick", every));
    resizer.check().and_then(|()| tick()).map_err(|fault| SpawnError::Resizer { path: path(), fault })
}

impl Resizing {
    /// Returns the first size of a pool that was described with `size`: new routees would be idle, so none need be made
    /// to be looked at.
    pub(crate) fn initial_size<M: Send + 'static>(&self, size: usize, shared: &SharedRouter<M>) -> usize {
        if !self.resizer.is_time_for_resize(0) {
            return size;
        }
        let mut loads = self.no_loads(shared);
        (0..size).for_each(|_| loads.push(RecipientLoad::Idle, 0));
        self.resizer.clamp(size.saturating_add_signed(self.resizer.resize(&loads)))
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> HeadState<M, L> {
    /// Returns the size that a pool gets for which `size` was asked: within the resizer's bounds, if there is one. Runs
    /// code of the resizer.
    pub(crate) fn clamp(&self, size: usize) -> usize {
        self.shared.info.resizing.as_ref().map_or(size, |resizing| resizing.resizer.clamp(size))
    }
}

impl<M: Send + 'static, L: RoutingLogic<M>> Head<M, L> {
    /// A sender has pulled the trigger.
    pub(crate) fn triggered(&mut self, ctx: &mut Context<Manage<M>>) -> HandlerResult {
        if let Some(resizing) = &self.head_state.shared.info.resizing {
            resizing.trigger.loosen();
        }
        self.ask_resizer(ctx);
        Ok(())
    }

    /// Asks the resizer, and resizes the pool accordingly.
    pub(crate) fn ask_resizer(&mut self, ctx: &mut Context<Manage<M>>) {
        let outcome = self.change(ctx, |head, ctx| {
            let shared = head.head_state.shared.clone();
            let Some(resizing) = shared.info.resizing.as_ref().filter(|_| !head.head_state.is_ending())
            else {
                return Ok(0);
            };
            let loads = {
                let section = reclaim::section();
                resizing.loads(shared.table.read(&section), &shared)
            };
            match resizing.resizer.resize(&loads) {
                0 => Ok(loads.len()),
                delta => head.resize_to(loads.len().saturating_add_signed(delta), ctx),
            }
        });
        if let Some(Err(error)) = outcome {
            // The logger is user code, and the cause may be the user's.
            let logged = guarded(|| {
                let stderr = ctx.system().core().stderr;
                report!(stderr, Warning, log::Level::Warn, "{} could not be resized: {error}", ctx.path());
                Ok(())
            });
            drop_guarded((logged, error));
        }
    }

    /// Asks the resizer from time to time, until the head ends.
    pub(crate) fn begin_ticks(&self, ctx: &mut Context<Manage<M>>) {
        let Some(resizing) = &self.head_state.shared.info.resizing else { return };
        if let Some(every) = resizing.resizer.tick() {
            ctx.every(every, || Manage::AskResizer);
        }
    }
}
