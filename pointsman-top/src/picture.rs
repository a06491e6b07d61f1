//! A drawn screen as an SVG.

use crate::format;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

const CELL_WIDTH: f64 = 8.0;
const CELL_HEIGHT: f64 = 17.0;
const MARGIN: f64 = 8.0;
const FOREGROUND: u32 = 0xd4_d7dd;
const BACKGROUND: u32 = 0x16_191f;

/// The colours of the first sixteen indices.
const PALETTE: [u32; 16] = [
    0x16_191f, 0xe0_6c75, 0x7c_c47f, 0xe5_c07b, 0x61_afef, 0xc6_78dd, 0x56_b6c2, 0xab_b2bf, 0x6b_7280,
    0xff_7b86, 0x98_d89b, 0xff_d68f, 0x80_c4ff, 0xe0_9cf2, 0x7c_d6e1, 0xff_ffff,
];

/// How a cell looks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    color: u32,
    is_bold: bool,
    is_dim: bool,
    is_underlined: bool,
}

/// Returns the screen as an SVG that needs no font of its own: each run of text has its width, and bars and shades are
/// drawn as areas.
pub fn svg(buffer: &Buffer, title: &str) -> String {
    let area = buffer.area();
    let width = f64::from(area.width) * CELL_WIDTH + 2.0 * MARGIN;
    let height = f64::from(area.height) * CELL_HEIGHT + 2.0 * MARGIN;
    let mut svg = String::new();
    // A string takes all.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>{}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{}\"/>",
        escaped(title),
        hex(BACKGROUND),
    );
    for y in area.top()..area.bottom() {
        let row: Vec<&Cell> = (area.left()..area.right()).map(|x| &buffer[(x, y)]).collect();
        let top = MARGIN + f64::from(y - area.top()) * CELL_HEIGHT;
        draw_backgrounds(&row, top, &mut svg);
        draw_blocks(&row, top, &mut svg);
        draw_text(&row, top, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

fn x_of(column: usize) -> f64 {
    MARGIN + column as f64 * CELL_WIDTH
}

/// The colour of the text and of the ground of a cell.
fn colors(cell: &Cell) -> (u32, u32) {
    let (text, ground) = (rgb(cell.fg, FOREGROUND), rgb(cell.bg, BACKGROUND));
    if cell.modifier.contains(Modifier::REVERSED) { (ground, text) } else { (text, ground) }
}

fn draw_backgrounds(row: &[&Cell], top: f64, svg: &mut String) {
    let mut at = 0;
    while at < row.len() {
        let (_, ground) = colors(row[at]);
        let length = row[at..].iter().take_while(|cell| colors(cell).1 == ground).count();
        if ground != BACKGROUND {
            let (x, width) = (x_of(at), length as f64 * CELL_WIDTH);
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{CELL_HEIGHT}\" fill=\"{}\"/>",
                hex(ground)
            );
        }
        at += length;
    }
}

/// The part of a cell that a sign fills, from below, and how densely.
fn block(symbol: &str) -> Option<(f64, f64)> {
    let (part, density) = match symbol {
        "▁" => (0.125, 1.0),
        "▂" => (0.25, 1.0),
        "▃" => (0.375, 1.0),
        "▄" => (0.5, 1.0),
        "▅" => (0.625, 1.0),
        "▆" => (0.75, 1.0),
        "▇" => (0.875, 1.0),
        "█" => (1.0, 1.0),
        "▓" => (1.0, 0.85),
        "▒" => (1.0, 0.6),
        "░" => (1.0, 0.4),
        _ => return None,
    };
    Some((part, density))
}

fn draw_blocks(row: &[&Cell], top: f64, svg: &mut String) {
    let mut at = 0;
    while at < row.len() {
        let Some((part, density)) = block(row[at].symbol()) else {
            at += 1;
            continue;
        };
        let color = colors(row[at]).0;
        let same = |cell: &&&Cell| cell.symbol() == row[at].symbol() && colors(cell).0 == color;
        let length = row[at..].iter().take_while(same).count();
        let (x, width, height) = (x_of(at), length as f64 * CELL_WIDTH, part * CELL_HEIGHT);
        let y = top + CELL_HEIGHT - height;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\" fill-opacity=\"{density}\"/>",
            hex(color)
        );
        at += length;
    }
}

fn draw_text(row: &[&Cell], top: f64, svg: &mut String) {
    let look = |cell: &Cell| Look {
        color: colors(cell).0,
        is_bold: cell.modifier.contains(Modifier::BOLD),
        is_dim: cell.modifier.contains(Modifier::DIM),
        is_underlined: cell.modifier.contains(Modifier::UNDERLINED),
    };
    let is_text = |cell: &Cell| block(cell.symbol()).is_none();
    let mut at = 0;
    while at < row.len() {
        if row[at].symbol().trim().is_empty() || !is_text(row[at]) {
            at += 1;
            continue;
        }
        let this = look(row[at]);
        let mut text = String::new();
        let mut end = at;
        while end < row.len() && is_text(row[end]) && look(row[end]) == this {
            let symbol = row[end].symbol();
            text.push_str(symbol);
            end += format::width_of(symbol).max(1);
        }
        let shown = text.trim_end();
        let columns = format::width_of(shown) as f64;
        let (x, y, length) = (x_of(at), top + 13.0, columns * CELL_WIDTH);
        let _ = write!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"{}\"",
            hex(this.color)
        );
        for (is_on, attribute) in [
            (this.is_bold, " font-weight=\"bold\""),
            (this.is_dim, " fill-opacity=\"0.65\""),
            (this.is_underlined, " text-decoration=\"underline\""),
        ] {
            svg.push_str(if is_on { attribute } else { "" });
        }
        let _ = writeln!(svg, ">{}</text>", escaped(shown));
        at = end;
    }
}

fn hex(color: u32) -> String {
    format!("#{color:06x}")
}

/// The colour as red, green and blue.
fn rgb(color: Color, default: u32) -> u32 {
    let named = |index: usize| PALETTE[index];
    match color {
        Color::Reset => default,
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => named(8),
        Color::LightRed => named(9),
        Color::LightGreen => named(10),
        Color::LightYellow => named(11),
        Color::LightBlue => named(12),
        Color::LightMagenta => named(13),
        Color::LightCyan => named(14),
        Color::White => named(15),
        Color::Rgb(red, green, blue) => u32::from_be_bytes([0, red, green, blue]),
        Color::Indexed(index @ 0..16) => named(usize::from(index)),
        Color::Indexed(index @ 16..232) => {
            // A cube of six steps for each of the three.
            let step = |at: u8| if at == 0 { 0 } else { 55 + 40 * at };
            let index = index - 16;
            u32::from_be_bytes([0, step(index / 36), step(index / 6 % 6), step(index % 6)])
        }
        Color::Indexed(index) => {
            let gray = 8 + 10 * (index - 232);
            u32::from_be_bytes([0, gray, gray, gray])
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other if other.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn runs_of_text_have_their_place_and_width() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
        buffer.set_string(1, 1, "a<b c", Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD));
        let svg = svg(&buffer, "x & y");
        assert!(svg.contains("<title>x &amp; y</title>"), "{svg}");
        let expected = "<text x=\"16\" y=\"38\" textLength=\"40\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" \
                        fill=\"#010203\" font-weight=\"bold\">a&lt;b c</text>";
        assert!(svg.contains(expected), "{svg}");
    }

    #[test]
    fn bars_and_reversed_cells_are_areas() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        buffer.set_string(0, 0, "▄▄", Style::new().fg(Color::Indexed(196)));
        buffer.set_string(3, 0, " ", Style::new().add_modifier(Modifier::REVERSED));
        let svg = svg(&buffer, "");
        let bar =
            "<rect x=\"8\" y=\"16.5\" width=\"16\" height=\"8.5\" fill=\"#ff0000\" fill-opacity=\"1\"/>";
        assert!(
            svg.contains(bar)
                && svg.contains("<rect x=\"32\" y=\"8\" width=\"8\" height=\"17\" fill=\"#d4d7dd\"/>"),
            "{svg}"
        );
        assert!(!svg.contains("<text"), "{svg}");
    }

    #[test]
    fn indexed_colors_are_those_of_terminals() {
        for (index, color) in [(16, 0), (21, 0x00_00ff), (231, 0xff_ffff), (232, 0x08_0808), (255, 0xee_eeee)]
        {
            assert_eq!(rgb(Color::Indexed(index), 1), color, "{index}");
        }
    }
}
