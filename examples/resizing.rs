//! Two pools follow one load: a `DefaultResizer` and an `OptimalSizeExploringResizer`, side by side.
//!
//! ```text
//!              ┌──────────────────────┐
//!   load ──┬──▶│ pool, DefaultResizer │──▶ 1 to 16 workers
//!          │   └──────────────────────┘
//!          │   ┌──────────────────────────────────┐
//!          └──▶│ pool, OptimalSizeExploringResizer │──▶ 1 to 16 workers
//!              └──────────────────────────────────┘
//! ```
//!
//! Time is made of slots: a worker does one job in a slot, so a pool of n does n at most. Jobs come in two
//! waves; the clock moves by one second a slot, and the resizers look at their pools at each second. Nothing
//! here depends on the machine. Load and sizes are drawn into an SVG file:
//!
//! ```text
//! cargo run --example resizing                 # target/resizing.svg
//! cargo run --example resizing -- plot.svg
//! ```

use plotters::prelude::*;
use pointsman::actor::RecipientLoad;
use pointsman::prelude::*;
use pointsman::routing::{DefaultResizer, OptimalSizeExploringResizer, Resizer};
use pointsman::time::ManualClock;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const SLOT: Duration = Duration::from_secs(1);
const SLOTS: u64 = 360;
const WORKERS_MAX: usize = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "target/resizing.svg".to_owned());
    // By the clock alone: which message is the tenth must not matter here.
    let default =
        DefaultResizer::new().upper_bound(WORKERS_MAX).tick_interval(SLOT).messages_per_resize(u64::MAX);
    let exploring = OptimalSizeExploringResizer::new()
        .upper_bound(WORKERS_MAX)
        .action_interval(SLOT)
        .downsize_after_underutilized_for(10 * SLOT)
        .explore_step_size(0.2);
    let load: Vec<usize> = (0..SLOTS).map(jobs_in).collect();
    let sizes = [follow(&load, default)?, follow(&load, exploring)?];
    for (name, sizes) in ["DefaultResizer", "OptimalSizeExploringResizer"].iter().zip(&sizes) {
        check(name, &load, sizes);
    }
    draw(&path, &load, &sizes)?;
    println!("drawn: {path}");
    Ok(())
}

/// How many jobs come in a slot: two waves of up to 10, with nothing between them.
fn jobs_in(slot: u64) -> usize {
    let turn = (slot as f64 / SLOTS as f64) * 2.0 * std::f64::consts::TAU;
    (-10.0 * turn.cos()).max(0.0).round() as usize
}

/// Sends the load to a pool with this resizer; returns its size in each slot.
fn follow(load: &[usize], resizer: impl Resizer) -> Result<Vec<usize>, Box<dyn Error>> {
    let clock = ManualClock::new();
    let system = System::builder("resizing")
        .clock(clock.clone())
        .seed(11)
        // A worker at work holds its thread; those that leave finish what they have.
        .dispatcher("work", Dispatcher::blocking().thread_range(1..=4 * WORKERS_MAX))
        .build()?;
    let hall = Arc::new(Hall::default());
    let workers = hall.clone();
    let pool = system
        .router("pool")
        .pool(1, move |ctx| Worker::new(workers.clone(), ctx))
        .dispatcher("work")
        .resizer(resizer)
        .spawn()?;
    let mut sizes = Vec::new();
    let mut routees = pool.routees()?;
    for jobs in load {
        hall.open_slot();
        hall.wait_until_settled(&routees);
        (0..*jobs).for_each(|_| pool.tell(Job));
        hall.wait_until_settled(&routees);
        clock.advance(SLOT);
        // The head answers behind what the tick has set off.
        routees = pool.routees_info()?.into_iter().map(|info| info.routee.actor().clone()).collect();
        sizes.push(routees.len());
    }
    hall.close();
    let ledger = system.shutdown(Duration::from_secs(30))?;
    assert_eq!((ledger.balance(), ledger.dead_lettered), (0, 0), "resizing loses nothing: {ledger}");
    Ok(sizes)
}

struct Job;

/// Does one job in a slot.
struct Worker {
    hall: Arc<Hall>,
    number: usize,
}

impl Worker {
    fn new(hall: Arc<Hall>, ctx: &Context<Job>) -> Self {
        let number = ctx.routee_index();
        hall.change(|staff| staff.workers.push(Desk { number, me: ctx.me().clone(), done_in: None }));
        Self { hall, number }
    }
}

impl Actor for Worker {
    type Message = Job;

    fn receive(&mut self, _: Job, _: &mut Context<Job>) -> HandlerResult {
        self.hall.work(self.number);
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Job>) {
        self.hall.change(|staff| staff.workers.retain(|desk| desk.number != self.number));
    }
}

/// Where the workers of one pool are, and which slot it is.
#[derive(Default)]
struct Hall {
    staff: Mutex<Staff>,
    changed: Condvar,
}

#[derive(Default)]
struct Staff {
    slot: u64,
    closed: bool,
    workers: Vec<Desk>,
}

struct Desk {
    number: usize,
    me: ActorRef<Job>,
    /// Until this slot is over its job is in hand.
    done_in: Option<u64>,
}

impl Hall {
    fn change<R>(&self, change: impl FnOnce(&mut Staff) -> R) -> R {
        let changed = change(&mut self.staff.lock().expect("no panic"));
        self.changed.notify_all();
        changed
    }

    fn open_slot(&self) {
        self.change(|staff| staff.slot += 1);
    }

    /// Jobs take no time any more.
    fn close(&self) {
        self.change(|staff| staff.closed = true);
    }

    /// Works until the slot is over.
    fn work(&self, number: usize) {
        let desk = |staff: &mut Staff| staff.workers.iter().position(|desk| desk.number == number);
        let slot = self.change(|staff| {
            let slot = staff.slot;
            if let Some(desk) = desk(staff) {
                staff.workers[desk].done_in = Some(slot);
            }
            slot
        });
        let staff = self.staff.lock().expect("no panic");
        let mut staff =
            self.changed.wait_while(staff, |staff| staff.slot == slot && !staff.closed).expect("no panic");
        if let Some(desk) = desk(&mut staff) {
            staff.workers[desk].done_in = None;
        }
    }

    /// Waits until each worker is here and has a job in hand for this slot, or none to do.
    fn wait_until_settled(&self, routees: &[ActorRef<Job>]) {
        loop {
            let staff = self.staff.lock().expect("no panic");
            let settled = |desk: &Desk| {
                desk.done_in == Some(staff.slot)
                    || (desk.done_in.is_none() && desk.me.load() == RecipientLoad::Idle)
            };
            let here = |routee: &ActorRef<Job>| staff.workers.iter().any(|desk| desk.me == *routee);
            if routees.iter().all(here) && staff.workers.iter().all(settled) {
                return;
            }
            drop(staff);
            std::thread::yield_now();
        }
    }
}

/// The sizes have followed the load: small before each wave, large in it.
fn check(name: &str, load: &[usize], sizes: &[usize]) {
    let quarter = load.len() / 4;
    let peak = |wave: usize| *sizes[2 * wave * quarter..][..2 * quarter].iter().max().expect("some slots");
    let between = *sizes[quarter + quarter / 2..][..quarter].iter().min().expect("some slots");
    println!("{name}: up to {}, down to {between}, up to {}", peak(0), peak(1));
    for wave in [0, 1] {
        assert!(peak(wave) >= 8, "{name} does not grow with wave {wave}: {sizes:?}");
    }
    assert!(between <= 2, "{name} does not shrink between the waves: {sizes:?}");
}

fn draw(path: &str, load: &[usize], sizes: &[Vec<usize>; 2]) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = Path::new(path).parent() {
        std::fs::create_dir_all(folder)?;
    }
    let area = SVGBackend::new(path, (900, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("Pools that follow a load", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(44)
        .build_cartesian_2d(0..load.len(), 0..WORKERS_MAX + 2)?;
    chart.configure_mesh().x_desc("seconds").y_desc("jobs a second, workers").draw()?;
    let lines = [
        ("load", load, RGBColor(150, 150, 150)),
        ("DefaultResizer", &sizes[0], RGBColor(31, 119, 180)),
        ("OptimalSizeExploringResizer", &sizes[1], RGBColor(214, 39, 40)),
    ];
    for (name, values, color) in lines {
        chart
            .draw_series(LineSeries::new(values.iter().copied().enumerate(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}
