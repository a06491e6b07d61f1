//! A table: columns that give way on narrow screens, a chosen row, and only those rows that are seen.

use crate::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// The least columns of a column that takes the rest of the width.
const REST_MIN: u16 = 14;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// The heading.
    pub title: &'static str,
    /// The width in columns of the screen; 0: the rest. A single column has the rest.
    pub width: u16,
    /// Where the text stands.
    pub align: Align,
    /// Which columns go first where there is no room: those with the largest number.
    pub rank: u8,
}

/// Where the text of a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At the left; its end is cut.
    Left,
    /// At the left; its beginning is cut, as of a path.
    LeftByEnd,
    /// At the right.
    Right,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// Its style.
    pub style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), style: Style::new() }
    }
}

impl Cell {
    /// A cell with a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl Column {
    /// A column with text at the left.
    pub const fn left(title: &'static str, width: u16, rank: u8) -> Self {
        Self { title, width, align: Align::Left, rank }
    }

    /// A column of paths.
    pub const fn path(title: &'static str, width: u16, rank: u8) -> Self {
        Self { title, width, align: Align::LeftByEnd, rank }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str, width: u16, rank: u8) -> Self {
        Self { title, width, align: Align::Right, rank }
    }

    fn text(&self, text: &str, width: u16) -> String {
        let width = usize::from(width);
        match self.align {
            Align::Left => format::left(text, width),
            Align::LeftByEnd => format::left_by_end(text, width),
            Align::Right => format::right(text, width),
        }
    }
}

/// The columns that have room, with their widths.
fn shown(columns: &[Column], width: u16) -> Vec<(usize, u16)> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    // A blank stands before each column.
    let wanted = |kept: &[usize]| -> u16 {
        let least = |at: &usize| if columns[*at].width == 0 { REST_MIN } else { columns[*at].width };
        kept.iter().map(|at| least(at) + 1).sum()
    };
    while kept.len() > 1 && wanted(&kept) > width {
        let last = kept.iter().max_by_key(|at| columns[**at].rank).copied();
        kept.retain(|at| Some(*at) != last);
    }
    let rest = width.saturating_sub(wanted(&kept));
    kept.iter()
        .map(|at| match columns[*at].width {
            0 => (*at, (REST_MIN + rest).min(width.saturating_sub(1))),
            own => (*at, own.min(width.saturating_sub(1))),
        })
        .collect()
}

/// The first row that is seen, so that the chosen one is.
pub fn first_row(chosen: usize, rows: usize, height: usize) -> usize {
    // The chosen row is at most in the middle, until the end of the rows is seen.
    chosen.saturating_sub(height / 2).min(rows.saturating_sub(height))
}

/// Draws a table with a heading and as many rows as there is room for. `row` makes a row of as many cells as there are
/// columns. The chosen row is marked with `>`.
pub fn draw(
    columns: &[Column],
    rows: usize,
    chosen: Option<usize>,
    row: impl Fn(usize) -> Vec<Cell>,
    area: Rect,
    buffer: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let shown = shown(columns, area.width);
    let heading = Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let mut x = area.x;
    for (at, width) in &shown {
        let title = columns[*at].text(columns[*at].title, *width);
        buffer.set_stringn(x + 1, area.y, title, usize::from(*width), heading);
        x += width + 1;
    }
    let height = usize::from(area.height - 1);
    let first = first_row(chosen.unwrap_or(0), rows, height);
    for (y, at) in (area.y + 1..area.bottom()).zip(first..rows) {
        let is_chosen = chosen == Some(at);
        let (mut x, cells) = (area.x, row(at));
        for (at, width) in &shown {
            let Some(cell) = cells.get(*at) else { continue };
            buffer.set_stringn(
                x + 1,
                y,
                columns[*at].text(&cell.text, *width),
                usize::from(*width),
                cell.style,
            );
            x += width + 1;
        }
        if is_chosen {
            buffer.set_stringn(area.x, y, ">", 1, Style::new());
            buffer.set_style(Rect { y, height: 1, ..area }, Style::new().add_modifier(Modifier::BOLD));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    const COLUMNS: [Column; 3] =
        [Column::path("path", 0, 0), Column::right("queued", 7, 1), Column::left("class", 6, 2)];

    fn drawn(width: u16, height: u16, rows: usize, chosen: Option<usize>) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let row =
            |at: usize| vec![format!("/user/pool/{at}").into(), (at * 10).to_string().into(), "pool".into()];
        draw(&COLUMNS, rows, chosen, row, area, &mut buffer);
        text::of(&buffer)
    }

    #[test]
    fn columns_without_room_are_left_out() {
        assert_eq!(drawn(31, 2, 1, None), " path             queued class\n /user/pool/0          0 pool\n");
        assert_eq!(drawn(29, 2, 1, None), " path                  queued\n /user/pool/0               0\n");
        assert_eq!(drawn(9, 2, 1, None), " path\n …/pool/0\n");
        assert_eq!(drawn(1, 2, 1, None), "\n\n");
    }

    #[test]
    fn the_chosen_row_is_seen_and_marked() {
        assert_eq!(drawn(15, 3, 9, Some(8)), " path\n /user/pool/7\n>/user/pool/8\n");
        assert_eq!(drawn(15, 3, 9, Some(4)), " path\n /user/pool/3\n>/user/pool/4\n");
        assert_eq!(drawn(15, 2, 0, Some(0)), " path\n\n");
    }
}
