//! The creation of an actor: the plan, the checks, the cell, and its place among its siblings.

use crate::actor::actor::Actor;
use crate::actor::cell::{Cell, Owned, free_cell};
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::private::{Phase, Private};
use crate::actor::recipe::Recipe;
use crate::actor::turn::run;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header, Kind, Local, VTable, schedule};
use crate::core::children::{ChildStart, Children, Refusal};
use crate::core::dispatchers::{INTERNAL, OwnedPlacement, ResolvedPlacement};
use crate::core::error::SpawnError;
use crate::core::full_policy::FullPolicy;
use crate::core::strategy::Strategy;
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::mailbox::kind::{OverflowPolicy, Prepared};
use crate::mailbox::mailbox;
use crate::path::actor_path::{Name, check_name};
#[cfg(all(feature = "net", not(pointsman_loom)))]
use crate::settings::deployment::Deployment;
use crate::settings::deployment::MatchedDeployment;
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::sync::cell::UnsafeCell;
use crate::util::panic::{Guarded, drop_guarded};
use std::any::TypeId;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;

/// All settings of a new actor, without its type.
pub(crate) struct Plan {
    /// `Err` holds the name of a system that has shut down.
    pub parent: Result<AnyActorRef, String>,
    pub name: Option<String>,
    pub dispatcher: Option<String>,
    pub mailbox: MailboxKind,
    pub on_failure: Option<Strategy>,
    pub routee_index: u32,
    /// The number of messages that may be stashed; `None` for any number.
    pub stash_capacity: Option<u32>,
}

/// References to a new cell: its life's own, its parent's, and the caller's.
const REFS_AT_BIRTH: u32 = 3;

struct Erased<A, F>(std::marker::PhantomData<(A, F)>);

impl<A: Actor, F: Recipe<A>> Erased<A, F> {
    const VTABLE: VTable = VTable {
        free: free_cell::<A, F>,
        core_offset: offset_of!(Local<A::Message>, core),
        message_type: TypeId::of::<A::Message>,
        message_name: std::any::type_name::<A::Message>,
        referent: None,
    };
}

/// Creates an actor by its plan.
pub(crate) fn spawn_cell<A: Actor, F: Recipe<A>>(
    plan: Plan,
    recipe: F,
) -> Result<ActorRef<A::Message>, SpawnError> {
    spawn_held::<A, F>(plan, recipe).map(Held::start)
}

/// A new actor that takes messages and control, and has its first turn when it is [started](Self::start). The start is
/// done without any lock: it may run the actor, and log.
///
/// A creator holds an actor back while it makes the values that the recipe needs and that need the reference.
#[must_use = "an actor that is not started ends"]
pub(crate) struct Held<M: Send + 'static> {
    actor: ActorRef<M>,
    header: NonNull<Header>,
    /// A warning to be logged before the first turn.
    warning: Option<Box<str>>,
    is_started: bool,
}

// SAFETY: it holds the cell's ownership token, which may be passed on by any thread, and a reference to a cell that
// every thread may refer to.
unsafe impl<M: Send + 'static> Send for Held<M> {}

impl<M: Send + 'static> Held<M> {
    /// # Safety
    ///
    /// `header` comes from `allocate` for an actor that takes `M`; the caller gives up one reference, and
    /// makes this once only.
    unsafe fn new(header: NonNull<Header>) -> Self {
        // SAFETY: the caller gives up one reference, and the type of message is right.
        let actor = unsafe { ActorRef::from_header(header) };
        Self { actor, header, warning: None, is_started: false }
    }

    /// The actor.
    pub(crate) fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Changes the data that only the actor's turns touch. `act` runs no user code.
    pub(crate) fn private<R>(&mut self, act: impl FnOnce(&mut Private<M>) -> R) -> R {
        // SAFETY: the header is the first field of the mailbox, which is that of an `Owned<M>`, and our reference keeps
        // the cell alive.
        let owned = unsafe { self.header.cast::<Owned<M>>().as_ref() };
        // SAFETY: `allocate` has taken the token for us, and it goes on only when this is started or dropped.
        owned.private.with_mut(|private| act(unsafe { &mut *private }))
    }

    /// Gives the actor its first turn.
    pub(crate) fn start(mut self) -> ActorRef<M> {
        if let Some(warning) = self.warning.take() {
            // The logger is user code.
            drop_guarded(guarded(|| {
                log::warn!(target: "pointsman", "{warning}");
                Ok(())
            }));
        }
        self.is_started = true;
        // SAFETY: our reference keeps the cell alive; `allocate` has taken the token for us, and it goes on only here:
        // `drop` sees that it has gone.
        unsafe { schedule(self.header) };
        self.actor.clone()
    }
}

impl<M: Send + 'static> Drop for Held<M> {
    /// Ends an actor that was not started; its recipe never runs. The name is free at once, since the creator has no
    /// reference by which to wait for the end.
    fn drop(&mut self) {
        if self.is_started {
            return;
        }
        // The phase of an actor that has had its first turn: that turn would call the recipe.
        self.private(|private| private.phase = Phase::Alive);
        let actor = self.actor.any_local();
        if let Some(parent) = &actor.core().parent {
            parent.core().children.hand_name_over(&actor);
        }
        actor.stop();
        // SAFETY: as in `start`, which has not run.
        unsafe { schedule(self.header) };
    }
}

/// Creates an actor by its plan, and holds back its first turn.
///
/// The destructor of a refused recipe may panic; the panic is caught here. The other user values in a plan guard their
/// destructors themselves.
pub(crate) fn spawn_held<A: Actor, F: Recipe<A>>(
    plan: Plan,
    recipe: F,
) -> Result<Held<A::Message>, SpawnError> {
    let recipe = Guarded::new(recipe);
    let Plan { parent, name, dispatcher, mailbox, on_failure, routee_index, stash_capacity } = plan;
    let parent = parent.map_err(|system| SpawnError::ShutDown { system })?;
    let (system, name) = (&parent.core().system, name.as_deref());
    let path = || path_below(&parent, name);
    let checked = check::<A>(&parent, name, dispatcher, mailbox, stash_capacity)?;
    let ResolvedPlacement { placement, own: own_home } = place(system, checked.dispatcher.as_deref())?;
    let reserved = match parent.core().children.reserve(name) {
        Ok(reserved) => reserved,
        Err(refusal) => {
            if let Some(placement) = own_home {
                system.release_placement(&placement);
            }
            system.actor_ended();
            return Err(match refusal {
                Refusal::NameTaken => SpawnError::NameTaken { path: path() },
                Refusal::Closed => SpawnError::ParentStopped { path: parent.path().to_string() },
            });
        }
    };
    let core = ActorCore {
        routee_index,
        full: full_policy(checked.mailbox.on_full),
        on_failure: on_failure.map(Box::new),
        ..new_core(system, Some(parent.clone()), reserved.start.clone(), own_home)
    };
    let header = Header::new(run::<A, F>, &Erased::<A, F>::VTABLE, placement, REFS_AT_BIRTH, Kind::Local);
    let private = Private::new(reserved.start.suspended).with_stash(checked.stash_capacity);
    let header = allocate::<A, F>(checked.mailbox.make(header), core, private, recipe.into_inner());
    // SAFETY: a new cell, and one of its three references.
    reserved.fill(unsafe { AnyActorRef::from_counted(header) });
    // SAFETY: a new cell that takes these messages, and one of its references.
    let mut held = unsafe { Held::new(header) };
    let section = checked.section.filter(|_| name.is_some());
    held.warning = section.and_then(|section| section.warning_for_no_router(path));
    Ok(held)
}

/// The path of a child that is about to be made.
fn path_below(parent: &AnyActorRef, name: Option<&str>) -> String {
    format!("{}/{}", parent.path().as_str().trim_end_matches('/'), name.unwrap_or("$"))
}

/// A checked plan: the plan's settings with the system's settings for the actor applied.
struct Checked<'a, M> {
    section: Option<&'a MatchedDeployment>,
    dispatcher: Option<String>,
    mailbox: Prepared<M>,
    stash_capacity: Option<u32>,
}

/// Checks the name and the settings of an actor, before anything is reserved for it.
#[inline]
fn check<'a, A: Actor>(
    parent: &'a AnyActorRef,
    name: Option<&str>,
    dispatcher: Option<String>,
    mailbox: MailboxKind,
    stash_capacity: Option<u32>,
) -> Result<Checked<'a, A::Message>, SpawnError> {
    if let Some(name) = name {
        check_name(name)?;
    }
    let system = &parent.core().system;
    let section = system.deployed(parent, name, &mailbox);
    let (dispatcher, mailbox, stash_capacity) = match section {
        Some(section) => {
            let deployment = &section.deployment;
            (
                deployment.dispatcher.clone().or(dispatcher),
                mailbox.or_named(deployment.mailbox.as_deref()),
                deployment.stash_capacity.or(stash_capacity),
            )
        }
        None => (dispatcher, mailbox, stash_capacity),
    };
    let mailbox = mailbox.choose::<A>(system, dispatcher.as_deref(), &|| path_below(parent, name))?;
    let stash_capacity = stash_capacity.or(mailbox.stash_capacity);
    Ok(Checked { section, dispatcher, mailbox, stash_capacity })
}

fn full_policy(on_full: OverflowPolicy) -> FullPolicy {
    match on_full {
        OverflowPolicy::DropNewest => FullPolicy::DropNewest,
        OverflowPolicy::Wait(limit) => FullPolicy::Wait(limit),
        OverflowPolicy::Reject | OverflowPolicy::DropOldest => FullPolicy::Refuse,
    }
}

/// Counts an actor as living, and finds the place where it runs.
#[inline]
fn place(system: &SystemCore, dispatcher: Option<&str>) -> Result<ResolvedPlacement, SpawnError> {
    system.actor_begins()?;
    system.place(dispatcher).inspect_err(|_| system.actor_ended())
}

/// The core of an ordinary actor whose mailbox refuses when it is full.
fn new_core(
    system: &StdArc<SystemCore>,
    parent: Option<AnyActorRef>,
    start: ChildStart,
    own_home: Option<StdArc<OwnedPlacement>>,
) -> ActorCore {
    ActorCore {
        uid: system.next_uid(),
        system: system.clone(),
        parent,
        name: start.name,
        slot: start.slot,
        routee_index: 0,
        held: AtomicU32::new(0),
        restarts: AtomicU32::new(0),
        notices: AtomicU32::new(0),
        takes_copies: AtomicBool::new(false),
        retired: AtomicBool::new(false),
        told_to_stop: AtomicBool::new(false),
        full: FullPolicy::Refuse,
        on_failure: None,
        // Its own children start as suspended as it is, or it would resume what was never suspended.
        children: Children::of_suspended(start.suspended),
        own_home,
    }
}

impl SystemCore {
    /// Returns whether the system has settings for actors by their paths.
    pub(crate) fn has_deployments(&self) -> bool {
        !self.deployments.is_empty()
    }

    /// The settings of the system for an actor that is about to be created; there are none for the engine's own actors.
    fn deployed(
        &self,
        parent: &AnyActorRef,
        name: Option<&str>,
        mailbox: &MailboxKind,
    ) -> Option<&MatchedDeployment> {
        if matches!(mailbox, MailboxKind::Unbounded) {
            return None;
        }
        self.section(parent, name)
    }

    /// The settings of the system for a child of this name.
    pub(crate) fn section(&self, parent: &AnyActorRef, name: Option<&str>) -> Option<&MatchedDeployment> {
        if self.deployments.is_empty() {
            return None;
        }
        let path = parent.path();
        // Without the guardian. The name of a child that is given none is not known yet.
        self.deployments.find(path.elements().skip(1).chain([name.unwrap_or("$")]))
    }

    /// The settings of the system for the actor of this name right below `/user`.
    #[cfg(all(feature = "net", not(pointsman_loom)))]
    pub(crate) fn deployed_at_top(&self, name: &str) -> Option<&Deployment> {
        self.deployments.find(std::iter::once(name)).map(|section| &section.deployment)
    }
}

/// Converts a count of messages to the type of a stash's capacity; larger counts become its maximum.
pub(crate) fn stash_limit(message_count: usize) -> u32 {
    u32::try_from(message_count).unwrap_or(u32::MAX)
}

/// Puts a cell on the heap, and takes its ownership token: a message or control that arrives before the first turn
/// wakes no worker.
fn allocate<A: Actor, F: Recipe<A>>(
    mailbox: mailbox::Mailbox<Header, crate::core::control::Control, A::Message>,
    core: ActorCore,
    private: Private<A::Message>,
    recipe: F,
) -> NonNull<Header> {
    let cell = Box::new(Cell::<A, F> {
        owned: Owned {
            local: Local { mailbox, core },
            private: UnsafeCell::new(private),
            cursors: UnsafeCell::new(None),
        },
        actor: UnsafeCell::new(None),
        recipe: UnsafeCell::new(Some(recipe)),
    });
    let fresh = cell.owned.local.mailbox.gate.begin();
    debug_assert!(fresh, "no other reference to the cell exists yet");
    NonNull::from(Box::leak(cell)).cast()
}

/// Creates the root of a tree, which has no parent and no name.
pub(crate) fn spawn_root<A: Actor, F: Recipe<A>>(
    system: &StdArc<SystemCore>,
    recipe: F,
) -> Result<ActorRef<A::Message>, SpawnError> {
    let ResolvedPlacement { placement, own: own_home } = place(system, Some(INTERNAL))?;
    // One reference fewer: there is no parent to hold it.
    let header = Header::new(run::<A, F>, &Erased::<A, F>::VTABLE, placement, REFS_AT_BIRTH - 1, Kind::Local);
    let start = ChildStart { name: Name::Given("".into()), slot: 0, suspended: 0 };
    let core = new_core(system, None, start, own_home);
    let header = allocate::<A, F>(mailbox::Mailbox::unbounded(header), core, Private::new(0), recipe);
    // SAFETY: a new cell that takes these messages, and one of its two references.
    Ok(unsafe { Held::new(header) }.start())
}
