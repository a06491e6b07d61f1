//! Numbers and names as the pages show them.

use crate::model::series::Series;
use ratatui::text::Span;

/// The text for a number that is not known.
pub const UNKNOWN: &str = "-";

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A whole number with its thousands apart: `1,234,567`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// A whole number with its sign.
pub fn signed(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(&number.unsigned_abs().to_string()))
}

fn grouped(digits: &str) -> String {
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A number in at most six characters: `0`, `0.3`, `12`, `1.2k`, `345M`.
pub fn short(number: f64) -> String {
    let (mut scaled, mut unit) = (number, "");
    for larger in ["k", "M", "G", "T", "P", "E"] {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1000.0;
        unit = larger;
    }
    let digits = usize::from(scaled != 0.0 && scaled < 9.95 && (!unit.is_empty() || scaled.fract() != 0.0));
    format!("{scaled:.digits$}{unit}")
}

/// A number that may not be known.
pub fn short_or_unknown(number: Option<f64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), short)
}

/// A time in nanoseconds, in at most seven characters: `640 ns`, `1.2 µs`, `34 ms`, `5.0 s`.
pub fn nanos(nanos: Option<u64>) -> String {
    let Some(nanos) = nanos else { return UNKNOWN.to_owned() };
    let (mut scaled, mut unit) = (nanos as f64, "ns");
    for larger in ["µs", "ms", "s"] {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1000.0;
        unit = larger;
    }
    let digits = usize::from(unit != "ns" && scaled < 9.95);
    format!("{scaled:.digits$} {unit}")
}

/// A time in seconds, in its two largest units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 2 h`.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0 => format!("{:.1} s", seconds.max(0.0)),
        1..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// A part from 0 to 1, in percent.
pub fn percent(part: Option<f64>) -> String {
    match part {
        None => UNKNOWN.to_owned(),
        Some(part) if part > 0.0 && part < 0.095 => format!("{:.1}%", part * 100.0),
        Some(part) => format!("{:.0}%", part * 100.0),
    }
}

/// The newest values of a series as bars, of which the largest is full. A missing value is blank.
pub fn trend(series: Option<&Series>, width: usize) -> String {
    let Some(series) = series else { return " ".repeat(width) };
    let largest = (0..width).filter_map(|back| series.back(back)).fold(0.0, f64::max);
    let bar = |value: f64| match largest > 0.0 {
        true => BARS[((value / largest * 8.0).ceil() as usize).clamp(1, 8) - 1],
        false => BARS[0],
    };
    (0..width).rev().map(|back| series.back(back).map_or(' ', bar)).collect()
}

/// A text without characters that would move the cursor or turn the direction of the line.
pub fn plain(text: &str) -> String {
    let is_bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_bad(c) { '\u{fffd}' } else { c }).collect()
}

/// A text cut at its end, or filled with blanks, to a width in columns. A cut shows as `…`.
pub fn left(text: &str, width: usize) -> String {
    let text = plain(text);
    let mut shown =
        if width_of(&text) <= width { text } else { cut(text.chars(), width, |cut| cut.push('…')) };
    shown.extend(std::iter::repeat_n(' ', width.saturating_sub(width_of(&shown))));
    shown
}

/// As [`left`], cut at its beginning: of a path the end tells most.
pub fn left_by_end(text: &str, width: usize) -> String {
    let text = plain(text);
    if width_of(&text) <= width {
        return left(&text, width);
    }
    let end: Vec<char> = cut(text.chars().rev(), width, |cut| cut.push('…')).chars().rev().collect();
    left(&end.into_iter().collect::<String>(), width)
}

/// As [`left`], with the blanks before the text.
pub fn right(text: &str, width: usize) -> String {
    let text = left(text, width);
    let end = text.trim_end();
    let blanks = " ".repeat(text.len() - end.len());
    format!("{blanks}{end}")
}

/// The first characters that take less than `width` columns, and the mark of the cut.
fn cut(characters: impl Iterator<Item = char>, width: usize, mark: impl Fn(&mut String)) -> String {
    let mut shown = String::new();
    for character in characters {
        shown.push(character);
        if width_of(&shown) >= width {
            shown.pop();
            break;
        }
    }
    if width > 0 {
        mark(&mut shown);
    }
    shown
}

/// The columns that a text takes.
pub fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_their_thousands_apart() {
        for (number, shown) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")]
        {
            assert_eq!(count(number), shown);
        }
        assert_eq!(signed(-1234), "-1,234");
    }

    #[test]
    fn short_numbers_have_six_characters_at_most() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.2"),
            (3.0, "3"),
            (9.96, "10"),
            (999.4, "999"),
            (999.6, "1.0k"),
            (12_345.0, "12k"),
            (1.25e6, "1.2M"),
            (999_600.0, "1.0M"),
            (7e18, "7.0E"),
            (1.8e19, "18E"),
        ];
        for (number, shown) in cases {
            assert_eq!(short(number), shown);
        }
        assert_eq!(short_or_unknown(None), "-");
    }

    #[test]
    fn times_have_units() {
        let cases =
            [(0, "0 ns"), (640, "640 ns"), (1200, "1.2 µs"), (34_000_000, "34 ms"), (5_000_000_000, "5.0 s")];
        for (number, shown) in cases {
            assert_eq!(nanos(Some(number)), shown);
        }
        let cases =
            [(-1.0, "0.0 s"), (0.44, "0.4 s"), (12.9, "12 s"), (185.0, "3 min 5 s"), (7800.0, "2 h 10 min")];
        for (number, shown) in cases {
            assert_eq!(seconds(number), shown);
        }
        assert_eq!(seconds(354_000.0), "4 d 2 h");
    }

    #[test]
    fn parts_are_in_percent() {
        assert_eq!(
            [percent(None), percent(Some(0.0)), percent(Some(0.041)), percent(Some(1.0))],
            ["-", "0%", "4.1%", "100%"]
        );
    }

    #[test]
    fn a_trend_has_a_bar_for_each_reading_and_none_where_a_value_is_missing() {
        let mut series = Series::default();
        [Some(8.0), None, Some(0.0), Some(4.0)].into_iter().for_each(|value| series.push(value));
        assert_eq!(trend(Some(&series), 5), " █ ▁▄");
        assert_eq!(trend(Some(&series), 2), "▁█");
        assert_eq!(trend(None, 3), "   ");
    }

    #[test]
    fn texts_are_cut_to_columns() {
        assert_eq!([left("abc", 5), left("abcdef", 4), left("abc", 0)], ["abc  ", "abc…", ""]);
        assert_eq!([left_by_end("/user/pool", 5), left_by_end("a", 2)], ["…pool", "a "]);
        assert_eq!([right("7", 3), right("12345", 4)], ["  7", "123…"]);
        // A wide character takes two columns.
        assert_eq!([left("漢字漢字", 5), left("漢字", 5)], ["漢字…", "漢字 "]);
    }

    #[test]
    fn characters_that_move_the_cursor_are_replaced() {
        assert_eq!(left("a\u{1b}[2J\n\u{202e}b", 9), "a\u{fffd}[2J\u{fffd}\u{fffd}b ");
    }
}
