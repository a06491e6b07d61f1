//! How an actor is described and created.

use crate::actor::cell::{Cell, Core, FullPolicy, Header, Kind, Local, VTable, free_cell, schedule};
use crate::actor::children::{Children, Refusal};
use crate::actor::system::Place;
use crate::actor::turn::{ByContext, Private, Recipe, run};
use crate::actor::{Actor, Context, SystemCore, check_name};
use crate::actor_ref::{ActorRef, AnyRef};
use crate::dispatch::Home;
use crate::error::SpawnError;
use crate::mailbox;
use crate::supervision::{Failure, Strategy};
use crate::sync::cell::UnsafeCell;
use std::any::TypeId;
use std::fmt;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// What a recipe may return: an actor, or a failure to make one.
///
/// Implemented for every [`Actor`] and for `Result<impl Actor, Failure>`.
pub trait IntoActor {
    /// The actor that comes out.
    type Actor: Actor;

    /// The actor, or why there is none.
    ///
    /// # Errors
    ///
    /// A failure of initialization.
    fn into_actor(self) -> Result<Self::Actor, Failure>;
}

impl<A: Actor> IntoActor for A {
    type Actor = A;
    fn into_actor(self) -> Result<A, Failure> {
        Ok(self)
    }
}

impl<A: Actor> IntoActor for Result<A, Failure> {
    type Actor = A;
    fn into_actor(self) -> Result<A, Failure> {
        self
    }
}

/// Which mailbox an actor has. The default is [unbounded](Self::unbounded).
///
/// ```
/// use pointsman::prelude::*;
///
/// let small = Mailbox::bounded(4096).on_full(Full::Reject);
/// ```
#[derive(Debug, Clone)]
pub struct Mailbox {
    pub(crate) kind: MailboxKind,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum MailboxKind {
    Unbounded,
    Bounded { capacity: usize, on_full: Full },
}

/// What happens to a message that finds its bounded mailbox full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Full {
    /// It is refused: `try_tell` hands it back, `tell` makes it a dead letter.
    Reject,
    /// It takes the place of the oldest message, which is dropped and counted.
    DropOldest,
    /// It is dropped and counted.
    DropNewest,
    /// The sender waits for room, for this long at most, and is then refused. On a work-stealing worker,
    /// which must not wait, it is refused at once. The owner pays a fence for each message.
    ///
    /// Sent through a router, the wait happens while the sender reads the router's table: until it ends, no
    /// replaced table of any router in the process is freed, and at 1,024 of them changes are refused
    /// ([`ManageError::OldTables`](crate::routing::ManageError)). Give routees a short limit.
    Wait(Duration),
}

impl Mailbox {
    /// Takes any number of messages.
    pub fn unbounded() -> Self {
        Self { kind: MailboxKind::Unbounded }
    }

    /// Holds at most `capacity` messages, the one being handled not counted; refuses more unless told
    /// otherwise. A capacity of 0 is an error when the actor is created.
    pub fn bounded(capacity: usize) -> Self {
        Self { kind: MailboxKind::Bounded { capacity, on_full: Full::Reject } }
    }

    /// Says what happens when a bounded mailbox is full; an unbounded one never is.
    pub fn on_full(mut self, policy: Full) -> Self {
        if let MailboxKind::Bounded { on_full, .. } = &mut self.kind {
            *on_full = policy;
        }
        self
    }
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::unbounded()
    }
}

/// Everything about a new actor but its type.
pub(crate) struct Plan {
    /// `Err` holds the name of a system that has shut down.
    pub parent: Result<AnyRef, String>,
    pub name: Option<String>,
    pub dispatcher: Option<String>,
    pub mailbox: MailboxKind,
    pub on_failure: Option<Strategy>,
    pub routee_index: u32,
}

/// Describes an actor that is about to be created, by [`SystemRef::actor`](crate::SystemRef::actor) or
/// [`Context::actor`].
///
/// ```
/// use pointsman::prelude::*;
/// # struct Cache;
/// # impl Actor for Cache {
/// #     type Message = u32;
/// #     fn receive(&mut self, _: u32, _: &mut Context<u32>) -> Done { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let cache = system
///     .actor("cache")
///     .mailbox(Mailbox::bounded(4096).on_full(Full::Reject))
///     .on_failure(Restart::up_to(3).within(std::time::Duration::from_secs(60)))
///     .spawn(|| Cache)?;
/// assert_eq!(cache.path().to_string(), "/user/cache");
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is created before `spawn`"]
pub struct ActorBuilder {
    plan: Plan,
}

impl ActorBuilder {
    pub(crate) fn new(parent: Result<AnyRef, String>, name: Option<&str>) -> Self {
        Self {
            plan: Plan {
                parent,
                name: name.map(str::to_owned),
                dispatcher: None,
                mailbox: MailboxKind::Unbounded,
                on_failure: None,
                routee_index: 0,
            },
        }
    }

    /// Runs the actor on the dispatcher of this name instead of `"default"`.
    pub fn dispatcher(mut self, name: &str) -> Self {
        self.plan.dispatcher = Some(name.to_owned());
        self
    }

    /// Gives the actor this mailbox instead of an unbounded one.
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.plan.mailbox = mailbox.kind;
        self
    }

    /// Says what its parent does when this actor fails, instead of the parent's own
    /// [`supervision`](Actor::supervision).
    pub fn on_failure(mut self, strategy: impl Into<Strategy>) -> Self {
        self.plan.on_failure = Some(strategy.into());
        self
    }

    /// Creates the actor. `recipe` makes its state, in the actor's first turn and again at each restart; so it
    /// clones what it captured: `.spawn(move || Audit::new(log.clone()))`.
    ///
    /// # Errors
    ///
    /// [`SpawnError`]: a bad or taken name, an unknown dispatcher, a capacity of 0, a stopping parent, a
    /// system that is shut down. Nothing is left behind, and the name is free.
    pub fn spawn<A, I>(
        self,
        mut recipe: impl FnMut() -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        self.spawn_with(move |_: &mut Context<A::Message>| recipe())
    }

    /// As [`spawn`](Self::spawn) with a recipe that is given the new actor's context: its path and parent,
    /// and in a pool its number, are known before its state is.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with<A, I>(
        self,
        recipe: impl FnMut(&mut Context<A::Message>) -> I + Send + 'static,
    ) -> Result<ActorRef<A::Message>, SpawnError>
    where
        A: Actor,
        I: IntoActor<Actor = A>,
    {
        spawn_cell::<A, _>(self.plan, ByContext(recipe))
    }
}

impl fmt::Debug for ActorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorBuilder")
            .field("parent", &self.plan.parent)
            .field("name", &self.plan.name)
            .field("mailbox", &self.plan.mailbox)
            .finish_non_exhaustive()
    }
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
    };
}

/// Creates an actor by its plan.
pub(crate) fn spawn_cell<A: Actor, F: Recipe<A>>(
    plan: Plan,
    recipe: F,
) -> Result<ActorRef<A::Message>, SpawnError> {
    spawn_held::<A, F>(plan, recipe).map(Held::start)
}

/// A new actor that takes messages and control, and has its first turn when this is dropped.
///
/// For what the recipe needs and what cannot be made without the reference.
pub(crate) struct Held<M: Send + 'static> {
    actor: ActorRef<M>,
    header: NonNull<Header>,
}

impl<M: Send + 'static> Held<M> {
    /// # Safety
    ///
    /// `header` comes from `allocate` for an actor that takes `M`; the caller gives up one reference, and
    /// makes this once only.
    unsafe fn new(header: NonNull<Header>) -> Self {
        // SAFETY: the caller gives up one reference, and the type of message is right.
        let actor = unsafe { ActorRef::from_header(header) };
        Self { actor, header }
    }

    /// The actor.
    pub fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Gives the actor its first turn.
    pub fn start(self) -> ActorRef<M> {
        self.actor.clone()
    }
}

impl<M: Send + 'static> Drop for Held<M> {
    fn drop(&mut self) {
        // SAFETY: our reference keeps the cell alive; `allocate` has taken the token for us, and it goes on
        // only here, once.
        unsafe { schedule(self.header) };
    }
}

/// Creates an actor by its plan, and keeps its first turn back.
pub(crate) fn spawn_held<A: Actor, F: Recipe<A>>(
    plan: Plan,
    recipe: F,
) -> Result<Held<A::Message>, SpawnError> {
    let Plan { parent, name, dispatcher, mailbox, on_failure, routee_index } = plan;
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
    let capacity = match mailbox {
        MailboxKind::Unbounded => None,
        MailboxKind::Bounded { capacity, on_full } => match NonZeroUsize::new(capacity) {
            Some(capacity) => Some((capacity, on_full)),
            None => return Err(SpawnError::ZeroCapacity { path: path(&name) }),
        },
    };
    system.actor_begins()?;
    let (home, mut own_home) = match find_home(&system, dispatcher.as_deref()) {
        Ok(found) => found,
        Err(error) => {
            system.actor_ended();
            return Err(error);
        }
    };
    let mut born: Option<NonNull<Header>> = None;
    // Where a refusal leaves it: dropped last, since that is user code and may panic.
    let mut recipe = Some(recipe);
    let adopted = parent.core().children.adopt(name.as_deref(), |birth| {
        let header = Header::new(run::<A, F>, &Erased::<A, F>::VTABLE, home, REFS_AT_BIRTH, Kind::Local);
        let (mailbox, full) = match capacity {
            None => (mailbox::Mailbox::unbounded(header), FullPolicy::Refuse),
            Some((capacity, Full::Reject)) => {
                (mailbox::Mailbox::bounded(header, capacity, false), FullPolicy::Refuse)
            }
            Some((capacity, Full::DropNewest)) => {
                (mailbox::Mailbox::bounded(header, capacity, false), FullPolicy::DropNewest)
            }
            Some((capacity, Full::Wait(limit))) => {
                (mailbox::Mailbox::bounded(header, capacity, true), FullPolicy::Wait(limit))
            }
            Some((capacity, Full::DropOldest)) => {
                (mailbox::Mailbox::ring(header, capacity), FullPolicy::Refuse)
            }
        };
        let core = Core {
            uid: system.next_uid(),
            system: system.clone(),
            parent: Some(parent.clone()),
            name: birth.name,
            slot: birth.slot,
            routee_index,
            full,
            on_failure: on_failure.map(Box::new),
            // Its own children start as suspended as it is, or it would resume what was never suspended.
            children: Children::of_suspended(birth.suspended),
            own_home: own_home.take(),
        };
        let recipe = recipe.take().expect("a child is made once");
        let header = allocate::<A, F>(mailbox, core, birth.suspended, recipe);
        born = Some(header);
        // SAFETY: a new cell, and one of its three references.
        Ok::<AnyRef, std::convert::Infallible>(unsafe { AnyRef::from_counted(header) })
    });
    let refusal = match (adopted, born) {
        (Ok(Ok(())), Some(header)) => {
            // SAFETY: a new cell that takes these messages, and one of its references.
            return Ok(unsafe { Held::new(header) });
        }
        (Err(Refusal::NameTaken), _) => SpawnError::NameTaken { path: path(&name) },
        _ => SpawnError::ParentStopped { path: parent.path().to_string() },
    };
    if let Some(home) = own_home {
        home.release();
    }
    system.actor_ended();
    Err(refusal)
}

/// Where a new actor runs: a place that it shares with others and that its system keeps, or one of its own.
fn find_home(
    system: &SystemCore,
    dispatcher: Option<&str>,
) -> Result<(*const Home, Option<Box<Home>>), SpawnError> {
    match system.dispatcher(dispatcher)? {
        Place::Shared(home) => Ok((home, None)),
        Place::OwnThread(threads) => {
            let own = Box::new(threads.new_task_home().map_err(SpawnError::Thread)?);
            Ok((&raw const *own, Some(own)))
        }
    }
}

/// Puts a cell on the heap, and takes its ownership token: whatever is sent to it before its first turn wakes
/// nobody.
fn allocate<A: Actor, F: Recipe<A>>(
    mailbox: mailbox::Mailbox<Header, crate::actor::Control, A::Message>,
    core: Core,
    suspended: u32,
    recipe: F,
) -> NonNull<Header> {
    let cell = Box::new(Cell::<A, F> {
        local: Local { mailbox, core, private: UnsafeCell::new(Private::new(suspended)) },
        actor: UnsafeCell::new(None),
        recipe: UnsafeCell::new(Some(recipe)),
    });
    let fresh = cell.local.mailbox.gate.begin();
    debug_assert!(fresh, "nobody else knows the cell yet");
    NonNull::from(Box::leak(cell)).cast()
}

/// Creates the root of a tree, which has no parent and no name.
pub(crate) fn spawn_root<A: Actor, F: Recipe<A>>(
    system: &StdArc<crate::actor::SystemCore>,
    recipe: F,
) -> Result<ActorRef<A::Message>, SpawnError> {
    system.actor_begins()?;
    let (home, own_home) = find_home(system, None)?;
    // One reference fewer: there is no parent to hold it.
    let header = Header::new(run::<A, F>, &Erased::<A, F>::VTABLE, home, REFS_AT_BIRTH - 1, Kind::Local);
    let core = Core {
        uid: system.next_uid(),
        system: system.clone(),
        parent: None,
        name: crate::actor::path::Name::Given("".into()),
        slot: 0,
        routee_index: 0,
        full: FullPolicy::Refuse,
        on_failure: None,
        children: Children::default(),
        own_home,
    };
    let header = allocate::<A, F>(mailbox::Mailbox::unbounded(header), core, 0, recipe);
    // SAFETY: a new cell that takes these messages, and one of its two references.
    Ok(unsafe { Held::new(header) }.start())
}
