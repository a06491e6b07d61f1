//! One round: a system of its own, one storm or several in it, bouts of sending with a look at the books after each,
//! and the end of the system.

use crate::books::{Books, Count};
use crate::dice::Dice;
use crate::machine;
use crate::parcel::{Parcel, Pen};
use crate::patience::Patience;
use crate::scene::{Ground, Scale, Scene};
use crate::storms::Storm;
use pointsman::dead_letters::DeadLetterLog;
use pointsman::time::ManualClock;
use pointsman::{Directive, Dispatcher, Ledger, Strategy, System, SystemRef};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any system takes to end.
const LONG: Duration = Duration::from_secs(120);
/// Senders look so often, in batches, whether too much is under way.
const BATCHES: usize = 8;

/// What a round is made of.
pub struct Round {
    pub seed: u64,
    pub storms: Vec<Storm>,
    pub bouts: usize,
    pub scale: Scale,
    /// Unusual numbers of workers, and places for them.
    pub odd_topology: bool,
}

/// Counts of the books when the round began.
struct Before([i64; 4]);

const ENDS: [Count; 4] = [Count::Handled, Count::Dead, Count::Dropped, Count::Back];

struct Stage<'a> {
    books: &'static Books,
    scenes: Vec<Box<dyn Scene>>,
    system: SystemRef,
    /// Until it is dropped.
    whole: Mutex<Option<System>>,
    clock: Option<ManualClock>,
    before: Before,
    /// The actors' states of this round, those of the rounds before left out.
    round: &'a Round,
}

impl Round {
    /// Runs it; what was wrong stands in the books.
    ///
    /// # Errors
    ///
    /// What kept a system or an actor from being created.
    pub fn run(&self, books: &'static Books) -> Result<(), Box<dyn std::error::Error>> {
        let mut dice = Dice::new(self.seed);
        if self.odd_topology {
            refuses_a_missing_core(books);
        }
        books.forget_senders();
        let clock = dice.hits(1, 3).then(ManualClock::new);
        let mut builder = System::builder("soak")
            .dispatcher("default", self.workers(&mut dice))
            .dispatcher("management", Dispatcher::pinned())
            .dispatcher("blocking", Dispatcher::blocking().thread_range(1..=8))
            .seed(dice.draw())
            .supervision(Strategy::decide(|_| Directive::Restart).quiet())
            .log_dead_letters(DeadLetterLog::off());
        if let Some(clock) = &clock {
            builder = builder.clock(clock.clone());
        }
        let system = builder.build()?;
        let _sink = system.dead_letters().take_by::<Parcel>(|_| {}, Parcel::bury)?;
        let mut scenes = Vec::new();
        for (number, storm) in self.storms.iter().enumerate() {
            let ground = Ground { system: &system, books, scale: self.scale, number };
            scenes.push((storm.build)(&ground, &mut dice)?);
        }
        let stage = Stage {
            books,
            scenes,
            system: system.handle().clone(),
            whole: Mutex::new(Some(system)),
            clock,
            before: Before(ENDS.map(|end| books.total(end))),
            round: self,
        };
        stage.play(&mut dice);
        Ok(())
    }

    fn workers(&self, dice: &mut Dice) -> Dispatcher {
        let cores = machine::cores();
        let counts: &[usize] = if self.odd_topology { &[1, 2, 8, 33, 65] } else { &[1, 2, 2, 2, 3, 4] };
        let count = *dice.pick(counts);
        let mut workers = Dispatcher::work_stealing()
            .threads(count)
            .throughput(*dice.pick(&[1, 5, 16, 64, 64, 64]))
            .spin(Duration::from_micros(*dice.pick(&[0, 5, 5, 50])))
            .lifo(dice.hits(3, 4));
        if self.odd_topology {
            workers = match dice.roll(3) {
                0 => workers,
                // All on one core.
                1 => workers.pin_to(std::iter::repeat_n(*dice.pick(&cores), count)),
                // On those that there are, in turn, whatever lies between them.
                _ => workers.pin_to(cores.iter().rev().copied().cycle().take(count)),
            };
        }
        workers
    }
}

/// A core that cannot be had is an error that leaves no thread behind.
fn refuses_a_missing_core(books: &Books) {
    let threads = machine::thread_count();
    let missing = 1023;
    let workers = Dispatcher::work_stealing().threads(2).pin_to([machine::cores()[0], missing]);
    if System::builder("nowhere").dispatcher("default", workers).build().is_ok() {
        books.fault(format!("a worker was pinned to core {missing}, which there is not"));
    }
    let mut patience = Patience::new();
    while machine::thread_count() > threads {
        if !patience.wait() {
            books.fault("a system that could not have its cores left threads behind");
            return;
        }
    }
}

impl Stage<'_> {
    fn play(self, dice: &mut Dice) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (mut clock_dice, stage, over) = (Dice::new(dice.draw()), &self, &over);
            scope.spawn(move || stage.let_time_pass(&mut clock_dice, over));
            self.bouts(dice);
            over.store(true, Ordering::Release);
        });
        let Self { books, scenes, system, whole, clock, .. } = self;
        drop((scenes, whole, clock));
        // What the engine frees later it frees now, since nobody is left who might read it.
        let mut patience = Patience::new();
        let left = || {
            (
                books.total(Count::Made) - books.total(Count::Gone),
                books.total(Count::Born) - books.total(Count::Buried),
            )
        };
        while left() != (0, 0) || system.living_actors() > 0 {
            if !patience.wait() {
                let (payloads, states) = left();
                let actors = system.living_actors();
                books.fault(format!(
                    "left when the system had ended: {payloads} messages, {states} states, {actors} actors"
                ));
                return;
            }
        }
    }

    fn bouts(&self, dice: &mut Dice) {
        let drops_under_load = dice.hits(1, 2);
        let sender_count = 1 + dice.roll(3);
        let mut pens: Vec<_> = (0..sender_count).map(|_| Pen::new(self.books)).collect();
        for bout in 0..self.round.bouts {
            let is_last = bout + 1 == self.round.bouts;
            self.rage(dice, &mut pens, is_last && drops_under_load);
            self.scenes.iter().for_each(|scene| scene.calm());
            if !self.come_to_rest() || self.books.has_faults() {
                break;
            }
            self.compare(&self.system.ledger(), "at rest");
            if !is_last {
                self.scenes.iter().for_each(|scene| scene.settle(dice));
            }
            self.books.close_bout();
            if self.books.has_faults() {
                break;
            }
        }
        // Dropped already, or stopped now.
        let system = self.whole.lock().expect("nobody panics with it").take();
        if let Some(system) = system {
            match system.shutdown(LONG) {
                Ok(ledger) => self.compare(&ledger, "after the shutdown"),
                Err(error) => self.books.fault(format!("shutdown: {error}")),
            }
        }
    }

    /// Time passes by itself, or as a clock that stands, creeps, and jumps by an hour.
    fn let_time_pass(&self, dice: &mut Dice, over: &AtomicBool) {
        let Some(clock) = &self.clock else { return };
        while !over.load(Ordering::Acquire) {
            clock.advance(match dice.roll(64) {
                0 => Duration::from_secs(3600),
                1 => Duration::ZERO,
                2 => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
                _ => Duration::from_micros(500),
            });
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// Everybody sends, and everything changes.
    fn rage(&self, dice: &mut Dice, pens: &mut [Pen], drops_under_load: bool) {
        let length = Duration::from_millis(self.round.scale.bout_millis);
        let (began, over) = (Instant::now(), AtomicBool::new(false));
        let is_over = || began.elapsed() >= length || self.books.has_faults();
        thread::scope(|scope| {
            let mut weather_dice = Dice::new(dice.draw());
            let over = &over;
            let weather = scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    if drops_under_load && began.elapsed() >= length / 2 {
                        // Its senders outlive it.
                        drop(self.whole.lock().expect("nobody panics with it").take());
                        return;
                    }
                    weather_dice.pick(&self.scenes).change(&mut weather_dice);
                    thread::sleep(Duration::from_micros(weather_dice.roll(300) as u64));
                }
            });
            let senders: Vec<_> = pens
                .iter_mut()
                .map(|pen| {
                    let mut dice = Dice::new(dice.draw());
                    scope.spawn(move || while !is_over() && self.send_some(pen, &mut dice) {})
                })
                .collect();
            senders.into_iter().for_each(|sender| sender.join().expect("no sender panics"));
            if drops_under_load {
                // Also where the senders were done before.
                weather.join().expect("the weather does not panic");
            } else {
                over.store(true, Ordering::Release);
            }
        });
    }

    /// `false` when the bout has had all that it may have.
    fn send_some(&self, pen: &mut Pen, dice: &mut Dice) -> bool {
        for _ in 0..BATCHES {
            if !dice.pick(&self.scenes).send(pen, dice) {
                return false;
            }
        }
        let mut patience = Patience::new();
        while self.books.under_way() > self.round.scale.window {
            if !patience.wait() {
                self.books.fault("what is under way does not become less");
                return false;
            }
        }
        true
    }

    /// Waits until nothing is under way. Nobody sends, so what lies in a mailbox is handled without a further push, or
    /// the engine has forgotten an actor.
    fn come_to_rest(&self) -> bool {
        let mut patience = Patience::new();
        let mut ended = self.books.ended();
        loop {
            let ledger = self.system.ledger();
            let living = self.books.total(Count::Born) - self.books.total(Count::Buried);
            let population = self.population();
            let is_at_rest = self.books.under_way() == 0
                && (ledger.queued, ledger.balance(), ledger.asks.pending()) == (0, 0, 0)
                && population.is_none_or(|expected| expected as i64 == living);
            if is_at_rest {
                return true;
            }
            if self.books.ended() != ended {
                ended = self.books.ended();
                patience.renew();
            }
            if self.books.has_faults() {
                return false;
            }
            if !patience.wait() {
                self.books.fault(format!(
                    "no rest: {} messages under way; {ledger}; {} asks pending; {living} states of actors where there \
                     are {population:?} actors",
                    self.books.under_way(),
                    ledger.asks.pending()
                ));
                return false;
            }
        }
    }

    /// How many actors there must be; none once the system has ended.
    fn population(&self) -> Option<usize> {
        if self.whole.lock().expect("nobody panics with it").is_none() {
            return Some(0);
        }
        self.scenes.iter().map(|scene| scene.population()).sum()
    }

    /// Compares the engine's books with ours.
    fn compare(&self, ledger: &Ledger, when: &str) {
        let own = |end: Count| {
            let at = ENDS.iter().position(|one| *one == end).expect("one of them");
            self.books.total(end) - self.before.0[at]
        };
        let others = [
            // Management and questions are messages, too.
            ("handled", ledger.handled as i64 - own(Count::Handled), true),
            ("dead-lettered", ledger.dead_lettered as i64 - own(Count::Dead), true),
            ("dropped", ledger.dropped as i64 - own(Count::Dropped), false),
            ("handed back", ledger.handed_back as i64 - own(Count::Back), false),
        ];
        for (term, more, may_be_more) in others {
            if more < 0 || (more > 0 && !may_be_more) {
                self.books.fault(format!(
                    "{when}, the engine counted {more} more {term} than there were: {ledger}"
                ));
            }
        }
        if (ledger.balance(), ledger.queued) != (0, 0) {
            self.books.fault(format!("{when}, the ledger does not balance: {ledger}"));
        }
        let (asked, answered, failed) = (
            self.books.total(Count::Asked),
            self.books.total(Count::Answered),
            self.books.total(Count::Failed),
        );
        if asked != answered + failed {
            self.books
                .fault(format!("{when}, {asked} questions had {answered} answers and {failed} failures"));
        }
    }
}
