//! The creation of an actor: the plan, the checks, the cell, and its place among its siblings.

use crate::actor::actor::Actor;
use crate::actor::cell::{Cell, Owned, free_cell};
use crate::actor::guardians::REMOTE;
use crate::actor::mailbox_choice::{Answer, MailboxKind};
use crate::actor::private::{Phase, Private};
use crate::actor::recipe::Recipe;
use crate::actor::turn::run;
use crate::core::actor_ref::ActorRef;
use crate::core::any_actor_ref::AnyActorRef;
#[cfg(feature = "remote")]
use crate::core::cell::InPlaceOf;
use crate::core::cell::{ActorCore, Header, Kind, Local, Special, SpecialName, SystemLink, VTable, schedule};
use crate::core::children::{ChildStart, Refusal};
use crate::core::classes::ClassId;
use crate::core::control::Control;
use crate::core::dispatchers::{INTERNAL, ResolvedPlacement};
#[cfg(feature = "remote")]
use crate::core::elsewhere::{NamedElsewhere, Standing};
use crate::core::error::SpawnError;
use crate::core::full_policy::FullPolicy;
use crate::core::strategy::Strategy;
use crate::core::system::SystemCore;
use crate::failure::guarded;
use crate::mailbox::kind::{OverflowPolicy, Prepared};
use crate::mailbox::mailbox;
use crate::path::actor_path::check_name;
#[cfg(all(feature = "net", not(pointsman_loom)))]
use crate::settings::deployment::Deployment;
use crate::settings::deployment::MatchedDeployment;
#[cfg(feature = "remote")]
use crate::settings::section_fault::SectionFault;
use crate::util::panic::{Guarded, drop_guarded};
use crate::util::stderr_log::report;
use std::any::TypeId;
use std::mem::{ManuallyDrop, offset_of};
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
    pub class: ClassChoice,
}

/// The class of a new actor, unless its deployment names another.
#[derive(Debug, Clone, Default)]
pub(crate) enum ClassChoice {
    /// The class of the actor's type.
    #[default]
    OfType,
    Named(String),
    /// The class of the router's or group's head that makes the actor.
    Of(ClassId),
    /// The class whose name is the actor's own path.
    OfPath,
}

impl ClassChoice {
    /// The class of the actors that the actor `head` makes.
    pub(crate) fn made_by(head: &AnyActorRef) -> Self {
        head.core().own_class().map_or(Self::OfType, Self::Of)
    }
}

impl Plan {
    /// The plan of an actor with the defaults.
    pub(crate) fn new(parent: Result<AnyActorRef, String>, name: Option<String>) -> Self {
        Self {
            parent,
            name,
            dispatcher: None,
            mailbox: MailboxKind::Chosen(None),
            on_failure: None,
            routee_index: 0,
            stash_capacity: None,
            class: ClassChoice::OfType,
        }
    }
}

/// References to a new cell: its life's own, its parent's, and the caller's.
const REFS_AT_BIRTH: u32 = 3;

struct Erased<A, F>(std::marker::PhantomData<(A, F)>);

impl<A: Actor, F: Recipe<A>> Erased<A, F> {
    const VTABLE: VTable = VTable {
        run: run::<A, F>,
        free: free_cell::<A, F>,
        core_offset: offset_of!(Local<A::Message>, core),
        message_type: TypeId::of::<A::Message>,
        actor_type: || Some(TypeId::of::<A>()),
        message_name: std::any::type_name::<A::Message>,
        actor_name: std::any::type_name::<A>,
        displaced: displaced::<A::Message>,
        referent: None,
    };
}

/// Returns how many messages the mailbox of an actor has dropped to make room.
///
/// # Safety
///
/// `header` is that of a living cell of an actor that takes `M`.
unsafe fn displaced<M>(header: NonNull<Header>) -> u64 {
    // SAFETY: the mailbox is the cell's first field, and the cell is alive by the caller's promise.
    unsafe { header.cast::<Local<M>>().as_ref() }.mailbox.displaced()
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
        // SAFETY: `allocate` has taken the token for us, and it goes on only when this is started or dropped.
        owned.private.with_mut(|private| act(unsafe { &mut *private }))
    }

    /// Makes the actor, and the children that it will have, begin with so many suspensions more.
    #[cfg(feature = "remote")]
    pub(crate) fn suspend(&mut self, more: u32) {
        let suspensions = self.private(|private| {
            private.pause.set_suspensions(private.pause.suspensions().saturating_add(more));
            private.pause.suspensions()
        });
        let children = self.actor.any_local().core().children.set_suspended(suspensions);
        debug_assert!(children.is_empty(), "an actor has no children before its first turn");
    }

    /// The suspensions that are in force for the actor.
    #[cfg(feature = "remote")]
    pub(crate) fn suspensions(&mut self) -> u32 {
        self.private(|private| private.pause.suspensions())
    }

    /// Gives the actor its first turn.
    pub(crate) fn start(mut self) -> ActorRef<M> {
        if let Some(warning) = self.warning.take() {
            // The logger is user code.
            drop_guarded(guarded(|| {
                report!(self.actor.any_local().core().system.stderr, Warning, log::Level::Warn, "{warning}");
                Ok(())
            }));
        }
        let held = ManuallyDrop::new(self);
        // SAFETY: `held` is not dropped, and the warning was taken out, so the reference is all that it had.
        let actor = unsafe { std::ptr::read(&held.actor) };
        // SAFETY: our reference keeps the cell alive; `allocate` has taken the token for us, and it goes on only here:
        // `drop` does not run.
        unsafe { schedule(held.header) };
        actor
    }
}

impl<M: Send + 'static> Drop for Held<M> {
    /// Ends an actor that was not started; its recipe never runs. The name is free at once, since the creator has no
    /// reference by which to wait for the end.
    fn drop(&mut self) {
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
    spawn_named::<A, F>(plan, recipe, |name| SpecialName::Given(name.into()))
}

/// As [`spawn_held`]. `special_name` makes the entry of a name that is given.
#[inline]
fn spawn_named<A: Actor, F: Recipe<A>>(
    plan: Plan,
    recipe: F,
    special_name: impl FnOnce(&str) -> SpecialName,
) -> Result<Held<A::Message>, SpawnError> {
    let recipe = Guarded::new(recipe);
    let Plan { parent, name, dispatcher, mailbox, on_failure, routee_index, stash_capacity, class } = plan;
    let parent = parent.map_err(|system| SpawnError::ShutDown { system })?;
    let name = name.as_deref();
    let checked = check::<A>(&parent, name, dispatcher, mailbox, stash_capacity)?;
    let home = place(&parent.core().system, checked.dispatcher.as_deref())?;
    let section = checked.section.filter(|_| name.is_some());
    let warning = section.and_then(|section| section.warning_for_no_router(|| path_below(&parent, name)));
    let special = Special {
        name: name.map(special_name),
        routee_index,
        full: full_policy(checked.mailbox.on_full),
        on_failure,
        own_home: home.own,
        class: class_of(&parent, name, checked.section, class),
    };
    let header = Header::new(&Erased::<A, F>::VTABLE, home.home, REFS_AT_BIRTH, Kind::Local);
    let private = Private::new(checked.stash_capacity);
    // The mailbox may clone and drop values of the user, so it is made before there is a half-made cell.
    let mailbox = checked.mailbox.make(header);
    let mut held = put_below::<A, F>(parent, name, || mailbox, Some(special), private, recipe)?;
    held.warning = warning;
    Ok(held)
}

/// Creates an actor under a generated name, with the defaults.
pub(crate) fn spawn_default<A: Actor, F: Recipe<A>>(
    parent: Result<AnyActorRef, String>,
    recipe: F,
) -> Result<ActorRef<A::Message>, SpawnError> {
    let recipe = Guarded::new(recipe);
    let answer = Answer::of::<A>();
    let parent = match parent {
        Ok(parent) if answer.is_none() && parent.core().system.has_no_rules() => parent,
        parent => {
            let mut plan = Plan::new(parent, None);
            plan.mailbox = MailboxKind::Asked(None, answer);
            return spawn_cell::<A, F>(plan, recipe.into_inner());
        }
    };
    // What `check` and `choose` come to where there is no setting.
    let home = place(&parent.core().system, None)?;
    let header = Header::new(&Erased::<A, F>::VTABLE, home.home, REFS_AT_BIRTH, Kind::Local);
    let special = home.own.map(|own| Special { own_home: Some(own), ..Special::of_name(None) });
    let mailbox = || mailbox::Mailbox::unbounded(header);
    put_below::<A, F>(parent, None, mailbox, special, Private::new(None), recipe).map(Held::start)
}

/// Creates the stand-in of an actor elsewhere. A name that it is given was checked by the caller.
#[cfg(feature = "remote")]
pub(crate) fn spawn_standing<A: Actor, F: Recipe<A>>(
    parent: Result<AnyActorRef, String>,
    standing: Standing,
    on_failure: Option<Strategy>,
    recipe: F,
) -> Result<Held<A::Message>, SpawnError> {
    let parent = parent.map_err(|system| SpawnError::ShutDown { system })?;
    let name = standing.name.clone();
    let special = SpecialName::StandsFor(Box::new(standing));
    put_internal_below::<A, F>(parent, name.as_deref(), special, on_failure, Guarded::new(recipe))
}

/// Creates an actor that is the parent of actors here in place of a parent elsewhere.
#[cfg(feature = "remote")]
pub(crate) fn spawn_in_place<A: Actor, F: Recipe<A>>(
    parent: AnyActorRef,
    place: InPlaceOf,
    recipe: F,
) -> Result<Held<A::Message>, SpawnError> {
    let name = place.name.clone();
    let special = SpecialName::InPlaceOf(Box::new(place));
    put_internal_below::<A, F>(parent, Some(&name), special, None, Guarded::new(recipe))
}

/// Creates an actor by its plan that another system has deployed here under the plan's name, with a uid of that system.
#[cfg(feature = "remote")]
pub(crate) fn spawn_deployed<A: Actor, F: Recipe<A>>(
    plan: Plan,
    uid: u32,
    recipe: F,
) -> Result<Held<A::Message>, SpawnError> {
    const { assert!(F::IS_DEPLOYED, "the recipe of such an actor says so") };
    let named = |name: &str| SpecialName::Elsewhere(Box::new(NamedElsewhere { name: name.into(), uid }));
    spawn_named::<A, F>(plan, recipe, named)
}

/// Creates an actor of the engine that nothing but its name distinguishes.
#[cfg(feature = "remote")]
fn put_internal_below<A: Actor, F: Recipe<A>>(
    parent: AnyActorRef,
    name: Option<&str>,
    special_name: SpecialName,
    on_failure: Option<Strategy>,
    recipe: Guarded<F>,
) -> Result<Held<A::Message>, SpawnError> {
    let home = place(&parent.core().system, Some(INTERNAL))?;
    let header = Header::new(&Erased::<A, F>::VTABLE, home.home, REFS_AT_BIRTH, Kind::Local);
    let special = Special { own_home: home.own, on_failure, ..Special::of_name(Some(special_name)) };
    let mailbox = || mailbox::Mailbox::unbounded(header);
    put_below::<A, F>(parent, name, mailbox, Some(special), Private::new(None), recipe)
}

/// Makes the cell of an actor, and enters it with its parent.
#[inline]
fn put_below<A: Actor, F: Recipe<A>>(
    parent: AnyActorRef,
    name: Option<&str>,
    mailbox: impl FnOnce() -> mailbox::Mailbox<Header, Control, A::Message>,
    special: Option<Special>,
    private: Private<A::Message>,
    recipe: Guarded<F>,
) -> Result<Held<A::Message>, SpawnError> {
    let uid_elsewhere = match &special {
        // Known when this is compiled: other recipes look at no name.
        Some(special) if F::IS_STAND_IN || F::IS_DEPLOYED => match &special.name {
            Some(SpecialName::StandsFor(standing)) => standing.path.uid(),
            Some(SpecialName::Elsewhere(named)) => Some(named.uid),
            _ => None,
        },
        _ => None,
    };
    let uid = uid_elsewhere.unwrap_or_else(|| parent.core().system.next_uid());
    // SAFETY: not a counted reference, but it is not dropped, and the cell, or `refuse`, keeps the parent alive.
    let owner = ManuallyDrop::new(unsafe { AnyActorRef::from_counted(parent.0) });
    // SAFETY: the cell holds the reference to its parent as long as it exists.
    let system = unsafe { SystemLink::lent(&parent.core().system) };
    let core = ActorCore::new(system, Some(parent), uid);
    let core = match special {
        None => core,
        Some(special) => core.with(special),
    };
    let header = allocate::<A, F>(mailbox, core, private, recipe.into_inner());
    let cell = header.cast::<Cell<A, F>>();
    let enter = |start: ChildStart| {
        // SAFETY: a new cell, of which no other thread knows before it is in the list. The lock of the list, under which
        // this is called, hands these values to other threads.
        let owned = unsafe { &mut (*cell.as_ptr()).owned };
        owned.local.core.enter(start);
        // SAFETY: as above.
        owned.private.with_mut(|private| unsafe { (*private).pause.set_suspensions(start.suspended) });
        // SAFETY: one of the new cell's three references.
        unsafe { AnyActorRef::from_counted(header) }
    };
    match owner.core().children.take_in(name, enter) {
        // SAFETY: a new cell that takes these messages, and one of its references.
        Ok(()) => Ok(unsafe { Held::new(header) }),
        Err(refusal) => {
            // SAFETY: the cell was not entered anywhere, so all its references are here.
            let parent = unsafe { refuse::<A, F>(header) };
            let error = match refusal {
                Refusal::NameTaken => SpawnError::NameTaken { path: path_below(&owner, name) },
                Refusal::Closed => SpawnError::ParentStopped { path: owner.path().to_string() },
            };
            drop(parent);
            Err(error)
        }
    }
}

/// Undoes the creation of an actor that its parent has refused. Returns its reference to the parent.
///
/// # Safety
///
/// As for [`free_cell`]: the caller gives up all references to the cell.
#[cold]
unsafe fn refuse<A: Actor, F: Recipe<A>>(header: NonNull<Header>) -> Option<AnyActorRef> {
    // SAFETY: the caller's promise.
    let core = unsafe { &header.cast::<Cell<A, F>>().as_ref().owned.local.core };
    if let Some(placement) = core.own_home() {
        core.system.release_placement(placement);
    }
    core.system.actor_ended();
    // SAFETY: the caller's promise.
    unsafe { free_cell::<A, F>(header) }
}

/// The path of a child that is about to be made.
pub(crate) fn path_below(parent: &AnyActorRef, name: Option<&str>) -> String {
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
            #[cfg(feature = "remote")]
            {
                section.check_is_here(parent, || path_below(parent, name))?;
                section.check_has_no_routees(|| path_below(parent, name))?;
            }
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

/// Returns the class of a new actor, unless its type decides.
fn class_of(
    parent: &AnyActorRef,
    name: Option<&str>,
    section: Option<&MatchedDeployment>,
    choice: ClassChoice,
) -> Option<ClassId> {
    let classes = &parent.core().system.classes;
    if let Some(class) = section.and_then(|section| section.deployment.class.as_deref()) {
        return Some(classes.id_of(class));
    }
    match choice {
        ClassChoice::OfType => None,
        ClassChoice::Named(class) => Some(classes.id_of(&class)),
        ClassChoice::Of(class) => Some(class),
        ClassChoice::OfPath => Some(classes.id_of(&path_below(parent, name))),
    }
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

#[cfg(feature = "remote")]
impl MatchedDeployment {
    /// Refuses an actor here whose section names another node.
    pub(crate) fn check_is_here(
        &self,
        parent: &AnyActorRef,
        path: impl FnOnce() -> String,
    ) -> Result<(), SpawnError> {
        let Some(node) = &self.deployment.remote else { return Ok(()) };
        if parent.core().system.extensions.node_name() == Some(node) {
            return Ok(());
        }
        Err(self.not_deployable("remote", vec![node.clone()], path()))
    }

    /// Refuses an actor that is no router here and whose section names the nodes of routees. A pattern with wildcards may be
    /// meant for other paths.
    pub(crate) fn check_has_no_routees(&self, path: impl FnOnce() -> String) -> Result<(), SpawnError> {
        let Some(nodes) = &self.deployment.router.target_nodes else { return Ok(()) };
        if self.pattern.contains('*') {
            return Ok(());
        }
        Err(self.not_deployable("router.target.nodes", nodes.clone(), path()))
    }

    fn not_deployable(&self, key: &str, nodes: Vec<String>, path: String) -> SpawnError {
        let key = format!("deployment.{:?}.{key}", self.pattern);
        SpawnError::Section { path, key, fault: SectionFault::NotDeployable { nodes } }
    }
}

impl SystemCore {
    /// Returns whether the system has settings for actors by their paths.
    pub(crate) fn has_deployments(&self) -> bool {
        !self.deployments.is_empty()
    }

    /// Returns whether the system says nothing about actors that have the defaults.
    #[inline]
    fn has_no_rules(&self) -> bool {
        self.deployments.is_empty() && self.mailboxes.of_dispatchers.is_empty()
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
        // Without the guardian, but for that of actors which other nodes have made.
        let guardians = usize::from(path.elements().next() != Some(REMOTE));
        // The name of a child that is given none is not known yet.
        self.deployments.find(path.elements().skip(guardians).chain([name.unwrap_or("$")]))
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

/// Puts a cell into memory, and takes its ownership token: a message or control that arrives before the first turn
/// wakes no worker.
#[inline]
fn allocate<A: Actor, F: Recipe<A>>(
    mailbox: impl FnOnce() -> mailbox::Mailbox<Header, Control, A::Message>,
    core: ActorCore,
    private: Private<A::Message>,
    recipe: F,
) -> NonNull<Header> {
    let cell = Cell::<A, F>::allocate(mailbox, core, private, recipe);
    // SAFETY: a new cell, which no other thread knows.
    let fresh = unsafe { cell.as_ref() }.owned.local.mailbox.gate.begin();
    debug_assert!(fresh, "no other reference to the cell exists yet");
    cell.cast()
}

/// Creates the root of a tree, which has no parent and no name.
pub(crate) fn spawn_root<A: Actor, F: Recipe<A>>(
    system: &StdArc<SystemCore>,
    recipe: F,
) -> Result<ActorRef<A::Message>, SpawnError> {
    let ResolvedPlacement { home, own: own_home } = place(system, Some(INTERNAL))?;
    // One reference fewer: there is no parent to hold it.
    let header = Header::new(&Erased::<A, F>::VTABLE, home, REFS_AT_BIRTH - 1, Kind::Local);
    let core = ActorCore::new(SystemLink::counted(system.clone()), None, system.next_uid());
    let core = core.with(Special { own_home, ..Special::of_name(Some(SpecialName::Given("".into()))) });
    let header = allocate::<A, F>(|| mailbox::Mailbox::unbounded(header), core, Private::new(None), recipe);
    // SAFETY: a new cell that takes these messages, and one of its two references.
    Ok(unsafe { Held::new(header) }.start())
}
