//! The one way in which a path is written to other nodes.
//!
//! Paths within a system are read leniently: runs of `/` count as one, and `..` goes up. A path to another node is compared by
//! its text, in policies, dictionaries and lanes, so there it has one form. A user's text with an address keeps to the same form,
//! so that the policy at the other end judges the path that the user has written.

use crate::path::actor_path::{ActorPath, PARENT, bad_character, parse_uid};
use crate::path::address::SystemAddress;
use crate::path::error::{PathError, PathFault};
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
    /// No number from 1 to 4294967295 follows the `#`, or a wildcard has a uid.
    Uid { position: usize },
}

impl CanonicalFault {
    /// Returns the error about a text in which the path begins at this position.
    fn in_text(self, text: &str, begin: usize) -> PathError {
        let path = &text[begin..];
        let name_at = |position: usize| {
            let rest = &path[position.min(path.len())..];
            rest.split(['/', '#']).next().unwrap_or_default()
        };
        let (element, position, fault) = match self {
            CanonicalFault::Relative => (path, 0, PathFault::Relative),
            CanonicalFault::Long { .. } => (path, 0, PathFault::TooLong { max: PATH_MAX }),
            CanonicalFault::Deep => (path, 0, PathFault::TooDeep { max: ELEMENTS_MAX }),
            CanonicalFault::Element { position } => (name_at(position), position, PathFault::NotCanonical),
            CanonicalFault::Character { position } => {
                let character = path[position..].chars().next().unwrap_or('/');
                let name = path[..position].rfind('/').map_or(0, |slash| slash + 1);
                (name_at(name), position, PathFault::Character { character })
            }
            CanonicalFault::Generated { position } => (name_at(position), position, PathFault::GeneratedName),
            CanonicalFault::Uid { position } => (name_at(position), position, PathFault::Uid),
        };
        PathError::new(text, element, begin + position, fault)
    }
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
            CanonicalFault::Uid { position } => {
                write!(
                    f,
                    "the uid at byte {position} is no number from 1 to 4294967295, or that of a wildcard"
                )
            }
        }
    }
}

/// Checks the names of a path. A generated name (`$a`) is allowed with a uid alone, since another actor may get it later.
pub(crate) fn check_canonical(path: &str, has_uid: bool) -> Result<(), CanonicalFault> {
    for name in names(path)? {
        let Element { position, text: name } = name?;
        check_name(position, name, name)?;
        if name.starts_with('$') && !has_uid {
            return Err(CanonicalFault::Generated { position });
        }
    }
    Ok(())
}

/// Checks the names of a selection: each may have the wildcards `*` and `?`, or a uid behind it (`a#7`). A uid holds for its
/// name and for all names before it.
pub(crate) fn check_canonical_selection(text: &str) -> Result<(), CanonicalFault> {
    let last_uid = text.rfind('#').unwrap_or(0);
    for element in names(text)? {
        let Element { position, text: element } = element?;
        let Some((name, uid)) = element.split_once('#') else {
            check_name(position, element, &element.replace('?', "x"))?;
            let is_pattern = element.contains(['*', '?']);
            if element.starts_with('$') && !is_pattern && position > last_uid {
                return Err(CanonicalFault::Generated { position });
            }
            continue;
        };
        check_name(position, name, name)?;
        if !is_canonical_uid(uid) {
            return Err(CanonicalFault::Uid { position: position + name.len() + 1 });
        }
    }
    Ok(())
}

/// Reads a text that may begin with an address and may end with a uid, such as `pointsman://shop@n2/user/a#7`.
///
/// # Errors
///
/// [`PathError`], also for a text that is a path and is not canonical.
pub(crate) fn parse_canonical(text: &str) -> Result<ActorPath, PathError> {
    let begin = SystemAddress::split(text)?.map_or(0, |(_, begin)| begin);
    let (path, uid) = match text[begin..].split_once('#') {
        Some((path, uid)) => (path, Some(uid)),
        None => (&text[begin..], None),
    };
    check_canonical(path, uid.is_some()).map_err(|fault| fault.in_text(text, begin))?;
    if let Some(uid) = uid.filter(|uid| !is_canonical_uid(uid)) {
        return Err(PathError::new(text, uid, text.len() - uid.len(), PathFault::Uid));
    }
    text.parse()
}

/// Checks the text of a selection, whose names begin at byte `begin`, behind the address.
pub(crate) fn check_selection_text(text: &str, begin: usize) -> Result<(), PathError> {
    check_canonical_selection(&text[begin..]).map_err(|fault| fault.in_text(text, begin))
}

/// Whether this is a uid in its one form, without zeros before it.
fn is_canonical_uid(uid: &str) -> bool {
    parse_uid(uid).is_some() && !uid.starts_with('0')
}

/// A name between two `/`, and its position in the path.
struct Element<'a> {
    position: usize,
    text: &'a str,
}

/// Returns the names of a path, of which one too many is an error.
fn names(path: &str) -> Result<impl Iterator<Item = Result<Element<'_>, CanonicalFault>>, CanonicalFault> {
    if path.len() > PATH_MAX {
        return Err(CanonicalFault::Long { bytes: path.len() });
    }
    let names = path.strip_prefix('/').filter(|names| !names.is_empty()).ok_or(CanonicalFault::Relative)?;
    let mut next = 1;
    Ok(names.split('/').enumerate().map(move |(number, text)| {
        if number == ELEMENTS_MAX {
            return Err(CanonicalFault::Deep);
        }
        let position = next;
        next += text.len() + 1;
        Ok(Element { position, text })
    }))
}

/// Checks a name; `letters` is the name with a letter for each wildcard.
fn check_name(position: usize, name: &str, letters: &str) -> Result<(), CanonicalFault> {
    if name.is_empty() || name == PARENT {
        return Err(CanonicalFault::Element { position });
    }
    match bad_character(letters) {
        Some((at, _)) => Err(CanonicalFault::Character { position: position + at }),
        None => Ok(()),
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
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

    #[test]
    fn a_selection_has_wildcards_and_uids_within_the_same_limits() {
        let deep = |names: usize| "/*".repeat(names);
        for text in ["/user/*", "/user/w-?/b#7", "/user/$a#7", "/user/$a/b#7", "/user/$?", "/**", &deep(32)] {
            assert_eq!(check_canonical_selection(text), Ok(()), "{text}");
        }
        for (text, fault) in [
            ("*", CanonicalFault::Relative),
            ("/", CanonicalFault::Relative),
            ("/a//b", CanonicalFault::Element { position: 3 }),
            ("/a/../*", CanonicalFault::Element { position: 3 }),
            ("/a/..#7", CanonicalFault::Element { position: 3 }),
            ("/#7", CanonicalFault::Element { position: 1 }),
            ("/a#", CanonicalFault::Uid { position: 3 }),
            ("/a#0/b", CanonicalFault::Uid { position: 3 }),
            ("/a#07", CanonicalFault::Uid { position: 3 }),
            ("/a#7#8", CanonicalFault::Uid { position: 3 }),
            ("/a?#7", CanonicalFault::Character { position: 2 }),
            ("/a b", CanonicalFault::Character { position: 2 }),
            ("/%2?", CanonicalFault::Character { position: 1 }),
            ("/b#7/$a", CanonicalFault::Generated { position: 5 }),
            (&deep(33), CanonicalFault::Deep),
        ] {
            assert_eq!(check_canonical_selection(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn a_text_with_an_address_is_read_or_refused_where_it_is_wrong() {
        let path = parse_canonical("pointsman://shop@n2/user/$a#7").unwrap();
        assert_eq!(path.address().and_then(SystemAddress::node_name), Some("n2"));
        assert_eq!((path.as_str(), path.uid()), ("/user/$a", Some(7)));
        assert_eq!(parse_canonical("/user/a").unwrap().address(), None);
        let node = "pointsman://shop@n2";
        let begin = node.len();
        for (names, element, position, fault) in [
            ("", "", begin, PathFault::Relative),
            ("/user//a", "", begin + 6, PathFault::NotCanonical),
            ("/user/../a", "..", begin + 6, PathFault::NotCanonical),
            ("/user/a/", "", begin + 8, PathFault::NotCanonical),
            ("/user/50%/b", "50%", begin + 8, PathFault::Character { character: '%' }),
            ("/user/\u{e9}", "\u{e9}", begin + 6, PathFault::Character { character: '\u{e9}' }),
            ("/user/$a", "$a", begin + 6, PathFault::GeneratedName),
            ("/user/a#0", "0", begin + 8, PathFault::Uid),
            ("/user/a#07", "07", begin + 8, PathFault::Uid),
            ("/user/a#7/b", "7/b", begin + 8, PathFault::Uid),
        ] {
            let text = format!("{node}{names}");
            let error = parse_canonical(&text).expect_err(&text);
            assert_eq!(
                (&*error.path, &*error.element, error.position, error.fault),
                (&*text, element, position, fault)
            );
        }
        let one_beyond =
            |text: String| parse_canonical(&format!("{node}{text}")).map_err(|error| error.fault);
        assert!(one_beyond(format!("/{}", "a".repeat(1023))).is_ok());
        assert_eq!(one_beyond(format!("/{}", "a".repeat(1024))), Err(PathFault::TooLong { max: 1024 }));
        assert!(one_beyond("/a".repeat(32)).is_ok());
        assert_eq!(one_beyond("/a".repeat(33)), Err(PathFault::TooDeep { max: 32 }));
        let error = check_selection_text(&format!("{node}/user/*//b"), begin).unwrap_err();
        assert_eq!((error.position, error.fault), (begin + 8, PathFault::NotCanonical));
        assert_eq!(check_selection_text(&format!("{node}/user/*"), begin), Ok(()));
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
