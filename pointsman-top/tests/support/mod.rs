//! What the tests share: expected files, and screens as text.

#![allow(dead_code)] // each test program uses a part

use pointsman_top::model::model::Model;
use pointsman_top::screen::{self, Situation};
use pointsman_top::text;
use pointsman_top::view::View;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::fs;
use std::path::{Path, PathBuf};

/// If this variable is set, the tests write the expected files that differ.
const WRITE: &str = "POINTSMAN_WRITE_EXPECTED";

/// A path below the folder of the package.
pub fn path(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// Compares a text with an expected file.
pub fn expect_file(file: &Path, text: &str) {
    let expected = fs::read_to_string(file).unwrap_or_default();
    if expected == text {
        return;
    }
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
        return;
    }
    let different = expected.lines().zip(text.lines()).position(|(expected, line)| expected != line);
    let at = different.unwrap_or_else(|| expected.lines().count().min(text.lines().count()));
    panic!(
        "{} differs from line {} on:\nexpected: {:?}\nbut is:   {:?}\n`{WRITE}=1 cargo test -p pointsman-top` writes it; it \
         would be:\n{text}",
        file.display(),
        at + 1,
        expected.lines().nth(at),
        text.lines().nth(at),
    );
}

/// The screen as a terminal shows it.
pub fn shown(model: &Model, view: &View, situation: &Situation, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let drawn = terminal.draw(|frame| screen::draw(model, view, situation, frame.area(), frame.buffer_mut()));
    text::of(drawn.expect("a screen").buffer)
}
