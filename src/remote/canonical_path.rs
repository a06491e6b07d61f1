//! The one way in which a path is written to other nodes.
//!
//! Paths within a system are read leniently: runs of `/` count as one, and `..` goes up. A path on the wire is compared by its
//! text, in policies, dictionaries and lanes, so there it has one form.

use crate::path::actor_path::bad_character;
use std::fmt;

/// The longest path, in bytes.
pub(crate) const PATH_MAX: usize = 1024;

/// The most elements of a path.
pub(crate) const ELEMENTS_MAX: usize = 32;

/// The part of a path that is not canonical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanonicalFault {
    /// It does not begin with `/`, or has no element.
    Relative,
    /// It is longer than [`PATH_MAX`].
    Long { bytes: usize },
    /// It has more elements than [`ELEMENTS_MAX`].
    Deep,
    /// An element is empty, or `..`.
    Element { position: usize },
    /// A character cannot stand there, or two hex digits do not follow a `%`.
    Character { position: usize },
    /// A generated name stands there, and the path has no uid.
    Generated { position: usize },
}

impl fmt::Display for CanonicalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CanonicalFault::Relative => f.write_str("it must begin with '/' and have a name"),
            CanonicalFault::Long { bytes } => {
                write!(f, "it has {bytes} bytes, and at most {PATH_MAX} are allowed")
            }
            CanonicalFault::Deep => write!(f, "it has more than {ELEMENTS_MAX} names"),
            CanonicalFault::Element { position } => {
                write!(f, "the name at byte {position} is empty or \"..\": write the path without it")
            }
            CanonicalFault::Character { position } => {
                write!(f, "the character at byte {position} is not allowed in a name")
            }
            CanonicalFault::Generated { position } => {
                write!(f, "the name at byte {position} is generated, so the path needs a uid")
            }
        }
    }
}

/// Checks the names of a path. A generated name (`$a`) is allowed with a uid alone, since another actor may get it later.
pub(crate) fn check_canonical(path: &str, has_uid: bool) -> Result<(), CanonicalFault> {
    if path.len() > PATH_MAX {
        return Err(CanonicalFault::Long { bytes: path.len() });
    }
    let names = path.strip_prefix('/').filter(|names| !names.is_empty()).ok_or(CanonicalFault::Relative)?;
    let mut position = 1;
    for (number, name) in names.split('/').enumerate() {
        if number == ELEMENTS_MAX {
            return Err(CanonicalFault::Deep);
        }
        if name.is_empty() || name == ".." {
            return Err(CanonicalFault::Element { position });
        }
        if let Some((at, _)) = bad_character(name) {
            return Err(CanonicalFault::Character { position: position + at });
        }
        if name.starts_with('$') && !has_uid {
            return Err(CanonicalFault::Generated { position });
        }
        position += name.len() + 1;
    }
    Ok(())
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::path::actor_path::ActorPath;
    use proptest::prelude::*;

    #[test]
    fn the_limits_are_those_of_the_wire() {
        let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        let deep = |names: usize| "/a".repeat(names);
        for path in ["/user/a", "/user/%2f", "/deadLetters", &long(1024), &deep(32)] {
            assert_eq!(check_canonical(path, false), Ok(()), "{path}");
        }
        assert_eq!(check_canonical("/user/$a/b", true), Ok(()));
        for (path, fault) in [
            ("", CanonicalFault::Relative),
            ("/", CanonicalFault::Relative),
            ("user/a", CanonicalFault::Relative),
            ("//a", CanonicalFault::Element { position: 1 }),
            ("/a//b", CanonicalFault::Element { position: 3 }),
            ("/a/", CanonicalFault::Element { position: 3 }),
            ("/a/../b", CanonicalFault::Element { position: 3 }),
            ("/a/50%", CanonicalFault::Character { position: 5 }),
            ("/a/%2", CanonicalFault::Character { position: 3 }),
            ("/a/%2g", CanonicalFault::Character { position: 3 }),
            ("/a b", CanonicalFault::Character { position: 2 }),
            ("/a/é", CanonicalFault::Character { position: 3 }),
            ("/a#7", CanonicalFault::Character { position: 2 }),
            ("/user/$a", CanonicalFault::Generated { position: 6 }),
            (&long(1025), CanonicalFault::Long { bytes: 1025 }),
            (&deep(33), CanonicalFault::Deep),
        ] {
            assert_eq!(check_canonical(path, false), Err(fault), "{path}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        /// The lenient reader writes a canonical path as it was, and writes all others in another form or refuses them.
        #[test]
        fn a_canonical_path_is_one_that_the_lenient_reader_leaves_alone(path in "[/.a%$#é2 -]{0,12}") {
            let read = path.parse::<ActorPath>().ok();
            let is_kept = path != "/" && read.is_some_and(|read| read.uid().is_none() && read.to_string() == path);
            prop_assert_eq!(check_canonical(&path, true).is_ok(), is_kept);
        }
    }
}
