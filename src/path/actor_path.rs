//! Names and paths of actors.

use crate::path::address::SystemAddress;
use crate::path::error::{NameError, PathError, PathFault};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A path names the place of an actor in the tree: the names from the root down, such as `/user/shop/cache`.
///
/// A path names a place, not an incarnation: an actor that is stopped and created anew under the same name has the same
/// path and another [`uid`](crate::AnyActorRef::uid). The path of a reference also knows the uid, for the
/// [serialized](Self::serialized) form. No comparison regards the uid.
///
/// As text a path may begin with the address of its system: `/user/cache`, `pointsman://shop/user/cache`,
/// `pointsman://shop@10.0.0.7:25520/user/cache`. It may end with a uid: `/user/cache#7`. Runs of `/` count as one, a
/// trailing `/` is ignored, and `..` goes up (from the root to the root).
///
/// Paths are ordered by their names from the last one to the first, and then by address.
///
/// ```
/// # use pointsman::prelude::*;
/// use pointsman::ActorPath;
/// # struct Idle;
/// # impl Actor for Idle {
/// #     type Message = ();
/// #     fn receive(&mut self, _: (), _: &mut Context<()>) -> HandlerResult { Ok(()) }
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = System::builder("shop").build()?;
/// let cache = system.actor("cache").spawn(|| Idle)?;
/// assert_eq!(cache.path().to_string(), "/user/cache");
/// assert_eq!(cache.path(), "/user/till".parse::<ActorPath>()?.join("../cache")?);
/// let anywhere = cache.path().with_address(system.address());
/// assert_eq!(anywhere.to_string(), "pointsman://shop/user/cache");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ActorPath {
    /// The address of the system; `None` for the system at hand.
    address: Option<Box<SystemAddress>>,
    /// The names, each behind a `/`; `/` alone for the root.
    text: Box<str>,
    /// The uid of the incarnation; 0 for no incarnation.
    uid: u32,
}

impl ActorPath {
    /// Makes a path of names given from the root down.
    pub(crate) fn from_names<'a>(names: impl Iterator<Item = std::borrow::Cow<'a, str>>) -> Self {
        let mut text = String::new();
        for name in names {
            text.push('/');
            text.push_str(&name);
        }
        Self::from_text(text)
    }

    fn from_text(mut text: String) -> Self {
        if text.is_empty() {
            text.push('/');
        }
        Self { address: None, text: text.into_boxed_str(), uid: 0 }
    }

    /// Returns the names as text, beginning with `/`, without address and uid.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the last name; empty for the root.
    pub fn name(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the names from the root down; the root has none.
    pub fn elements(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.text.split('/').filter(|name| !name.is_empty())
    }

    /// Returns the path of the parent; for the root, the root. It has the same address and no uid.
    pub fn parent(&self) -> Self {
        let mut text = String::from(&*self.text);
        go_up(&mut text);
        Self { address: self.address.clone(), ..Self::from_text(text) }
    }

    /// Returns the path that `relative` means from here: `b/c` is below, `../b` is a sibling, and `/user/b` begins at
    /// the root of the same system. A `relative` with an address is itself the result. A uid holds for the path at
    /// which it is written.
    ///
    /// # Errors
    ///
    /// [`PathError`] tells what is wrong with `relative`, and where.
    pub fn join(&self, relative: &str) -> Result<Self, PathError> {
        let (address, begin) = match SystemAddress::split(relative)? {
            Some((address, begin)) => (Some(Box::new(address)), begin),
            None => (self.address.clone(), 0),
        };
        if relative.is_empty() {
            return Err(PathError::new(relative, relative, 0, PathFault::Empty));
        }
        let from_root = begin > 0 || relative.starts_with('/');
        let mut text = String::from(if from_root { "" } else { self.text.trim_end_matches('/') });
        let (names, uid) = match relative[begin..].split_once('#') {
            Some((names, uid)) => {
                let position = begin + names.len() + 1;
                (
                    names,
                    parse_uid(uid).ok_or_else(|| PathError::new(relative, uid, position, PathFault::Uid))?,
                )
            }
            None => (&relative[begin..], 0),
        };
        for (position, name) in elements(names) {
            if name == PARENT {
                go_up(&mut text);
                continue;
            }
            if let Some((offset, character)) = bad_character(name) {
                let fault = PathFault::Character { character };
                return Err(PathError::new(relative, name, begin + position + offset, fault));
            }
            text.push('/');
            text.push_str(name);
        }
        Ok(Self { address, uid, ..Self::from_text(text) })
    }

    /// Returns the address of the system, if the path has one.
    pub fn address(&self) -> Option<&SystemAddress> {
        self.address.as_deref()
    }

    /// Returns the same place with the address of its system, for readers in another system.
    pub fn with_address(self, address: SystemAddress) -> Self {
        Self { address: Some(Box::new(address)), ..self }
    }

    /// Returns the uid of the incarnation, if the path has one.
    pub fn uid(&self) -> Option<u32> {
        (self.uid != 0).then_some(self.uid)
    }

    /// Returns the same place with the incarnation of this uid; 0 means no incarnation.
    pub fn with_uid(self, uid: u32) -> Self {
        Self { uid, ..self }
    }

    /// Returns the text with `#` and the uid behind it, if the path has a uid: the text parses to a path that means the
    /// same incarnation.
    pub fn serialized(&self) -> String {
        match self.uid {
            0 => self.to_string(),
            uid => format!("{self}#{uid}"),
        }
    }
}

/// The element that goes up to the parent.
pub(crate) const PARENT: &str = "..";

/// Returns the elements of a path or selection with their positions. Runs of `/` count as one.
pub(crate) fn elements(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut position = 0;
    let at = text.split('/').map(move |name| {
        let begin = position;
        position += name.len() + 1;
        (begin, name)
    });
    at.filter(|(_, name)| !name.is_empty())
}

/// Parses the number behind a `#`.
pub(crate) fn parse_uid(text: &str) -> Option<u32> {
    // `parse` would accept a sign too.
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|uid| digits && *uid != 0)
}

fn go_up(text: &mut String) {
    text.truncate(text.rfind('/').unwrap_or(0));
}

impl FromStr for ActorPath {
    type Err = PathError;

    /// # Errors
    ///
    /// [`PathError`] tells what is wrong with the text, and where. A relative path is an error too: [join](Self::join)
    /// it to the path that it is relative to.
    fn from_str(text: &str) -> Result<Self, PathError> {
        if !text.is_empty() && !text.starts_with('/') && SystemAddress::split(text)?.is_none() {
            return Err(PathError::new(text, text, 0, PathFault::Relative));
        }
        Self::from_text(String::new()).join(text)
    }
}

impl PartialEq for ActorPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.address == other.address
    }
}

impl Eq for ActorPath {}

impl Hash for ActorPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.address.hash(state);
    }
}

impl Ord for ActorPath {
    fn cmp(&self, other: &Self) -> Ordering {
        let names = self.elements().rev().cmp(other.elements().rev());
        names.then_with(|| self.address.cmp(&other.address))
    }
}

impl PartialOrd for ActorPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes address and names, without the uid.
impl fmt::Display for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(address) = &self.address {
            address.fmt(f)?;
        }
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ActorPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of an actor among its siblings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Name<'a> {
    /// The creator gave the name, and [`check_name`] accepted it.
    Given(&'a str),
    /// The engine generated the name of the n-th anonymous child of its parent: `$a`, `$b`, …
    Generated(u64),
    /// The path of an empty reference, which is no child of any parent.
    EmptyRef(&'a ActorPath),
}

impl<'a> Name<'a> {
    pub(crate) fn text(self) -> std::borrow::Cow<'a, str> {
        match self {
            Name::Given(name) => name.into(),
            Name::Generated(number) => generated(number).into(),
            Name::EmptyRef(path) => path.name().into(),
        }
    }
}

/// The alphabet for generated names is Akka's; the least significant digit comes first.
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

/// Returns the number that a generated name stands for.
pub(crate) fn generated_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('$')?.bytes();
    let number = digits.rev().try_fold(0_u64, |number, digit| {
        let value = DIGITS.iter().position(|other| *other == digit)?;
        number.checked_mul(64)?.checked_add(value as u64)
    })?;
    // `$ba` is no name, although its digits make the number of `$b`.
    (generated(number) == name).then_some(number)
}

/// The characters allowed besides ASCII letters and digits; two hex digits must follow `%`.
const ALLOWED: &str = "-_.*$+:@&=,!~';";

/// Checks a name against Akka's rules for path elements.
pub(crate) fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.starts_with('$') {
        return Err(NameError::Reserved { name: name.to_owned() });
    }
    if name == PARENT {
        return Err(NameError::Parent);
    }
    match bad_character(name) {
        Some((position, character)) => {
            Err(NameError::Character { name: name.to_owned(), character, position })
        }
        None => Ok(()),
    }
}

/// Returns the first character that a path element cannot have, and its position.
pub(crate) fn bad_character(name: &str) -> Option<(usize, char)> {
    let bytes = name.as_bytes();
    name.char_indices().find(|(position, character)| !match character {
        '%' => bytes.get(position + 1..position + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)),
        other => other.is_ascii_alphanumeric() || ALLOWED.contains(*other),
    })
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
        assert!((0..5000).all(|number| generated_number(&generated(number)) == Some(number)));
        assert_eq!(generated_number(&generated(u64::MAX)), Some(u64::MAX));
        for other in ["", "$", "a", "$ba", "$a b", "$zzzzzzzzzzzzzzzz"] {
            assert_eq!(generated_number(other), None, "{other}");
        }
        let distinct: std::collections::HashSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }

    #[test]
    fn a_bad_name_is_refused_with_character_and_position() {
        assert!(check_name("worker-1.a%2F:@&=+,!~';*$").is_ok());
        assert_eq!(check_name("").unwrap_err(), NameError::Empty);
        assert_eq!(check_name("$x").unwrap_err(), NameError::Reserved { name: "$x".into() });
        assert_eq!(check_name("..").unwrap_err(), NameError::Parent);
        let error = check_name("ab/c").unwrap_err();
        assert_eq!(error, NameError::Character { name: "ab/c".into(), character: '/', position: 2 });
        assert_eq!(
            error.to_string(),
            "invalid actor name \"ab/c\": character '/' at byte 2 is not allowed, use ASCII letters, digits, \
             one of -_.*$+:@&=,!~'; or % with two hex digits"
        );
        assert!(check_name("50%").is_err());
        assert!(check_name("ä").is_err());
    }
}
