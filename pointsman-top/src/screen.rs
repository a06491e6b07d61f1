//! The whole screen: a title, the pages' names, a page, and the keys.

use crate::format;
use crate::model::model::Model;
use crate::pages;
use crate::style;
use crate::view::{Page, View};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// The seconds for which a new start is told in the title.
const NEW_START_SHOWN: f64 = 30.0;

/// The columns below which only the chosen page has its name.
const NAMES_WIDTH: u16 = 60;

/// The lines around a page.
pub const FRAME_HEIGHT: u16 = 3;

/// Where the readings come from, and the moment at which they are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    /// The address of the server, or the name of the recording.
    pub source: String,
    /// The moment, in seconds of the reader.
    pub now: f64,
    /// The seconds between two readings.
    pub interval: f64,
    /// The place in a recording; `None`: the readings come from a server.
    pub replay: Option<Replay>,
}

/// The place in a recording, in seconds since its first reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replay {
    /// The moment that is shown.
    pub position: f64,
    /// The moment of its last reading.
    pub length: f64,
}

/// Draws the screen.
pub fn draw(model: &Model, view: &View, situation: &Situation, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let width = usize::from(area.width);
    let stale = stale(model, situation);
    title(model, view, situation, stale.as_deref(), area, buffer);
    if area.height >= 2 {
        names_of_pages(view, Rect { y: area.y + 1, height: 1, ..area }, buffer);
    }
    if area.height < FRAME_HEIGHT + 1 {
        return;
    }
    let body = Rect { y: area.y + 2, height: area.height - FRAME_HEIGHT, ..area };
    if view.has_help {
        pages::help::draw(body, buffer);
    } else if model.snapshot().is_some() {
        pages::draw(model, view, body, buffer);
        if stale.is_some() {
            buffer.set_style(body, Style::new().add_modifier(Modifier::DIM));
        }
    } else {
        let text = match model.fault() {
            Some(fault) => format!("no snapshot yet: {}", fault.text),
            None => format!("waiting for the first snapshot of {}", situation.source),
        };
        let lines = text_lines(&format::plain(&text), width.saturating_sub(2));
        for (y, line) in (body.top()..body.bottom()).zip(lines) {
            buffer.set_stringn(area.x + 1, y, line, width, Style::new());
        }
    }
    let keys = match &view.typed {
        Some(typed) => format!("filter: {typed}_   Enter takes it, Esc leaves it"),
        None if view.filter.text().is_empty() => {
            "q end  1-5 Tab pages  ↑↓ rows  s order  / filter  p hold  ? help".to_owned()
        }
        None => format!("filter: {}   Esc shows all   q end  ? help", view.filter.text()),
    };
    buffer.set_stringn(area.x + 1, area.bottom() - 1, format::left(&keys, width - 1), width, style::QUIET);
}

/// Why the picture is old; `None`: it is not.
fn stale(model: &Model, situation: &Situation) -> Option<String> {
    let read_at = model.read_at()?;
    let age = situation.now - read_at;
    let reason = match model.fault() {
        Some(fault) => fault.text.as_str(),
        None if situation.replay.is_none() && age > 2.0 * situation.interval + 1.0 => {
            "the server does not answer"
        }
        None => return None,
    };
    Some(format!("STALE {}: {reason}", format::seconds(age)))
}

fn title(
    model: &Model,
    view: &View,
    situation: &Situation,
    stale: Option<&str>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let mut left = String::from("pointsman-top");
    match model.snapshot() {
        Some(snapshot) => {
            left = format!("{} at {}", snapshot.system, situation.source);
            let rate = format::short_or_unknown(model.handled.last());
            let living = format::count(snapshot.living);
            left.push_str(&format!(", up {}, {living} actors, {rate} msg/s", format::seconds(snapshot.at)));
            if !snapshot.stuck.is_empty() {
                left.push_str(&format!(", {} STUCK", snapshot.stuck.len()));
            }
        }
        None => left.push_str(&format!(" at {}", situation.source)),
    }
    let mut states = Vec::new();
    if let Some(at) = model.new_start_at().filter(|at| situation.now - at < NEW_START_SHOWN) {
        states.push(format!("NEW START {} ago", format::seconds(situation.now - at)));
    }
    if let Some(stale) = stale {
        states.push(stale.to_owned());
    }
    if view.is_paused {
        states.push("HELD".to_owned());
    }
    if let Some(Replay { position, length }) = situation.replay {
        states.push(format!("REPLAY {} of {}", format::seconds(position), format::seconds(length)));
    }
    let state = format::plain(&states.join("  "));
    // The state has precedence.
    let width = usize::from(area.width).saturating_sub(1);
    let state_width = format::width_of(&state).min(width);
    let left_width = width.saturating_sub(state_width + 2);
    let text = if left_width < 4 {
        format::left(&format!(" {state}"), width + 1)
    } else {
        format!(" {}  {}", format::left(&left, left_width), format::left(&state, state_width))
    };
    buffer.set_stringn(area.x, area.y, format::left(&text, width + 1), width + 1, style::CHOSEN);
}

fn names_of_pages(view: &View, area: Rect, buffer: &mut Buffer) {
    let mut x = area.x + 1;
    for (number, page) in Page::ALL.into_iter().enumerate() {
        let is_chosen = page == view.page;
        let (open, close) = if is_chosen { ('[', ']') } else { (' ', ' ') };
        let has_name = is_chosen || area.width >= NAMES_WIDTH;
        let name =
            if has_name { format!("{} {}", number + 1, page.name()) } else { (number + 1).to_string() };
        let name = format!("{open}{name}{close}");
        let style = if is_chosen { style::CHOSEN } else { Style::new() };
        let room = area.right().saturating_sub(x);
        buffer.set_stringn(x, area.y, &name, usize::from(room), style);
        x = x.saturating_add(name.len() as u16 + 1).min(area.right());
    }
}

/// The words of a text in lines of at most so many columns.
fn text_lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("the list begins with a line");
        if !line.is_empty() && format::width_of(line) + 1 + format::width_of(word) > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
