//! The page of the actors.

use crate::format;
use crate::model::classes::ClassHistory;
use crate::model::model::Model;
use crate::pages::largest_first;
use crate::pages::table::{self, Cell, Column};
use crate::snapshot::Actor;
use crate::style;
use crate::view::{Sort, View};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const COLUMNS: [Column; 13] = [
    Column::path("actor", 0, 0),
    Column::path("class", 16, 6),
    Column::left("state", 9, 3),
    Column::right("queued", 7, 1),
    Column::right("peak", 7, 9),
    Column::right("msg/s", 6, 2),
    Column::left("trend", 12, 8),
    Column::right("wait p50", 8, 10),
    Column::right("wait p99", 8, 4),
    Column::right("hndl p50", 8, 10),
    Column::right("hndl p99", 8, 5),
    Column::right("failed", 7, 7),
    Column::right("restarts", 8, 11),
];

/// The columns of a trend.
const TREND: usize = 12;

/// The actors that are shown, in their order.
pub fn rows<'m>(model: &'m Model, view: &View) -> Vec<&'m Actor> {
    let Some(snapshot) = model.snapshot() else { return Vec::new() };
    let is_shown = |actor: &&Actor| view.filter.takes(&actor.path);
    let mut actors: Vec<&Actor> = snapshot.actors.iter().filter(is_shown).collect();
    let class = |actor: &Actor| model.classes.get(&actor.class);
    let last = |actor: &Actor, series: fn(&ClassHistory) -> Option<f64>| class(actor).and_then(series);
    match view.sort {
        // The server may have counted them off by another order.
        Sort::Tree => actors.sort_by(|left, right| left.path.split('/').cmp(right.path.split('/'))),
        Sort::Queued => actors.sort_by_key(|actor| std::cmp::Reverse(actor.queued)),
        Sort::Handled => actors.sort_by_key(|actor| std::cmp::Reverse(actor.handled)),
        Sort::Rate => {
            actors.sort_by(|left, right| largest_first(model.actors.rate(left), model.actors.rate(right)));
        }
        Sort::Wait => actors.sort_by(|left, right| {
            let wait = |actor| last(actor, |class| class.wait_p99.last());
            largest_first(wait(left), wait(right))
        }),
        Sort::Handle => actors.sort_by(|left, right| {
            let handle = |actor| last(actor, |class| class.handle_p99.last());
            largest_first(handle(left), handle(right))
        }),
    }
    actors
}

/// Draws the page.
pub fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    let Some(snapshot) = model.snapshot() else { return };
    let actors = rows(model, view);
    let since = snapshot.actors_since.map(|since| format!(", counted over {}", format::seconds(since)));
    let head = format!(
        "{} of {} actors, order: {}{}",
        format::count(actors.len() as u64),
        format::count(snapshot.living),
        view.sort.name(),
        since.unwrap_or_default(),
    );
    buffer.set_stringn(area.x + 1, area.y, head, usize::from(area.width.saturating_sub(1)), style::QUIET);
    let note_height = u16::from(area.height > 12);
    if note_height > 0 {
        let note = "wait, hndl (handlers) and failed are of the actor's class: since the reading before, failed since the start";
        let width = usize::from(area.width.saturating_sub(1));
        buffer.set_stringn(area.x + 1, area.bottom() - 1, note, width, style::QUIET);
    }
    let body = Rect { y: area.y + 1, height: area.height.saturating_sub(1 + note_height), ..area };
    let is_tree = view.sort == Sort::Tree && view.filter.text().is_empty();
    let chosen = Some(view.row(actors.len()));
    let is_stuck = |actor: &Actor| {
        snapshot.stuck.iter().any(|stuck| stuck.actor.uid == actor.uid && stuck.actor.path == actor.path)
    };
    let row = |at: usize| {
        let actor = actors[at];
        let state = if is_stuck(actor) { "STUCK" } else { actor.state.as_str() };
        let class = snapshot.classes.iter().find(|class| class.name == actor.class);
        let times = model.classes.get(&actor.class);
        let history = model.actors.get(actor);
        let quantile = |part: f64, of_waits: bool| {
            let times = times.map(|times| if of_waits { &times.wait_lately } else { &times.handle_lately });
            Cell::from(format::nanos(times.and_then(|times| times.quantile(part))))
        };
        let failures = class.map(|class| class.failures);
        let warn_if = |is_bad: bool, style: Style| if is_bad { style } else { Style::new() };
        vec![
            Cell::styled(name(&actor.path, is_tree), warn_if(state == "STUCK", style::BAD)),
            Cell::styled(actor.class.as_str(), style::NAME),
            Cell::styled(state, style::state(state)),
            Cell::styled(format::short(actor.queued as f64), warn_if(actor.queued > 0, style::WARN)),
            Cell::from(
                history
                    .map_or(format::UNKNOWN.to_owned(), |history| format::short(history.queued_peak as f64)),
            ),
            Cell::from(format::short_or_unknown(model.actors.rate(actor))),
            Cell::styled(format::trend(history.map(|history| &history.rates), TREND), style::GOOD),
            quantile(0.5, true),
            quantile(0.99, true),
            quantile(0.5, false),
            quantile(0.99, false),
            Cell::styled(
                failures.map_or(format::UNKNOWN.to_owned(), |failures| format::short(failures as f64)),
                warn_if(failures.unwrap_or(0) > 0, style::WARN),
            ),
            Cell::from(format::short(f64::from(actor.restarts))),
        ]
    };
    table::draw(&COLUMNS, actors.len(), chosen, row, body, buffer);
}

/// The name of an actor: in a tree its last name, two blanks deeper than its parent's, and else its path.
fn name(path: &str, is_tree: bool) -> String {
    if !is_tree {
        return path.to_owned();
    }
    let depth = path.split('/').filter(|name| !name.is_empty()).count();
    match path.rsplit('/').next() {
        Some(name) if depth > 0 => format!("{}{name}", "  ".repeat(depth)),
        _ => path.to_owned(),
    }
}
