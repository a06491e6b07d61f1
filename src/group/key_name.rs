//! A key name is the name that an actor of a group has by its key.
//!
//! The name is the key's printed form, with `%` and two hex digits for each byte that a name cannot have. Four legal
//! characters are escaped, too: `~`, which tells keys apart that print alike; `$` and `*`, which have a meaning in
//! paths; and `%` itself. Different texts have different names.

use std::fmt::Write;

/// Characters besides ASCII letters and digits that stay as they are.
const KEPT: &str = "-_.+:@&=,!';";

/// Returns the name of a printed key.
pub(crate) fn key_name(text: &str) -> String {
    match text {
        "" => "~".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => {
            let mut name = String::with_capacity(text.len());
            for byte in text.bytes() {
                let character = char::from(byte);
                if character.is_ascii_alphanumeric() || KEPT.contains(character) {
                    name.push(character);
                } else {
                    let _ = write!(name, "%{byte:02X}");
                }
            }
            name
        }
    }
}

/// Returns the name of the `number`-th key that prints alike, counted from 0.
pub(crate) fn unique_name(name: &str, number: u64) -> String {
    match number {
        0 => name.to_owned(),
        number => format!("{name}~{}", number + 1),
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::path::actor_path::check_name;

    #[test]
    fn every_text_has_a_legal_name_of_its_own() {
        let texts =
            ["", "~", "..", ".", "%2E%2E", "a/b", "a%2Fb", "$a", "*", "ä", "10.0.0.7:514", "a~2", "_"];
        let names: Vec<String> = texts.iter().map(|text| key_name(text)).collect();
        for (text, name) in texts.iter().zip(&names) {
            assert!(check_name(name).is_ok(), "{text:?} is called {name:?}");
        }
        let different: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert_eq!(names[10], "10.0.0.7:514");
        assert_eq!(unique_name(&key_name("a"), 1), "a~2");
        assert!(check_name(&unique_name("a", 7)).is_ok());
    }
}
