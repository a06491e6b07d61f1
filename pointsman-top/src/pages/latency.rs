//! The page of times: how long messages wait and handlers take, by class.

use crate::format;
use crate::model::classes::ClassHistory;
use crate::model::histogram::Histogram;
use crate::model::model::Model;
use crate::pages::largest_first;
use crate::pages::table::{self, Cell, Column};
use crate::snapshot::Class;
use crate::style;
use crate::view::{Sort, View};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::cmp::Reverse;

const COLUMNS: [Column; 12] = [
    Column::path("class", 0, 0),
    Column::right("actors", 7, 7),
    Column::right("msg/s", 6, 3),
    Column::right("queued", 7, 4),
    Column::right("wait p50", 8, 5),
    Column::right("wait p99", 8, 1),
    Column::right("wait p99.9", 10, 8),
    Column::left("trend of p99", 12, 9),
    Column::right("hndl p50", 8, 6),
    Column::right("hndl p99", 8, 2),
    Column::right("hndl p99.9", 10, 10),
    Column::left("trend of p99", 12, 11),
];

const TREND: usize = 12;
/// The lines of the quantiles and bars of the chosen class.
pub const DETAIL_HEIGHT: usize = 27;
const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];

/// The classes that are shown, in their order.
pub fn rows<'m>(model: &'m Model, view: &View) -> Vec<&'m Class> {
    let Some(snapshot) = model.snapshot() else { return Vec::new() };
    let mut classes: Vec<&Class> =
        snapshot.classes.iter().filter(|class| view.filter.takes(&class.name)).collect();
    classes.sort_by(|left, right| left.name.cmp(&right.name));
    let by = |series: fn(&ClassHistory) -> Option<f64>| {
        move |left: &&Class, right: &&Class| {
            let last = |class: &Class| model.classes.get(&class.name).and_then(series);
            largest_first(last(left), last(right))
        }
    };
    match view.sort {
        Sort::Tree => {}
        Sort::Queued => classes.sort_by_key(|class| Reverse(class.queued)),
        Sort::Handled => classes.sort_by_key(|class| Reverse(class.handled)),
        Sort::Rate => classes.sort_by(by(|class| class.rates.last())),
        Sort::Wait => classes.sort_by(by(|class| class.wait_p99.last())),
        Sort::Handle => classes.sort_by(by(|class| class.handle_p99.last())),
    }
    classes
}

/// Draws the page.
pub fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    let classes = rows(model, view);
    let chosen = view.row(classes.len());
    let wanted = u16::try_from(classes.len() + 1).unwrap_or(u16::MAX);
    // The chosen class has the lower part, where there is room for both.
    let table_height = match area.height {
        height if height < 14 => height,
        height => wanted.min((height / 3).max(height.saturating_sub(DETAIL_HEIGHT as u16 + 1))),
    };
    let row = |at: usize| {
        let class = classes[at];
        let times = model.classes.get(&class.name);
        let quantile = |part: f64, of_waits: bool| {
            let times = times.map(|times| if of_waits { &times.wait_lately } else { &times.handle_lately });
            Cell::from(format::nanos(times.and_then(|times| times.quantile(part))))
        };
        vec![
            Cell::styled(class.name.as_str(), style::NAME),
            Cell::from(format::short(class.actors as f64)),
            Cell::from(format::short_or_unknown(times.and_then(|times| times.rates.last()))),
            Cell::styled(
                format::short(class.queued as f64),
                if class.queued > 0 { style::WARN } else { Style::new() },
            ),
            quantile(0.5, true),
            quantile(0.99, true),
            quantile(0.999, true),
            Cell::styled(format::trend(times.map(|times| &times.wait_p99), TREND), style::WARN),
            quantile(0.5, false),
            quantile(0.99, false),
            quantile(0.999, false),
            Cell::styled(format::trend(times.map(|times| &times.handle_p99), TREND), style::GOOD),
        ]
    };
    table::draw(&COLUMNS, classes.len(), Some(chosen), row, Rect { height: table_height, ..area }, buffer);
    let rest = area.height - table_height;
    if let (Some(class), true) = (classes.get(chosen), rest > 3) {
        let area = Rect { y: area.y + table_height + 1, height: rest - 1, ..area };
        detail(class, model.classes.get(&class.name), area, buffer);
    }
}

/// Draws the quantiles of a class, and the bars of its times.
fn detail(class: &Class, times: Option<&ClassHistory>, area: Rect, buffer: &mut Buffer) {
    let half = area.width / 2;
    let width = usize::from(area.width.saturating_sub(1));
    let set = |buffer: &mut Buffer, x: u16, y: u16, text: &str, style: Style| {
        if y < area.bottom() {
            buffer.set_stringn(area.x + 1 + x, y, text, width.saturating_sub(usize::from(x)), style);
        }
    };
    let depth = Histogram::of(&class.depth);
    let met = match (depth.quantile(0.5), depth.quantile(0.99)) {
        (Some(half), Some(most)) => format!(", where a turn meets {half} messages (p50), {most} (p99)"),
        _ => String::new(),
    };
    set(buffer, 0, area.y, &format!("{}{met}", format::plain(&class.name)), style::NAME);
    let Some(times) = times.filter(|times| times.wait.count() > 0 || times.handle.count() > 0) else {
        set(
            buffer,
            0,
            area.y + 1,
            "no times: the system measures them after set_telemetry(Telemetry::sampled())",
            style::QUIET,
        );
        return;
    };
    let sides =
        [("waits", &times.wait_lately, &times.wait), ("handlers", &times.handle_lately, &times.handle)];
    for (side, (name, lately, ever)) in sides.into_iter().enumerate() {
        let x = if side == 0 { 0 } else { half };
        let column_width = usize::from(half.saturating_sub(2));
        let line = |first: &str, second: &str, third: &str| {
            let text = format!(
                "{} {} {}",
                format::left(first, 14),
                format::right(second, 12),
                format::right(third, 12)
            );
            format::left(&text, column_width)
        };
        set(buffer, x, area.y + 1, &line(name, "lately", "ever"), Style::new());
        let samples =
            line("samples", &format::short(lately.count() as f64), &format::short(ever.count() as f64));
        set(buffer, x, area.y + 2, &samples, Style::new());
        for (y, (title, part)) in (area.y + 3..).zip(QUANTILES) {
            let text =
                line(title, &format::nanos(lately.quantile(part)), &format::nanos(ever.quantile(part)));
            set(buffer, x, y, &text, Style::new());
        }
        // Bars by powers of two; those of the newest interval if it has samples.
        let (shown, which) = if lately.count() > 0 { (lately, "lately") } else { (ever, "ever") };
        let bars_y = area.y + 4 + QUANTILES.len() as u16;
        let room = usize::from(area.bottom().saturating_sub(bars_y + 1));
        if room > 0 {
            set(buffer, x, bars_y, &format::left(&format!("up to, {which}"), column_width), style::QUIET);
            for (y, text) in (bars_y + 1..).zip(bars(shown, column_width, room)) {
                let style = if side == 0 { style::WARN } else { style::GOOD };
                set(buffer, x, y, &text, style);
            }
        }
    }
}

/// A line for each power of two, from the first to the last one with samples, the last lines if there are too many.
fn bars(histogram: &Histogram, width: usize, lines: usize) -> Vec<String> {
    let octaves = histogram.octaves();
    let (Some(first), Some(last)) = (octaves.keys().next(), octaves.keys().next_back()) else {
        return Vec::new();
    };
    let largest = octaves.values().max().copied().unwrap_or(1) as f64;
    let total = histogram.count() as f64;
    let bar_width = width.saturating_sub(16).min(50);
    let shown = (*first..=*last).rev().take(lines).collect::<Vec<_>>().into_iter().rev();
    shown
        .map(|exponent| {
            let count = octaves.get(&exponent).copied().unwrap_or(0) as f64;
            let length = (count / largest * bar_width as f64).ceil() as usize;
            let end = format::nanos(Some(1_u64.checked_shl(exponent).unwrap_or(u64::MAX)));
            let bar = format::left(&"█".repeat(length), bar_width);
            format!(
                "{} {bar} {}",
                format::right(&end, 8),
                format::right(&format::percent(Some(count / total)), 5)
            )
        })
        .collect()
}
