//! The messages of control frames and heartbeats, as postcard behind the prefix of a frame.
//!
//! The variants of these enums have their numbers by their order, which never changes: new ones come last.

use crate::path::canonical_path::PATH_MAX;
use crate::remote::association::{Greeting, Refusal, Side};
use crate::remote::batch::Token;
use crate::remote::codec::{DecodeError, decode, encode};
use crate::remote::credit::Receipt;
use crate::remote::deploy_message::{DeployRequest, FailureText, ParentVerdict};
use crate::remote::early_messages::EarlyMessage;
use crate::remote::frame::{FrameKind, PREFIX_LEN, Prefix};
use crate::remote::policy::is_role;
use crate::remote::refused::Refused;
use serde::{Deserialize, Serialize};

/// The most bytes of a control message.
const CONTROL_MAX: usize = 64 << 10;

/// The most roles of a node.
pub(crate) const ROLES_MAX: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ControlMessage {
    Hello(Hello),
    Welcome(Hello),
    Refused(Refusal),
    /// A message of the numbered stream.
    Numbered {
        number: u64,
        message: NumberedMessage,
    },
    Ack {
        upto: u64,
    },
    Credit(Vec<LaneReceipt>),
    /// The type of this number is not registered at the sender of this message.
    UnknownType {
        id: u64,
    },
    /// The asker of these ports waits no more.
    Unwanted(Vec<Token>),
    /// The receiver was declared down.
    Quarantined {
        members: u32,
        least: String,
    },
    Heartbeat {
        number: u32,
    },
    /// An actor of the sender has too many messages, or no longer.
    Choke {
        path: String,
        uid: u32,
        is_choked: bool,
    },
}

/// A message that is applied once and in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NumberedMessage {
    /// The sender ends. It waits for the data before it.
    Goodbye,
    /// The sender watches an actor of the receiver.
    Watch {
        path: String,
        uid: u32,
    },
    Unwatch {
        path: String,
        uid: u32,
    },
    /// An actor of the sender, which the receiver watches, has ended. It waits for the data before it.
    Terminated {
        path: String,
        uid: u32,
        existed: bool,
    },
    /// Stop an actor of the receiver.
    Stop {
        path: String,
        uid: u32,
    },
    /// The ports of these tokens get no answer: it found no room among the messages.
    Unanswered(Vec<(Token, Refused)>),
    /// Make an actor at the receiver. The data that are sent after this wait for it.
    Deploy(Box<DeployRequest>),
    /// The actor of this uid was made.
    Deployed {
        uid: u32,
    },
    /// The actor of this uid was not made.
    DeployRefused {
        uid: u32,
        why: String,
    },
    /// An actor of the sender, which the receiver has deployed, has failed. It waits for the data before it, as does its end.
    Failed {
        uid: u32,
        failure: FailureText,
    },
    /// The decision of a parent at the sender about an actor of the receiver.
    Verdict {
        uid: u32,
        verdict: ParentVerdict,
    },
    /// An actor of the sender, which the receiver has deployed, has ended.
    Ended {
        uid: u32,
    },
    /// The sender does not watch an actor for the receiver, though the actor may live.
    WatchRefused {
        path: String,
        uid: u32,
    },
    /// A pill, or a kill, for which the data had no room. It waits for the data before it.
    Pill {
        path: String,
        uid: u32,
        is_kill: bool,
    },
    /// An actor of the sender, which the receiver has deployed, was restarted.
    Restarted {
        uid: u32,
    },
}

impl NumberedMessage {
    /// The path of the actor that it is about.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::Watch { path, .. }
            | Self::Unwatch { path, .. }
            | Self::Terminated { path, .. }
            | Self::Stop { path, .. }
            | Self::WatchRefused { path, .. }
            | Self::Pill { path, .. } => Some(path),
            Self::Deploy(request) => Some(&request.parent.path),
            Self::Goodbye
            | Self::Unanswered(_)
            | Self::Deployed { .. }
            | Self::DeployRefused { .. }
            | Self::Failed { .. }
            | Self::Verdict { .. }
            | Self::Restarted { .. }
            | Self::Ended { .. } => None,
        }
    }

    /// The bytes that it keeps while it waits for data.
    pub(crate) fn waiting_bytes(&self) -> usize {
        match self {
            Self::Failed { failure, .. } => failure.len(),
            other => other.path().map_or(0, str::len),
        }
    }

    /// Whether it acts behind the data that was sent before it.
    pub(crate) fn waits_for_data(&self) -> bool {
        match self {
            NumberedMessage::Goodbye
            | NumberedMessage::Terminated { .. }
            | NumberedMessage::Failed { .. }
            | NumberedMessage::Ended { .. }
            | NumberedMessage::Pill { .. } => true,
            NumberedMessage::Watch { .. }
            | NumberedMessage::Unwatch { .. }
            | NumberedMessage::Stop { .. }
            | NumberedMessage::Unanswered(_)
            | NumberedMessage::Deploy(_)
            | NumberedMessage::Deployed { .. }
            | NumberedMessage::DeployRefused { .. }
            | NumberedMessage::Verdict { .. }
            | NumberedMessage::Restarted { .. }
            | NumberedMessage::WatchRefused { .. } => false,
        }
    }

    /// Whether the data that are sent after it wait for it.
    pub(crate) fn is_fence(&self) -> bool {
        matches!(self, NumberedMessage::Deploy(_))
    }
}

impl EarlyMessage for NumberedMessage {
    fn is_idempotent(&self) -> bool {
        matches!(self, NumberedMessage::Stop { .. })
    }

    fn deployed_uid(&self) -> Option<u32> {
        match self {
            NumberedMessage::Deploy(request) => Some(request.uid),
            NumberedMessage::Verdict { uid, .. } => Some(*uid),
            _ => None,
        }
    }
}

/// The greeting of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    protocol: (u16, u16),
    cluster: String,
    system: String,
    node: String,
    uid: u64,
    lanes: u8,
    window: u64,
    /// The UID of the receiver, as far as the sender knows it; otherwise 0.
    to: u64,
    pub(crate) roles: Vec<String>,
}

/// The sums of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneReceipt {
    pub(crate) lane: u8,
    limit: u64,
    received: u64,
    lost: u64,
    repeated: u64,
}

impl Hello {
    pub(crate) fn new(greeting: &Greeting, roles: &[String]) -> Self {
        let Greeting { protocol, cluster, system, node, uid, lanes, window, to } = greeting.clone();
        Self { protocol, cluster, system, node, uid, lanes, window, to, roles: roles.to_vec() }
    }

    pub(crate) fn greeting(&self) -> Greeting {
        let Self { protocol, cluster, system, node, uid, lanes, window, to, .. } = self.clone();
        Greeting { protocol, cluster, system, node, uid, lanes, window, to }
    }
}

impl LaneReceipt {
    pub(crate) fn new(lane: u8, receipt: &Receipt) -> Self {
        let Receipt { limit, received, lost, repeated } = *receipt;
        Self { lane, limit, received, lost, repeated }
    }

    pub(crate) fn receipt(&self) -> Receipt {
        let Self { limit, received, lost, repeated, .. } = *self;
        Receipt { limit, received, lost, repeated }
    }
}

impl ControlMessage {
    /// Makes the frame. A message that is too large is refused before it comes here.
    pub(crate) fn frame(&self, from: u64, to: u64) -> Vec<u8> {
        let mut frame = vec![0; PREFIX_LEN];
        Prefix { kind: FrameKind::Control, lane: 0, envelopes: 0, from, to }.write(&mut frame);
        let encoded = encode(self, &mut frame, CONTROL_MAX);
        debug_assert!(encoded.is_ok(), "control messages have bounded fields");
        frame
    }

    pub(crate) fn read(frame: &[u8]) -> Result<Self, DecodeError> {
        match frame.get(PREFIX_LEN..) {
            Some(body) if body.len() <= CONTROL_MAX => {
                let message: Self = decode(body)?;
                if message.is_bounded() {
                    return Ok(message);
                }
                Err(DecodeError::Malformed { why: "a text or a list is too long".to_owned() })
            }
            _ => Err(DecodeError::Malformed { why: "the frame has another length".to_owned() }),
        }
    }

    /// Whether all that may be kept is as short as this crate writes it.
    fn is_bounded(&self) -> bool {
        match self {
            Self::Hello(hello) | Self::Welcome(hello) => {
                hello.roles.len() <= ROLES_MAX && hello.roles.iter().all(|role| is_role(role))
            }
            Self::Choke { path, .. } => path.len() <= PATH_MAX,
            Self::Numbered { message, .. } => message.path().is_none_or(|path| path.len() <= PATH_MAX),
            _ => true,
        }
    }
}

impl From<&Side> for ControlMessage {
    fn from(side: &Side) -> Self {
        ControlMessage::Quarantined { members: side.members, least: side.least.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use crate::remote::association::PROTOCOL;
    use crate::remote::deploy_message::Parent;

    fn hello() -> Hello {
        let greeting = Greeting {
            protocol: PROTOCOL,
            cluster: "shop".to_owned(),
            system: "demo".to_owned(),
            node: "n1".to_owned(),
            uid: 7,
            lanes: 2,
            window: 300,
            to: 0,
        };
        Hello::new(&greeting, &["front".to_owned()])
    }

    fn request() -> DeployRequest {
        DeployRequest {
            uid: 7,
            name: "c1".to_owned(),
            parent: Parent { path: "/user".to_owned(), uid: 3, type_id: 4 },
            factory: "f".to_owned(),
            args: vec![1, 2],
            suspensions: 1,
            dispatcher: None,
            mailbox: Some("m".to_owned()),
            stash_capacity: Some(9),
            routee_index: 0,
            is_held: false,
        }
    }

    /// Nodes of all versions of the crate agree on these bytes.
    #[test]
    fn the_bytes_of_control_never_change() {
        let path = || "/a".to_owned();
        let receipt = Receipt { limit: 300, received: 2, lost: 1, repeated: 0 };
        let numbered = |message| ControlMessage::Numbered { number: 9, message };
        let verdict = |verdict| numbered(NumberedMessage::Verdict { uid: 7, verdict });
        for (message, bytes) in [
            (
                ControlMessage::Hello(hello()),
                b"\0\x01\x01\x04shop\x04demo\x02n1\x07\x02\xac\x02\0\x01\x05front".as_slice(),
            ),
            (ControlMessage::Refused(Refusal::DuplicateName), b"\x02\x04"),
            (numbered(NumberedMessage::Goodbye), b"\x03\x09\0"),
            (numbered(NumberedMessage::Watch { path: path(), uid: 5 }), b"\x03\x09\x01\x02/a\x05"),
            (numbered(NumberedMessage::Unwatch { path: path(), uid: 5 }), b"\x03\x09\x02\x02/a\x05"),
            (
                numbered(NumberedMessage::Terminated { path: path(), uid: 5, existed: true }),
                b"\x03\x09\x03\x02/a\x05\x01",
            ),
            (numbered(NumberedMessage::Stop { path: path(), uid: 5 }), b"\x03\x09\x04\x02/a\x05"),
            (
                numbered(NumberedMessage::Unanswered(vec![([7; 16], Refused::LinkFull)])),
                b"\x03\x09\x05\x01\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x0e",
            ),
            (
                numbered(NumberedMessage::Deploy(Box::new(request()))),
                b"\x03\x09\x06\x07\x02c1\x05/user\x03\x04\x01f\x02\x01\x02\x01\x00\x01\x01m\x01\x09\x00\x00",
            ),
            (numbered(NumberedMessage::Deployed { uid: 7 }), b"\x03\x09\x07\x07"),
            (
                numbered(NumberedMessage::DeployRefused { uid: 7, why: "no".to_owned() }),
                b"\x03\x09\x08\x07\x02no",
            ),
            (
                numbered(NumberedMessage::Failed { uid: 7, failure: FailureText::of(&Failure::msg("f")) }),
                b"\x03\x09\x09\x07\x01\x01f",
            ),
            (verdict(ParentVerdict::Suspend), b"\x03\x09\x0a\x07\x00"),
            (verdict(ParentVerdict::Resume { judged: true }), b"\x03\x09\x0a\x07\x01\x01"),
            (verdict(ParentVerdict::Restart { cause: "f".to_owned() }), b"\x03\x09\x0a\x07\x02\x01f"),
            (verdict(ParentVerdict::Stop), b"\x03\x09\x0a\x07\x03"),
            (verdict(ParentVerdict::Begin), b"\x03\x09\x0a\x07\x04"),
            (numbered(NumberedMessage::Ended { uid: 7 }), b"\x03\x09\x0b\x07"),
            (numbered(NumberedMessage::WatchRefused { path: path(), uid: 5 }), b"\x03\x09\x0c\x02/a\x05"),
            (
                numbered(NumberedMessage::Pill { path: path(), uid: 5, is_kill: true }),
                b"\x03\x09\x0d\x02/a\x05\x01",
            ),
            (numbered(NumberedMessage::Restarted { uid: 7 }), b"\x03\x09\x0e\x07"),
            (ControlMessage::Ack { upto: 300 }, b"\x04\xac\x02"),
            (ControlMessage::Credit(vec![LaneReceipt::new(1, &receipt)]), b"\x05\x01\x01\xac\x02\x02\x01\0"),
            (ControlMessage::UnknownType { id: 1 }, b"\x06\x01"),
            (ControlMessage::Quarantined { members: 2, least: "a".to_owned() }, b"\x08\x02\x01a"),
            (ControlMessage::Heartbeat { number: 3 }, b"\x09\x03"),
            (ControlMessage::Choke { path: path(), uid: 5, is_choked: true }, b"\x0a\x02/a\x05\x01"),
        ] {
            let frame = message.frame(1, 2);
            assert_eq!(&frame[PREFIX_LEN..], bytes, "{message:?}");
            assert_eq!(ControlMessage::read(&frame).as_ref(), Ok(&message));
            let prefix = Prefix::read(&frame, 1).expect("it was written here");
            assert_eq!((prefix.kind, prefix.from, prefix.to), (FrameKind::Control, 1, 2));
            assert!(ControlMessage::read(&frame[..frame.len() - 1]).is_err());
            assert!(ControlMessage::read(&[frame, vec![0]].concat()).is_err());
        }
        assert_eq!(Hello::new(&hello().greeting(), &["front".to_owned()]), hello());
        assert!(ControlMessage::read(&[]).is_err());
    }

    #[test]
    fn paths_and_roles_are_bounded() {
        let path = |bytes: usize| "/".repeat(bytes);
        type Make = fn(String) -> NumberedMessage;
        let makes: [Make; 6] = [
            |path| NumberedMessage::Watch { path, uid: 1 },
            |path| NumberedMessage::Unwatch { path, uid: 1 },
            |path| NumberedMessage::Terminated { path, uid: 1, existed: true },
            |path| NumberedMessage::Stop { path, uid: 1 },
            |path| NumberedMessage::WatchRefused { path, uid: 1 },
            |path| NumberedMessage::Pill { path, uid: 1, is_kill: true },
        ];
        let is_read = |message: ControlMessage| ControlMessage::read(&message.frame(1, 2)).is_ok();
        for make in makes {
            for (bytes, expected) in [(PATH_MAX, true), (PATH_MAX + 1, false)] {
                let message = ControlMessage::Numbered { number: 1, message: make(path(bytes)) };
                assert_eq!(is_read(message.clone()), expected, "{message:?}");
            }
        }
        for (bytes, expected) in [(PATH_MAX, true), (PATH_MAX + 1, false)] {
            let message = ControlMessage::Choke { path: path(bytes), uid: 1, is_choked: true };
            assert_eq!(is_read(message), expected);
        }
        let with = |roles: Vec<String>| Hello { roles, ..hello() };
        for make in [ControlMessage::Hello as fn(Hello) -> ControlMessage, ControlMessage::Welcome] {
            assert!(is_read(make(with(vec!["a".repeat(64); ROLES_MAX]))));
            for roles in [vec!["a".to_owned(); ROLES_MAX + 1], vec!["a".repeat(65)], vec![String::new()]] {
                assert!(!is_read(make(with(roles))));
            }
        }
    }

    #[test]
    fn a_control_message_beyond_the_limit_is_refused() {
        let frame = |tokens: usize| ControlMessage::Unwanted(vec![[7; 16]; tokens]).frame(1, 2);
        assert!(ControlMessage::read(&frame(4000)).is_ok());
        let beyond = [frame(4000), vec![0; CONTROL_MAX]].concat();
        assert!(ControlMessage::read(&beyond).is_err());
    }
}
