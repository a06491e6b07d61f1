//! The styles of the screen. Each of them stands beside a word or sign that says the same without colour.

use ratatui::style::{Color, Modifier, Style};

/// Names of things, headings.
pub const NAME: Style = Style::new().fg(Color::Cyan);
/// The style of states that are well.
pub const GOOD: Style = Style::new().fg(Color::Green);
/// The style of states that need a look.
pub const WARN: Style = Style::new().fg(Color::Yellow);
/// The style of faults.
pub const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// Explanations.
pub const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
/// The title line and the chosen page.
pub const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// A cell of the heatmap: its sign, and its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heat {
    /// The sign.
    pub sign: char,
    /// The colour.
    pub color: Color,
}

/// Returns the cell of a share that is so many times the fair one.
pub fn heat(times_fair: f64) -> Heat {
    let (sign, color) = match times_fair {
        0.0 => ('·', Color::Indexed(240)),
        x if x < 0.5 => ('░', Color::Indexed(33)),
        x if x < 1.5 => ('▒', Color::Indexed(35)),
        x if x < 2.5 => ('▓', Color::Indexed(214)),
        _ => ('█', Color::Indexed(196)),
    };
    Heat { sign, color }
}

/// The style of an actor's or a routee's state.
pub fn state(state: &str) -> Style {
    match state {
        "busy" => GOOD,
        "suspended" => WARN,
        "closed" | "gone" => QUIET,
        "STUCK" => BAD,
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_heat_has_a_sign_of_its_own() {
        let signs: Vec<char> = [0.0, 0.3, 1.0, 2.0, 9.0].into_iter().map(|share| heat(share).sign).collect();
        assert_eq!(signs, ['·', '░', '▒', '▓', '█']);
    }
}
