//! Runs a model on loom and refuses to let it pass unfinished.

use std::cell::{Cell, RefCell};
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Settings under which loom ends a model early and calls it passed.
const UNFINISHED: [&str; 2] = ["LOOM_MAX_DURATION", "LOOM_MAX_PERMUTATIONS"];

/// Steps of one execution: loom's own bound of 1,000 is too low for a system of actors.
const BRANCHES_MAX: usize = 20_000;

std::thread_local! {
    /// The number of panics that began on this thread. Not per thread of a model: those all run on the exploring
    /// thread.
    static PANICS: Cell<usize> = const { Cell::new(0) };
    /// Whether loom has found a deadlock on this thread. Loom can do nothing more then, so every destructor that
    /// unwinding meets panics in its turn.
    static DEADLOCKED: Cell<bool> = const { Cell::new(false) };
    /// The model that this thread explores.
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// Whether panics are counted: a model of a user has been explored in this process.
static COUNTS: AtomicBool = AtomicBool::new(false);

/// The beginnings of the messages with which Rust ends the process: a second panic met the first in a destructor, or a
/// panic came where none may pass.
const ABORTS: [&str; 2] = ["panic in a destructor during cleanup", "panic in a function that cannot unwind"];

/// So many panics of an execution are kept. The first is the cause, unless the model plants and catches panics.
const KEPT: usize = 3;

/// A model while it is explored.
struct Run {
    name: String,
    execution: usize,
    /// Where the first panics of this execution came from, and their messages.
    panics: Vec<String>,
}

impl Run {
    /// Writes to standard error that the model has failed, and by which panics.
    fn report(&self, how: &str) {
        let Self { name, execution, panics } = self;
        let mut lines =
            format!("model {name} FAILED in execution {execution}{how}. Its panics, the first first:\n");
        for panic in panics {
            lines += &format!("    {panic}\n");
        }
        eprint!("{lines}");
    }
}

/// Notes the model that the thread explores; when a panic ends the model, reports that behind all other output.
struct Noted;

impl Noted {
    fn begin(name: &str) -> Self {
        let run = Run { name: name.to_owned(), execution: 0, panics: Vec::new() };
        RUN.with(|noted| *noted.borrow_mut() = Some(run));
        Self
    }

    fn begin_execution(execution: usize) {
        RUN.with(|noted| {
            if let Some(run) = &mut *noted.borrow_mut() {
                run.execution = execution;
                run.panics.clear();
            }
        });
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let run = RUN.with(|noted| noted.borrow_mut().take());
        if let Some(run) = run.filter(|run| std::thread::panicking() && !run.panics.is_empty()) {
            run.report("");
        }
    }
}

/// The beginning of the message with which loom reports a deadlock.
const DEADLOCK: &str = "deadlock; threads";

/// Explores `run` under at most `bound` preemptions, or more if `LOOM_MAX_PREEMPTIONS` says so. Demands at least
/// `floor` executions, so that a model whose threads stopped racing fails instead of passing. The variable cannot lower
/// the bound: a user who has set it for something else would explore less, and the model would pass.
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
    hook();
    let noted = Noted::begin(name);
    let mut builder = loom::model::Builder::new();
    let used = builder.preemption_bound.map_or(bound, |asked| asked.max(bound));
    builder.preemption_bound = Some(used);
    builder.max_branches = BRANCHES_MAX;

    // Uses std's types, since loom's would be a part of the model.
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    let began = Instant::now();
    builder.check(move || {
        // Ordering: Relaxed; one thread counts and reads.
        let before = counted.fetch_add(1, Ordering::Relaxed);
        Noted::begin_execution(before + 1);
        run();
    });
    drop(noted);
    // Ordering: Relaxed; as above.
    let explored = executions.load(Ordering::Relaxed);
    let seconds = began.elapsed().as_secs_f64();
    // Written in one piece, so that no other test's line comes between.
    let line = format!("model {name} bound {used} executions {explored} seconds {seconds:.1}\n");
    eprint!("{line}");
    assert!(
        used > bound || explored >= floor,
        "{name}: {explored} executions, at least {floor} expected: does the model still race?"
    );
}

/// How many panics began on this thread since this function was first called, whether or not they were caught.
pub fn panics() -> usize {
    hook();
    // Ordering: Relaxed; a mark that stands for itself.
    COUNTS.store(true, Ordering::Relaxed);
    PANICS.get()
}

/// Sees each panic of the process from now on, once.
fn hook() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| see(info, &previous)));
    });
}

/// Counts and notes a panic, and passes it on. Must not panic itself.
fn see(info: &PanicHookInfo<'_>, previous: &dyn Fn(&PanicHookInfo<'_>)) {
    let payload = info.payload();
    let message = payload.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a value, no text");
    // A panic that ends the process is passed on in any case: the test harness prints then the output that it has
    // captured.
    if ABORTS.iter().any(|aborts| message.starts_with(aborts)) {
        previous(info);
        return RUN.with(|noted| {
            if let Ok(Some(run)) = noted.try_borrow().as_deref() {
                run.report(&format!(", and ends the process: {message}"));
            }
        });
    }
    // Ordering: Relaxed; as in `panics`.
    if COUNTS.load(Ordering::Relaxed) {
        PANICS.set(PANICS.get() + 1);
    }
    RUN.with(|noted| {
        if let Ok(Some(run)) = noted.try_borrow_mut().as_deref_mut() {
            if run.panics.len() < KEPT {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                run.panics.push(format!("{place}: {message}"));
            }
        }
    });
    // The panics after a deadlock would hide its message under tens of thousands of lines.
    if DEADLOCKED.get() {
        return;
    }
    DEADLOCKED.set(message.starts_with(DEADLOCK));
    previous(info);
}

/// Whether a panic has begun on this thread that [`panics`] counts: the execution fails then, even if the panic is
/// caught. Models of the engine itself, which may catch panics that they have planted, do not count and never fail so.
pub fn has_failed() -> bool {
    std::thread::panicking() && PANICS.get() > 0
}
