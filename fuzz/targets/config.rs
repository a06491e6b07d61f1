//! Configurations in TOML.
//!
//! What must hold:
//! - What is no TOML is refused with a line that the text has, or as nested too deeply; a key or value is refused by its
//!   key, which the text has, too.
//! - What is accepted builds a system, or is refused by name; the settings of that system, printed, make the same
//!   system again.

use pointsman::{BuildError, SystemBuilder};
use pointsman::prelude::*;
use pointsman::testkit::TestSystem;

pub fn check(data: &[u8]) {
    // A configuration of more has nothing new in it.
    let text = String::from_utf8_lossy(&data[..data.len().min(1 << 16)]);
    let Some(printed) = settings(&text) else { return };
    let again = settings(&printed).unwrap_or_else(|| panic!("it is refused as printed:\n{printed}"));
    assert_eq!(again, printed);
}

/// The settings of the system that is configured so, if there can be one.
fn settings(text: &str) -> Option<String> {
    match described(System::builder("test")).config(text) {
        Ok(_) => {}
        Err(error) => {
            refused(text, &error);
            return None;
        }
    }
    let owned = text.to_owned();
    let plan = TestSystem::builder().seed(1);
    let plan = plan.configure(move |builder| described(builder).config(&owned).expect("as before"));
    match plan.try_build() {
        Ok(system) => Some(system.settings()),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// What only code can say, for files to change.
fn described(builder: SystemBuilder) -> SystemBuilder {
    builder
        .dispatcher("files", Dispatcher::blocking().thread_range(2..=3))
        .mailbox("sorted", Mailbox::priority(|number: &u32| i64::from(*number)))
        .mailbox("lanes", Mailbox::lanes(3, |number: &u32| *number as usize))
}

fn refused(text: &str, error: &BuildError) {
    match error {
        BuildError::ConfigSyntax { fault } if fault.contains("nested too deeply") => {}
        BuildError::ConfigSyntax { fault } => {
            let line = fault.split("at line ").nth(1).and_then(|rest| rest.split(',').next());
            let line: usize =
                line.and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no line: {fault}"));
            assert!((1..=text.split('\n').count()).contains(&line), "{fault}");
        }
        BuildError::ConfigKey { key, fault } => {
            assert!(!key.is_empty() && !fault.is_empty());
            // The error may quote it otherwise than the text.
            let section = key.trim_start_matches(['"', '\'']).split(['.', '[', '"', '\'']).next().unwrap_or_default();
            // What is written with escapes does not stand there.
            assert!(text.contains('\\') || key.contains('\\') || text.contains(section), "{key}: {fault}\n{text}");
        }
        other => panic!("{other}"),
    }
}
