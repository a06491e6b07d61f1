//! The cell: the whole memory of an actor. It has a shared part, a part that only the actor's turns touch, the state
//! and the recipe. The drawing is in `core/cell.rs`.

use crate::actor::actor::Actor;
use crate::actor::private::Private;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{Header, Local};
use crate::sync::cell::UnsafeCell;
use crate::thread_context::sender::{Cursors, CursorsSlot};
use crate::util::panic::drop_guarded;
use std::ptr::NonNull;

/// The part of a cell that depends on the type of the messages alone.
#[repr(C)]
pub(crate) struct Owned<M> {
    pub(crate) local: Local<M>,
    /// Touched only by the holder of the ownership token.
    pub(crate) private: UnsafeCell<Private<M>>,
    /// The actor's positions in the routers that it sends through. Touched only by the holder of the ownership token.
    pub(crate) cursors: CursorsSlot,
}

// SAFETY: `local` may be shared by itself (see `core/cell.rs`). `private` and `cursors` are touched only by the holder
// of the one ownership token, which moves between threads through the mailbox's word, and are `Send` (asserted below).
// So are the cell's actor and recipe, by their traits, and they are reached through the same token alone.
unsafe impl<M: Send> Send for Owned<M> {}
// SAFETY: as above.
unsafe impl<M: Send> Sync for Owned<M> {}

const _: () = {
    const fn may_move<T: Send>() {}
    const fn of_each_message<M: Send + 'static>() {
        may_move::<Private<M>>();
        may_move::<Cursors>();
    }
    of_each_message::<()>();
};

/// An actor of type `A` made by the recipe `F`. The cell is aligned to a cache line, for the mailbox at its start. The
/// whole cell is aligned and not [`Local`], so the state uses the rest of the last line of `Local`.
#[repr(C, align(64))]
pub(crate) struct Cell<A: Actor, F> {
    pub(crate) owned: Owned<A::Message>,
    /// Touched only by the holder of the ownership token.
    pub(crate) actor: UnsafeCell<Option<A>>,
    /// Touched only by the holder of the ownership token. `None` once the actor has ended: the values that the recipe
    /// captured are dropped with the actor, not with the last reference to it.
    pub(crate) recipe: UnsafeCell<Option<F>>,
}

/// Frees the cell of an actor: [`VTable::free`](crate::core::cell::VTable::free). Returns the parent, which the caller
/// drops.
///
/// # Safety
///
/// `header` is that of a boxed `Cell<A, F>`, and the last reference to it is gone.
pub(crate) unsafe fn free_cell<A: Actor, F>(header: NonNull<Header>) -> Option<AnyActorRef> {
    // SAFETY: the vtable that names this function is set only on boxed cells of these types, and the last reference is
    // gone, so this thread has the cell alone.
    let mut cell = unsafe { Box::from_raw(header.cast::<Cell<A, F>>().as_ptr()) };
    // No effect, except in models, which check here that no access is concurrent with the end.
    cell.owned.private.with_mut(|_| ());
    cell.owned.cursors.with_mut(|_| ());
    cell.actor.with_mut(|_| ());
    cell.recipe.with_mut(|_| ());
    let parent = cell.owned.local.core.parent.take();
    // User code may panic in a destructor. The thread that happens to drop the last reference must not unwind from it.
    drop_guarded(cell);
    parent
}
