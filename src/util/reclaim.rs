//! A domain frees memory only when no other thread may still be reading it (quiescent-state-based reclamation).
//!
//! A router publishes its routee table through one pointer, and every send reads that table. A table is replaced rarely
//! and read often, so the replacing thread pays the whole price: a reader makes a plain load and no read-modify-write
//! at all. Only *freeing memory* ever waits here; no step of any protocol does. A thread that never reports delays the
//! freeing of old tables, for the whole process, and nothing else. So threads that may block do not stay online, and a
//! worker goes offline while it blocks ([`go_offline_here`]).
//!
//! # Protocol
//!
//! 1. A [`Domain`] counts its replacements in `epoch`. Each reading thread has a [`Record`] there. The record announces
//!    the epoch that the thread had seen when it last held nothing, or [`OFFLINE`].
//! 2. A reader that was offline announces the current epoch, executes the light side of an [asymmetric
//!    fence](crate::sync::asymmetric_fence), and only then loads a published pointer. The reader goes offline again
//!    with a Release store.
//! 3. An *online* reader (a worker thread) stays online and announces the current epoch anew whenever it holds
//!    nothing; that is one load and one compare unless the epoch has moved.
//! 4. The replacing thread swaps the pointer, advances `epoch` to `e` with Release, and puts the old value on the
//!    retired list with the stamp `e`.
//! 5. A scan locks the retired list, executes the heavy side of that fence, and looks at all records. The scan takes
//!    off the list each value whose stamp is no larger than the smallest announcement, and frees these values without
//!    any lock held.
//!
//! # Why nothing is freed while it is read
//!
//! * The scan saw an announcement `a ≥ e`. The reader loaded `a` from `epoch` with Acquire, so it sees the swap that
//!   came before `e`. The reader had let go by then of all values that it had read earlier. The reader's Release store
//!   (read here with Acquire) puts those reads before the freeing.
//! * The scan saw `OFFLINE`. Of the reader's fence and the scan's fence one comes first. If the reader's fence is
//!   first, the scan could not have missed the announcement. If the scan's fence is first, the reader's load sees the
//!   swap, because the swap came before the value was on the list, and the list was locked before the fence. (A fence
//!   executed *before* the list is locked would not suffice: the list could then hold a value swapped out after that
//!   fence.)
//! * The scan did not find the record. The record was registered after the scan had unlocked the list of records, so
//!   its thread sees the swap too.
//! * Announcements of one record never fall back: one thread owns the record at a time, its loads of `epoch` are
//!   coherent, and ownership is handed on through the lock of the list of records.
//!
//! # Sections
//!
//! A routed send runs user code (a routing logic, a clone, the drop of a refused message), and that code may send
//! again. Sections therefore nest, and each thread counts its depth. Neither the end of an inner section nor the end of
//! a nested turn ([`OnlineReader::quiescent`], [`OnlineReader::rest`]) lets go of the values that an outer section holds. Don't
//! wait for anything inside a section: the wait would hold up all freeing meanwhile.
//!
//! # Values that a scan had to leave
//!
//! An online reader looks for such values when it has announced an epoch that is new to it, and before it goes
//! offline. In the second case, the replacing thread sees the reader offline, or the reader sees that the epoch has
//! moved. A section that ends, or a thread that rests while it blocks, looks for nothing: each send from outside would
//! pay for the look, and freeing runs user code, perhaps under locks of a user. So a value that was replaced while such
//! a thread was reading stays until the next replacement in the domain, until a worker announces an epoch that is new
//! to it, or until the threads of a system are joined. That costs memory alone.

use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::{Arc, CachePadded, Mutex, asymmetric_fence, lock, per_thread, process_wide};
use crate::util::panic;
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

process_wide! {
    static PROCESS: Arc<Domain> = Domain::new();
}

per_thread! {
    /// This thread's membership in the process-wide domain.
    static MEMBER: OnceCell<Member> = OnceCell::new();
}

per_thread! {
    /// The record of that membership as long as it lasts, else null. Each routed send asks for it.
    static RECORD: Cell<*const Record> = Cell::new(std::ptr::null());
}

/// The announcement of a reader that holds nothing and promises nothing. This announcement is above every epoch, so
/// that a smallest announcement needs no special case.
const OFFLINE: u64 = u64::MAX;

/// Begins a section of the process-wide domain: values read through the section stay valid until it is dropped.
///
/// Any thread may call this, at any depth, also while its thread-locals are being destroyed.
#[inline]
pub(crate) fn section() -> Section<'static> {
    match member_section() {
        Some(section) => Section::Member(section),
        None => Section::Orphaned(OrphanSection::begin()),
    }
}

/// As [`section`]; `None` in a thread whose thread-locals are being destroyed.
#[inline]
pub(crate) fn member_section() -> Option<MemberSection<'static>> {
    own_record().map(|record| MemberSection::begin(record, process_domain))
}

/// Registers the calling thread as an online reader of the process-wide domain.
pub(crate) fn go_online() -> OnlineReader<'static> {
    OnlineReader::begin(process_domain(), own_record())
}

/// Lets the calling thread, which may block, rest in the process-wide domain until the guard is dropped.
///
/// An open section keeps the thread online all the same, and the end of an inner guard changes nothing. A
/// thread that doesn't stand has nothing to rest from.
pub(crate) fn go_offline_here() -> OfflineGuard {
    // A thread that never joined doesn't join for this.
    let stood = MEMBER.try_with(|member| member.get().is_some_and(Member::rest)).unwrap_or(false);
    OfflineGuard { stood, stays: PhantomData }
}

/// Returns the domain that all routers of the process share, so that a worker of one actor system may route into
/// another system.
#[inline]
pub(crate) fn process_domain() -> &'static Arc<Domain> {
    &PROCESS
}

/// The readers of some published values, and the replaced values that these readers may still be reading.
pub(crate) struct Domain {
    /// Counts replacements.
    epoch: CachePadded<AtomicU64>,
    /// The values that were replaced and are not freed yet.
    retired: Mutex<Vec<Retired>>,
    /// One for each thread that reads.
    records: Mutex<Records>,
    orphans: Orphans,
}

/// A thread's membership in a domain, which owns one of its records.
///
/// The process-wide domain keeps one membership for each thread by itself; other domains are joined by hand.
pub(crate) struct Member {
    domain: Arc<Domain>,
    record: Arc<Record>,
    /// The record's cells belong to one thread.
    stays: PhantomData<*const ()>,
}

/// A stretch of code during which the values that it has read stay valid.
#[must_use = "a section ends when it is dropped"]
pub(crate) enum Section<'d> {
    Member(MemberSection<'d>),
    Orphaned(OrphanSection),
}

/// A section of a thread that has a record.
#[must_use = "a section ends when it is dropped"]
pub(crate) struct MemberSection<'d> {
    record: &'d Record,
    /// A section belongs to the depth of the thread that began it.
    stays: PhantomData<*const ()>,
}

/// A section of the process-wide domain in a thread without thread-locals, which shares the record of the orphans.
pub(crate) struct OrphanSection(());

/// A section in which published values may be read.
pub(crate) trait Reading {
    /// Returns whether the section is one of the domain at this address.
    fn is_of(&self, domain: usize) -> bool;
}

/// A registration of a worker thread, which stays online between its sections.
#[must_use = "the thread stops being an online reader when this is dropped"]
pub(crate) struct OnlineReader<'d> {
    domain: &'d Domain,
    /// `None` in a thread without thread-locals: such a thread has sections and nothing else.
    record: Option<&'d Record>,
    /// Whether the thread was already online when this registration began; that state comes back.
    before: bool,
    stays: PhantomData<*const ()>,
}

/// A stretch of code during which an online thread holds up nothing; made by [`go_offline_here`].
#[must_use = "the thread stands again when this is dropped"]
#[derive(Debug)]
pub(crate) struct OfflineGuard {
    /// Whether the thread stood when the guard was made; that state comes back.
    stood: bool,
    stays: PhantomData<*const ()>,
}

/// A value that is replaced as a whole while other threads read it.
pub(crate) struct Published<T> {
    current: AtomicPtr<T>,
    domain: Arc<Domain>,
    /// The address of the domain.
    address: usize,
    owns: PhantomData<T>,
}

/// A value that no new reader can find, without its type.
///
/// A plain pointer, not a `Box`: readers may still hold references into it, and moving a `Box` asserts that
/// there are none.
#[must_use = "garbage that is not retired is leaked"]
pub(crate) struct RetiredValue {
    value: *mut (),
    free: unsafe fn(*mut ()),
}

/// The state of one thread that scans of a domain look at.
struct Record {
    /// The epoch last seen while holding nothing, or [`OFFLINE`].
    announced: CachePadded<AtomicU64>,
    /// The number of open sections of the owning thread, in units of [`SECTION`], and [`STAYS_ONLINE`]. 0: the thread
    /// is offline.
    sections: Cell<usize>,
    /// The address of the record's domain.
    domain: usize,
}

/// Whether the owning thread stays online without an open section.
const STAYS_ONLINE: usize = 1;

/// One open section.
const SECTION: usize = 2;

#[derive(Default)]
struct Records {
    all: Vec<Arc<Record>>,
    /// Records of ended threads, to be used again.
    free: Vec<Arc<Record>>,
}

/// The record that is shared by all threads whose thread-locals are gone.
struct Orphans {
    record: Record,
    /// How many sections are open in such threads.
    open: Mutex<usize>,
}

struct Retired {
    retired: RetiredValue,
    /// The epoch that began when the value was replaced.
    stamp: u64,
}

impl Domain {
    /// Makes a domain without readers.
    pub(crate) fn new() -> Arc<Self> {
        asymmetric_fence::prepare();
        Arc::new(Self {
            epoch: CachePadded::new(AtomicU64::new(1)),
            retired: Mutex::new(Vec::new()),
            records: Mutex::new(Records::default()),
            orphans: Orphans { record: Record::new(0), open: Mutex::new(0) },
        })
    }

    /// Takes over a value that no new reader can find, and frees the values that can be freed by now.
    ///
    /// Freeing runs user code (`Drop`); a panic in that code is caught.
    pub(crate) fn retire(&self, retired: RetiredValue) {
        self.defer(retired);
        self.collect();
    }

    /// Frees every retired value that no reader can hold any more, and returns how many values are left.
    ///
    /// Retiring does this too. The head of each router does it before each change, and a worker does it when it has
    /// announced a new epoch.
    pub(crate) fn collect(&self) -> usize {
        // Either this scan sees the announcement of a reader, whose light side is in `Record::announce`, or the reader
        // sees that the retired values were replaced.
        // SAFETY: the argument is the fence that is asked for.
        unsafe { self.collect_after(asymmetric_fence::heavy) }
    }

    /// Returns how many replaced values are not freed yet.
    pub(crate) fn retired_count(&self) -> usize {
        lock(&self.retired).len()
    }

    /// Puts garbage on the retired list.
    pub(crate) fn defer(&self, retired: RetiredValue) {
        // Ordering: Release; pairs with the Acquire loads of `epoch` in `quiescent` and `announce`. A thread that
        // announces this epoch sees the replacement made before. Later increments are read-modify-writes and so
        // continue this release sequence.
        let stamp = self.epoch.fetch_add(1, Ordering::Release) + 1;
        lock(&self.retired).push(Retired { retired, stamp });
    }

    /// [`collect`](Self::collect) with its fence as an argument, so that a model can show what its absence
    /// breaks.
    ///
    /// # Safety
    ///
    /// `order` must execute [`asymmetric_fence::heavy`], or return false.
    pub(crate) unsafe fn collect_after(&self, order: impl FnOnce() -> bool) -> usize {
        let (free, left) = {
            let mut retired = lock(&self.retired);
            if retired.is_empty() {
                return 0;
            }
            if !order() {
                // Without the fence nothing is known of the readers, so every value stays.
                return retired.len();
            }
            let passed = self.passed_by_all();
            let free: Vec<Retired> = retired.extract(|old| old.stamp <= passed);
            (free, retired.len())
        };
        // No lock is held: a destructor may route messages, and so come back here.
        for old in free {
            // SAFETY: the value was taken off the list, so it is freed once, and every reader has announced
            // an epoch in which it could not be found, or was seen offline after the fence.
            unsafe { old.retired.free() };
        }
        left
    }

    /// Returns whether a scan would find anything to free, as far as the caller, who has just announced, can see.
    fn seems_passed(&self) -> bool {
        let Some(oldest) = lock(&self.retired).iter().map(|old| old.stamp).min() else { return false };
        // Of several threads that announce at once, the last one to lock the list of records sees the other
        // announcements.
        oldest <= self.passed_by_all()
    }

    /// Returns the newest epoch that every online reader has announced.
    fn passed_by_all(&self) -> u64 {
        let records = lock(&self.records);
        let all = records.all.iter().map(|record| &**record);
        all.chain([&self.orphans.record])
            // Ordering: Acquire; pairs with the Release stores of `announced`. Each read of the reader before its
            // announcement happens before the freeing.
            .map(|record| record.announced.load(Ordering::Acquire))
            .min()
            .unwrap_or(OFFLINE)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // Members and published values keep the domain alive, so no thread can be reading.
        let retired = std::mem::take(&mut *lock(&self.retired));
        for old in retired {
            // SAFETY: no member is left, so no section is open and no reader holds the value.
            unsafe { old.retired.free() };
        }
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("retired", &self.retired_count()).finish_non_exhaustive()
    }
}

/// `Vec::extract_if`, which is newer than the oldest compiler we support.
trait Extract<T> {
    fn extract(&mut self, wanted: impl FnMut(&T) -> bool) -> Vec<T>;
}

impl<T> Extract<T> for Vec<T> {
    fn extract(&mut self, wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let (taken, kept) = std::mem::take(self).into_iter().partition(wanted);
        *self = kept;
        taken
    }
}

impl Member {
    /// Registers the calling thread; its record goes back when the member is dropped.
    pub(crate) fn join(domain: &Arc<Domain>) -> Self {
        let record = {
            let mut records = lock(&domain.records);
            let reused = records.free.pop();
            reused.unwrap_or_else(|| {
                let record = Arc::new(Record::new(address_of(domain)));
                records.all.push(record.clone());
                record
            })
        };
        Self { domain: domain.clone(), record, stays: PhantomData }
    }

    /// Goes offline unless a section is open; returns true if the thread stood.
    fn rest(&self) -> bool {
        self.record.rest()
    }

    /// Begins a section of this domain.
    #[cfg(any(test, pointsman_loom))]
    pub(crate) fn section(&self) -> Section<'_> {
        Section::Member(MemberSection::begin(&self.record, || &self.domain))
    }

    /// Registers the calling thread as an online reader of this domain.
    #[cfg(any(test, pointsman_loom))]
    pub(crate) fn go_online(&self) -> OnlineReader<'_> {
        OnlineReader::begin(&self.domain, Some(&self.record))
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The next user of the record may be another thread, so the cached pointer goes. For a member of a domain made
        // by hand this only costs the cache.
        let _ = RECORD.try_with(|record| record.set(std::ptr::null()));
        // If a section of this thread (kept in another thread-local, or leaked) or a registration still uses the
        // record, the record stays with this thread for good, and no other thread gets it.
        if self.record.sections.get() == 0 {
            lock(&self.domain.records).free.push(self.record.clone());
        }
    }
}

impl<'d> MemberSection<'d> {
    /// Opens a section of the thread that owns the record, in the record's domain. The outermost section makes the
    /// thread go online, unless it stays online.
    #[inline]
    fn begin<'a>(record: &'d Record, domain: impl FnOnce() -> &'a Arc<Domain>) -> Self {
        let before = record.sections.get();
        record.sections.set(before + SECTION);
        if before == 0 {
            record.announce(domain());
        }
        Self { record, stays: PhantomData }
    }
}

impl Drop for MemberSection<'_> {
    #[inline]
    fn drop(&mut self) {
        let after = self.record.sections.get() - SECTION;
        self.record.sections.set(after);
        if after == 0 {
            self.record.go_offline();
        }
    }
}

impl OrphanSection {
    #[cold]
    fn begin() -> Self {
        process_domain().orphans.join(process_domain());
        Self(())
    }
}

impl Drop for OrphanSection {
    #[cold]
    fn drop(&mut self) {
        process_domain().orphans.leave();
    }
}

impl Reading for MemberSection<'_> {
    #[inline]
    fn is_of(&self, domain: usize) -> bool {
        self.record.domain == domain
    }
}

impl Reading for Section<'_> {
    #[inline]
    fn is_of(&self, domain: usize) -> bool {
        match self {
            Section::Member(section) => section.is_of(domain),
            Section::Orphaned(_) => address_of(process_domain()) == domain,
        }
    }
}

impl<'d> OnlineReader<'d> {
    fn begin(domain: &'d Domain, record: Option<&'d Record>) -> Self {
        let before = record.is_some_and(Record::stays_online);
        let reader = Self { domain, record, before, stays: PhantomData };
        reader.resume();
        reader
    }

    /// Announces that the thread holds nothing, unless a section is open or the thread rests. A worker calls this after
    /// each turn. Returns true if this announced a new epoch, in which values may have become free.
    #[inline]
    pub(crate) fn quiescent(&self) -> bool {
        let Some(record) = self.record else { return false };
        if record.sections.get() != STAYS_ONLINE {
            return false;
        }
        // Ordering: Acquire; pairs with the Release increment in `defer`. A thread that announces an epoch sees every
        // replacement stamped with it, so no fence is needed: until the store below a scan finds the older
        // announcement.
        let epoch = self.domain.epoch.load(Ordering::Acquire);
        let is_new = record.announced.load(Ordering::Relaxed) != epoch;
        if is_new {
            // Ordering: Release; pairs with the Acquire load in `passed_by_all`. The reads of earlier turns
            // happen before the freeing that this announcement allows.
            record.announced.store(epoch, Ordering::Release);
        }
        is_new
    }

    /// Goes offline before the thread parks; an open section keeps the thread online until its end. Returns false if a
    /// value was replaced since the thread's last announcement: perhaps no other thread comes by to
    /// [free](Self::collect) that value.
    #[must_use = "what was replaced meanwhile may be left to this thread"]
    pub(crate) fn rest(&self) -> bool {
        let Some(record) = self.record else { return true };
        // Ordering: Relaxed; this thread's own.
        let announced = record.announced.load(Ordering::Relaxed);
        if !record.rest() || record.sections.get() > 0 {
            return true;
        }
        // Either the scan of the replacing thread, which executes the heavy side in `Domain::collect`, sees that this
        // thread has gone offline, or the load below sees the new epoch.
        asymmetric_fence::light();
        // Ordering: Relaxed; the fence orders it, and no data is read on the strength of its value.
        self.domain.epoch.load(Ordering::Relaxed) == announced
    }

    /// Goes online again after [`rest`](Self::rest).
    pub(crate) fn resume(&self) {
        let Some(record) = self.record else { return };
        record.resume(self.domain);
    }

    /// Frees the values that have become free since the thread's last announcement, or by its rest. After each
    /// replacement all workers come here. Only a worker that finds that all other readers have announced it makes every
    /// thread execute a fence.
    ///
    /// Not inlined into the worker's loop, which would otherwise keep the state for this in each of its turns (14
    /// instructions).
    #[cold]
    #[inline(never)]
    pub(crate) fn collect(&self) {
        if self.domain.seems_passed() {
            self.domain.collect();
        }
    }
}

impl Drop for OnlineReader<'_> {
    fn drop(&mut self) {
        if self.before {
            self.resume();
        } else if !self.rest() {
            self.collect();
        }
    }
}

impl Drop for OfflineGuard {
    fn drop(&mut self) {
        if self.stood {
            if let Some(record) = own_record() {
                record.resume(process_domain());
            }
        }
    }
}

impl<T: Send + Sync + 'static> Published<T> {
    /// Publishes a first value in the process-wide domain.
    pub(crate) fn new(value: T) -> Self {
        Self::new_in(process_domain(), value)
    }

    /// Publishes a first value in a domain.
    pub(crate) fn new_in(domain: &Arc<Domain>, value: T) -> Self {
        Self {
            current: AtomicPtr::new(Box::into_raw(Box::new(value))),
            domain: domain.clone(),
            address: address_of(domain),
            owns: PhantomData,
        }
    }

    /// Returns the current value, valid as long as the section.
    ///
    /// # Panics
    ///
    /// If the section belongs to another domain: such a section would keep no value alive here.
    #[inline]
    pub(crate) fn read<'g>(&'g self, section: &'g impl Reading) -> &'g T {
        assert!(section.is_of(self.address), "the section belongs to another domain");
        // Ordering: Acquire; pairs with the AcqRel swap in `replace`. A thread that finds a value sees it whole.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: `current` came from a box. It is freed by a scan that found this section's thread past
        // its replacement, which the open section rules out, or by `drop`, which the borrow of `self` rules
        // out.
        unsafe { &*current }
    }

    /// Replaces the value; the old one is dropped when its last reader has left.
    pub(crate) fn replace(&self, value: T) {
        let new = Box::into_raw(Box::new(value));
        // Ordering: AcqRel; the Release half pairs with the Acquire load in `read`; by the Acquire half the writes that
        // made the old value happen before its freeing, whichever thread published it.
        let old = self.current.swap(new, Ordering::AcqRel);
        // SAFETY: `old` came from a box, and only the thread that swapped it out gets here with it.
        let retired = unsafe { RetiredValue::new(old.cast(), free_box::<T>) };
        self.domain.retire(retired);
    }

    /// Replaces the value if it is still `seen`. The caller has read `seen` in a section that is still open, so no
    /// other value can have its address.
    ///
    /// # Errors
    ///
    /// The new value, if another thread has replaced `seen`.
    pub(crate) fn replace_if(&self, seen: &T, value: T) -> Result<(), T> {
        let new = Box::into_raw(Box::new(value));
        let seen = std::ptr::from_ref(seen).cast_mut();
        // Ordering: Release; as in `replace`. Not Acquire: the `read` that returned `seen` was. Relaxed on failure: the
        // value found is not looked at.
        match self.current.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed) {
            Ok(old) => {
                // SAFETY: as in `replace`.
                let retired = unsafe { RetiredValue::new(old.cast(), free_box::<T>) };
                self.domain.retire(retired);
                Ok(())
            }
            // SAFETY: it came from a box just now, and no other thread has seen it.
            Err(_) => Err(*unsafe { Box::from_raw(new) }),
        }
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // Ordering: Relaxed; exclusive access comes after each replacement of the value.
        let current = self.current.load(Ordering::Relaxed);
        // SAFETY: `current` came from a box, and references to it borrow `self`, which is ending.
        drop(unsafe { Box::from_raw(current) });
    }
}

impl<T: Send + Sync + 'static + fmt::Debug> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Published").finish_non_exhaustive()
    }
}

impl RetiredValue {
    /// Wraps a value that no new reader can find.
    ///
    /// # Safety
    ///
    /// `free(value)` must be allowed once, in any thread, at any time after the last reader has left, and no other code
    /// may free the value.
    pub(crate) unsafe fn new(value: *mut (), free: unsafe fn(*mut ())) -> Self {
        Self { value, free }
    }

    /// Frees the value. A panic in its drop has been reported by the panic hook and is caught here, so that the other
    /// values are freed as well.
    ///
    /// # Safety
    ///
    /// No reader may hold the value any more.
    unsafe fn free(self) {
        // SAFETY: the maker of this garbage allowed one such call after the last reader has left.
        let free = || unsafe { (self.free)(self.value) };
        if crate::sync::EXPLORED {
            // Loom and shuttle report by panicking, which must not end here.
            return free();
        }
        let outcome = catch_unwind(AssertUnwindSafe(free));
        if let Err(payload) = outcome {
            panic::discard(payload);
        }
    }
}

// SAFETY: garbage is a right to free a value in any thread, as `RetiredValue::new` demands.
unsafe impl Send for RetiredValue {}

/// Frees a boxed value.
///
/// # Safety
///
/// `value` must come from `Box::<T>::into_raw`, and no code may use it any more.
unsafe fn free_box<T>(value: *mut ()) {
    // SAFETY: the caller passes a box's pointer and gives up the value.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

impl Record {
    /// Makes the record of a reader that is offline, of the domain at this address.
    fn new(domain: usize) -> Self {
        Self { announced: CachePadded::new(AtomicU64::new(OFFLINE)), sections: Cell::new(0), domain }
    }

    fn stays_online(&self) -> bool {
        self.sections.get() & STAYS_ONLINE != 0
    }

    /// Goes online.
    #[inline]
    fn announce(&self, domain: &Domain) {
        // Ordering: Acquire; pairs with the Release increment in `defer`: a thread that announces an epoch sees every
        // replacement stamped with it.
        let epoch = domain.epoch.load(Ordering::Acquire);
        // Ordering: Release; pairs with the Acquire load in `passed_by_all`. A scan may see this store and
        // not the one by which the thread went offline before; the reads of earlier sections happen before
        // its freeing all the same.
        self.announced.store(epoch, Ordering::Release);
        // Either the scan, which executes the heavy side in `Domain::collect`, sees the store above, or the later loads
        // see each replacement that came before the scan.
        asymmetric_fence::light();
    }

    /// Stands no longer; returns true if the thread stood. An open section keeps the thread online until its end.
    fn rest(&self) -> bool {
        let before = self.sections.get();
        self.sections.set(before & !STAYS_ONLINE);
        if before == STAYS_ONLINE {
            self.go_offline();
        }
        before & STAYS_ONLINE != 0
    }

    /// Stands from now on.
    fn resume(&self, domain: &Domain) {
        // In a section the thread is online already, with an announcement that must stay as old as it is.
        let before = self.sections.get();
        self.sections.set(before | STAYS_ONLINE);
        if before == 0 {
            self.announce(domain);
        }
    }

    #[inline]
    fn go_offline(&self) {
        // Ordering: Release; pairs with the Acquire load in `passed_by_all`. The reads of this section
        // happen before the freeing by a scan that finds the thread offline.
        self.announced.store(OFFLINE, Ordering::Release);
    }
}

// SAFETY: `announced` is atomic. The cells are touched only by the thread whose `Member` owns the record (a
// member, its sections and its registrations can't leave their thread), or never, in the record of the
// orphans. The record goes to the next owner through the lock of the list of records.
unsafe impl Sync for Record {}

impl Orphans {
    fn join(&self, domain: &Domain) {
        let mut open = lock(&self.open);
        if *open == 0 {
            self.record.announce(domain);
        }
        // A later thread inherits the older announcement, which keeps more alive than it needs. The lock puts the first
        // thread's fence before the later thread's loads.
        *open += 1;
    }

    fn leave(&self) {
        let mut open = lock(&self.open);
        *open -= 1;
        if *open == 0 {
            self.record.go_offline();
        }
    }
}

/// The address by which records name their domain. A domain outlives its records' use: see [`Member`].
#[inline]
fn address_of(domain: &Arc<Domain>) -> usize {
    std::ptr::from_ref::<Domain>(domain).addr()
}

/// Returns the calling thread's record in the process-wide domain, or `None` once its thread-locals are gone.
#[inline]
fn own_record() -> Option<&'static Record> {
    let record = RECORD.try_with(Cell::get).unwrap_or(std::ptr::null());
    // SAFETY: the domain's list holds every record as long as the domain exists, and the process-wide domain is never
    // dropped. The record is this thread's: the pointer goes when its membership does.
    unsafe { record.as_ref() }.or_else(find_record)
}

#[cold]
#[inline(never)]
fn find_record() -> Option<&'static Record> {
    let found =
        MEMBER.try_with(|member| &raw const *member.get().unwrap_or_else(|| first_use(member)).record);
    let found = found.ok()?;
    let _ = RECORD.try_with(|record| record.set(found));
    // SAFETY: as in `own_record`.
    Some(unsafe { &*found })
}

#[cold]
fn first_use(member: &OnceCell<Member>) -> &Member {
    let joined = Member::join(process_domain());
    // Allocating in `join` may run a global allocator that routes messages, and so joins first. The record of this call
    // then goes back at once.
    let _ = member.set(joined);
    member.get().expect("set above")
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{Domain, Member, Published, own_record, section};
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{Arc, thread};
    use std::cell::RefCell;

    /// Counts its drops.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<AtomicUsize>, impl Fn() -> Counted) {
        let drops = Arc::new(AtomicUsize::new(0));
        (drops.clone(), move || Counted(drops.clone()))
    }

    #[test]
    fn a_replaced_value_goes_at_once_when_nobody_reads() {
        let (drops, new) = counted();
        let domain = Domain::new();
        let published = Published::new_in(&domain, new());
        published.replace(new());
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        drop(published);
        assert_eq!(drops.load(Ordering::Relaxed), 2, "the current value goes with its owner");
    }

    #[test]
    fn an_inner_section_does_not_end_the_outer_one() {
        let (drops, new) = counted();
        let domain = Domain::new();
        let member = Member::join(&domain);
        let published = Published::new_in(&domain, new());
        let outer = member.section();
        let _read = published.read(&outer);
        drop(member.section());
        published.replace(new());
        assert_eq!((drops.load(Ordering::Relaxed), domain.retired_count()), (0, 1));
        drop(outer);
        assert_eq!((domain.collect(), drops.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn a_nested_turn_ends_nothing_that_an_open_section_holds() {
        let (drops, new) = counted();
        let domain = Domain::new();
        let member = Member::join(&domain);
        let published = Published::new_in(&domain, new());
        let reader = member.go_online();
        let outer = member.section();
        published.replace(new());
        reader.quiescent();
        assert!(reader.rest(), "it stays online, and holds the first");
        reader.resume();
        drop(member.go_online());
        assert_eq!((domain.collect(), drops.load(Ordering::Relaxed)), (1, 0));
        drop(outer);
        assert_eq!(domain.collect(), 1, "the thread stands and has not reported");
        reader.quiescent();
        assert_eq!((domain.collect(), drops.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn who_rests_or_leaves_with_an_old_announcement_frees_what_that_held_up() {
        let (drops, new) = counted();
        let domain = Domain::new();
        let member = Member::join(&domain);
        let published = Published::new_in(&domain, new());
        let reader = member.go_online();
        published.replace(new());
        assert!(!reader.rest(), "the scan has left it to this thread");
        assert_eq!((domain.retired_count(), drops.load(Ordering::Relaxed)), (1, 0));
        reader.collect();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        reader.resume();
        assert!(reader.rest(), "nothing was replaced since then");
        reader.resume();
        published.replace(new());
        drop(reader);
        assert_eq!(drops.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_resting_thread_holds_up_nothing_and_may_open_sections() {
        let (drops, new) = counted();
        let domain = Domain::new();
        let member = Member::join(&domain);
        let published = Published::new_in(&domain, new());
        let reader = member.go_online();
        assert!(reader.rest());
        published.replace(new());
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        let inside = member.section();
        published.replace(new());
        assert_eq!(drops.load(Ordering::Relaxed), 1, "the section holds the second value");
        reader.resume();
        drop(inside);
        assert_eq!(domain.collect(), 1, "resumed within the section, the thread stands");
        reader.quiescent();
        assert_eq!(domain.collect(), 0);
    }

    #[test]
    fn a_panic_ends_its_section_and_a_panicking_drop_stops_no_other() {
        struct Bomb(#[allow(dead_code)] Counted); // for its drop
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("planted");
            }
        }
        let (drops, new) = counted();
        let domain = Domain::new();
        let member = Member::join(&domain);
        let published = Published::new_in(&domain, Bomb(new()));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inside = member.section();
            published.replace(Bomb(new()));
            published.replace(Bomb(new()));
            panic!("planted");
        }));
        assert!(outcome.is_err());
        assert_eq!((domain.collect(), drops.load(Ordering::Relaxed)), (0, 2));
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(published)));
        assert!(dropped.is_err(), "its value panics");
    }

    #[test]
    fn what_one_thread_made_and_another_replaced_a_third_may_free() {
        const EACH: usize = if cfg!(miri) { 20 } else { 2_000 };
        let (drops, new) = counted();
        let domain = Domain::new();
        let published = Published::new_in(&domain, new());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..EACH).for_each(|_| published.replace(new())));
            }
        });
        assert_eq!((domain.retired_count(), drops.load(Ordering::Relaxed)), (0, 3 * EACH));
    }

    #[test]
    fn a_value_that_publishes_again_while_it_is_dropped_finds_no_lock_held() {
        struct Again(Arc<Published<u8>>);
        impl Drop for Again {
            fn drop(&mut self) {
                self.0.replace(2);
            }
        }
        let domain = Domain::new();
        let inner = Arc::new(Published::new_in(&domain, 1));
        let outer = Published::new_in(&domain, Again(inner.clone()));
        outer.replace(Again(inner.clone()));
        let member = Member::join(&domain);
        assert_eq!(*inner.read(&member.section()), 2);
        assert_eq!(domain.retired_count(), 0);
    }

    #[test]
    fn a_thread_that_blocks_holds_up_nothing_but_what_its_section_holds() {
        let (drops, new) = counted();
        // The process-wide domain has readers in other tests, so look at this thread's own record.
        let online = || own_record().expect("has one").announced.load(Ordering::Relaxed) != super::OFFLINE;
        let published = Published::new(new());
        drop(super::go_offline_here());
        assert!(!online(), "a thread that did not stand still does not");
        let reader = super::go_online();
        let outer = super::go_offline_here();
        assert!(!online());
        drop(super::go_offline_here());
        assert!(!online(), "the outer guard goes on");
        let inside = section();
        let _read = published.read(&inside);
        let within = super::go_offline_here();
        assert!(online(), "the section holds what it has read");
        published.replace(new());
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(within);
        drop(inside);
        assert!(!online());
        drop(outer);
        assert!(online());
        let inside = section();
        let outlives = super::go_offline_here();
        drop(inside);
        assert!(!online(), "the section has ended while the thread rests");
        drop(outlives);
        assert!(online());
        drop(reader);
        assert!(!online());
    }

    #[test]
    #[should_panic(expected = "another domain")]
    fn a_section_of_another_domain_is_refused() {
        let member = Member::join(&Domain::new());
        let published = Published::new_in(&Domain::new(), 1);
        published.read(&member.section());
    }

    #[test]
    fn records_of_ended_members_are_used_again() {
        let domain = Domain::new();
        for _ in 0..3 {
            let first = Member::join(&domain);
            let second = Member::join(&domain);
            drop(first.section());
            drop(second.go_online());
        }
        assert_eq!(super::lock(&domain.records).all.len(), 2);
    }

    #[test]
    fn threads_without_thread_locals_keep_what_they_may_read_until_the_last_of_them_leaves() {
        let (drops, new) = counted();
        let domain = Domain::new();
        let published = Published::new_in(&domain, new());
        domain.orphans.join(&domain);
        domain.orphans.join(&domain);
        published.replace(new());
        domain.orphans.leave();
        assert_eq!((domain.collect(), drops.load(Ordering::Relaxed)), (1, 0));
        domain.orphans.leave();
        assert_eq!((domain.collect(), drops.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn a_thread_without_thread_locals_can_still_read() {
        struct Late {
            published: Arc<Published<u8>>,
            found: Arc<AtomicUsize>,
        }
        impl Drop for Late {
            fn drop(&mut self) {
                // `LATE` is made before the thread's membership, and so is destroyed after it.
                assert!(own_record().is_none());
                let outer = section();
                let inner = section();
                drop(outer);
                self.found.store(usize::from(*self.published.read(&inner)), Ordering::Relaxed);
            }
        }
        std::thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let found = Arc::new(AtomicUsize::new(0));
        let late = Late { published: Arc::new(Published::new(7)), found: found.clone() };
        thread::spawn(move || {
            LATE.with(|slot| *slot.borrow_mut() = Some(late));
            drop(section());
        })
        .join()
        .expect("no panic");
        assert_eq!(found.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn readers_and_writers_of_the_process_wide_domain_never_meet_a_freed_value() {
        const WRITES: u64 = if cfg!(miri) { 40 } else { 2_000 };
        let published = Arc::new(Published::new(Box::new([0_u64; 8])));
        let readers = [false, true].map(|stands| {
            let published = published.clone();
            thread::spawn(move || {
                let reader = stands.then(super::go_online);
                loop {
                    let inside = section();
                    let value = published.read(&inside);
                    assert!(value.iter().all(|word| *word == value[0]), "a table is read whole");
                    let last = value[0] == WRITES;
                    drop(inside);
                    if last {
                        return;
                    }
                    if let Some(reader) = &reader {
                        reader.quiescent();
                    }
                    thread::yield_now();
                }
            })
        });
        for write in 1..=WRITES {
            published.replace(Box::new([write; 8]));
        }
        for reader in readers {
            reader.join().expect("no panic");
        }
    }
}
