//! The user's choice of what to see, and the keys that change it.

use crate::filter::Filter;
use crate::query::{Order, Query};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Page {
    /// The actors, as a tree or by a number.
    #[default]
    Tree,
    /// The routers, with the shares of their routees over time.
    Routers,
    /// How long messages wait and handlers take, by class.
    Latency,
    /// The threads of the dispatchers.
    Workers,
    /// The ledger, dead letters, failures, stuck handlers.
    Books,
}

/// The order of the rows of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// Actors as a tree; all else by name.
    #[default]
    Tree,
    /// Those for which most messages wait go first.
    Queued,
    /// Those with most messages a second go first.
    Rate,
    /// Those that have handled most messages go first.
    Handled,
    /// Those whose messages have lately waited longest go first.
    Wait,
    /// Those whose handlers have lately taken longest go first.
    Handle,
}

/// The user's choice of what to see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The page.
    pub page: Page,
    /// The order of the rows.
    pub sort: Sort,
    /// The rows that are shown.
    pub filter: Filter,
    /// The text of the filter while it is typed.
    pub typed: Option<String>,
    /// Whether the picture stands still.
    pub is_paused: bool,
    /// Whether the keys are explained.
    pub has_help: bool,
    /// The chosen row of each page.
    pub rows: [usize; Page::ALL.len()],
    /// The routees that are left out at the top of the chosen router.
    pub routees_skipped: usize,
}

/// The action that a key asks of the program beyond the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing more.
    None,
    /// To end.
    Quit,
}

impl Page {
    /// All pages in their order.
    pub const ALL: [Page; 5] = [Page::Tree, Page::Routers, Page::Latency, Page::Workers, Page::Books];

    /// The name of the page.
    pub fn name(self) -> &'static str {
        match self {
            Page::Tree => "tree",
            Page::Routers => "routers",
            Page::Latency => "latency",
            Page::Workers => "workers",
            Page::Books => "books",
        }
    }

    fn moved(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

impl Sort {
    /// All orders, in the order in which the key `s` shows them.
    pub const ALL: [Sort; 6] =
        [Sort::Tree, Sort::Queued, Sort::Rate, Sort::Handled, Sort::Wait, Sort::Handle];

    /// The name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Tree => "tree",
            Sort::Queued => "queued",
            Sort::Rate => "rate",
            Sort::Handled => "handled",
            Sort::Wait => "wait",
            Sort::Handle => "handle",
        }
    }

    fn moved(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

impl View {
    /// The chosen row of the page, of so many.
    pub fn row(&self, rows: usize) -> usize {
        self.rows[self.page as usize].min(rows.saturating_sub(1))
    }

    /// The actors to ask the server for.
    pub fn query(&self, limit: usize) -> Query {
        let order = match self.sort {
            Sort::Tree | Sort::Wait | Sort::Handle => Order::Tree,
            Sort::Queued => Order::Queued,
            Sort::Rate => Order::Rate,
            Sort::Handled => Order::Handled,
        };
        Query { order, pattern: self.filter.pattern().map(str::to_owned), limit }
    }

    /// Takes a key. The page has so many `rows`, of which `height` are seen at once.
    pub fn key(&mut self, key: KeyEvent, rows: usize, height: usize) -> Action {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Action::Quit;
        }
        if self.typed.is_some() {
            self.type_filter(key.code);
            return Action::None;
        }
        if self.has_help {
            self.has_help = false;
            return if key.code == KeyCode::Char('q') { Action::Quit } else { Action::None };
        }
        let row = self.row(rows);
        let mut choose = |row: usize| self.rows[self.page as usize] = row.min(rows.saturating_sub(1));
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?') | KeyCode::F(1) => self.has_help = true,
            KeyCode::Char(' ' | 'p') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.typed = Some(self.filter.text().to_owned()),
            KeyCode::Esc => self.filter = Filter::default(),
            KeyCode::Char(digit @ '1'..='5') => self.page = Page::ALL[digit as usize - '1' as usize],
            KeyCode::Tab => self.page = self.page.moved(1),
            KeyCode::BackTab => self.page = self.page.moved(Page::ALL.len() - 1),
            KeyCode::Left if self.page == Page::Routers => {
                self.routees_skipped = self.routees_skipped.saturating_sub(height.max(1));
            }
            KeyCode::Right if self.page == Page::Routers => {
                self.routees_skipped = self.routees_skipped.saturating_add(height.max(1));
            }
            KeyCode::Left => self.page = self.page.moved(Page::ALL.len() - 1),
            KeyCode::Right => self.page = self.page.moved(1),
            KeyCode::Up => choose(row.saturating_sub(1)),
            KeyCode::Down => choose(row + 1),
            KeyCode::PageUp => choose(row.saturating_sub(height.max(1))),
            KeyCode::PageDown => choose(row + height.max(1)),
            KeyCode::Home => choose(0),
            KeyCode::End => choose(usize::MAX),
            KeyCode::Char('s') => self.sort = self.sort.moved(1),
            KeyCode::Char('S') => self.sort = self.sort.moved(Sort::ALL.len() - 1),
            KeyCode::Char('t') => self.sort = Sort::Tree,
            KeyCode::Char('u') => self.sort = Sort::Queued,
            KeyCode::Char('r') => self.sort = Sort::Rate,
            KeyCode::Char('m') => self.sort = Sort::Handled,
            KeyCode::Char('w') => self.sort = Sort::Wait,
            KeyCode::Char('h') => self.sort = Sort::Handle,
            _ => {}
        }
        if matches!(
            key.code,
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown | KeyCode::Home | KeyCode::End
        ) {
            self.routees_skipped = 0;
        }
        Action::None
    }

    fn type_filter(&mut self, key: KeyCode) {
        let typed = self.typed.get_or_insert_default();
        match key {
            KeyCode::Char(character) => typed.push(character),
            KeyCode::Backspace => _ = typed.pop(),
            KeyCode::Enter => {
                self.filter = Filter::new(typed);
                self.typed = None;
                self.rows = Default::default();
            }
            KeyCode::Esc => self.typed = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &str) -> Action {
        let mut action = Action::None;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\u{8}' => KeyCode::Backspace,
                '\u{1b}' => KeyCode::Esc,
                '↓' => KeyCode::Down,
                '↑' => KeyCode::Up,
                '→' => KeyCode::Right,
                '←' => KeyCode::Left,
                'V' => KeyCode::PageDown,
                '$' => KeyCode::End,
                '^' => KeyCode::Home,
                other => KeyCode::Char(other),
            };
            action = view.key(KeyEvent::new(code, KeyModifiers::NONE), 20, 6);
        }
        action
    }

    #[test]
    fn pages_are_chosen_by_number_tab_and_arrows() {
        let mut view = View::default();
        for (keys, page) in [
            ("3", Page::Latency),
            ("\t", Page::Workers),
            ("→→", Page::Tree),
            ("←", Page::Books),
            ("2→", Page::Routers),
        ] {
            press(&mut view, keys);
            assert_eq!(view.page, page, "{keys}");
        }
        assert_eq!(view.routees_skipped, 6);
        press(&mut view, "↓");
        assert_eq!(view.routees_skipped, 0);
    }

    #[test]
    fn each_page_has_a_row_of_its_own_within_its_rows() {
        let mut view = View::default();
        press(&mut view, "↓↓V");
        assert_eq!((view.row(20), view.row(5), view.row(0)), (8, 4, 0));
        press(&mut view, "4");
        assert_eq!(view.row(20), 0);
        press(&mut view, "↑$");
        assert_eq!(view.row(20), 19);
        press(&mut view, "↓^1");
        assert_eq!(view.row(20), 8);
    }

    #[test]
    fn sort_keys_choose_an_order_and_what_the_server_is_asked() {
        let mut view = View::default();
        for (keys, sort, order) in [
            ("u", Sort::Queued, Order::Queued),
            ("r", Sort::Rate, Order::Rate),
            ("m", Sort::Handled, Order::Handled),
            ("w", Sort::Wait, Order::Tree),
            ("h", Sort::Handle, Order::Tree),
            ("s", Sort::Tree, Order::Tree),
            ("S", Sort::Handle, Order::Tree),
            ("t", Sort::Tree, Order::Tree),
        ] {
            press(&mut view, keys);
            assert_eq!((view.sort, view.query(9).order), (sort, order), "{keys}");
        }
    }

    #[test]
    fn a_filter_is_typed_and_taken_back() {
        let mut view = View::default();
        press(&mut view, "/qx\u{8}?");
        assert_eq!((view.typed.as_deref(), view.filter.text()), (Some("q?"), ""));
        press(&mut view, "\n");
        assert_eq!((view.typed.as_deref(), view.filter.text()), (None, "q?"));
        press(&mut view, "/abc\u{1b}");
        assert_eq!(view.filter.text(), "q?");
        press(&mut view, "\u{1b}");
        assert_eq!(view.filter.text(), "");
        press(&mut view, "//user/*\n");
        assert_eq!(view.query(9).pattern.as_deref(), Some("/user/*"));
    }

    #[test]
    fn pause_help_and_quit() {
        let mut view = View::default();
        press(&mut view, "p");
        assert!(view.is_paused);
        press(&mut view, " ?");
        assert!(!view.is_paused && view.has_help);
        // Any key closes the help, and does nothing else.
        assert_eq!(press(&mut view, "3"), Action::None);
        assert!(!view.has_help && view.page == Page::Tree);
        assert_eq!(press(&mut view, "q"), Action::Quit);
        press(&mut view, "/");
        assert_eq!(press(&mut view, "q"), Action::None);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.key(control_c, 0, 0), Action::Quit);
    }
}
