//! The top of the tree: `/`, `/user`, `/system` and `/temp`.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::recipe::ByContext;
use crate::actor::spawn::{ClassChoice, Plan, spawn_cell, spawn_root};
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::control::{Control, Terminated};
use crate::core::dispatchers::{DEFAULT, INTERNAL};
use crate::core::error::SpawnError;
use crate::core::strategy::Strategy;
use crate::core::system::{SystemCore, Tree};
use crate::scheduler::error::StartError;
use crate::settings::build_error::BuildError;
use crate::sync::lock;
use std::sync::Arc as StdArc;

/// The name of the guardian of the actors that other nodes have made here.
pub(crate) const REMOTE: &str = "remote";

/// A guardian takes no messages.
pub(crate) enum Never {}

/// `/`: watches over `/user` and `/system`, and ends when one of them has ended.
struct Root;

/// `/user`, `/system` and `/temp`.
struct Guardian {
    supervision: Strategy,
}

impl Actor for Root {
    type Message = Never;
    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }
    fn terminated(&mut self, _: Terminated, ctx: &mut Context<Never>) -> HandlerResult {
        ctx.stop();
        Ok(())
    }
    fn supervision(&self) -> Strategy {
        // A failure that reaches the root was escalated by all actors below it, and there is no parent to judge it.
        Strategy::stop()
    }
}

impl Actor for Guardian {
    type Message = Never;
    fn receive(&mut self, message: Never, _: &mut Context<Never>) -> HandlerResult {
        match message {}
    }
    fn supervision(&self) -> Strategy {
        self.supervision.clone()
    }
}

impl SystemCore {
    /// Starts the timer thread, if the clock needs one. The error is reported here, because code that sets timers later
    /// has no use for it.
    ///
    /// # Errors
    ///
    /// [`BuildError::Timers`] when the thread cannot be started; the dispatchers have ended by then.
    pub(crate) fn start_timers(&self) -> Result<(), BuildError> {
        self.timers.start().map_err(|error| {
            self.dispatchers.end();
            BuildError::Timers(StartError::Thread(error))
        })
    }

    /// Makes the guardians.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a guardian gets no thread; the other guardians and the dispatchers have ended by then.
    pub(crate) fn create_guardians(self: &StdArc<Self>, supervision: Strategy) -> Result<(), BuildError> {
        let root = match spawn_root::<Root, _>(self, ByContext(|_: &mut Context<Never>| Root)) {
            Ok(root) => root.any_local(),
            Err(error) => return Err(self.undo_build(None, error)),
        };
        let guardian = |name: &str, supervision: Strategy| spawn_guardian(&root, name, supervision);
        let grown = guardian("system", Strategy::default()).and_then(|system| {
            Ok((system, guardian("temp", Strategy::default())?, guardian("user", supervision)?))
        });
        let (system, temp, user) = match grown {
            Ok(grown) => grown,
            Err(error) => return Err(self.undo_build(Some(&root), error)),
        };
        // The root ends once either of them has ended.
        watch_from_outside(&root, &system);
        watch_from_outside(&root, &user);
        *lock(&self.tree) = Some(Tree { root, user, system, temp });
        Ok(())
    }

    /// The parent of the engine's own actors, `/system`; or the name of this system if it has ended.
    pub(crate) fn system_guardian(&self) -> Result<AnyActorRef, String> {
        match &*lock(&self.tree) {
            Some(tree) => Ok(tree.system.clone()),
            None => Err(self.name.clone()),
        }
    }

    /// The guardian right below the root of the actors that other nodes have made here. It is made when it is first needed; `None` if
    /// the system has ended.
    #[cfg(feature = "remote")]
    pub(crate) fn guardian_of_deployed(&self) -> Option<AnyActorRef> {
        let root = lock(&self.tree).as_ref()?.root.clone();
        let made = spawn_guardian(&root, REMOTE, Strategy::default()).ok();
        // Another thread may have made it.
        made.or_else(|| root.core().children.get(REMOTE))
    }

    /// Ends the actors and the threads that a failed build has started.
    fn undo_build(&self, root: Option<&AnyActorRef>, error: SpawnError) -> BuildError {
        if let Some(root) = root {
            root.stop();
            self.wait_for_tree();
        }
        self.timers.stop();
        self.dispatchers.end();
        match error {
            SpawnError::Thread(error) => BuildError::Dispatcher { name: DEFAULT.to_owned(), error },
            other => unreachable!("a new system refuses its guardian: {other}"),
        }
    }
}

/// Makes a guardian below the root.
fn spawn_guardian(root: &AnyActorRef, name: &str, supervision: Strategy) -> Result<AnyActorRef, SpawnError> {
    let plan = Plan {
        parent: Ok(root.clone()),
        name: Some(name.to_owned()),
        dispatcher: Some(INTERNAL.to_owned()),
        mailbox: MailboxKind::Unbounded,
        on_failure: None,
        routee_index: 0,
        stash_capacity: None,
        class: ClassChoice::OfType,
    };
    let recipe = move |_: &mut Context<Never>| Guardian { supervision: supervision.clone() };
    spawn_cell::<Guardian, _>(plan, ByContext(recipe)).map(|guardian| guardian.any_local())
}

/// Makes `watcher` get a notice when `actor` ends, although no turn of the watcher is running.
fn watch_from_outside(watcher: &AnyActorRef, actor: &AnyActorRef) {
    let _ = watcher.send_system(Control::Adopt(actor.clone()));
}
