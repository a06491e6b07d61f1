use super::*;
use crate::scheduler::task::{Ran, Task, TaskRef, Turn};
use crate::sync::atomic::{AtomicUsize, Ordering};
use std::ptr::NonNull;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A task whose turn reports its start and waits until the test lets it go.
#[repr(C)]
struct Gate {
    task: Task,
    entered: Sender<usize>,
    let_go: std::sync::Mutex<Receiver<Ran>>,
    number: usize,
    turns: AtomicUsize,
}

impl Gate {
    fn new(number: usize, entered: &Sender<usize>) -> (Box<Self>, Sender<Ran>) {
        let (go, let_go) = channel();
        let gate = Gate {
            task: Task::new(Gate::run),
            entered: entered.clone(),
            let_go: std::sync::Mutex::new(let_go),
            number,
            turns: AtomicUsize::new(0),
        };
        (Box::new(gate), go)
    }

    /// The token, which the test hands out once at a time.
    fn token(&self) -> TaskRef {
        // SAFETY: each test schedules a gate only when its last turn was let go with `Idle`, and joins the
        // threads before it drops the gate.
        unsafe { TaskRef::new(NonNull::from(self).cast()) }
    }

    /// # Safety
    ///
    /// `RunFn`'s, for the task of a gate.
    unsafe fn run(task: NonNull<Task>, _: &Turn) -> Ran {
        // SAFETY: `token` made the pointer from a whole gate.
        let this = unsafe { task.cast::<Gate>().as_ref() };
        this.turns.fetch_add(1, Ordering::Relaxed);
        this.entered.send(this.number).expect("the test listens");
        this.let_go.lock().expect("one at a time").recv().expect("the test lets go")
    }
}

#[test]
fn a_blocking_pool_grows_to_its_bound_and_then_queues() {
    let recipe = Dispatcher::blocking().thread_range(1..=3);
    let running = recipe.start("grows", || ()).expect("the settings are good");
    let Running::Blocking(pool) = &running else { panic!("{running:?}") };
    let (entered, entries) = channel();
    let gates: Vec<_> = (0..4).map(|number| Gate::new(number, &entered)).collect();
    for (gate, _) in &gates {
        running.place_task().expect("shared").schedule(gate.token(), |_, _| ());
    }
    // Three block at the same time, on three threads; the fourth waits.
    let mut inside: Vec<usize> = (0..3).map(|_| entries.recv().expect("a turn")).collect();
    inside.sort_unstable();
    assert_eq!(inside, [0, 1, 2]);
    assert_eq!(pool.thread_count(), 3);
    assert!(entries.try_recv().is_err());
    // A requeued task goes behind the one that waits.
    gates[1].1.send(Ran::Requeue).expect("the gate listens");
    assert_eq!(entries.recv(), Ok(3));
    for (_, go) in &gates {
        go.send(Ran::Idle).expect("the gate listens");
    }
    assert_eq!(entries.recv(), Ok(1));
    running.stop_and_join().expect("not on a thread of the pool");
    assert_eq!(pool.thread_count(), 0);
    assert_eq!(gates[1].0.turns.load(Ordering::Relaxed), 2);
}

#[test]
fn threads_above_the_minimum_end_when_they_are_not_needed() {
    let recipe = Dispatcher::blocking().thread_range(1..=3).keep_alive(Duration::ZERO);
    let running = recipe.start("shrinks", || ()).expect("the settings are good");
    let Running::Blocking(pool) = &running else { panic!("{running:?}") };
    let (entered, entries) = channel();
    let gates: Vec<_> = (0..3).map(|number| Gate::new(number, &entered)).collect();
    gates.iter().for_each(|(gate, _)| pool.schedule(gate.token()));
    gates.iter().for_each(|_| assert!(entries.recv().is_ok()));
    assert_eq!(pool.thread_count(), 3);
    gates.iter().for_each(|(_, go)| go.send(Ran::Idle).expect("the gate listens"));
    while pool.thread_count() > 1 {
        std::thread::yield_now();
    }
    running.stop_and_join().expect("not on a thread of the pool");
}

#[test]
fn a_pinned_actor_has_a_thread_of_its_own_until_it_is_released() {
    let running = Dispatcher::pinned().start("pinned", || ()).expect("good");
    let (entered, entries) = channel();
    let (left, go_left) = Gate::new(0, &entered);
    let (right, go_right) = Gate::new(1, &entered);
    let homes = [running.place_task().expect("a thread"), running.place_task().expect("a thread")];
    homes[0].schedule(left.token(), |_, _| ());
    assert_eq!(entries.recv(), Ok(0));
    // The other actor runs although this one blocks.
    homes[1].schedule(right.token(), |_, _| ());
    assert_eq!(entries.recv(), Ok(1));
    go_left.send(Ran::Busy).expect("the gate listens");
    assert_eq!(entries.recv(), Ok(0));
    go_left.send(Ran::Idle).expect("the gate listens");
    go_right.send(Ran::Requeue).expect("the gate listens");
    assert_eq!(entries.recv(), Ok(1));
    homes[1].release();
    go_right.send(Ran::Idle).expect("the gate listens");
    // The first actor is not released: the stop ends its thread.
    running.stop_and_join().expect("not on a thread of the dispatcher");
}

#[test]
fn a_pinned_thread_that_has_not_parked_sees_what_led_to_the_wake() {
    let running = Dispatcher::pinned().start("wakes", || ()).expect("good");
    let placement = running.place_task().expect("a thread");
    let (entered, entries) = channel();
    let mut gates = Vec::new();
    for number in 0..if cfg!(miri) { 5 } else { 500 } {
        // The gate is made and scheduled while the thread is on its way from the turn before to its slot.
        let (gate, go) = Gate::new(number, &entered);
        gates.push(gate);
        placement.schedule(gates[number].token(), |_, _| ());
        assert_eq!(entries.recv(), Ok(number));
        go.send(Ran::Idle).expect("the gate listens");
    }
    running.stop_and_join().expect("not on a thread of the dispatcher");
}

#[test]
fn workers_get_what_the_recipe_says() {
    let (deadline, spin) = (Duration::from_millis(3), Duration::from_micros(7));
    let recipe =
        Dispatcher::work_stealing().pin_to([1, 0]).throughput(9).deadline(deadline).spin(spin).lifo(false);
    let got = recipe.pool_settings("named");
    assert_eq!((got.name.as_str(), got.thread_count, got.pin_to), ("named", 2, Some(vec![1, 0])));
    assert_eq!((got.throughput, got.deadline, got.spin, got.lifo), (9, Some(deadline), spin, false));
    assert_eq!(recipe.threads(3).pool_settings("named").thread_count, 3);
}

#[test]
fn recipes_out_of_bounds_are_refused() {
    fn refused(recipe: Dispatcher) -> String {
        recipe.start("bad", || ()).expect_err("out of bounds").to_string()
    }
    assert_eq!(refused(Dispatcher::work_stealing().threads(0)), "0 threads: must be between 1 and 1024");
    assert_eq!(refused(Dispatcher::work_stealing().pin_to([])), "0 threads: must be between 1 and 1024");
    assert_eq!(
        refused(Dispatcher::work_stealing().throughput(0)),
        "throughput 0: must be at least 1 message per turn"
    );
    assert_eq!(
        refused(Dispatcher::pinned().throughput(0)),
        "throughput 0: must be at least 1 message per turn"
    );
    assert_eq!(refused(Dispatcher::blocking().thread_range(0..=4)), "0 threads: must be between 1 and 4096");
    assert_eq!(
        refused(Dispatcher::blocking().thread_range(1..=5000)),
        "5000 threads: must be between 1 and 4096"
    );
    #[allow(clippy::reversed_empty_ranges)] // to be refused
    let reversed = Dispatcher::blocking().thread_range(4..=2);
    assert_eq!(refused(reversed), "4 to 2 threads: the upper end must not be below the lower");
}
