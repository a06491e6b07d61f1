//! Runs a scenario under many schedules, and refuses to let it pass with fewer.

use shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler,
};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::Instant;

/// Schedules of each scenario, half of them random and half by PCT.
pub const FLOOR: usize = 10_000;
/// Schedules of each scenario in a quick look, which shows that a scenario runs, and little more.
pub const QUICK: usize = 200;
/// So many more are run twice, to see that nothing but the schedule decides what happens.
const REPEATED: usize = 20;
/// Preemptions at chosen steps in a schedule by PCT.
const PCT_DEPTH: usize = 3;
/// No scenario comes near: one that takes so many goes round in a circle.
const STEPS_MAX: usize = 200_000;
/// Deep calls in an unoptimised build.
const STACK_BYTES: usize = 256 * 1024;

const SCHEDULES: &str = "POINTSMAN_SHUTTLE_SCHEDULES";
const QUICK_LOOK: &str = "POINTSMAN_SHUTTLE_QUICK";
const SEED: &str = "POINTSMAN_SHUTTLE_SEED";
const REPLAY: &str = "POINTSMAN_SHUTTLE_REPLAY";

std::thread_local! {
    /// How many panics began on this thread, on which all threads of its scenario run.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Where failing schedules are written.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("schedules").join(env!("CARGO_CRATE_NAME"))
}

/// How many schedules each scenario is to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    pub schedules: usize,
    /// Fewer than there must be, and told to be so.
    pub is_quick: bool,
}

/// What `setting` and `quick` ask for: [`FLOOR`] schedules if neither is set.
pub fn plan(setting: Option<&str>, quick: Option<&str>) -> Result<Plan, String> {
    match (setting, quick) {
        (None, None) => Ok(Plan { schedules: FLOOR, is_quick: false }),
        (None, Some("1")) => Ok(Plan { schedules: QUICK, is_quick: true }),
        (None, Some(text)) => Err(format!("{QUICK_LOOK}={text:?} says nothing: set it to 1, or unset it")),
        (Some(_), Some(_)) => Err(format!("{QUICK_LOOK} and {SCHEDULES} are both set: unset one of them")),
        (Some(text), None) => match text.parse() {
            Ok(schedules) if schedules >= FLOOR => Ok(Plan { schedules, is_quick: false }),
            Ok(count) => Err(format!(
                "{SCHEDULES}={count} is less than {FLOOR}: give a higher number, or none; {QUICK_LOOK}=1 is a quick \
                 look of {QUICK}"
            )),
            Err(_) => Err(format!("{SCHEDULES}={text:?} is no number")),
        },
    }
}

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    let folder = folder();
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    config.failure_persistence = FailurePersistence::File(Some(folder));
    config
}

/// Explores `run`: as many schedules as the environment says, or the one that it names.
///
/// Prints `scenario NAME schedules N steps M seconds S`, where M are those of the longest schedule. A quick look prints
/// `scenario NAME QUICK LOOK of N schedules …` instead.
///
/// # Panics
///
/// If a schedule does, deadlocks or takes too many steps. If anything in it panics, also where the engine catches it.
/// If the environment asks for fewer schedules than [`FLOOR`].
pub fn scenario(name: &str, run: impl Fn() + Send + Sync + 'static) {
    if let Some(file) = setting(REPLAY) {
        let scheduler = ReplayScheduler::new_from_file(&file).expect("the file holds a schedule");
        explore(scheduler, run);
        eprintln!("scenario {name} passed the schedule in {file}");
        return;
    }
    let _hint = Hint(name);
    let plan = plan(setting(SCHEDULES).as_deref(), setting(QUICK_LOOK).as_deref());
    let Plan { schedules: count, is_quick } = plan.unwrap_or_else(|error| panic!("{error}"));
    let seed = setting(SEED).map_or(0, |text| text.parse().expect("the seed is a number"));
    let began = Instant::now();
    let run = Arc::new(run);
    let again = || {
        let run = run.clone();
        move || run()
    };
    let half = count / 2;
    let repeated = RandomScheduler::new_from_seed(!seed, REPEATED);
    explore(UncontrolledNondeterminismCheckScheduler::new(repeated), again());
    let mut ran = explore(RandomScheduler::new_from_seed(seed, count - half), again());
    ran.add(explore(PctScheduler::new_from_seed(seed, PCT_DEPTH, half), again()));
    let Ran { schedules, steps } = ran;
    let seconds = began.elapsed().as_secs_f64();
    if is_quick {
        eprintln!(
            "scenario {name} QUICK LOOK of {schedules} schedules steps {steps} seconds {seconds:.1}: a full run has {FLOOR}, \
             without {QUICK_LOOK}"
        );
        return;
    }
    eprintln!("scenario {name} schedules {schedules} steps {steps} seconds {seconds:.1}");
    assert!(schedules >= FLOOR, "{name}: {schedules} schedules, at least {FLOOR} expected");
}

/// Says on the way out of a failure how to see it again.
struct Hint<'a>(&'a str);

impl Drop for Hint<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(name) = self;
            eprintln!("scenario {name} FAILED; with the last file named above this schedule runs again:");
            eprintln!("{REPLAY}=<file> cargo test -p shuttle-tests --test scenarios {name} -- --nocapture");
        }
    }
}

/// What was explored.
pub struct Ran {
    schedules: usize,
    /// Of the longest schedule.
    steps: usize,
}

impl Ran {
    fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.steps = self.steps.max(other.steps);
    }
}

/// Runs `run` as often as the scheduler wants.
pub fn explore(scheduler: impl Scheduler + 'static, run: impl Fn() + Send + Sync + 'static) -> Ran {
    count_panics();
    let before = PANICS.get();
    let longest = Arc::new(AtomicUsize::new(0));
    let steps = longest.clone();
    let schedules = Runner::new(scheduler, config()).run(move || {
        run();
        assert_eq!(PANICS.get(), before, "a panic in this schedule was caught: its message stands above");
        steps.fetch_max(shuttle::current::context_switches(), Relaxed);
    });
    Ran { schedules, steps: longest.load(Relaxed) }
}

fn count_panics() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.set(PANICS.get() + 1);
            previous(info);
        }));
    });
}
