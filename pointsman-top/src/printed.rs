//! Pages for paper, files and scripts: as text, or as a picture.

use crate::app::without_colors;
use crate::model::model::Model;
use crate::pages;
use crate::picture;
use crate::screen::{self, FRAME_HEIGHT, Situation};
use crate::text;
use crate::view::{Page, View};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The columns, unless the user asks for another number.
const COLUMNS: u16 = 140;
/// The most rows of a page, unless the user asks for another number.
const ROWS_MAX: usize = 12_000;

/// Returns pages as text, one below the other. `size` is the number of columns and rows of each.
pub fn text(
    model: &Model,
    view: &View,
    situation: &Situation,
    pages: &[Page],
    size: Option<(u16, u16)>,
) -> String {
    let page_texts = pages.iter().map(|page| {
        let buffer = drawn(model, &View { page: *page, ..view.clone() }, situation, size);
        let whole = text::of(&buffer);
        // Neither the keys nor blank lines before them are for paper.
        let mut lines: Vec<&str> = whole.lines().collect();
        lines.pop();
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        lines.join("\n") + "\n"
    });
    page_texts.collect::<Vec<_>>().join("\n")
}

/// Returns a page as an SVG.
pub fn picture(
    model: &Model,
    view: &View,
    situation: &Situation,
    size: Option<(u16, u16)>,
    has_colors: bool,
) -> String {
    let mut buffer = drawn(model, view, situation, size);
    if !has_colors {
        without_colors(&mut buffer);
    }
    picture::svg(&buffer, &format!("pointsman-top, the page {}", view.page.name()))
}

fn drawn(model: &Model, view: &View, situation: &Situation, size: Option<(u16, u16)>) -> Buffer {
    let rows = (pages::height(model, view).min(ROWS_MAX) as u16).saturating_add(FRAME_HEIGHT);
    let (columns, rows) = size.unwrap_or((COLUMNS, rows));
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    screen::draw(model, view, situation, area, &mut buffer);
    buffer
}
