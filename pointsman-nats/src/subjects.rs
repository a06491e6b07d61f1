//! The subjects of a cluster, by which servers route and judge:
//!
//! | subject | carries |
//! |---|---|
//! | `CLUSTER.d.TO.FROM` | batches |
//! | `CLUSTER.c.TO.FROM` | control |
//! | `CLUSTER.h.FROM` | heartbeats |
//! | `CLUSTER.r.FROM` | names that a node registers |
//! | `CLUSTER.u.NODE.UID` | questions whether a node with this UID listens |
//! | `CLUSTER.i.NODE.OTHER-UID` | the server's answer that OTHER with this UID does not listen |
//!
//! The sender stands in the subject, and the server lets each node publish under its own name alone.

use crate::codec::Subject;
use crate::settings::SettingsError;

/// The subjects of one node.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    cluster: String,
    node: String,
}

/// Whether a name can stand in a subject.
fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_of_name)
}

impl Subjects {
    pub(crate) fn new(cluster: &str, node: &str) -> Result<Self, SettingsError> {
        for (of, value) in [("cluster", cluster), ("node", node)] {
            if !is_name(value) {
                return Err(SettingsError::Name { of, value: value.to_owned() });
            }
        }
        Ok(Self { cluster: cluster.to_owned(), node: node.to_owned() })
    }

    fn of(&self, rest: std::fmt::Arguments<'_>) -> Subject {
        let subject = Subject::new(&format!("{}.{rest}", self.cluster));
        subject.expect("the names were checked, and the rest has no spaces")
    }

    /// For batches to a node; `None` for a name that no node can have.
    pub(crate) fn data_to(&self, to: &str) -> Option<Subject> {
        is_name(to).then(|| self.of(format_args!("d.{to}.{}", self.node)))
    }

    /// For control to a node.
    pub(crate) fn control_to(&self, to: &str) -> Option<Subject> {
        is_name(to).then(|| self.of(format_args!("c.{to}.{}", self.node)))
    }

    pub(crate) fn heartbeat(&self) -> Subject {
        self.of(format_args!("h.{}", self.node))
    }

    pub(crate) fn registry(&self) -> Subject {
        self.of(format_args!("r.{}", self.node))
    }

    /// For a question to a node, and for the answer of the server.
    pub(crate) fn probe(&self, node: &str, uid: u64) -> Option<(Subject, Subject)> {
        let question = |node: &str| self.of(format_args!("u.{node}.{uid:016x}"));
        let answer = |node: &str| self.of(format_args!("i.{}.{node}-{uid:016x}", self.node));
        is_name(node).then(|| (question(node), answer(node)))
    }

    /// Batches for this node.
    pub(crate) fn all_data(&self) -> Subject {
        self.of(format_args!("d.{}.*", self.node))
    }

    /// Control for this node.
    pub(crate) fn all_control(&self) -> Subject {
        self.of(format_args!("c.{}.*", self.node))
    }

    pub(crate) fn all_heartbeats(&self) -> Subject {
        self.of(format_args!("h.*"))
    }

    pub(crate) fn all_registries(&self) -> Subject {
        self.of(format_args!("r.*"))
    }

    /// Questions whether this node listens with this UID.
    pub(crate) fn questions(&self, uid: u64) -> Subject {
        self.of(format_args!("u.{}.{uid:016x}", self.node))
    }

    /// Answers to the questions of this node.
    pub(crate) fn answers(&self) -> Subject {
        self.of(format_args!("i.{}.*", self.node))
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }
}

/// The sender, which a subject ends with.
pub(crate) fn sender(subject: &str) -> Option<&str> {
    subject.rsplit('.').next().filter(|name| is_name(name))
}

/// The node and the UID of an answer.
pub(crate) fn asked(subject: &str) -> Option<(&str, u64)> {
    let (node, uid) = subject.rsplit('.').next()?.rsplit_once('-')?;
    let is_hex = uid.len() == 16 && uid.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let uid = u64::from_str_radix(uid, 16).ok().filter(|_| is_hex)?;
    is_name(node).then_some((node, uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_the_sender_at_their_end() {
        let subjects = Subjects::new("shop", "n1").unwrap();
        let text = |subject: Option<Subject>| subject.expect("a name").to_string();
        assert_eq!(text(subjects.data_to("n2")), "shop.d.n2.n1");
        assert_eq!(text(subjects.control_to("n2")), "shop.c.n2.n1");
        assert_eq!(
            (subjects.heartbeat().to_string(), subjects.registry().to_string()),
            ("shop.h.n1".into(), "shop.r.n1".into())
        );
        assert_eq!(sender("shop.d.n1.n2"), Some("n2"));
        for bad in ["shop.d.n1.", "shop.h.a b", ""] {
            assert_eq!(sender(bad), None, "{bad:?}");
        }
        for bad in ["", "*", ">", "a.b", "a b", "ä", &"x".repeat(65)] {
            assert_eq!(
                (subjects.data_to(bad), subjects.control_to(bad), subjects.probe(bad, 1)),
                (None, None, None)
            );
            assert!(
                matches!(Subjects::new(bad, "n1"), Err(SettingsError::Name { of: "cluster", .. })),
                "{bad}"
            );
            assert!(
                matches!(Subjects::new("shop", bad), Err(SettingsError::Name { of: "node", .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn an_answer_names_the_node_and_the_uid_that_were_asked_for() {
        let subjects = Subjects::new("shop", "n1").unwrap();
        let (question, answer) = subjects.probe("n-2", 0xabc).unwrap();
        assert_eq!(question.to_string(), "shop.u.n-2.0000000000000abc");
        assert_eq!(answer.to_string(), "shop.i.n1.n-2-0000000000000abc");
        assert_eq!(asked(&answer.to_string()), Some(("n-2", 0xabc)));
        for bad in [
            "shop.i.n1.n2",
            "shop.i.n1.n2-abc",
            "i.n1.-0000000000000abc",
            "i.n1.n2-000000000000+abc",
            "i.n1.n2-0000000000000ABC",
        ] {
            assert_eq!(asked(bad), None, "{bad}");
        }
    }
}
