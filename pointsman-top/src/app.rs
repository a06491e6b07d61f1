//! The program without its terminal: readings and keys in, screens out.

use crate::model::model::Model;
use crate::pages;
use crate::reader::{Report, SharedQuery};
use crate::recording::Player;
use crate::screen::{self, FRAME_HEIGHT, Situation};
use crate::view::{Action, View};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::style::Color;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

/// Where the readings come from.
#[derive(Debug)]
pub enum Feed {
    /// A server, read by a thread.
    Server {
        /// The reports of the thread.
        reports: Receiver<Report>,
        /// The actors that it asks for.
        query: SharedQuery,
        /// The moment at which its clock began.
        began: Instant,
    },
    /// A recording, and the moment to which it was played.
    Recording(Player, Instant),
}

/// The program without its terminal.
#[derive(Debug)]
pub struct App {
    feed: Feed,
    model: Model,
    view: View,
    situation: Situation,
    /// The picture that is held still, while a server goes on.
    held: Option<(Model, f64)>,
    recording_fault: Option<String>,
    limit: usize,
    has_colors: bool,
    /// The page's height when it was last drawn.
    page_height: u16,
}

/// The thread that reads has ended, which it never does by itself.
#[derive(Debug, PartialEq, Eq)]
pub struct ReaderGone;

impl App {
    /// Returns the program at its beginning. `limit` is the number of actors to ask for.
    pub fn new(feed: Feed, view: View, situation: Situation, limit: usize, has_colors: bool) -> Self {
        Self {
            feed,
            model: Model::default(),
            view,
            situation,
            held: None,
            recording_fault: None,
            limit,
            has_colors,
            page_height: 0,
        }
    }

    /// Takes the readings that have come until now.
    ///
    /// # Errors
    ///
    /// The thread that reads has ended.
    pub fn poll(&mut self, now: Instant) -> Result<(), ReaderGone> {
        match &mut self.feed {
            Feed::Server { reports, began, .. } => {
                loop {
                    match reports.try_recv() {
                        Ok(Report::Reading(reading)) => self.model.take(*reading),
                        Ok(Report::RecordingEnded(fault)) => self.recording_fault = Some(fault),
                        Err(TryRecvError::Empty) => break,
                        Err(TryRecvError::Disconnected) => return Err(ReaderGone),
                    }
                }
                self.situation.now = now.saturating_duration_since(*began).as_secs_f64();
            }
            Feed::Recording(player, played_to) => {
                let passed = now.saturating_duration_since(*played_to).as_secs_f64();
                *played_to = now;
                if !self.view.is_paused {
                    player.advance(passed).iter().for_each(|reading| self.model.take(reading.clone()));
                }
                self.situation.now = player.now();
                self.situation.replay = Some(player.replay());
            }
        }
        Ok(())
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        if let (Feed::Recording(player, _), None, KeyCode::Char(step @ ('.' | ','))) =
            (&mut self.feed, &self.view.typed, key.code)
        {
            if step == '.' {
                player.step().into_iter().for_each(|reading| self.model.take(reading.clone()));
            } else if let Some(readings) = player.step_back() {
                self.model = Model::default();
                readings.iter().for_each(|reading| self.model.take(reading.clone()));
            }
            self.view.is_paused = true;
            self.situation.now = player.now();
            self.situation.replay = Some(player.replay());
            return Action::None;
        }
        let rows = pages::rows(self.shown().0, &self.view);
        let was_paused = self.view.is_paused;
        let action = self.view.key(key, rows, usize::from(self.page_height));
        if let Feed::Server { query, .. } = &self.feed {
            query.set(self.view.query(self.limit));
            match (was_paused, self.view.is_paused) {
                (false, true) => self.held = Some((self.model.clone(), self.situation.now)),
                (true, false) => self.held = None,
                _ => {}
            }
        }
        action
    }

    /// The model that is shown, and its moment.
    fn shown(&self) -> (&Model, f64) {
        match &self.held {
            Some((model, now)) => (model, *now),
            None => (&self.model, self.situation.now),
        }
    }

    /// Draws the screen.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        self.page_height = area.height.saturating_sub(FRAME_HEIGHT);
        let (model, now) = self.shown();
        let mut situation = Situation { now, ..self.situation.clone() };
        if let Some(fault) = &self.recording_fault {
            situation.source = format!("{} (NOT RECORDED: {fault})", situation.source);
        }
        screen::draw(model, &self.view, &situation, area, buffer);
        if !self.has_colors {
            without_colors(buffer);
        }
    }
}

/// Takes all colours away; signs and words stay.
pub fn without_colors(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        cell.fg = Color::Reset;
        cell.bg = Color::Reset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Order, Query};
    use crate::reading::Reading;
    use crate::snapshot::Snapshot;
    use crate::text;
    use ratatui::crossterm::event::KeyModifiers;
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::time::Duration;

    fn reading(at: f64) -> Reading {
        let snapshot = Snapshot { system: "shop".to_owned(), at, sequence: at as u64, ..Snapshot::default() };
        Reading { at, outcome: Ok(snapshot) }
    }

    fn situation() -> Situation {
        Situation { source: "here".to_owned(), now: 0.0, interval: 1.0, replay: None }
    }

    fn live() -> (App, SyncSender<Report>, Instant) {
        let (sender, reports) = sync_channel(9);
        let query = SharedQuery::new(Query { order: Order::Tree, pattern: None, limit: 5 });
        let began = Instant::now();
        let feed = Feed::Server { reports, query, began };
        (App::new(feed, View::default(), situation(), 5, true), sender, began)
    }

    fn title(app: &mut App) -> String {
        let area = Rect::new(0, 0, 100, 10);
        let mut buffer = Buffer::empty(area);
        app.draw(area, &mut buffer);
        text::of(&buffer).lines().next().unwrap_or_default().trim().to_owned()
    }

    fn press(app: &mut App, key: char) -> Action {
        app.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
    }

    #[test]
    fn a_held_picture_stands_still_while_the_server_goes_on() {
        let (mut app, sender, began) = live();
        let seconds = |seconds| began + Duration::from_secs(seconds);
        sender.send(Report::Reading(Box::new(reading(1.0)))).expect("room");
        app.poll(seconds(1)).expect("a reader");
        press(&mut app, 'p');
        sender.send(Report::Reading(Box::new(reading(9.0)))).expect("room");
        app.poll(seconds(9)).expect("a reader");
        let shown = title(&mut app);
        assert!(shown.contains("up 1 s") && shown.ends_with("HELD"), "{shown}");
        press(&mut app, 'p');
        let shown = title(&mut app);
        assert!(shown.contains("up 9 s") && !shown.contains("HELD"), "{shown}");
    }

    #[test]
    fn silence_and_faults_are_told() {
        let (mut app, sender, began) = live();
        sender.send(Report::Reading(Box::new(reading(1.0)))).expect("room");
        app.poll(began + Duration::from_secs(3)).expect("a reader");
        assert!(!title(&mut app).contains("STALE"));
        app.poll(began + Duration::from_secs(6)).expect("a reader");
        let shown = title(&mut app);
        assert!(shown.ends_with("STALE 5 s: the server does not answer"), "{shown}");
        sender
            .send(Report::Reading(Box::new(Reading { at: 6.0, outcome: Err("cannot connect".to_owned()) })))
            .expect("room");
        sender.send(Report::RecordingEnded("disk full".to_owned())).expect("room");
        app.poll(began + Duration::from_secs(6)).expect("a reader");
        let shown = title(&mut app);
        assert!(
            shown.contains("NOT RECORDED: disk full") && shown.ends_with("STALE 5 s: cannot connect"),
            "{shown}"
        );
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() {
        let (mut app, sender, began) = live();
        drop(sender);
        assert_eq!(app.poll(began), Err(ReaderGone));
    }

    #[test]
    fn sort_and_filter_change_what_the_server_is_asked() {
        let (mut app, _sender, _) = live();
        "u//user/*".chars().for_each(|key| _ = press(&mut app, key));
        app.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        let Feed::Server { query, .. } = &app.feed else { panic!("a server") };
        assert_eq!(
            query.get(),
            Query { order: Order::Queued, pattern: Some("/user/*".to_owned()), limit: 5 }
        );
    }

    #[test]
    fn a_replay_stops_and_goes_step_by_step() {
        let readings = vec![reading(100.0), reading(102.0), reading(104.0)];
        let began = Instant::now();
        let feed = Feed::Recording(Player::new(readings, 1.0), began);
        let mut app = App::new(feed, View::default(), situation(), 5, true);
        let seconds = |seconds| began + Duration::from_secs(seconds);
        app.poll(began).expect("a recording");
        assert!(title(&mut app).contains("up 1 min 40 s"));
        app.poll(seconds(2)).expect("a recording");
        press(&mut app, 'p');
        app.poll(seconds(9)).expect("a recording");
        let shown = title(&mut app);
        assert!(shown.contains("up 1 min 42 s") && shown.contains("HELD"), "{shown}");
        press(&mut app, ',');
        assert!(title(&mut app).contains("up 1 min 40 s"));
        "...".chars().for_each(|key| _ = press(&mut app, key));
        let shown = title(&mut app);
        assert!(shown.contains("up 1 min 44 s") && shown.ends_with("REPLAY 4 s of 4 s"), "{shown}");
    }

    #[test]
    fn without_colours_each_sign_is_there() {
        let (mut app, sender, began) = live();
        sender.send(Report::Reading(Box::new(reading(1.0)))).expect("room");
        app.poll(began).expect("a reader");
        let with = title(&mut app);
        app.has_colors = false;
        let area = Rect::new(0, 0, 100, 10);
        let mut buffer = Buffer::empty(area);
        app.draw(area, &mut buffer);
        assert!(text::of(&buffer).contains(&with));
        assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    }
}
