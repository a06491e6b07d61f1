//! The layout of an actor in memory, and the count of references to that memory.
//!
//! ```text
//! Cell<A, F>                       `actor/cell.rs`
//! ├── Owned<M>
//! │   ├── Local<M>                 the target of ActorRef<M>
//! │   │   ├── mailbox
//! │   │   │   ├── gate             the target of AnyActorRef; does not know M
//! │   │   │   │   └── header       task link, vtable, dispatcher, count of references
//! │   │   │   └── first slot
//! │   │   └── core                 name, parent, children, system, counts, settings of its own
//! │   ├── private                  touched only by the turn: phase, watches, timers
//! │   └── cursors                  the positions of the actor in the routers that it sends through
//! ├── actor                        the state, None before it is made and after it has ended
//! └── recipe                       makes the state, again at each restart
//! ```
//!
//! **The references to a cell.** `refs` counts the references: each `ActorRef`, each `AnyActorRef` (a parent's list of
//! children, watch lists, routee tables and timers hold those), and one for the actor's life, which the turn that ends
//! the actor gives back last. A sender holds a reference until its push has returned. So the sender may still clear the
//! idle bit of a cell whose actor has meanwhile handled the message and ended.

use crate::core::any_actor_ref::AnyActorRef;
use crate::core::children::{ChildStart, Children};
use crate::core::classes::ClassId;
use crate::core::control::Control;
use crate::core::dispatchers::OwnedPlacement;
use crate::core::elsewhere::{NamedElsewhere, Standing};
use crate::core::full_policy::FullPolicy;
use crate::core::home::Home;
use crate::core::recipient_identity::RecipientIdentity;
use crate::core::strategy::Strategy;
use crate::core::system::SystemCore;
#[cfg(feature = "testkit")]
use crate::dispatch::dispatcher::DispatcherKind;
#[cfg(feature = "testkit")]
use crate::dispatch::placement::Placement;
#[cfg(feature = "testkit")]
use crate::dispatch::stepping::Stepper;
use crate::mailbox::mailbox;
use crate::mailbox::mailbox::Gate;
use crate::mailbox::system_queue::Position;
use crate::measure::meter::{Measured, Meter};
use crate::measure::wake_stamps;
use crate::path::actor_path::{ActorPath, Name};
use crate::scheduler::task::{Ran, RunFn, Task, TaskRef, Turn};
#[cfg(feature = "testkit")]
use crate::scheduler::wake_sample::sample_outside;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use crate::sync::fence_for_tsan;
use crate::util::lent_arc::LentArc;
use crate::util::panic::drop_guarded;
use std::any::TypeId;
use std::borrow::Cow;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;

/// The kind of recipient that a reference points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// An actor's cell.
    Local,
    /// Any other recipient, through one object-safe trait.
    Foreign,
}

/// The operations that need to know the type behind a header.
pub(crate) struct VTable {
    /// Runs a turn of the actor.
    pub run: RunFn,
    /// Frees the allocation, and returns the reference to its parent.
    ///
    /// Safety: the last reference is gone.
    pub free: unsafe fn(NonNull<Header>) -> Option<AnyActorRef>,
    /// The offset of the [`ActorCore`] in the allocation; 0 for foreign ones, which have none.
    pub core_offset: usize,
    /// The type of message that is taken.
    pub message_type: fn() -> TypeId,
    /// The type of the actor's state; `None` where there is no actor.
    pub actor_type: fn() -> Option<TypeId>,
    /// Its name, for errors and dead letters.
    pub message_name: fn() -> &'static str,
    /// The name of the actor's type; that of the messages where there is no actor.
    pub actor_name: fn() -> &'static str,
    /// The number of messages that a displacing mailbox has dropped to make room.
    ///
    /// Safety: the header is that of a living cell of an actor which has this vtable.
    pub displaced: unsafe fn(NonNull<Header>) -> u64,
    /// Finds the identity of a foreign recipient; `None` for local ones.
    ///
    /// Safety: the header is that of a living allocation which has this vtable.
    pub referent: Option<FindReferent>,
}

/// Finds a [`VTable::referent`].
pub(crate) type FindReferent = unsafe fn(NonNull<Header>) -> NonNull<dyn Referent>;

/// The first bytes of each allocation that a reference points to.
#[repr(C)]
pub(crate) struct Header {
    /// First, so that a task's address is its cell's.
    task: Task,
    pub vtable: &'static VTable,
    /// The home of the actor; null for foreign ones. Alive as long as the core's system, or in the core itself.
    home: *const Home,
    refs: AtomicU32,
    pub kind: Kind,
}

/// More references than this are a leak that would wrap the count.
const REFS_MAX: u32 = i32::MAX as u32;

impl Header {
    pub(crate) fn new(vtable: &'static VTable, home: *const Home, refs: u32, kind: Kind) -> Self {
        Self { task: Task::new(vtable.run), vtable, home, refs: AtomicU32::new(refs), kind }
    }

    /// Returns whether the actor runs on the calling thread and on no other, or in this very turn: then the actor
    /// cannot do the work that this thread waits for.
    pub(crate) fn runs_only_here(&self) -> bool {
        // SAFETY: null, or as the field says; and the reference behind a header keeps its core alive.
        unsafe { self.home.as_ref() }.is_some_and(|home| home.placement.needs_this_thread(&self.task))
    }

    /// Returns the meter of the actor's system; `None` where there is no actor.
    pub(crate) fn meter_of_home(&self) -> Option<&Meter> {
        // SAFETY: as in `runs_only_here`.
        unsafe { self.home.as_ref() }.map(|home| &*home.meter)
    }

    /// Counts one more reference.
    #[inline]
    pub(crate) fn retain(&self) {
        // Ordering: Relaxed; a thread that makes a reference has one already, so nothing is published by it.
        if self.refs.fetch_add(1, Ordering::Relaxed) > REFS_MAX {
            too_many_references();
        }
    }

    /// Returns whether there is one reference alone. A caller that has this one, and makes no further one meanwhile, then has the
    /// allocation for itself.
    #[cfg(any(feature = "remote", pointsman_loom))]
    pub(crate) fn has_one_reference(&self) -> bool {
        self.references() == 1
    }

    /// The number of references.
    #[cfg(any(feature = "remote", pointsman_loom))]
    pub(crate) fn references(&self) -> u32 {
        // Ordering: Acquire; pairs with the Release decrement in `release_one`. The caller sees what was done by references that are
        // not counted any more.
        self.refs.load(Ordering::Acquire)
    }

    /// Gives one reference back. The last reference frees the allocation, and the parents to which it held the last
    /// reference.
    ///
    /// # Safety
    ///
    /// The caller owns one reference and uses `header` no more.
    #[inline]
    pub(crate) unsafe fn release(header: NonNull<Header>) {
        // SAFETY: the caller's contract; `release_one` reports that the last reference was given back.
        unsafe {
            if Self::release_one(header) {
                Self::free(header);
            }
        }
    }

    /// Gives one reference back; returns whether it was the last.
    ///
    /// # Safety
    ///
    /// As [`release`](Self::release), but for the last one.
    #[inline]
    unsafe fn release_one(header: NonNull<Header>) -> bool {
        // SAFETY: the caller's reference keeps the allocation alive up to this instruction.
        let left = unsafe { &header.as_ref().refs }
            // Ordering: Release; pairs with the Acquire fence in `free`. The thread that frees sees all uses.
            .fetch_sub(1, Ordering::Release);
        left == 1
    }

    /// Frees the allocation. If the allocation had the last reference to the parent, frees the parent too, and so on.
    /// This is a loop, since a tree may be deeper than a thread's stack.
    ///
    /// # Safety
    ///
    /// The last reference is gone.
    #[cold]
    unsafe fn free(header: NonNull<Header>) {
        let mut header = header;
        loop {
            // Ordering: Acquire; pairs with the Release decrement in `release_one`, of all other references.
            fence(Ordering::Acquire);
            // SAFETY: the last reference is gone, so this thread alone has the allocation.
            let parent = unsafe {
                fence_for_tsan!(header.as_ref().refs);
                let free = header.as_ref().vtable.free;
                free(header)
            };
            let Some(parent) = parent else { return };
            header = parent.into_counted();
            // SAFETY: the freed cell had this reference, and hands it on.
            if !unsafe { Self::release_one(header) } {
                return;
            }
        }
    }
}

#[cold]
fn too_many_references() -> ! {
    // An unwinding caller could drop and clone on; only ending the process keeps the count true.
    eprintln!("pointsman: more than {REFS_MAX} references to one actor: references are being leaked");
    std::process::abort()
}

/// The untyped part of an actor's mailbox.
pub(crate) type ActorGate = Gate<Header, Control>;

/// Returns the gate behind a header.
///
/// # Safety
///
/// `header` is that of a local actor's cell, and the caller keeps a reference to it for as long as it uses
/// the gate.
#[inline]
pub(crate) unsafe fn gate<'a>(header: NonNull<Header>) -> &'a ActorGate {
    // SAFETY: the header is the gate's first field and the gate the cell's (`repr(C)`), and the pointer was
    // made from the whole cell's memory.
    unsafe { header.cast::<ActorGate>().as_ref() }
}

/// Sends a control message, and schedules the actor if that woke it. Hands the message back when the actor has ended.
///
/// # Safety
///
/// As for [`gate`].
pub(crate) unsafe fn send_system(
    header: NonNull<Header>,
    message: Control,
    position: Position,
) -> Result<(), Control> {
    // SAFETY: passed on to the caller.
    match unsafe { gate(header) }.send_system(message, position) {
        Ok(mailbox::SystemPushed::Queued) => Ok(()),
        Ok(mailbox::SystemPushed::Wake) => {
            // SAFETY: the cell is alive through the caller's reference, and the push gave us the token.
            unsafe { schedule(header) };
            Ok(())
        }
        Err(message) => Err(message),
    }
}

/// Gives the actor a turn, or a further look if it has a turn: see [`Gate::request_look`].
///
/// # Safety
///
/// As for [`gate`].
pub(crate) unsafe fn request_look(header: NonNull<Header>) {
    // SAFETY: passed on to the caller.
    if unsafe { gate(header) }.request_look() {
        // SAFETY: as above, and the wakeup gave us the token.
        unsafe { schedule(header) };
    }
}

/// Hands a woken actor to its dispatcher.
///
/// # Safety
///
/// As for [`gate`]; and the caller holds the actor's ownership token, which passes to the dispatcher.
#[inline]
pub(crate) unsafe fn schedule(header: NonNull<Header>) {
    // SAFETY: the cell is alive, and its placement lives as long as the system, which the cell's core keeps alive, or
    // is the core's own.
    let placement = unsafe { &(*header.as_ref().home).placement };
    #[cfg(feature = "testkit")]
    if let Placement::Stepping(stepper, kind) = placement {
        // SAFETY: passed on to the caller.
        return unsafe { schedule_stepping(header, &**stepper, *kind) };
    }
    // SAFETY: the task is the header's first field, and the pointer is valid for the whole cell.
    let task = unsafe { TaskRef::new(header.cast::<Task>()) };
    // SAFETY: the task is that of a living actor.
    placement.schedule(task, |task, number| unsafe { note_wake(task, number) });
}

/// The system of a cell. Only a cell without a parent has a counted link: any other cell holds a reference to its
/// parent's cell, that cell to its own parent's, and so on up to a counted link.
pub(crate) type SystemLink = LentArc<SystemCore>;

/// The part of an actor that is known without its types.
pub(crate) struct ActorCore {
    pub system: SystemLink,
    pub parent: Option<AnyActorRef>,
    /// Absent for an ordinary actor with a generated name.
    special: Option<Box<Special>>,
    pub children: Children<AnyActorRef>,
    /// The number of the generated name; 0 for other actors.
    number: u64,
    /// The actor's slot among the parent's anonymous children.
    pub slot: u32,
    pub uid: u32,
    /// Messages that the actor holds outside its mailbox; written by its owner only.
    pub held: AtomicU32,
    /// The number of restarts; written by the actor's owner only.
    pub restarts: AtomicU32,
    /// Ticks and termination notices that were sent to the actor and not acted upon.
    pub notices: AtomicU32,
    /// Whether the actor has been sent one of several copies of a message; see `core/copies.rs`.
    pub takes_copies: AtomicBool,
    /// Whether the actor's mailbox was closed when it was empty; see `actor/passivate.rs`.
    pub retired: AtomicBool,
    /// Whether the messages that the actor has handled are counted in its class: it handles no more.
    pub settled: AtomicBool,
    /// Whether the actor has been told to stop, or has begun to. A restart of its parent then waits for it.
    pub told_to_stop: AtomicBool,
}

/// The settings that an ordinary actor with a generated name lacks. They are known at its creation.
pub(crate) struct Special {
    /// `None`: the name is generated.
    pub name: Option<SpecialName>,
    /// The actor's number in the pool that made it, 0 elsewhere.
    pub routee_index: u32,
    pub full: FullPolicy,
    /// Takes precedence over the parent's own strategy.
    pub on_failure: Option<Strategy>,
    /// A placement of the actor's own, when it is pinned to a thread or its dispatcher's threads run on demand.
    pub own_home: Option<StdArc<OwnedPlacement>>,
    /// The class of the actor; `None`: that of its type.
    pub class: Option<ClassId>,
}

/// The parent elsewhere in whose place a cell is the parent of actors here.
pub(crate) struct InPlaceOf {
    /// The name of the cell among its siblings.
    pub(crate) name: Box<str>,
    /// The parent elsewhere.
    pub(crate) parent: AnyActorRef,
}

/// A name that is not generated.
pub(crate) enum SpecialName {
    Given(Box<str>),
    EmptyRef(ActorPath),
    /// The actor stands for one elsewhere.
    #[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nodes alone make stand-ins"))]
    StandsFor(Box<Standing>),
    /// Another system has deployed the actor here.
    #[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nodes alone deploy"))]
    Elsewhere(Box<NamedElsewhere>),
    /// The actor is the parent of actors here in place of a parent elsewhere.
    #[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nodes alone deploy"))]
    InPlaceOf(Box<InPlaceOf>),
}

#[cfg(not(any(pointsman_loom, pointsman_shuttle)))]
const _: () = assert!(size_of::<ActorCore>() == 64 || size_of::<usize>() != 8);

impl Special {
    /// The settings of an ordinary actor of this name.
    pub(crate) fn of_name(name: Option<SpecialName>) -> Self {
        Self {
            name,
            routee_index: 0,
            full: FullPolicy::Refuse,
            on_failure: None,
            own_home: None,
            class: None,
        }
    }

    /// Returns whether an ordinary actor has the same settings, and needs none of these.
    fn is_ordinary(&self) -> bool {
        let Self { name, routee_index, full, on_failure, own_home, class } = self;
        name.is_none()
            && *routee_index == 0
            && *full == FullPolicy::Refuse
            && on_failure.is_none()
            && own_home.is_none()
            && class.is_none()
    }
}

impl ActorCore {
    /// The core of an actor that its parent does not know yet.
    pub(crate) fn new(system: SystemLink, parent: Option<AnyActorRef>, uid: u32) -> Self {
        Self {
            system,
            parent,
            special: None,
            children: Children::default(),
            number: 0,
            slot: 0,
            uid,
            held: AtomicU32::new(0),
            restarts: AtomicU32::new(0),
            notices: AtomicU32::new(0),
            takes_copies: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            told_to_stop: AtomicBool::new(false),
        }
    }

    /// Gives the actor settings of its own.
    pub(crate) fn with(self, special: Special) -> Self {
        Self { special: (!special.is_ordinary()).then(|| Box::new(special)), ..self }
    }

    /// Enters the place that the parent has given to the actor.
    pub(crate) fn enter(&mut self, start: ChildStart) {
        (self.number, self.slot) = (start.number, start.slot);
        if start.suspended > 0 {
            // Its own children start as suspended as it is, or it would resume what was never suspended.
            self.children.set_suspended(start.suspended);
        }
    }

    /// The name of the actor among its siblings.
    pub(crate) fn name(&self) -> Name<'_> {
        match self.special.as_ref().and_then(|special| special.name.as_ref()) {
            None => Name::Generated(self.number),
            Some(SpecialName::Given(name)) => Name::Given(name),
            Some(SpecialName::StandsFor(standing)) => match &standing.name {
                Some(name) => Name::Given(name),
                None => Name::Generated(self.number),
            },
            Some(SpecialName::Elsewhere(named)) => Name::Given(&named.name),
            Some(SpecialName::InPlaceOf(place)) => Name::Given(&place.name),
            Some(SpecialName::EmptyRef(path)) => Name::EmptyRef(path),
        }
    }

    /// The actor's number in the pool that made it, 0 elsewhere.
    pub(crate) fn routee_index(&self) -> u32 {
        self.special.as_ref().map_or(0, |special| special.routee_index)
    }

    /// The effect of the actor's mailbox on a message when the mailbox is full.
    pub(crate) fn full(&self) -> FullPolicy {
        self.special.as_ref().map_or(FullPolicy::Refuse, |special| special.full)
    }

    /// The strategy for failures of this actor that takes precedence over its parent's own.
    pub(crate) fn on_failure(&self) -> Option<&Strategy> {
        self.special.as_ref()?.on_failure.as_ref()
    }

    /// The actor's own placement.
    pub(crate) fn own_home(&self) -> Option<&StdArc<OwnedPlacement>> {
        self.special.as_ref()?.own_home.as_ref()
    }

    /// Whether the actor is an ordinary one with a generated name.
    #[inline]
    pub(crate) fn is_ordinary(&self) -> bool {
        self.special.is_none()
    }

    /// The class that the actor does not have by its type.
    #[inline]
    pub(crate) fn own_class(&self) -> Option<ClassId> {
        self.special.as_ref()?.class
    }

    /// Notes that the actor will end without a further message.
    pub(crate) fn note_stop(&self) {
        // Ordering: Relaxed; the parent that must see the mark learns by other means that the actor was told.
        self.told_to_stop.store(true, Ordering::Relaxed);
    }

    /// Notes that the actor handles no more messages, and that those handled are about to be counted in its class.
    #[inline]
    pub(crate) fn note_settled(&self) {
        // Ordering: Relaxed; the Release of the counts that follow makes it visible with them.
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Returns whether the handled messages are counted in the class, or are about to be.
    pub(crate) fn is_settled(&self) -> bool {
        // Ordering: Relaxed; see `note_settled`. The caller has acquired the counts.
        self.settled.load(Ordering::Relaxed)
    }

    /// Returns whether the actor will end without a further message.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        // Ordering: Relaxed; see `note_stop`.
        self.told_to_stop.load(Ordering::Relaxed)
    }

    /// Counts one more notice on its way to the actor.
    pub(crate) fn count_notice(&self) {
        // Ordering: Relaxed; a statistic, and nothing is read through it.
        self.notices.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one notice fewer: it has been acted upon, or dropped.
    pub(crate) fn uncount_notice(&self) {
        // Ordering: Relaxed; as above.
        self.notices.fetch_sub(1, Ordering::Relaxed);
    }

    /// Drops control that does not act any more.
    pub(crate) fn drop_control(&self, control: Control) {
        if control.is_notice() {
            self.uncount_notice();
        }
        drop_guarded(control);
    }

    /// The number of notices that wait.
    pub(crate) fn notices(&self) -> usize {
        // Ordering: Relaxed; as above.
        self.notices.load(Ordering::Relaxed) as usize
    }

    /// The actor elsewhere that this one stands for.
    pub(crate) fn standing(&self) -> Option<&Standing> {
        match self.special.as_ref()?.name.as_ref()? {
            SpecialName::StandsFor(standing) => Some(standing),
            _ => None,
        }
    }

    /// The parent elsewhere in whose place this actor is the parent of its children.
    pub(crate) fn parent_elsewhere(&self) -> Option<&AnyActorRef> {
        match self.special.as_ref()?.name.as_ref()? {
            SpecialName::InPlaceOf(place) => Some(&place.parent),
            _ => None,
        }
    }

    pub(crate) fn path(&self) -> ActorPath {
        if let Some(standing) = self.standing() {
            return standing.path.clone();
        }
        self.tree_path()
    }

    /// The path by the names of the actor and its parents: that of a stand-in is its place here.
    pub(crate) fn tree_path(&self) -> ActorPath {
        if let Name::EmptyRef(path) = self.name() {
            return path.clone();
        }
        let mut names: Vec<Cow<'_, str>> = Vec::new();
        let mut at = self;
        // The root has no parent and no name.
        while let Some(parent) = &at.parent {
            names.push(at.name().text());
            at = parent.core();
        }
        ActorPath::from_names(names.into_iter().rev()).with_uid(self.uid)
    }
}

/// Hands a woken actor to the stepper of its system, with the actor's identity.
///
/// # Safety
///
/// As for [`schedule`].
#[cfg(feature = "testkit")]
#[cold]
unsafe fn schedule_stepping(header: NonNull<Header>, stepper: &dyn Stepper, kind: DispatcherKind) {
    // SAFETY: passed on to the caller.
    let actor = unsafe { AnyActorRef::retain(header) };
    // SAFETY: passed on to the caller.
    let task = unsafe { TaskRef::new(header.cast::<Task>()) };
    // SAFETY: the task is that of a living actor.
    sample_outside(task.pointer(), |task, number| unsafe { note_wake(task, number) });
    stepper.schedule(task, kind, Some((actor.uid(), &|| actor.path().to_string())));
}

/// Keeps the time of a wake for the actor's next turn, if the wake is one of those that are measured. The wait of the
/// message that has woken the actor ends when that turn begins. The turn is run by a function of its own, so a turn of an
/// actor whose wake is not measured has nothing to look at.
///
/// # Safety
///
/// The task is that of a living actor, and the caller holds its token.
#[cold]
#[inline(never)]
unsafe fn note_wake(task: NonNull<Task>, number: u64) {
    let header = task.cast::<Header>();
    // SAFETY: the header begins with the task, and the caller promises that the actor is alive.
    let measures = unsafe { header.as_ref() }.meter().filter(|meter| meter.measures_wake(number));
    let Some(meter) = measures else { return };
    // Control wakes an actor without a message.
    // SAFETY: as above.
    if unsafe { gate(header) }.len() > 0 {
        wake_stamps::keep(header.addr().get(), meter.now());
        // SAFETY: the caller's promise.
        unsafe { Task::run_by(task, run_sampled) };
    }
}

/// Records the wait of the message that has woken the actor, and runs the turn.
///
/// # Safety
///
/// As for [`RunFn`]; the task is that of an actor.
unsafe fn run_sampled(task: NonNull<Task>, turn: &Turn) -> Ran {
    let header = task.cast::<Header>();
    // SAFETY: the caller hands us the token, so the actor is alive.
    let (run, waited) = unsafe {
        let header = header.as_ref();
        let take = |meter: &Meter| wake_stamps::take(task.addr().get(), meter.now());
        (header.vtable.run, header.meter().and_then(take))
    };
    if let Some(waited) = waited {
        // SAFETY: as above; we have the token.
        unsafe { <Header as Measured>::record_wait(header, waited) };
    }
    // SAFETY: passed on to the caller: this is the function that the task was made with.
    unsafe {
        Task::run_by(task, run);
        run(task, turn)
    }
}

/// The target of an `ActorRef<M>` to a local actor. It begins the actor's cell, and so a cache line, which the mailbox
/// requires.
#[repr(C)]
pub(crate) struct Local<M> {
    pub mailbox: mailbox::Mailbox<Header, Control, M>,
    pub core: ActorCore,
}

// SAFETY: the mailbox synchronises senders and owner by itself, the placement that its header points to is shared and
// outlives the cell (see `schedule`), and the core is `Send` and `Sync` (asserted below).
unsafe impl<M: Send> Send for Local<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Local<M> {}

// The types that the promises above rely on without a check by the compiler.
const _: () = {
    const fn may_be_shared<T: Send + Sync>() {}
    may_be_shared::<ActorCore>();
};

/// A recipient behind a reference that is no actor's, without its type of message.
pub(crate) trait Referent {
    /// The identity of the recipient; `None` for a recipient that only clones of its reference mean.
    fn meaning(&self) -> Option<&dyn RecipientIdentity>;

    /// The actor behind the recipient, if that is the same for as long as the recipient exists.
    fn place(&self) -> Option<AnyActorRef>;
}
