//! The creation of an actor: the plan, the checks, the cell, and its place among its siblings.

use crate::actor::actor::Actor;
use crate::actor::cell::{Cell, Owned, free_cell};
use crate::actor::mailbox_choice::MailboxKind;
use crate::actor::private::Private;
use crate::actor::recipe::Recipe;
use crate::actor::turn::run;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header, Kind, Local, VTable, schedule};
use crate::core::children::{Children, Refusal};
use crate::core::dispatchers::{INTERNAL, ResolvedPlacement};
use crate::core::error::SpawnError;
use crate::core::full_policy::FullPolicy;
use crate::core::strategy::Strategy;
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::mailbox::kind::OverflowPolicy;
use crate::mailbox::mailbox;
use crate::path::actor_path::check_name;
#[cfg(all(feature = "net", not(pointsman_loom)))]
use crate::settings::deployment::Deployment;
use crate::settings::deployment::Section;
use crate::sync::atomic::{AtomicBool, AtomicU32};
use crate::sync::cell::UnsafeCell;
use crate::util::panic::drop_guarded;
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

/// A new actor that takes messages and control. Its first turn comes when this value is dropped. The drop must happen
/// without any lock: it may run the actor, and log.
///
/// Used for data that the recipe needs and that cannot be made without the reference.
pub(crate) struct Held<M: Send + 'static> {
    actor: ActorRef<M>,
    header: NonNull<Header>,
    /// A warning to be logged before the first turn.
    warning: Option<Box<str>>,
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
        Self { actor, header, warning: None }
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
        // SAFETY: `allocate` has taken the token for us, and it goes on only when this is dropped.
        owned.private.with_mut(|private| act(unsafe { &mut *private }))
    }

    /// Gives the actor its first turn.
    pub(crate) fn start(self) -> ActorRef<M> {
        self.actor.clone()
    }
}

impl<M: Send + 'static> Drop for Held<M> {
    fn drop(&mut self) {
        if let Some(warning) = self.warning.take() {
            // The logger is user code.
            drop_guarded(guarded(|| {
                log::warn!(target: "pointsman", "{warning}");
                Ok(())
            }));
        }
        // SAFETY: our reference keeps the cell alive; `allocate` has taken the token for us, and it goes on
        // only here, once.
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
    let mut recipe = Some(recipe);
    let spawned = try_spawn_held(plan, &mut recipe);
    // Before the error lies in the place of the return value: there it would be leaked if this panicked.
    if recipe.is_some() {
        drop_guarded(recipe);
    }
    spawned
}

/// Creates the actor, and takes the recipe unless the actor is refused.
fn try_spawn_held<A: Actor, F: Recipe<A>>(
    plan: Plan,
    recipe: &mut Option<F>,
) -> Result<Held<A::Message>, SpawnError> {
    let Plan { parent, name, dispatcher, mailbox, on_failure, routee_index, stash_capacity } = plan;
    let parent = parent.map_err(|system| SpawnError::ShutDown { system })?;
    let path = |name: &Option<String>| {
        let parent = parent.path();
        let parent = parent.as_str().trim_end_matches('/');
        format!("{parent}/{}", name.as_deref().unwrap_or("$"))
    };
    if let Some(name) = &name {
        check_name(name)?;
    }
    let system = parent.core().system.clone();
    let section = system.deployed(&parent, name.as_deref(), &mailbox);
    let (dispatcher, mailbox, stash_capacity) = match section {
        Some(section) => {
            let deployment = &section.deployment;
            (
                deployment.dispatcher.clone().or(dispatcher),
                mailbox.or_named(deployment.mailbox.as_deref()),
                deployment.stash_capacity.map(stash_limit).or(stash_capacity),
            )
        }
        None => (dispatcher, mailbox, stash_capacity),
    };
    let mailbox = mailbox.choose::<A>(&system, dispatcher.as_deref(), &|| path(&name))?;
    let stash_capacity = stash_capacity.or(mailbox.stash_capacity);
    system.actor_begins()?;
    let ResolvedPlacement { placement, own: mut own_home } = match system.place(dispatcher.as_deref()) {
        Ok(place) => place,
        Err(error) => {
            system.actor_ended();
            return Err(error);
        }
    };
    let mut born: Option<NonNull<Header>> = None;
    let (mut on_failure, mut mailbox) = (on_failure, Some(mailbox));
    let adopted = parent.core().children.adopt(name.as_deref(), |start| {
        let header = Header::new(run::<A, F>, &Erased::<A, F>::VTABLE, placement, REFS_AT_BIRTH, Kind::Local);
        let mailbox = mailbox.take().expect("a child is made once");
        let full = match mailbox.on_full {
            OverflowPolicy::DropNewest => FullPolicy::DropNewest,
            OverflowPolicy::Wait(limit) => FullPolicy::Wait(limit),
            OverflowPolicy::Reject | OverflowPolicy::DropOldest => FullPolicy::Refuse,
        };
        let mailbox = mailbox.make(header);
        let core = ActorCore {
            uid: system.next_uid(),
            system: system.clone(),
            parent: Some(parent.clone()),
            name: start.name,
            slot: start.slot,
            routee_index,
            held: AtomicU32::new(0),
            restarts: AtomicU32::new(0),
            notices: AtomicU32::new(0),
            takes_copies: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            told_to_stop: AtomicBool::new(false),
            full,
            on_failure: on_failure.take().map(Box::new),
            // Its children start as suspended as the actor itself, or the actor would resume children that were never
            // suspended.
            children: Children::of_suspended(start.suspended),
            own_home: own_home.take(),
        };
        let recipe = recipe.take().expect("a child is made once");
        let private = Private::new(start.suspended).with_stash(stash_capacity);
        let header = allocate::<A, F>(mailbox, core, private, recipe);
        born = Some(header);
        // SAFETY: a new cell, and one of its three references.
        Ok::<AnyActorRef, std::convert::Infallible>(unsafe { AnyActorRef::from_counted(header) })
    });
    let refusal = match (adopted, born) {
        (Ok(Ok(())), Some(header)) => {
            // SAFETY: a new cell that takes these messages, and one of its references.
            let mut held = unsafe { Held::new(header) };
            let section = section.filter(|_| name.is_some());
            held.warning = section.and_then(|section| section.warning_for_no_router(|| path(&name)));
            return Ok(held);
        }
        (Err(Refusal::NameTaken), _) => SpawnError::NameTaken { path: path(&name) },
        _ => SpawnError::ParentStopped { path: parent.path().to_string() },
    };
    if let Some(placement) = own_home {
        system.release_placement(&placement);
    }
    system.actor_ended();
    Err(refusal)
}

impl SystemCore {
    /// Returns whether the system has settings for actors by their paths.
    pub(crate) fn has_deployments(&self) -> bool {
        !self.deployments.is_empty()
    }

    /// The settings of the system for an actor that is about to be created; there are none for the engine's own actors.
    fn deployed(&self, parent: &AnyActorRef, name: Option<&str>, mailbox: &MailboxKind) -> Option<&Section> {
        if matches!(mailbox, MailboxKind::Unbounded) {
            return None;
        }
        self.section(parent, name)
    }

    /// The settings of the system for a child of this name.
    pub(crate) fn section(&self, parent: &AnyActorRef, name: Option<&str>) -> Option<&Section> {
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
    system.actor_begins()?;
    let ResolvedPlacement { placement, own: own_home } = match system.place(Some(INTERNAL)) {
        Ok(place) => place,
        Err(error) => {
            system.actor_ended();
            return Err(error);
        }
    };
    // One reference fewer: there is no parent to hold it.
    let header = Header::new(run::<A, F>, &Erased::<A, F>::VTABLE, placement, REFS_AT_BIRTH - 1, Kind::Local);
    let core = ActorCore {
        uid: system.next_uid(),
        system: system.clone(),
        parent: None,
        name: crate::path::actor_path::Name::Given("".into()),
        slot: 0,
        routee_index: 0,
        held: AtomicU32::new(0),
        restarts: AtomicU32::new(0),
        notices: AtomicU32::new(0),
        takes_copies: AtomicBool::new(false),
        retired: AtomicBool::new(false),
        told_to_stop: AtomicBool::new(false),
        full: FullPolicy::Refuse,
        on_failure: None,
        children: Children::default(),
        own_home,
    };
    let header = allocate::<A, F>(mailbox::Mailbox::unbounded(header), core, Private::new(0), recipe);
    // SAFETY: a new cell that takes these messages, and one of its two references.
    Ok(unsafe { Held::new(header) }.start())
}
