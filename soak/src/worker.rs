//! The actor of most storms, which checks how the engine runs it.

use crate::books::{Books, Count};
use crate::parcel::{AsTold, Parcel, Pen, Task};
use pointsman::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// What is known of one actor beyond its state, from one state to the next.
#[derive(Default)]
pub struct Seat {
    /// A thread is inside.
    is_taken: AtomicBool,
    /// Written by the thread that is inside.
    handled: AtomicU64,
    /// The last number of each sender, while there is no state.
    last: Mutex<Vec<u64>>,
}

impl Seat {
    pub fn handled(&self) -> u64 {
        self.handled.load(Ordering::Acquire)
    }
}

/// Where the actors of a scene get their states.
pub struct Yard {
    books: &'static Books,
    /// By the number of the actor, or by its key.
    seats: Mutex<HashMap<u64, Arc<Seat>>>,
    /// What was handled in seats that are given up.
    handled_by_gone: AtomicU64,
    /// Messages of one sender come in the order sent.
    keeps_order: bool,
    /// To whom [`Task::PassOn`] sends.
    ring: OnceLock<Vec<ActorRef<Parcel>>>,
}

impl Yard {
    pub fn new(books: &'static Books, keeps_order: bool) -> Arc<Self> {
        Arc::new(Self {
            books,
            seats: Mutex::default(),
            handled_by_gone: AtomicU64::new(0),
            keeps_order,
            ring: OnceLock::new(),
        })
    }

    /// The state of the actor that `ctx` is of. Its seat is the same after a restart, and given up when it ends.
    pub fn worker(self: &Arc<Self>, ctx: &Context<Parcel>) -> Worker {
        self.state(ctx.me().uid().into(), true)
    }

    /// The state of whoever has this number now. Its seat stays for those who have it later.
    pub fn worker_at(self: &Arc<Self>, number: u64) -> Worker {
        self.state(number, false)
    }

    fn state(self: &Arc<Self>, number: u64, leaves: bool) -> Worker {
        let seat = self.seat(number);
        self.books.count(Count::Born, 1);
        let last = std::mem::take(&mut *lock(&seat.last));
        Worker { yard: self.clone(), number, count: seat.handled(), seat, last, pen: None, leaves }
    }

    /// The seat of this number.
    pub fn seat(&self, number: u64) -> Arc<Seat> {
        lock(&self.seats).entry(number).or_default().clone()
    }

    /// Says whom the members of the ring, who have the numbers from 0, pass on to.
    pub fn close_ring(&self, members: Vec<ActorRef<Parcel>>) {
        let _ = self.ring.set(members);
    }

    /// Messages that all its actors have handled.
    pub fn handled(&self) -> u64 {
        let seats = lock(&self.seats);
        self.handled_by_gone.load(Ordering::Acquire) + seats.values().map(|seat| seat.handled()).sum::<u64>()
    }

    fn leave(&self, number: u64) {
        let mut seats = lock(&self.seats);
        if let Some(seat) = seats.remove(&number) {
            self.handled_by_gone.fetch_add(seat.handled(), Ordering::Release);
        }
    }
}

/// Nobody panics with one of them locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles messages, and notes whatever the engine must not do.
pub struct Worker {
    yard: Arc<Yard>,
    number: u64,
    seat: Arc<Seat>,
    /// As often as this state and those before it have handled a message: what one turn writes, the next one reads.
    count: u64,
    last: Vec<u64>,
    pen: Option<Pen>,
    /// The seat is given up when the actor ends.
    leaves: bool,
}

/// A thread inside an actor.
struct Inside(Arc<Seat>);

impl Drop for Inside {
    fn drop(&mut self) {
        // Relaxed: nothing hangs on it, and it must not order for the engine what that is to order itself.
        self.0.is_taken.store(false, Ordering::Relaxed);
    }
}

impl Worker {
    fn enter(&self) -> Inside {
        // Relaxed: as above.
        if self.seat.is_taken.swap(true, Ordering::Relaxed) {
            self.yard.books.fault("two threads in one actor");
        }
        Inside(self.seat.clone())
    }

    fn check(&mut self, parcel: &Parcel) {
        let (books, handled) = (self.yard.books, self.seat.handled.load(Ordering::Relaxed));
        if handled != self.count {
            books.fault(format!("a turn saw {} messages handled where there were {handled}", self.count));
        }
        self.count += 1;
        // Release: for those who wait outside. It is the same instruction as a Relaxed one on x86.
        self.seat.handled.store(self.count, Ordering::Release);
        let sender = parcel.sender as usize;
        if self.last.len() <= sender {
            self.last.resize(sender + 1, 0);
        }
        let before = std::mem::replace(&mut self.last[sender], parcel.number);
        if self.yard.keeps_order && before >= parcel.number {
            books.fault(format!("of sender {sender}, message {} was handled after {before}", parcel.number));
        }
    }

    fn pass_on(&mut self, to: &ActorRef<Parcel>, task: Task) {
        let books = self.yard.books;
        let pen = self.pen.get_or_insert_with(|| Pen::new(books));
        if let Some(parcel) = pen.write(task) {
            let by_try = parcel.number % 3 == 0;
            parcel.send(to, by_try);
        }
    }

    /// Leaves the order of its senders to the next state.
    fn hand_on(&mut self) {
        *lock(&self.seat.last) = std::mem::take(&mut self.last);
    }
}

impl Actor for Worker {
    type Message = Parcel;

    fn receive(&mut self, parcel: Parcel, ctx: &mut Context<Parcel>) -> HandlerResult {
        let _inside = self.enter();
        self.check(&parcel);
        let task = parcel.task;
        match task {
            Task::PassOn(more) if more > 0 => {
                let yard = self.yard.clone();
                if let Some(members) = yard.ring.get() {
                    let next = (self.number as usize + 1) % members.len();
                    self.pass_on(&members[next], Task::PassOn(more - 1));
                }
            }
            Task::Again(more) if more > 0 => self.pass_on(ctx.me(), Task::Again(more - 1)),
            _ => {}
        }
        // Behind what is sent for it, or there would be a moment with nothing under way.
        parcel.end(Count::Handled);
        match task {
            Task::Nothing | Task::PassOn(_) | Task::Again(_) => {}
            Task::Fail => return Err(Failure::msg("as told")),
            Task::Panic => std::panic::panic_any(AsTold),
            Task::Stop => ctx.stop(),
            Task::Retire => ctx.passivate(),
            Task::Linger(micros) => {
                ctx.blocking(|| thread::sleep(Duration::from_micros(micros.into())));
            }
        }
        Ok(())
    }

    fn restarting(&mut self, _: &Failure, _: &mut Context<Parcel>) -> HandlerResult {
        let _inside = self.enter();
        self.hand_on();
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Parcel>) {
        let _inside = self.enter();
        if self.leaves {
            self.yard.leave(self.number);
        } else {
            self.hand_on();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.yard.books.count(Count::Buried, 1);
    }
}
