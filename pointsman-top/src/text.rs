//! A drawn screen as plain text.

use ratatui::buffer::Buffer;

/// The lines of a screen, without blanks at their ends.
pub fn of(buffer: &Buffer) -> String {
    let area = buffer.area();
    let mut text = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // A wide character hides the cell behind it.
            x += u16::try_from(crate::format::width_of(symbol)).unwrap_or(1).max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
