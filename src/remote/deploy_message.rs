//! The parts of control messages about actors that one node has made on another.

use crate::actor::guardians::REMOTE;
use crate::failure::{Failure, FailureKind, guarded};
use serde::{Deserialize, Serialize};

/// The most bytes of a request, as it is written.
pub(crate) const REQUEST_MAX: usize = 60 << 10;

/// The most bytes of a text that tells of a failure. More is cut off.
const TEXT_MAX: usize = 4 << 10;

/// The request to make an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeployRequest {
    /// The uid of the new actor, which the sender has chosen.
    pub(crate) uid: u32,
    /// The name of the new actor.
    pub(crate) name: String,
    pub(crate) parent: Parent,
    pub(crate) factory: String,
    /// As the factory's actor reads them.
    pub(crate) args: Vec<u8>,
    /// The suspensions that are in force for the new actor.
    pub(crate) suspensions: u32,
    pub(crate) dispatcher: Option<String>,
    /// The name of a mailbox that the receiver has.
    pub(crate) mailbox: Option<String>,
    pub(crate) stash_capacity: Option<u32>,
    /// The number of the actor among the routees of its pool, or 0.
    pub(crate) routee_index: u32,
    /// The actor is made, and takes messages, but has no turn before it is told to [begin](ParentVerdict::Begin).
    pub(crate) is_held: bool,
}

/// The parent of a deployed actor, at the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parent {
    pub(crate) path: String,
    pub(crate) uid: u32,
    /// The number of the parent's type of message, or 0 if it has none.
    pub(crate) type_id: u64,
}

/// A parent's decision about a deployed actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ParentVerdict {
    Suspend,
    Resume {
        judged: bool,
    },
    Restart {
        cause: String,
    },
    Stop,
    /// The first turn of an actor that was held back.
    Begin,
}

/// The failure of a deployed actor, as it crosses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailureText {
    kind: WireKind,
    text: String,
}

/// A [`FailureKind`] as it is written: the variants never change their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum WireKind {
    Initialization,
    Error,
    Panic,
    Killed,
    DeathPact,
}

impl FailureText {
    pub(crate) fn of(failure: &Failure) -> Self {
        let kind = match failure.kind() {
            FailureKind::Initialization => WireKind::Initialization,
            FailureKind::Error => WireKind::Error,
            FailureKind::Panic => WireKind::Panic,
            FailureKind::Killed => WireKind::Killed,
            FailureKind::DeathPact => WireKind::DeathPact,
        };
        Self { kind, text: text_of(failure) }
    }

    /// The bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn failure(self) -> Failure {
        let kind = match self.kind {
            WireKind::Initialization => FailureKind::Initialization,
            WireKind::Error => FailureKind::Error,
            WireKind::Panic => FailureKind::Panic,
            WireKind::Killed => FailureKind::Killed,
            WireKind::DeathPact => FailureKind::DeathPact,
        };
        Failure::elsewhere(kind, self.text)
    }
}

/// The text of a failure, which user code makes.
pub(crate) fn text_of(failure: &Failure) -> String {
    cut(guarded(|| Ok(failure.to_string())).unwrap_or_default())
}

/// Cuts a text off at its greatest length.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// The names, from the root, of the actor that stands in for a parent at the node which it has deployed actors on.
pub(crate) fn parent_names(system: &str, node: &str, parent: &str) -> [String; 3] {
    let coded = parent.replace('%', "%25").replace('/', "%2F");
    [REMOTE.to_owned(), format!("{system}@{node}"), coded]
}

/// The path that a deployed actor has at its node. `system` and `node` are those of its parent.
pub(crate) fn physical_path(system: &str, node: &str, parent: &str, name: &str) -> String {
    let [remote, deployer, coded] = parent_names(system, node, parent);
    format!("/{remote}/{deployer}/{coded}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::actor_path::check_name;

    #[test]
    fn a_parents_path_is_one_name_and_distinct_paths_have_distinct_names() {
        let paths = ["/user", "/user/a", "/user%2Fa", "/user/$a", "/user/a%2Fb", "/user/a/b"];
        let mut names: Vec<String> = paths.map(|path| parent_names("shop", "n1", path)[2].clone()).into();
        assert!(names.iter().all(|name| check_name(name).is_ok()));
        assert_eq!(names[2], "%2Fuser%252Fa");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), paths.len());
        assert_eq!(physical_path("shop", "n1", "/user/a", "c1"), "/remote/shop@n1/%2Fuser%2Fa/c1");
    }

    #[test]
    fn a_failure_keeps_its_kind_and_text() {
        let failures = [
            Failure::msg("full"),
            Failure::msg("full").during_initialization(),
            Failure::killed(),
            Failure::death_pact("/user/a"),
            Failure::panic(Box::new("a bug")),
        ];
        for failure in failures {
            let back = FailureText::of(&failure).failure();
            assert_eq!((back.kind(), back.to_string()), (failure.kind(), failure.to_string()));
        }
        let long = Failure::msg("é".repeat(TEXT_MAX));
        assert_eq!(FailureText::of(&long).failure().to_string(), "é".repeat(TEXT_MAX / 2));
        let odd = Failure::msg(format!("a{}", "é".repeat(TEXT_MAX)));
        assert_eq!(FailureText::of(&odd).failure().to_string().len(), TEXT_MAX - 1);
    }
}
