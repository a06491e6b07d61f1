//! Names and paths of actors.

use crate::error::{NameError, NameFault};
use std::fmt;

/// Where an actor stands in the tree: the names from the root down, such as `/user/shop/cache`.
///
/// A path names a place, not an incarnation: an actor that is stopped and created anew under the same
/// name has the same path and another [`uid`](crate::AnyRef::uid).
///
/// ```
/// # use pointsman::prelude::*;
/// # struct Idle;
/// # impl Actor for Idle {
/// #     type Message = ();
/// #     fn receive(&mut self, _: (), _: &mut Context<()>) -> Done { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let cache = system.actor("cache").spawn(|| Idle)?;
/// assert_eq!(cache.path().to_string(), "/user/cache");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorPath(Box<str>);

impl ActorPath {
    /// Joins names given from the root down.
    pub(crate) fn from_names<'a>(names: impl Iterator<Item = std::borrow::Cow<'a, str>>) -> Self {
        let mut text = String::new();
        for name in names {
            text.push('/');
            text.push_str(&name);
        }
        if text.is_empty() {
            text.push('/');
        }
        Self(text.into_boxed_str())
    }

    /// The path as text, beginning with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an actor is called among its siblings.
#[derive(Debug, Clone)]
pub enum Name {
    /// Given by the creator and checked by [`check_name`].
    Given(Box<str>),
    /// Made up: the n-th anonymous child of its parent, `$a`, `$b`, …
    Generated(u64),
}

impl Name {
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Name::Given(name) => name.as_ref().into(),
            Name::Generated(number) => generated(*number).into(),
        }
    }
}

/// Akka's alphabet for generated names, least significant digit first.
const DIGITS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+~";

fn generated(mut number: u64) -> String {
    let mut name = String::from("$");
    loop {
        name.push(char::from(DIGITS[(number & 63) as usize]));
        number >>= 6;
        if number == 0 {
            return name;
        }
    }
}

/// Characters allowed besides ASCII letters and digits; `%` needs two hex digits behind it.
const ALLOWED: &str = "-_.*$+:@&=,!~';";

/// Checks a name against Akka's rules for path elements.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let fault = |fault| Err(NameError { name: name.to_owned(), fault });
    if name.is_empty() {
        return fault(NameFault::Empty);
    }
    if name.starts_with('$') {
        return fault(NameFault::Reserved);
    }
    let bytes = name.as_bytes();
    for (position, character) in name.char_indices() {
        let allowed = match character {
            '%' => {
                bytes.get(position + 1..position + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            }
            other => other.is_ascii_alphanumeric() || ALLOWED.contains(other),
        };
        if !allowed {
            return fault(NameFault::Character { character, position });
        }
    }
    Ok(())
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_distinct_and_start_as_in_akka() {
        let names: Vec<String> = (0..200).map(generated).collect();
        assert_eq!(names[0], "$a");
        assert_eq!(names[25], "$z");
        assert_eq!(names[26], "$A");
        assert_eq!(names[63], "$~");
        assert_eq!(names[64], "$ab");
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn a_bad_name_is_refused_with_character_and_position() {
        assert!(check_name("worker-1.a%2F:@&=+,!~';*$").is_ok());
        assert_eq!(check_name("").unwrap_err().fault, NameFault::Empty);
        assert_eq!(check_name("$x").unwrap_err().fault, NameFault::Reserved);
        let error = check_name("ab/c").unwrap_err();
        assert_eq!(error.fault, NameFault::Character { character: '/', position: 2 });
        assert_eq!(
            error.to_string(),
            "invalid actor name \"ab/c\": character '/' at byte 2 is not allowed, use ASCII letters, digits, \
             one of -_.*$+:@&=,!~'; or % with two hex digits"
        );
        assert!(check_name("50%").is_err());
        assert!(check_name("ä").is_err());
    }
}
