//! The cell: the whole memory of an actor. It has a shared part, a part that only the actor's turns touch, the state
//! and the recipe. The drawing is in `core/cell.rs`.

use crate::actor::actor::Actor;
use crate::actor::private::Private;
use crate::core::any_actor_ref::AnyActorRef;
use crate::core::cell::{ActorCore, Header, Local};
use crate::core::control::Control;
use crate::mailbox::mailbox::Mailbox;
use crate::sync::cell::UnsafeCell;
use crate::thread_context::sender::{Cursors, CursorsSlot};
use crate::util::panic::{drop_guarded, quietly};
use crate::util::slabs;
use std::alloc::Layout;
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

impl<A: Actor, F> Cell<A, F> {
    /// Puts a cell into memory of its own, without a state.
    #[inline]
    pub(crate) fn allocate(
        mailbox: impl FnOnce() -> Mailbox<Header, Control, A::Message>,
        core: ActorCore,
        private: Private<A::Message>,
        recipe: F,
    ) -> NonNull<Self> {
        let cell = slabs::allocate(Layout::new::<Self>()).cast::<Self>();
        let place = cell.as_ptr();
        // Field by field, so that no field is copied twice.
        // SAFETY: the memory is ours alone and fits a cell; each field is written once.
        unsafe {
            (&raw mut (*place).owned.local.mailbox).write(mailbox());
            (&raw mut (*place).owned.local.core).write(core);
            (&raw mut (*place).owned.private).write(UnsafeCell::new(private));
            (&raw mut (*place).owned.cursors).write(UnsafeCell::new(None));
            (&raw mut (*place).actor).write(UnsafeCell::new(None));
            (&raw mut (*place).recipe).write(UnsafeCell::new(Some(recipe)));
        }
        cell
    }
}

/// Frees the cell of an actor: [`VTable::free`](crate::core::cell::VTable::free). Returns the parent, which the caller
/// drops.
///
/// # Safety
///
/// `header` is that of a `Cell<A, F>` made by [`Cell::allocate`], and the last reference to it is gone.
pub(crate) unsafe fn free_cell<A: Actor, F: 'static>(header: NonNull<Header>) -> Option<AnyActorRef> {
    let place = header.cast::<Cell<A, F>>();
    // SAFETY: the vtable that names this function is set only on cells of these types, and the last reference is gone,
    // so this thread has the cell alone.
    let cell = unsafe { &mut *place.as_ptr() };
    // No effect, except in models, which check here that no access is concurrent with the end.
    cell.owned.private.with_mut(|_| ());
    cell.owned.cursors.with_mut(|_| ());
    cell.actor.with_mut(|_| ());
    cell.recipe.with_mut(|_| ());
    let core = &mut cell.owned.local.core;
    let parent = core.parent.take();
    // SAFETY: the link of a cell without a parent is counted, and is used up to here only.
    let system = parent.is_none().then(|| unsafe { core.system.give_back() });
    // User code may panic in a destructor. The thread that happens to drop the last reference must not unwind from it.
    // SAFETY: as above; the fields are dropped once, also if one of them panics.
    quietly(|| unsafe { place.drop_in_place() });
    // SAFETY: from `slabs::allocate`, for this layout; nothing is left in it.
    unsafe { slabs::release(place.cast(), Layout::new::<Cell<A, F>>()) };
    // The system may have the last reference to values of the user, too.
    drop_guarded(system);
    parent
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use crate::prelude::*;
    use crate::time::Clock;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    /// Panics when it goes.
    struct PanicsOnDrop;

    impl Clock for PanicsOnDrop {
        fn now(&self) -> Duration {
            Duration::ZERO
        }
    }

    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("planted");
        }
    }

    struct Idler;

    impl Actor for Idler {
        type Message = ();
        fn receive(&mut self, (): (), _: &mut Context<()>) -> HandlerResult {
            Ok(())
        }
    }

    #[test]
    fn the_thread_that_drops_the_last_reference_does_not_unwind_from_values_of_the_system() {
        for is_actor_last in [true, false] {
            let system =
                System::builder("drops").clock(PanicsOnDrop).build().expect("the settings are sound");
            let actor = system.spawn(|| Idler).expect("there is room");
            let empty = system.dead_letters_ref::<()>();
            system.shutdown(Duration::from_secs(60)).expect("all ends");
            let drop_both = || if is_actor_last { drop((empty, actor)) } else { drop((actor, empty)) };
            assert!(catch_unwind(AssertUnwindSafe(drop_both)).is_ok());
        }
    }
}
