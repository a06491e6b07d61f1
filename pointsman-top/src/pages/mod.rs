//! The pages: functions from the model and the view to a part of the screen.

pub mod books; // the ledger, dead letters, failures, stuck handlers
pub mod help;
pub mod latency;
pub mod routers;
pub mod table; // columns that give way, a chosen row
pub mod tree;
pub mod workers;

use crate::model::model::Model;
use crate::view::{Page, View};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::cmp::Ordering;

/// Draws the page that the user has chosen.
pub fn draw(model: &Model, view: &View, area: Rect, buffer: &mut Buffer) {
    match view.page {
        Page::Tree => tree::draw(model, view, area, buffer),
        Page::Routers => routers::draw(model, view, area, buffer),
        Page::Latency => latency::draw(model, view, area, buffer),
        Page::Workers => workers::draw(model, view, area, buffer),
        Page::Books => books::draw(model, view, area, buffer),
    }
}

/// The rows among which the user chooses on the page.
pub fn rows(model: &Model, view: &View) -> usize {
    match view.page {
        Page::Tree => tree::rows(model, view).len(),
        Page::Routers => routers::rows(model, view).len(),
        Page::Latency => latency::rows(model, view).len(),
        Page::Workers => workers::rows(model, view).len(),
        Page::Books => books::lines(model, u16::MAX).len(),
    }
}

/// The lines that the whole page takes.
pub fn height(model: &Model, view: &View) -> usize {
    match view.page {
        Page::Tree => tree::rows(model, view).len() + 3,
        Page::Routers => routers::height(model, view),
        Page::Latency => latency::rows(model, view).len() + latency::DETAIL_HEIGHT + 2,
        Page::Workers => workers::rows(model, view).len() + 2,
        Page::Books => books::lines(model, u16::MAX).len() + 1,
    }
}

/// The order by a number that may not be known: the largest first, and the unknown last.
fn largest_first(left: Option<f64>, right: Option<f64>) -> Ordering {
    right.partial_cmp(&left).unwrap_or(Ordering::Equal)
}
