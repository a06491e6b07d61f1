//! The page of the books: what has become of each message, of asks and of actors.

use crate::format;
use crate::model::model::Model;
use crate::model::series::Series;
use crate::snapshot::Snapshot;
use crate::style;
use crate::view::View;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const TREND: usize = 30;

/// The columns of a name, of a count and of its rate; those of a narrow screen.
const WIDTHS: [usize; 3] = [28, 18, 10];
const NARROW: [usize; 3] = [18, 12, 9];

/// A line of the books: a name, a count, and how fast it grows.
fn entry(widths: [usize; 3], name: &str, count: String, rate: Option<f64>, style: Style) -> Line<'static> {
    let rate = rate.map_or(String::new(), |rate| format!("{}/s", format::short(rate)));
    Line::from(vec![
        Span::raw(format::left(&format!("  {name}"), widths[0])),
        Span::styled(format::right(&count, widths[1]), style),
        Span::raw(format::right(&rate, widths[2])),
    ])
}

fn heading(text: &'static str) -> Line<'static> {
    Line::from(Span::styled(text, style::NAME))
}

/// The lines of the page, on a screen of so many columns.
pub fn lines(model: &Model, width: u16) -> Vec<Line<'static>> {
    let Some(snapshot) = model.snapshot() else { return Vec::new() };
    let widths = if usize::from(width) > WIDTHS.iter().sum() { WIDTHS } else { NARROW };
    let entry = |name: &str, count, rate, style| entry(widths, name, count, rate, style);
    let counted = |name: &str, count: fn(&Snapshot) -> u64| {
        entry(name, format::count(count(snapshot)), model.rate(count), Style::new())
    };
    // A count that should stay 0.
    let warned = |name: &str, count: fn(&Snapshot) -> u64| {
        let style = if count(snapshot) > 0 { style::WARN } else { Style::new() };
        entry(name, format::count(count(snapshot)), model.rate(count), style)
    };
    let trend = |mut line: Line<'static>, series: &Series| {
        line.push_span(Span::styled(format!("  {}", format::trend(Some(series), TREND)), style::GOOD));
        line
    };
    let (balance, ledger) = (snapshot.balance(), &snapshot.ledger);
    let verdict = if balance == 0 { "in balance" } else { "on their way while the snapshot was taken" };
    let mut balanced = entry("balance", format::signed(balance), None, Style::new());
    balanced.push_span(Span::styled(format!("  {verdict}"), style::QUIET));
    // Only nodes have these.
    let of_nodes =
        |name: &str, count: fn(&Snapshot) -> u64| (count(snapshot) > 0).then(|| counted(name, count));
    let mut lines = vec![heading("messages"), counted("sent", |snapshot| snapshot.ledger.sent)];
    lines.extend(of_nodes("+ received", |snapshot| snapshot.ledger.received));
    lines.extend([
        trend(counted("= handled", |snapshot| snapshot.ledger.handled), &model.handled),
        warned("+ dead-lettered", |snapshot| snapshot.ledger.dead_lettered),
        counted("+ handed back", |snapshot| snapshot.ledger.handed_back),
        warned("+ dropped", |snapshot| snapshot.ledger.dropped),
        counted("+ skipped", |snapshot| snapshot.ledger.skipped),
        trend(entry("+ queued", format::count(ledger.queued), None, Style::new()), &model.queued),
    ]);
    lines.extend(of_nodes("+ shipped", |snapshot| snapshot.ledger.shipped));
    lines.extend([
        balanced,
        counted("timer ticks", |snapshot| snapshot.ledger.ticked),
        Line::default(),
        heading("dead letters by reason"),
    ]);
    for (reason, count) in snapshot.dead_letters.iter().filter(|(_, count)| **count > 0) {
        let rate = model.rate(|snapshot| snapshot.dead_letters.get(reason).copied().unwrap_or(0));
        lines.push(entry(&reason.replace('_', " "), format::count(*count), rate, style::WARN));
    }
    if snapshot.dead_letters.values().all(|count| *count == 0) {
        lines.push(Line::from(Span::styled("  none", style::QUIET)));
    }
    lines.extend([
        Line::default(),
        heading("asks"),
        counted("begun", |snapshot| snapshot.asks.begun),
        counted("answered", |snapshot| snapshot.asks.answered),
        warned("without a reply", |snapshot| snapshot.asks.no_reply),
        warned("timed out", |snapshot| snapshot.asks.timed_out),
        warned("undeliverable", |snapshot| snapshot.asks.undeliverable),
        counted("cancelled", |snapshot| snapshot.asks.cancelled),
        counted("late replies", |snapshot| snapshot.asks.late),
        Line::default(),
        heading("actors"),
        entry("living", format::count(snapshot.living), None, Style::new()),
        counted("created", |snapshot| snapshot.created),
        counted("ended", |snapshot| snapshot.ended),
        warned("failures", |snapshot| snapshot.failures),
        counted("restarts", |snapshot| snapshot.restarts),
        Line::default(),
        heading("stuck handlers"),
        warned("reported so far", |snapshot| snapshot.stuck_reports),
    ]);
    for stuck in &snapshot.stuck {
        let text = format!(
            "  STUCK for {}: {} ({}) handles {} on {}",
            format::seconds(stuck.lasted),
            stuck.actor.path,
            stuck.actor.class,
            stuck.message_type,
            stuck.thread,
        );
        lines.push(Line::from(Span::styled(format::plain(&text), style::BAD)));
    }
    lines
}

/// Draws the page. Where the lines do not fit, the chosen row scrolls them.
pub fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    let lines = lines(model, area.width);
    let hidden = lines.len().saturating_sub(usize::from(area.height));
    let first = view.row(lines.len()).min(hidden);
    for (y, line) in (area.top()..area.bottom()).zip(&lines[first..]) {
        buffer.set_line(area.x + 1, y, line, area.width.saturating_sub(1));
    }
}
