//! Errors of paths, selections and names.

use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// A text is no path, or no selection; the error names the wrong part and its position.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathError {
    /// The whole text.
    pub path: String,
    /// The wrong part: an element, the name of the system, the host, the port, the name of
    /// the node, or the uid.
    pub element: String,
    /// The byte position of the wrong part in `path`, from 0.
    pub position: usize,
    /// The fault.
    pub fault: PathFault,
}

/// The kinds of faults of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathFault {
    /// The text is empty.
    Empty,
    /// The text begins neither with `/` nor with an address, and there is no path that it is relative to.
    Relative,
    /// The scheme of the address is not `pointsman`.
    Scheme,
    /// The address names no system.
    System,
    /// The address has an `@` and no host.
    Host,
    /// The address has a host and no port from 0 to 65535.
    Port,
    /// The part behind the `@` is neither a host with its port nor the name of a node.
    Node,
    /// The text has a character that cannot stand there.
    Character {
        /// The character, at the error's position.
        character: char,
    },
    /// No number from 1 to 4294967295 follows `#`, or it has zeros before it in a path to another node.
    Uid,
    /// The address names another system, which cannot be reached from this system.
    Elsewhere,
    /// The path goes to another node, and is longer than it may be there.
    TooLong {
        /// The most bytes.
        max: usize,
    },
    /// The path goes to another node, and has more names than it may have there.
    TooDeep {
        /// The most names.
        max: usize,
    },
    /// The path goes to another node, and has an empty name or `..`, which only a path within a system may have.
    NotCanonical,
    /// The path goes to another node and has a generated name, such as `$a`, but no uid: another actor may get the name.
    GeneratedName,
    /// The path goes to another node, and the type of the messages is not [registered](crate::remote::Node::message) at this one.
    Unregistered,
}

impl PathError {
    pub(crate) fn new(path: &str, element: &str, position: usize, fault: PathFault) -> Self {
        Self { path: path.to_owned(), element: element.to_owned(), position, fault }
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, element, position, fault } = self;
        write!(f, "invalid path {path:?}: ")?;
        match fault {
            PathFault::Empty => f.write_str("it is empty, give at least \"/\""),
            PathFault::Relative => {
                f.write_str("it is relative, begin it with '/' or join it to the path that it is relative to")
            }
            PathFault::Scheme => write!(f, "scheme {element:?} at byte {position} must be \"pointsman\""),
            PathFault::System => write!(f, "the address at byte {position} names no system, give its name"),
            PathFault::Host => {
                write!(f, "there is no host at byte {position}, give one behind '@' or leave '@' out")
            }
            PathFault::Port => {
                write!(
                    f,
                    "no port in {element:?} at byte {position}, give a number from 0 to 65535 behind ':'"
                )
            }
            PathFault::Node => write!(
                f,
                "{element:?} at byte {position} is neither a host with its port nor a node: give host:port, or the name \
                 of a node, 1 to 64 ASCII letters, digits, '_' and '-' that begin with a letter or digit"
            ),
            PathFault::Character { character } => write!(
                f,
                "character {character:?} at byte {position} is not allowed in {element:?}, use ASCII letters, \
                 digits, or signs that are allowed there"
            ),
            PathFault::Uid => {
                write!(f, "uid {element:?} at byte {position} is no number from 1 to 4294967295")
            }
            PathFault::Elsewhere => {
                write!(
                    f,
                    "{element} is another system, which cannot be reached from here: give a path of this system"
                )
            }
            PathFault::TooLong { max } => {
                write!(f, "it has {} bytes, and a path to another node has at most {max}", element.len())
            }
            PathFault::TooDeep { max } => {
                let names = element.split('/').filter(|name| !name.is_empty()).count();
                write!(f, "it has {names} names, and a path to another node has at most {max}")
            }
            PathFault::NotCanonical => write!(
                f,
                "the name {element:?} at byte {position} is empty or \"..\", which a path to another node cannot have: \
                 write the path without it"
            ),
            PathFault::GeneratedName => write!(
                f,
                "{element:?} at byte {position} is a generated name, which another actor may get: add the uid, as in \
                 {element}#7"
            ),
            PathFault::Unregistered => write!(
                f,
                "it goes to another node, and {element} is not registered at this one: `Node::message` registers it"
            ),
        }
    }
}

impl std::error::Error for PathError {}

debug_by_display! { PathError }

/// An actor cannot have this name.
#[doc(alias = "NameFault")]
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty.
    Empty,
    /// The name starts with `$`, which is reserved for generated names.
    Reserved {
        /// The name.
        name: String,
    },
    /// The name is `..`, which means the parent.
    Parent,
    /// The name has a character that it cannot have.
    Character {
        /// The name.
        name: String,
        /// The character.
        character: char,
        /// Its byte position in the name, from 0.
        position: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => {
                f.write_str("invalid actor name \"\": it is empty, give at least one character")
            }
            NameError::Reserved { name } => write!(
                f,
                "invalid actor name {name:?}: '$' begins generated names alone, begin with another character"
            ),
            NameError::Parent => {
                f.write_str("invalid actor name \"..\": '..' means the parent in paths, choose another name")
            }
            NameError::Character { name, character, position } => write!(
                f,
                "invalid actor name {name:?}: character {character:?} at byte {position} is not allowed, use ASCII \
                 letters, digits, one of -_.*$+:@&=,!~'; or % with two hex digits"
            ),
        }
    }
}

impl std::error::Error for NameError {}

debug_by_display! { NameError }
