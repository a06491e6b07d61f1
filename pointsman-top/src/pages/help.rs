//! The keys and signs, explained.

use crate::style;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const LINES: [(&str, &str); 22] = [
    ("1 to 5, Tab, ← →", "choose a page (on the page of routers ← → scroll the routees)"),
    ("↑ ↓ PgUp PgDn Home End", "choose a row, marked by >"),
    ("/", "filter by a part of a path, or by a pattern such as /user/pool/*; Esc shows all again"),
    ("s, S", "the next order, the order before"),
    ("t u r m w h", "order: tree, queued, rate, messages handled, wait, handle"),
    ("p, Space", "hold the picture still; a replay stops and goes on"),
    ("q, Ctrl-C", "end"),
    ("", ""),
    ("-", "is not known: there is nothing to compare with, or nothing is measured"),
    ("lately", "between the last two snapshots; ever: since the system began"),
    ("peak", "the most messages that this program has seen waiting for the actor"),
    ("wait, hndl", "how long messages wait, and handlers take: those that the system samples"),
    ("max/mean", "the largest share of a routee by the mean one: 1.00 is even"),
    ("share", "the part of the messages, of all that the routees have handled lately"),
    ("heatmap", "a column for each reading, the newest at the right, a mark for each tenth"),
    ("! and N above it", "a reading without an answer, and the first one of a new start"),
    ("search", "the part of the time in which a worker looks for tasks"),
    ("for", "how long at least a thread has been in the same turn"),
    ("STUCK", "a handler runs longer than the system's limit"),
    ("STALE", "the server does not answer: the picture is old, and this program tries again"),
    ("NEW START", "counts have fallen: the system has begun anew"),
    ("balance", "sent messages that are in no other count; 0 when the system is at rest"),
];

/// Draws the page.
pub fn draw(area: Rect, buffer: &mut Buffer) {
    for (y, (key, text)) in (area.top()..area.bottom()).zip(LINES) {
        let width = usize::from(area.width.saturating_sub(1));
        buffer.set_stringn(area.x + 1, y, key, width, style::NAME);
        if area.width > 26 {
            buffer.set_stringn(area.x + 25, y, text, width - 24, Style::new());
        }
    }
}
