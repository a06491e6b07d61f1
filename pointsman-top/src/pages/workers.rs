//! The page of the threads: what each dispatcher's threads do.

use crate::format;
use crate::model::model::Model;
use crate::pages::table::{self, Cell, Column};
use crate::snapshot::{Dispatcher, Worker};
use crate::style;
use crate::view::View;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const COLUMNS: [Column; 11] = [
    Column::left("thread", 24, 0),
    Column::right("msg/s", 6, 1),
    Column::left("trend", 12, 6),
    Column::right("turns/s", 7, 4),
    Column::right("msg/turn", 8, 7),
    Column::right("sleeps/s", 8, 8),
    Column::right("steals/s", 8, 9),
    Column::right("search", 6, 3),
    Column::path("runs", 0, 2),
    Column::path("class", 16, 10),
    Column::right("for", 10, 5),
];

const TREND: usize = 12;

/// A dispatcher, or a thread of it.
#[derive(Debug, Clone, Copy)]
pub enum Row<'m> {
    /// The heading of a dispatcher.
    Dispatcher(&'m Dispatcher),
    /// A thread.
    Worker(&'m Dispatcher, &'m Worker),
}

/// The rows that are shown.
pub fn rows<'m>(model: &'m Model, view: &View) -> Vec<Row<'m>> {
    let Some(snapshot) = model.snapshot() else { return Vec::new() };
    let mut rows = Vec::new();
    for dispatcher in &snapshot.dispatchers {
        let takes_all = view.filter.takes(&dispatcher.name);
        let is_shown = |worker: &&Worker| {
            let runs = worker.running.as_ref().is_some_and(|running| view.filter.takes(&running.path));
            takes_all || runs || view.filter.takes(&worker.thread)
        };
        let workers: Vec<&Worker> = dispatcher.workers.iter().filter(is_shown).collect();
        if takes_all || !workers.is_empty() {
            rows.push(Row::Dispatcher(dispatcher));
            rows.extend(workers.into_iter().map(|worker| Row::Worker(dispatcher, worker)));
        }
    }
    rows
}

/// Draws the page.
pub fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    let Some(snapshot) = model.snapshot() else { return };
    let rows = rows(model, view);
    let row = |at: usize| match rows[at] {
        Row::Dispatcher(dispatcher) => {
            let threads = match dispatcher.workers.len() {
                1 => "1 thread".to_owned(),
                count => format!("{} threads", format::count(count as u64)),
            };
            let mut cells = vec![Cell::styled(dispatcher.name.as_str(), style::NAME)];
            cells.resize(8, Cell::default());
            cells.push(Cell::styled(format!("{}, {threads}", dispatcher.kind), style::NAME));
            cells
        }
        Row::Worker(dispatcher, worker) => worker_cells(model, snapshot.at, dispatcher, worker),
    };
    table::draw(&COLUMNS, rows.len(), Some(view.row(rows.len())), row, area, buffer);
}

fn worker_cells(model: &Model, at: f64, dispatcher: &Dispatcher, worker: &Worker) -> Vec<Cell> {
    let history = model.workers.get(&dispatcher.name, &worker.thread);
    let last = |series: Option<Option<f64>>| series.flatten();
    let messages = last(history.map(|history| history.messages.last()));
    let turns = last(history.map(|history| history.turns.last()));
    let in_turn =
        messages.zip(turns).filter(|(_, turns)| *turns > 0.0).map(|(messages, turns)| messages / turns);
    let stuck = model
        .snapshot()
        .and_then(|snapshot| snapshot.stuck.iter().find(|stuck| stuck.thread == worker.thread));
    let in_turn_for = history
        .and_then(|history| history.in_turn_since)
        .map(|since| at - since)
        .filter(|length| *length > 0.0);
    let lasts = match (stuck, in_turn_for) {
        (Some(stuck), _) => Cell::styled(format!("STUCK {}", format::seconds(stuck.lasted)), style::BAD),
        (None, Some(length)) => Cell::styled(format!("> {}", format::seconds(length)), style::WARN),
        (None, None) => Cell::default(),
    };
    let running = worker.running.as_ref();
    let runs = match running {
        Some(running) => Cell::styled(running.path.as_str(), style::GOOD),
        None => Cell::styled("nothing", style::QUIET),
    };
    vec![
        Cell::styled(format!("  {}", worker.thread), Style::new()),
        Cell::from(format::short_or_unknown(messages)),
        Cell::styled(format::trend(history.map(|history| &history.messages), TREND), style::GOOD),
        Cell::from(format::short_or_unknown(turns)),
        Cell::from(format::short_or_unknown(in_turn)),
        Cell::from(format::short_or_unknown(last(history.map(|history| history.parks.last())))),
        Cell::from(format::short_or_unknown(last(history.map(|history| history.steals.last())))),
        Cell::from(format::percent(last(history.map(|history| history.searching.last())))),
        runs,
        Cell::styled(running.map_or("", |running| running.class.as_str()), style::NAME),
        lasts,
    ]
}
