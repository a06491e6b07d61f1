//! The children of a parent: their references and names, and whether the parent accepts more.
//!
//! A lock guards the list, since any thread may create an actor. It is taken at creation, termination and look-up only,
//! never for a message. The list is made when it is first needed: most actors have no child, and end without a list.
//!
//! A child that ends leaves the list itself, unless its parent [wants to be told](Children::want_notices) first: a
//! parent that is ending, restarts, watches or judges counts on the notice. Both are decided under the lock, so a parent
//! that has said so gets the notice of each child that it finds in the list.

use crate::path::actor_path::{Name, generated_number};
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc as StdArc;

/// A child, as its parent's list stores it.
pub(crate) trait Child: Clone + PartialEq {
    /// The child's name.
    fn name(&self) -> Name<'_>;

    /// The child's slot among the children with generated names.
    fn slot(&self) -> u32;
}

/// The children of a single actor. The pointer is null until the list is needed, or [`closed`].
pub(crate) struct Children<C>(AtomicPtr<Mutex<ChildTable<C>>>, PhantomData<Box<Mutex<ChildTable<C>>>>);

struct ChildTable<C> {
    /// The parent is ending: no more children.
    closed: bool,
    /// The number of suspensions of the parent; a new child starts with as many.
    suspended: u32,
    /// The parent wants to be told when a child ends, and removes it then.
    wants_notices: bool,
    /// In order: a parent acts on its children in the same order in each run.
    named: BTreeMap<Box<str>, C>,
    anonymous: Seats<C>,
    /// The children whose names have passed on to their successors; they are ending.
    nameless: Vec<C>,
    /// The number of names generated so far.
    generated: u64,
    /// The reference that stands for the parent, where it is not the parent's own: a router's, for its head.
    front: Option<Box<dyn Any + Send>>,
    /// The data that children find at their parent, of any type.
    parent_data: Option<Box<dyn Any + Send>>,
    /// Counts the messages that wait for any of the children.
    queued: Option<Box<dyn Fn() -> usize + Send>>,
    /// How the parent shows itself, of any type.
    view: Option<Box<dyn Any + Send>>,
    /// See [`Children::handled_beside`].
    handled_beside: Option<StdArc<AtomicU64>>,
}

/// The children with generated names, by slot: a word for each.
struct Seats<C> {
    all: Vec<Option<C>>,
    free: Vec<u32>,
    /// When so few children are left, the seats behind the last one go back.
    trim_at: usize,
}

/// So many seats never go back.
const SEATS_KEPT: usize = if cfg!(test) { 64 } else { 1024 };

/// The reason why a child was refused.
pub(crate) enum Refusal {
    Closed,
    NameTaken,
}

/// The start data that a parent gives to a child.
#[derive(Clone, Copy)]
pub(crate) struct ChildStart {
    /// The number of the generated name, if the child has one.
    pub number: u64,
    pub slot: u32,
    pub suspended: u32,
}

/// The pointer of a parent that has ended without a list.
fn closed<C>() -> *mut Mutex<ChildTable<C>> {
    ptr::without_provenance_mut(1)
}

impl<C> Default for Children<C> {
    fn default() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }
}

impl<C> Drop for Children<C> {
    fn drop(&mut self) {
        // Ordering: Relaxed; all other uses of the list have come to their end before.
        let pointer = self.0.load(Ordering::Relaxed);
        if !pointer.is_null() && pointer != closed() {
            // SAFETY: `new_table` made it of a box, and this is the only reference to it.
            drop_table(unsafe { Box::from_raw(pointer) });
        }
    }
}

/// Out of line: most actors have no list.
#[inline(never)]
fn drop_table<C>(table: Box<Mutex<ChildTable<C>>>) {
    drop(table);
}

impl<C> Default for ChildTable<C> {
    fn default() -> Self {
        Self {
            closed: false,
            suspended: 0,
            wants_notices: false,
            named: BTreeMap::new(),
            anonymous: Seats { all: Vec::new(), free: Vec::new(), trim_at: 0 },
            nameless: Vec::new(),
            generated: 0,
            front: None,
            parent_data: None,
            queued: None,
            view: None,
            handled_beside: None,
        }
    }
}

impl<C> Seats<C> {
    /// The slot that the next child gets.
    fn vacant(&self) -> u32 {
        let vacant = self.free.last().copied().map_or_else(|| u32::try_from(self.all.len()), Ok);
        vacant.expect("fewer than 2^32 living children")
    }

    /// Puts a child into the slot of [`vacant`](Self::vacant).
    fn put(&mut self, child: C) {
        match self.free.pop() {
            Some(slot) => self.all[slot as usize] = Some(child),
            None => {
                self.all.push(Some(child));
                self.trim_at = self.all.len() / 4;
            }
        }
    }

    fn get(&self, slot: u32) -> Option<&C> {
        self.all.get(slot as usize)?.as_ref()
    }

    fn remove(&mut self, slot: u32) -> Option<C> {
        let child = self.all.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        if self.all.len() - self.free.len() <= self.trim_at {
            self.trim();
        }
        Some(child)
    }

    /// Gives the seats behind the last child back, if these are most of the seats. The list comes here a few times only
    /// while it empties, since this looks at all seats.
    #[cold]
    fn trim(&mut self) {
        self.trim_at = (self.all.len() - self.free.len()) / 2;
        if self.all.capacity() > SEATS_KEPT {
            let len = self.all.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            if len <= self.all.len() / 2 {
                self.all.truncate(len);
                self.free.retain(|slot| (*slot as usize) < len);
                self.all.shrink_to(SEATS_KEPT);
                self.free.shrink_to(SEATS_KEPT);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.all.len()
    }

    fn iter(&self) -> impl Iterator<Item = &C> {
        self.all.iter().flatten()
    }
}

impl<C> Children<C> {
    /// The list, if there is one.
    #[inline]
    fn table(&self) -> Option<&Mutex<ChildTable<C>>> {
        // Ordering: Acquire; pairs with the Release exchange in `new_table`: a thread that finds the list finds it
        // initialised. Also pairs with that in `close`: a refused creator sees what the parent did before.
        let pointer = self.0.load(Ordering::Acquire);
        if pointer.is_null() || pointer == closed() {
            return None;
        }
        // SAFETY: the list of `new_table`, which stays in its place as long as `self`.
        Some(unsafe { &*pointer })
    }

    /// The list, which is made if there is none; `None` if the parent has ended without one.
    #[inline]
    fn table_or_new(&self) -> Option<&Mutex<ChildTable<C>>> {
        self.table().or_else(|| self.new_table())
    }

    #[cold]
    fn new_table(&self) -> Option<&Mutex<ChildTable<C>>> {
        let ours = Box::into_raw(Box::<Mutex<ChildTable<C>>>::default());
        // Ordering: Release; pairs with the Acquire load in `table`, which comes after a failure, too.
        match self.0.compare_exchange(ptr::null_mut(), ours, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: our list, which stays in its place as long as `self`.
            Ok(_) => Some(unsafe { &*ours }),
            Err(_) => {
                // SAFETY: made above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(ours) });
                self.table()
            }
        }
    }

    /// Reads or changes the list, if there is one.
    fn look<R>(&self, act: impl FnOnce(&mut ChildTable<C>) -> R) -> Option<R> {
        self.table().map(|table| act(&mut lock(table)))
    }

    /// Changes the list, which is made if there is none, unless the parent has ended.
    fn change<R>(&self, act: impl FnOnce(&mut ChildTable<C>) -> R) -> Option<R> {
        self.table_or_new().map(|table| act(&mut lock(table)))
    }
}

impl<C: Child> Children<C> {
    /// Takes a child in under `name`, or under a generated name. `enter` tells the child its place, and returns the
    /// reference. No other thread takes the name, or looks at the list, meanwhile.
    #[inline]
    pub(crate) fn take_in(
        &self,
        name: Option<&str>,
        enter: impl FnOnce(ChildStart) -> C,
    ) -> Result<(), Refusal> {
        let mut table = lock(self.table_or_new().ok_or(Refusal::Closed)?);
        if table.closed {
            return Err(Refusal::Closed);
        }
        let suspended = table.suspended;
        match name {
            Some(name) if table.named.contains_key(name) => return Err(Refusal::NameTaken),
            Some(name) => {
                let child = enter(ChildStart { number: 0, slot: 0, suspended });
                table.named.insert(name.into(), child);
            }
            None => {
                let (number, slot) = (table.generated, table.anonymous.vacant());
                table.generated += 1;
                let child = enter(ChildStart { number, slot, suspended });
                table.anonymous.put(child);
            }
        }
        Ok(())
    }

    /// Removes a child that has ended, unless the parent wants to be told before. Returns the child if it was removed;
    /// its name is free from now on.
    pub(crate) fn leave(&self, child: &C) -> Option<C> {
        self.look(|table| if table.closed || table.wants_notices { None } else { table.remove(child) })?
    }

    /// Removes a child that has ended. Returns it if it was a child; its name is free from now on.
    pub(crate) fn remove(&self, child: &C) -> Option<C> {
        self.look(|table| table.remove(child))?
    }

    /// Makes each child that ends from now on tell the parent, which then removes it. Does nothing without a list.
    pub(crate) fn want_notices(&self) {
        self.look(|table| table.wants_notices = true);
    }

    /// Returns all children, of which each one tells the parent when it ends.
    pub(crate) fn all_with_notices(&self) -> Vec<C> {
        let all = self.look(|table| {
            table.wants_notices = true;
            table.all()
        });
        all.unwrap_or_default()
    }

    /// Frees the name of a child that is ending, for its successor.
    pub(crate) fn hand_name_over(&self, child: &C) {
        self.look(|table| {
            let Name::Given(name) = child.name() else { return };
            if table.named.get(name) == Some(child) {
                table.nameless.extend(table.named.remove(name));
            }
        });
    }

    /// Returns whether `child` is a child of this parent.
    pub(crate) fn contains(&self, child: &C) -> bool {
        let is_child = self.look(|table| match child.name() {
            Name::Given(name) => table.named.get(name) == Some(child) || table.nameless.contains(child),
            Name::Generated(_) => table.anonymous.get(child.slot()) == Some(child),
            Name::EmptyRef(_) => false,
        });
        is_child.unwrap_or(false)
    }

    /// The child of this name, given or generated.
    pub(crate) fn get(&self, name: &str) -> Option<C> {
        self.look(|table| {
            if let Some(child) = table.named.get(name) {
                return Some(child.clone());
            }
            let number = generated_number(name)?;
            let is_it = |child: &&C| matches!(child.name(), Name::Generated(other) if other == number);
            table.anonymous.iter().find(is_it).cloned()
        })?
    }

    /// All children, now.
    pub(crate) fn all(&self) -> Vec<C> {
        self.look(|table| table.all()).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let is_empty = self
            .look(|table| table.named.is_empty() && table.anonymous.is_empty() && table.nameless.is_empty());
        is_empty.unwrap_or(true)
    }

    /// Returns whether the parent accepts no more children.
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Acquire; pairs with the Release exchange in `close`, as the lock of a list does.
        self.0.load(Ordering::Acquire) == closed() || self.look(|table| table.closed).unwrap_or(false)
    }

    /// Accepts no more children from now on. Returns the children, each of which tells the parent when it ends.
    pub(crate) fn close(&self) -> Vec<C> {
        // Ordering: Release; pairs with the Acquire loads in `is_closed` and `table`. After a failure, the list is closed
        // below.
        let ended = self.0.compare_exchange(ptr::null_mut(), closed(), Ordering::Release, Ordering::Relaxed);
        if ended.is_ok() {
            return Vec::new();
        }
        let taken = self.look(|table| {
            table.closed = true;
            // These refer to the parent. They are dropped when the lock is open again.
            (table.all(), table.front.take(), table.parent_data.take(), table.view.take())
        });
        taken.map(|(all, ..)| all).unwrap_or_default()
    }

    /// Sets the data that children find at their parent.
    pub(crate) fn set_parent_data<T: Clone + Send + 'static>(&self, parent_data: T) {
        self.change(|table| table.parent_data = Some(Box::new(parent_data)));
    }

    /// The data that children find at their parent, if it is a `T`.
    pub(crate) fn parent_data<T: Clone + 'static>(&self) -> Option<T> {
        self.look(|table| table.parent_data.as_ref()?.downcast_ref::<T>().cloned())?
    }

    /// Sets the reference that a search for a reference of its type finds in place of the parent's own.
    pub(crate) fn set_front<T: Clone + Send + 'static>(&self, front: T) {
        self.change(|table| table.front = Some(Box::new(front)));
    }

    /// Sets how the parent shows itself.
    pub(crate) fn set_view<T: Clone + Send + 'static>(&self, view: T) {
        self.change(|table| table.view = Some(Box::new(view)));
    }

    /// How the parent shows itself, if it is by a `T`.
    pub(crate) fn view<T: Clone + 'static>(&self) -> Option<T> {
        self.look(|table| table.view.as_ref()?.downcast_ref::<T>().cloned())?
    }

    /// Sets the function that counts the messages waiting for any of the children.
    pub(crate) fn set_queued(&self, count: impl Fn() -> usize + Send + 'static) {
        self.change(|table| table.queued = Some(Box::new(count)));
    }

    /// The number of messages that wait for any of the children.
    pub(crate) fn queued(&self) -> usize {
        self.look(|table| table.queued.as_ref().map_or(0, |count| count())).unwrap_or(0)
    }

    /// Returns the counter of the messages that the parent has handled without taking them from its mailbox, less those
    /// that it has taken and not handled; `None` if the parent has ended without a list. The number wraps.
    pub(crate) fn handled_beside(&self) -> Option<StdArc<AtomicU64>> {
        self.change(|table| table.handled_beside.get_or_insert_default().clone())
    }

    /// The number in that counter, if there is one.
    pub(crate) fn handled_beside_so_far(&self) -> u64 {
        let beside = self.look(|table| table.handled_beside.clone()).flatten();
        // Ordering: Relaxed; a statistic.
        beside.map_or(0, |beside| beside.load(Ordering::Relaxed))
    }

    /// The parent's front, if it is a `T`.
    pub(crate) fn front<T: Clone + 'static>(&self) -> Option<T> {
        self.look(|table| table.front.as_ref()?.downcast_ref::<T>().cloned())?
    }

    /// Sets the number of suspensions with which new children start, and returns the existing children. One critical
    /// section: a child made meanwhile is either in the list or starts suspended, never both.
    pub(crate) fn set_suspended(&self, suspended: u32) -> Vec<C> {
        let set = |table: &mut ChildTable<C>| {
            table.suspended = suspended;
            table.all()
        };
        // A new list starts with 0.
        let all = if suspended == 0 { self.look(set) } else { self.change(set) };
        all.unwrap_or_default()
    }
}

impl<C: Child> ChildTable<C> {
    fn all(&self) -> Vec<C> {
        self.named.values().chain(self.anonymous.iter()).chain(&self.nameless).cloned().collect()
    }

    fn remove(&mut self, child: &C) -> Option<C> {
        match child.name() {
            Name::Given(name) => match self.named.get(name) {
                Some(known) if known == child => self.named.remove(name),
                _ => {
                    let at = self.nameless.iter().position(|known| known == child)?;
                    Some(self.nameless.swap_remove(at))
                }
            },
            Name::Generated(_) if self.anonymous.get(child.slot()) == Some(child) => {
                self.anonymous.remove(child.slot())
            }
            Name::Generated(_) | Name::EmptyRef(_) => None,
        }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Child, ChildStart, ChildTable, Children, Name, Refusal, SEATS_KEPT};
    use crate::sync::thread;

    #[derive(Debug, Clone, PartialEq)]
    struct Kid {
        name: Option<&'static str>,
        number: u64,
        slot: u32,
    }

    impl Child for Kid {
        fn name(&self) -> Name<'_> {
            self.name.map_or(Name::Generated(self.number), Name::Given)
        }

        fn slot(&self) -> u32 {
            self.slot
        }
    }

    fn enter(children: &Children<Kid>, name: Option<&'static str>) -> Kid {
        let mut entered = None;
        let enter = |ChildStart { number, slot, .. }| {
            let kid = Kid { name, number, slot };
            entered = Some(kid.clone());
            kid
        };
        assert!(children.take_in(name, enter).is_ok());
        entered.expect("it was taken in")
    }

    #[test]
    fn a_child_leaves_by_itself_until_its_parent_wants_to_be_told() {
        let children = Children::default();
        // Nothing to be told of.
        children.want_notices();
        let kids = [None, Some("named"), None].map(|name| enter(&children, name));
        assert_eq!(children.leave(&kids[1]), Some(kids[1].clone()));
        assert_eq!(children.leave(&kids[1]), None, "it has left already");
        assert_eq!(children.get("named"), None);
        assert_eq!(children.all_with_notices(), [kids[0].clone(), kids[2].clone()]);
        assert_eq!(children.leave(&kids[0]), None);
        assert!(children.contains(&kids[0]));
        assert_eq!(children.remove(&kids[0]), Some(kids[0].clone()));
        let later = enter(&children, Some("named"));
        assert_eq!(children.leave(&later), None, "of later ones, too");
    }

    #[test]
    fn a_child_of_a_closed_list_stays_until_its_parent_removes_it() {
        let children = Children::default();
        let kid = enter(&children, None);
        assert_eq!(children.close(), std::slice::from_ref(&kid));
        assert!(children.is_closed() && !children.is_empty());
        assert_eq!(children.leave(&kid), None);
        assert_eq!(children.remove(&kid), Some(kid));
        assert!(children.is_empty());
    }

    #[test]
    fn a_parent_without_a_child_is_closed_without_a_list() {
        let children = Children::<Kid>::default();
        assert!(!children.is_closed());
        assert_eq!(children.close(), []);
        assert!(children.is_closed() && children.is_empty() && children.table().is_none());
        assert_eq!(children.set_suspended(1), []);
        children.set_parent_data(1_u8);
        assert_eq!(children.parent_data::<u8>(), None);
        let refused = children.take_in(None, |_| unreachable!("it is closed"));
        assert!(matches!(refused, Err(Refusal::Closed)));
        assert_eq!(children.close(), [], "a second time");
    }

    #[test]
    fn seats_are_used_again_and_go_back() {
        let children = Children::default();
        let kids: Vec<Kid> = (0..4 * SEATS_KEPT).map(|_| enter(&children, None)).collect();
        assert_eq!(children.leave(&kids[7]), Some(kids[7].clone()));
        let later = enter(&children, None);
        assert_eq!((later.slot, later.number), (7, kids.len() as u64));
        assert_eq!(children.leave(&kids[7]), None, "the seat is another child's");
        assert_eq!(children.get(&later.name().text()), Some(later.clone()));
        for kid in kids.iter().filter(|kid| kid.slot != 7).chain([&later]) {
            assert!(children.leave(kid).is_some());
        }
        assert!(kept(&children) <= SEATS_KEPT, "{} seats are kept", kept(&children));
        assert_eq!(enter(&children, None).number, kids.len() as u64 + 1, "no name comes twice");
    }

    fn kept(children: &Children<Kid>) -> usize {
        let kept =
            |table: &mut ChildTable<Kid>| table.anonymous.all.capacity().max(table.anonymous.free.capacity());
        children.look(kept).expect("there is a list")
    }

    #[test]
    fn seats_go_back_though_a_child_stays() {
        let children = Children::default();
        let stays = enter(&children, None);
        for round in 0..3 {
            let mut kids: Vec<Kid> = (0..100 * SEATS_KEPT).map(|_| enter(&children, None)).collect();
            let slots: std::collections::HashSet<u32> = kids.iter().map(|kid| kid.slot).collect();
            assert_eq!(slots.len(), kids.len(), "no seat is given twice");
            if round == 1 {
                kids.reverse();
            }
            assert!(kids.iter().all(|kid| children.leave(kid).is_some()));
            assert!(kept(&children) <= 2 * SEATS_KEPT, "{} seats are kept", kept(&children));
            assert_eq!(children.all(), std::slice::from_ref(&stays));
        }
        // A child in the last seat holds the others; what is left of them is used again.
        let kids: Vec<Kid> = (0..100 * SEATS_KEPT).map(|_| enter(&children, None)).collect();
        let (last, others) = kids.split_last().expect("there are some");
        assert!(others.iter().all(|kid| children.leave(kid).is_some()));
        assert!(others.iter().all(|_| enter(&children, None).slot != last.slot));
        assert_eq!(children.all().len(), others.len() + 2);
    }

    #[test]
    fn a_thread_that_finds_a_list_finds_it_whole() {
        const ROUNDS: usize = if cfg!(miri) { 5 } else { 2_000 };
        for _ in 0..ROUNDS {
            let children = &Children::default();
            thread::scope(|scope| {
                scope.spawn(|| children.all().len());
                for name in ["one", "two"] {
                    scope.spawn(move || enter(children, Some(name)));
                }
            });
            assert_eq!(children.all().len(), 2);
        }
    }
}
