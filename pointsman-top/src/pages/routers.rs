//! The page of the routers: which part of the messages each routee has handled, reading by reading.

use crate::format;
use crate::model::model::{Model, Tick};
use crate::model::routers::{RouteeHistory, RouterHistory};
use crate::model::series::HISTORY;
use crate::pages::largest_first;
use crate::pages::table::{self, Cell, Column};
use crate::snapshot::Router;
use crate::style;
use crate::view::{Sort, View};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::cmp::Reverse;

const COLUMNS: [Column; 10] = [
    Column::path("router", 0, 0),
    Column::left("logic", 24, 6),
    Column::right("routees", 7, 2),
    Column::right("msg/s", 6, 1),
    Column::left("trend", 12, 7),
    Column::right("max/mean", 8, 3),
    Column::right("refused", 7, 4),
    Column::right("no routee", 9, 5),
    Column::right("attempts", 8, 8),
    Column::right("late", 6, 9),
];

const TREND: usize = 12;
/// The most rows of the table of routers, with its heading.
const TABLE_MAX: u16 = 8;
/// The columns beside the heatmap: a name before it, and behind it the share, the rate, the queue and the load.
const NAME: u16 = 20;
const BESIDE: u16 = 32;

const LEGEND: &str = "share of a routee: · none  ░ below half the fair one  ▒ fair  ▓ from 1.5 times  █ from 2.5 times the fair one";

/// The routers that are shown, in their order.
pub fn rows<'m>(model: &'m Model, view: &View) -> Vec<&'m Router> {
    let Some(snapshot) = model.snapshot() else { return Vec::new() };
    let mut routers: Vec<&Router> =
        snapshot.routers.iter().filter(|router| view.filter.takes(&router.path)).collect();
    routers.sort_by(|left, right| left.path.cmp(&right.path));
    let rate = |router: &Router| model.routers.get(&router.path).and_then(|history| history.rates.last());
    let sum = |router: &Router, number: fn(&crate::snapshot::Routee) -> u64| {
        Reverse(router.routees.iter().fold(0_u64, |sum, routee| sum.saturating_add(number(routee))))
    };
    match view.sort {
        Sort::Rate => routers.sort_by(|left, right| largest_first(rate(left), rate(right))),
        Sort::Queued => routers.sort_by_key(|router| sum(router, |routee| routee.queued.unwrap_or(0))),
        Sort::Handled => routers.sort_by_key(|router| sum(router, |routee| routee.handled)),
        Sort::Tree | Sort::Wait | Sort::Handle => {}
    }
    routers
}

/// The lines that the table and the heatmaps of all shown routers take.
pub fn height(model: &Model, view: &View) -> usize {
    let routers = rows(model, view);
    let routees =
        |router: &Router| model.routers.get(&router.path).map_or(0, |history| history.routees.len());
    let heatmaps: usize = routers.iter().map(|router| routees(router) + 3).sum();
    let table_height = (routers.len() + 1).min(usize::from(TABLE_MAX));
    // A blank line and the legend.
    table_height + heatmaps + 2
}

/// Draws the page: the table of routers, and as many heatmaps, from the chosen router on, as there is room for.
pub fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    let routers = rows(model, view);
    let chosen = view.row(routers.len());
    let wanted = u16::try_from(routers.len() + 1).unwrap_or(u16::MAX).min(TABLE_MAX);
    let table_height = wanted.min((area.height / 2).max(2)).min(area.height);
    let row = |at: usize| {
        let router = routers[at];
        let history = model.routers.get(&router.path);
        let skew = history.and_then(RouterHistory::skew);
        let refusals = |count: u64| {
            Cell::styled(format::short(count as f64), if count > 0 { style::WARN } else { Style::new() })
        };
        vec![
            Cell::from(router.path.as_str()),
            Cell::styled(router.logic.as_str(), style::NAME),
            Cell::from(format::short(router.routees.len() as f64)),
            Cell::from(format::short_or_unknown(history.and_then(|history| history.rates.last()))),
            Cell::styled(format::trend(history.map(|history| &history.rates), TREND), style::GOOD),
            Cell::from(skew.map_or(format::UNKNOWN.to_owned(), |skew| format!("{skew:.2}"))),
            refusals(router.refused),
            refusals(router.no_routee),
            Cell::from(format::short(router.attempts as f64)),
            Cell::from(format::short(router.late as f64)),
        ]
    };
    table::draw(&COLUMNS, routers.len(), Some(chosen), row, Rect { height: table_height, ..area }, buffer);
    let mut rest = Rect { y: area.y + table_height, height: area.height - table_height, ..area };
    let legend_height = u16::from(rest.height > 5);
    if legend_height > 0 {
        let width = usize::from(area.width.saturating_sub(1));
        buffer.set_stringn(area.x + 1, area.bottom() - 1, LEGEND, width, style::QUIET);
        rest.height -= 1;
    }
    for (router, skipped) in
        routers.iter().skip(chosen).zip(std::iter::once(view.routees_skipped).chain(std::iter::repeat(0)))
    {
        let Some(history) = model.routers.get(&router.path) else { continue };
        // A blank line, a title, an axis, and a routee at least.
        if rest.height < 4 {
            break;
        }
        let lines = heatmap(
            model,
            router,
            history,
            view.sort,
            skipped,
            Rect { y: rest.y + 1, height: rest.height - 1, ..rest },
            buffer,
        );
        rest.y += lines + 1;
        rest.height -= lines + 1;
    }
}

/// Draws the heatmap of a router; returns the lines that it takes.
fn heatmap(
    model: &Model,
    router: &Router,
    history: &RouterHistory,
    sort: Sort,
    skipped: usize,
    area: Rect,
    buffer: &mut Buffer,
) -> u16 {
    let mut routees: Vec<&RouteeHistory> = history.routees.iter().collect();
    match sort {
        Sort::Rate => routees.sort_by(|left, right| largest_first(left.rates.last(), right.rates.last())),
        Sort::Queued => routees.sort_by_key(|routee| Reverse(routee.queued.unwrap_or(0))),
        _ => {}
    }
    let skipped = skipped.min(routees.len().saturating_sub(1));
    let width = usize::from(area.width);
    let title = match skipped {
        0 => router.path.clone(),
        _ => format!("{} (without the first {skipped} routees)", router.path),
    };
    buffer.set_stringn(area.x + 1, area.y, format::left(&title, width.saturating_sub(1)), width, style::NAME);

    let has_numbers = area.width > NAME + BESIDE + 10;
    let name_width = if area.width > NAME * 2 { NAME } else { area.width / 3 };
    let beside = if has_numbers { BESIDE } else { 6.min(area.width / 3) };
    let map_width = area.width.saturating_sub(name_width + beside + 2);
    let cells = usize::from(map_width).min(HISTORY);
    // The newest reading stands at the right.
    let map_x = area.x + 1 + name_width;
    let x_of = |back: usize| map_x + u16::try_from(cells - 1 - back).unwrap_or(0);

    let axis_y = area.y + 1;
    buffer.set_stringn(
        area.x + 1,
        axis_y,
        format::left("routee", usize::from(name_width)),
        width,
        style::QUIET,
    );
    for back in 0..cells {
        match model.tick(back) {
            Some(Tick::NewStart) => _ = buffer.set_stringn(x_of(back), axis_y, "N", 1, style::WARN),
            Some(Tick::NoAnswer) => _ = buffer.set_stringn(x_of(back), axis_y, "!", 1, style::BAD),
            // A mark for each tenth reading.
            Some(Tick::Snapshot) if back % 10 == 0 => {
                _ = buffer.set_stringn(x_of(back), axis_y, "┴", 1, style::QUIET)
            }
            Some(Tick::Snapshot) | None => {}
        }
    }
    let beside_x = map_x + u16::try_from(cells).unwrap_or(0) + 1;
    let numbers = |share: &str, rate: &str, queued: &str, load: &str| match has_numbers {
        true => format!(
            "{} {} {} {}",
            format::right(share, 6),
            format::right(rate, 6),
            format::right(queued, 7),
            format::left(load, 9)
        ),
        false => format::right(share, usize::from(beside)),
    };
    buffer.set_stringn(
        beside_x,
        axis_y,
        numbers("share", "msg/s", "queued", "load"),
        usize::from(beside),
        style::QUIET,
    );

    let mut lines = 2;
    for (y, routee) in (area.y + 2..area.bottom()).zip(routees.iter().skip(skipped)) {
        let name = format::left_by_end(&routee.identity, usize::from(name_width.saturating_sub(1)));
        buffer.set_stringn(area.x + 1, y, name, width, Style::new());
        for back in 0..cells {
            if let Some(share) = routee.shares.back(back) {
                let heat = style::heat(share * history.shared_among(back) as f64);
                buffer.set_stringn(x_of(back), y, heat.sign.to_string(), 1, Style::new().fg(heat.color));
            }
        }
        let load = routee.load.as_deref().unwrap_or("gone");
        let queued = routee.queued.map_or(format::UNKNOWN.to_owned(), |queued| format::short(queued as f64));
        let rate = format::short_or_unknown(routee.rates.last());
        let text = numbers(&format::percent(routee.shares.last()), &rate, &queued, load);
        buffer.set_stringn(beside_x, y, text, usize::from(beside), style::state(load));
        lines += 1;
    }
    lines
}
