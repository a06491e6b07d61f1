//! Recordings: a JSON object for each reading, in a line of its own.

use crate::reading::Reading;
use crate::screen::Replay;
use crate::snapshot::{Snapshot, VERSION};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A line of a recording.
#[derive(Serialize, Deserialize)]
struct Line {
    at: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<Snapshot>,
}

/// Writes readings to a file as they come.
#[derive(Debug)]
pub struct Recorder {
    file: File,
}

impl Recorder {
    /// Creates the file.
    ///
    /// # Errors
    ///
    /// The file is there already, or cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create_new(path).map(|file| Self { file })
    }

    /// Appends a reading.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&mut self, reading: &Reading) -> io::Result<()> {
        let (snapshot, fault) = match &reading.outcome {
            Ok(snapshot) => (Some(snapshot.clone()), None),
            Err(fault) => (None, Some(fault.clone())),
        };
        let mut line = serde_json::to_vec(&Line { at: reading.at, fault, snapshot })?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

/// The reason why a file is no recording.
#[derive(Debug)]
pub enum RecordingError {
    /// The file cannot be read.
    Io(io::Error),
    /// A line is no reading: its number from 1, and why.
    Line(usize, String),
    /// There is no reading in the file.
    Empty,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Io(error) => write!(f, "the recording cannot be read: {error}"),
            RecordingError::Line(number, fault) => {
                write!(f, "line {number} of the recording is no reading: {fault}")
            }
            RecordingError::Empty => f.write_str("the recording has no reading"),
        }
    }
}

impl std::error::Error for RecordingError {}

/// Reads a recording. A last line without its end is left out: its recorder was ended while it wrote.
///
/// # Errors
///
/// Each [`RecordingError`].
pub fn load(path: &Path) -> Result<Vec<Reading>, RecordingError> {
    let text = std::fs::read_to_string(path).map_err(RecordingError::Io)?;
    read(&text)
}

fn read(text: &str) -> Result<Vec<Reading>, RecordingError> {
    let mut readings: Vec<Reading> = Vec::new();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let fault = |fault: String| RecordingError::Line(at + 1, fault);
        let read: Line = match serde_json::from_str(line) {
            Ok(read) => read,
            Err(_) if !line.ends_with('\n') => break,
            Err(error) => return Err(fault(error.to_string())),
        };
        let outcome = match (read.snapshot, read.fault) {
            (Some(snapshot), None) if snapshot.version == VERSION => Ok(snapshot),
            (Some(snapshot), None) => {
                return Err(fault(format!("its format has version {}, and not {VERSION}", snapshot.version)));
            }
            (None, Some(text)) => Err(text),
            _ => return Err(fault("it needs either a snapshot or a fault".to_owned())),
        };
        if readings.last().is_some_and(|before| read.at < before.at) {
            return Err(fault("it was read before the line before".to_owned()));
        }
        readings.push(Reading { at: read.at, outcome });
    }
    if readings.is_empty() { Err(RecordingError::Empty) } else { Ok(readings) }
}

/// Plays a recording.
#[derive(Debug)]
pub struct Player {
    readings: Vec<Reading>,
    /// The readings that were played.
    played: usize,
    /// The moment that is shown, in seconds since the first reading.
    position: f64,
    /// Seconds of the recording in a second.
    speed: f64,
}

impl Player {
    /// Returns a player before its first reading.
    pub fn new(readings: Vec<Reading>, speed: f64) -> Self {
        Self { readings, played: 0, position: 0.0, speed }
    }

    /// The readings that come due when so many seconds have passed. The first reading is due at once.
    pub fn advance(&mut self, seconds: f64) -> &[Reading] {
        self.position = (self.position + seconds * self.speed).min(self.length());
        let (first, origin) = (self.played, self.origin());
        let due = self.readings.iter().take_while(|reading| reading.at - origin <= self.position).count();
        self.played = due.max(first);
        &self.readings[first..self.played]
    }

    /// The next reading, whose moment is then shown; `None` at the end.
    pub fn step(&mut self) -> Option<&Reading> {
        let reading = self.readings.get(self.played)?;
        self.played += 1;
        self.position = reading.at - self.origin();
        Some(reading)
    }

    /// The readings up to the one before the newest, whose moment is then shown; `None` at the first one.
    pub fn step_back(&mut self) -> Option<&[Reading]> {
        let played = self.played.checked_sub(1).filter(|played| *played > 0)?;
        self.played = played;
        self.position = self.readings[played - 1].at - self.origin();
        Some(&self.readings[..played])
    }

    /// The place in the recording.
    pub fn replay(&self) -> Replay {
        Replay { position: self.position, length: self.length() }
    }

    /// The moment that is shown, in seconds of the reader.
    pub fn now(&self) -> f64 {
        self.origin() + self.position
    }

    /// The seconds between the first and the last reading.
    fn length(&self) -> f64 {
        self.readings.last().map_or(0.0, |last| last.at - self.origin())
    }

    /// The moment of the first reading, in seconds of the reader.
    fn origin(&self) -> f64 {
        self.readings.first().map_or(0.0, |first| first.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: f64, system: &str) -> Reading {
        let snapshot = Snapshot { version: VERSION, system: system.to_owned(), ..Snapshot::default() };
        Reading { at, outcome: Ok(snapshot) }
    }

    fn line(reading: &Reading) -> String {
        let (snapshot, fault) = match reading.outcome.clone() {
            Ok(snapshot) => (Some(snapshot), None),
            Err(fault) => (None, Some(fault)),
        };
        serde_json::to_string(&Line { at: reading.at, fault, snapshot }).expect("plain data")
    }

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let folder = std::env::temp_dir().join(format!("pointsman-top-recording-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.jsonl");
        let readings = vec![
            reading(0.5, "shop"),
            Reading { at: 1.5, outcome: Err("away".to_owned()) },
            reading(2.5, "shop"),
        ];
        let mut recorder = Recorder::create(&path).expect("a new file");
        readings.iter().for_each(|reading| recorder.write(reading).expect("a line"));
        assert_eq!(load(&path).expect("a recording"), readings);
        // What was recorded is not written over.
        assert_eq!(Recorder::create(&path).expect_err("is there").kind(), io::ErrorKind::AlreadyExists);
        std::fs::remove_dir_all(folder).expect("the folder");
    }

    #[test]
    fn a_last_line_without_an_end_is_left_out() {
        let whole = line(&reading(0.0, "shop"));
        let cut = format!("{whole}\n\n{}", &whole[..whole.len() / 2]);
        assert_eq!(read(&cut).expect("a recording").len(), 1);
        assert_eq!(read(&format!("{whole}\n{whole}")).expect("a recording").len(), 2);
    }

    #[test]
    fn other_files_are_refused_by_line() {
        let whole = line(&reading(5.0, "shop"));
        for (text, number) in [
            (format!("{whole}\n{{}}\n"), 2),
            (format!("{whole}\nno\n{whole}\n"), 2),
            (whole.replace("\"version\":1", "\"version\":7"), 1),
            (format!("{whole}\n{}\n", line(&reading(4.0, "shop"))), 2),
        ] {
            let error = read(&text).expect_err("no recording");
            assert!(matches!(error, RecordingError::Line(at, _) if at == number), "{error}");
        }
        assert!(matches!(read("\n"), Err(RecordingError::Empty)));
    }

    #[test]
    fn a_player_keeps_the_pace_of_the_recording() {
        let readings = vec![reading(10.0, "a"), reading(11.0, "b"), reading(14.0, "c")];
        let mut player = Player::new(readings.clone(), 2.0);
        assert_eq!((player.replay().length, player.now()), (4.0, 10.0));
        assert_eq!(player.advance(0.0), &readings[..1]);
        assert_eq!(player.advance(0.4), &readings[..0]);
        assert_eq!(player.advance(0.1), &readings[1..2]);
        assert_eq!(player.advance(9.0), &readings[2..]);
        assert_eq!((player.replay().position, player.advance(1.0).len()), (4.0, 0));
    }

    #[test]
    fn a_player_goes_step_by_step() {
        let readings = vec![reading(10.0, "a"), reading(11.0, "b")];
        let mut player = Player::new(readings.clone(), 1.0);
        assert_eq!(player.step_back(), None);
        assert_eq!(player.step(), Some(&readings[0]));
        assert_eq!(player.step(), Some(&readings[1]));
        assert_eq!((player.replay().position, player.step()), (1.0, None));
        assert_eq!(player.step_back(), Some(&readings[..1]));
        assert_eq!((player.replay().position, player.step_back()), (0.0, None));
    }
}
