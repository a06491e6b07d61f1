//! Runs a model on loom and refuses to let it pass unfinished.

use std::cell::Cell;
use std::sync::Once;
use std::time::Instant;

/// Settings under which loom ends a model early and calls it passed.
const UNFINISHED: [&str; 2] = ["LOOM_MAX_DURATION", "LOOM_MAX_PERMUTATIONS"];

/// Steps of one execution: loom's own bound of 1,000 is too low for a system of actors.
const BRANCHES_MAX: usize = 20_000;

std::thread_local! {
    /// How many panics began on this thread. Not per thread of a model: those all run on the one that explores it.
    static PANICS: Cell<usize> = const { Cell::new(0) };
    /// Whether loom has found a deadlock on this thread. It can do nothing more then, so that every destructor which
    /// unwinding meets panics in its turn.
    static DEADLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// How the message begins with which loom tells of a deadlock.
const DEADLOCK: &str = "deadlock; threads";

/// Explores `run` under at most `bound` preemptions, or more if `LOOM_MAX_PREEMPTIONS` says so, and demands at
/// least `floor` executions, so that a model whose threads stopped racing fails instead of passing. Fewer preemptions
/// would be explored by nobody who set that for something else, and passed by all.
///
/// Prints `model NAME bound B executions N seconds S`.
///
/// # Panics
///
/// If an execution does; if there are fewer than `floor`, unless the environment wants more preemptions; and if
/// the environment tells loom to end early.
pub fn explore(name: &str, bound: usize, floor: usize, run: impl Fn() + Send + Sync + 'static) {
    for setting in UNFINISHED {
        assert!(
            std::env::var_os(setting).is_none(),
            "{setting} makes loom pass a model that it has not finished: unset it"
        );
    }
    DEADLOCKED.set(false);
    let mut builder = loom::model::Builder::new();
    let used = builder.preemption_bound.map_or(bound, |asked| asked.max(bound));
    builder.preemption_bound = Some(used);
    builder.max_branches = BRANCHES_MAX;

    // std's, since loom's would be a part of the model.
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    let began = Instant::now();
    builder.check(move || {
        // Ordering: Relaxed; one thread counts and reads.
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        run();
    });
    // Ordering: Relaxed; as above.
    let explored = executions.load(std::sync::atomic::Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    // In one piece, so that no other test's line comes between.
    let line = format!("model {name} bound {used} executions {explored} seconds {seconds:.1}\n");
    eprint!("{line}");
    assert!(
        used > bound || explored >= floor,
        "{name}: {explored} executions, at least {floor} expected: does the model still race?"
    );
}

/// How many panics began on this thread since this function was first called, whether or not they were caught.
pub fn panics() -> usize {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            // What follows a deadlock would bury its message under tens of thousands of lines.
            if DEADLOCKED.get() {
                return;
            }
            let message = info.payload().downcast_ref::<String>();
            DEADLOCKED.set(message.is_some_and(|message| message.starts_with(DEADLOCK)));
            previous(info);
        }));
    });
    PANICS.get()
}

/// Whether something panics on this thread that [`panics`] counts: the execution fails then, even if that is caught.
/// Models of the engine itself, which may catch what they have planted, do not count and never fail so.
pub fn has_failed() -> bool {
    std::thread::panicking() && PANICS.get() > 0
}
