//! The limits of a node: what it takes in, keeps and sends at most.

use crate::remote::frame::WINDOW_MIN;
use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// A limit of a node was given a value that it cannot have.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The value is not within the bounds of this limit.
    Range {
        /// The key below `[remote.limits]`.
        key: &'static str,
        /// The value.
        value: usize,
        /// The least value.
        min: usize,
        /// The greatest value.
        max: usize,
    },
    /// The value is smaller than another limit requires.
    Below {
        /// The key below `[remote.limits]`.
        key: &'static str,
        /// The value.
        value: usize,
        /// The key of the other limit.
        than: &'static str,
        /// The least value that the other limit requires.
        min: usize,
    },
}

impl LimitError {
    /// Returns the key of the limit below `[remote.limits]`.
    pub fn key(&self) -> &'static str {
        match self {
            LimitError::Range { key, .. } | LimitError::Below { key, .. } => key,
        }
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::Range { key, value, min, max } => {
                write!(f, "the limit {key} is {value}: must be a whole number from {min} to {max}")
            }
            LimitError::Below { key, value, than, min } => {
                write!(f, "the limit {key} is {value}: must be at least {min}, for the limit {than}")
            }
        }
    }
}

impl std::error::Error for LimitError {}

debug_by_display! { LimitError }

/// The greatest number of bytes in a frame, whatever the engine would take.
pub(crate) const FRAME_MAX: usize = 1 << 20;

/// The bytes of a frame that an envelope alone in it may need besides its body: the header, the place and the ports.
pub(crate) const FRAME_REST: usize = 8 << 10;

/// The most bytes of unfinished messages of one peer, unless a single message may have more.
const ASSEMBLY_MAX: usize = 64 * MIB;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

// The window of a node that takes the shortest envelopes.
const _: () = assert!(WINDOW_MIN == KIB + FRAME_REST);

/// Declares the limits: the documentation and name of each, its key in a file, its default, and its bounds.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident $key:literal = $default:expr, $min:expr => $max:expr;)*) => {
        /// The limits of a node. Each has a default, bounds, and a key below `[remote.limits]` of the
        /// [configuration](crate::config), which is its name with hyphens.
        ///
        /// The lengths of names and paths are part of the protocol, and so are no settings: a path that goes to another node has
        /// at most 1024 bytes and 32 names, and the name of a node, a cluster, a role or a message type at most 64 bytes.
        ///
        /// ```
        /// use pointsman::remote::Limits;
        ///
        /// let limits = Limits::new().link_queue(16 << 20).pending_asks(10_000);
        /// assert!(limits.check().is_ok());
        /// let error = Limits::new().associations(0).check().unwrap_err();
        /// assert_eq!(error.to_string(), "the limit associations is 0: must be a whole number from 1 to 65536");
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
        #[must_use = "limits have no effect before a node has them"]
        pub struct Limits {
            $(
                #[cfg_attr(feature = "config", serde(with = "crate::util::values::Usize"))]
                pub(crate) $name: usize,
            )*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        /// Each limit: its key, its default, and its bounds.
        #[cfg(test)]
        const TABLE: &[(&str, usize, usize, usize)] = &[$(($key, $default, $min, $max),)*];

        impl Limits {
            $(
                $(#[$doc])*
                pub fn $name(mut self, limit: usize) -> Self {
                    self.$name = limit;
                    self
                }
            )*

            /// Checks each limit by itself.
            pub(crate) fn check_values(&self) -> Result<(), LimitError> {
                $(
                    if !($min..=$max).contains(&self.$name) {
                        return Err(LimitError::Range { key: $key, value: self.$name, min: $min, max: $max });
                    }
                )*
                Ok(())
            }

            /// Sets the limit of this key.
            #[cfg(test)]
            fn set(mut self, key: &str, value: usize) -> Self {
                match key {
                    $($key => self.$name = value,)*
                    _ => panic!("no limit {key}"),
                }
                self
            }
        }
    };
}

limits! {
    /// Sets the most bytes of an encoded message that goes in one piece; a larger one goes in fragments. Default 256 KiB.
    envelope "envelope" = 256 * KIB, KIB => FRAME_MAX - FRAME_REST;
    /// Sets the most bytes of an encoded message; the send of a larger one is refused, and so is a larger one that comes. It
    /// is at least `envelope`; at the same value no message goes in fragments. Fragments that come are kept until their message is
    /// whole: for each peer at most 64 MiB, its share of `receive-total`, or one message. Default 8 MiB.
    large_message "large-message" = 8 * MIB, KIB => GIB;
    /// Sets the size in bytes at which a batch is sealed; default 16 KiB.
    batch "batch" = 16 * KIB, KIB => FRAME_MAX;
    /// Sets the most bytes that wait for one peer; a send beyond is refused as full. Each [lane](crate::remote::Node::lanes) has an
    /// equal part. Messages in fragments are counted apart: so many bytes of them wait in a lane as its part has, or as
    /// `large-message` says if that is more. Default 4 MiB.
    link_queue "link-queue" = 4 * MIB, 16 * KIB => GIB;
    /// Sets the most bytes under way from one peer; default 4 MiB. Each lane of the peer has an equal part, which holds at least
    /// one message of the greatest size. A peer with more lanes than this node may exceed the limit once, at its beginning.
    receive_window "receive-window" = 4 * MIB, 16 * KIB => GIB;
    /// Sets the most bytes under way from all peers together; default 256 MiB. It makes the windows of many peers smaller, within a
    /// heartbeat and what is under way by then.
    receive_total "receive-total" = 256 * MIB, 16 * KIB => GIB;
    /// Sets the most asks to other nodes that have no answer yet; default 100,000.
    pending_asks "pending-asks" = 100_000, 1 => 1 << 24;
    /// Sets the most peers that this node is associated with; default 1024.
    associations "associations" = 1024, 1 => 65_536;
    /// Sets the most actors of this node that one peer watches; default 100,000.
    watches_per_peer "watches-per-peer" = 100_000, 1 => 1 << 24;
    /// Sets the most actors that one peer makes on this node; default 1024.
    deployed_per_peer "deployed-per-peer" = 1024, 0 => 1 << 20;
    /// Sets the bytes of memory that a thread keeps for encoding its next message; default 64 KiB.
    scratch "scratch" = 64 * KIB, 0 => MIB;
    /// Sets the levels of nesting that an incoming message may have; default 64.
    depth "depth" = 64, 1 => 128;
}

impl Limits {
    /// Returns the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks that each limit is within its bounds, and that none is too small for another.
    ///
    /// # Errors
    ///
    /// [`LimitError`] names the first limit that is not, its value and the bounds.
    pub fn check(&self) -> Result<(), LimitError> {
        self.check_values()?;
        // A batch with the largest envelope has to fit into the window, or it would wait without end.
        let frame = (self.envelope + FRAME_REST).max(self.batch);
        let at_least = [
            ("large-message", self.large_message, "envelope", self.envelope),
            ("link-queue", self.link_queue, "batch", self.batch),
            ("link-queue", self.link_queue, "envelope", self.envelope + FRAME_REST),
            ("receive-window", self.receive_window, "batch", 2 * self.batch),
            ("receive-window", self.receive_window, "envelope", frame),
            ("receive-total", self.receive_total, "receive-window", self.receive_window),
        ];
        match at_least.into_iter().find(|(_, value, _, min)| value < min) {
            Some((key, value, than, min)) => Err(LimitError::Below { key, value, than, min }),
            None => Ok(()),
        }
    }

    /// The bytes that may be under way from each of so many peers. Two batches always may.
    pub(crate) fn window_of(&self, peers: usize) -> usize {
        let share = self.receive_total / peers.max(1);
        share.min(self.receive_window).max(2 * self.batch).max(self.envelope + FRAME_REST)
    }

    /// The bytes of unfinished messages that are kept for each of so many peers. One message always is.
    pub(crate) fn assembly_of(&self, peers: usize) -> usize {
        (self.receive_total / peers.max(1)).min(ASSEMBLY_MAX).max(self.large_message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_its_key_and_is_checked_at_its_bounds_and_one_beyond() {
        let defaults = Limits::new();
        assert_eq!(defaults.check(), Ok(()));
        assert_eq!(TABLE.len(), 12);
        for (key, default, min, max) in TABLE.iter().copied() {
            assert!((min..=max).contains(&default), "{key}");
            assert_eq!(defaults.set(key, default), defaults);
            let range = |value| match defaults.set(key, value).check_values() {
                Ok(()) => None,
                Err(error) => {
                    assert_eq!(error, LimitError::Range { key, value, min, max });
                    assert_eq!(error.key(), key);
                    let text = error.to_string();
                    assert!(text.contains(&format!("{key} is {value}")) && text.contains(&max.to_string()));
                    Some(value)
                }
            };
            assert_eq!((range(min), range(max)), (None, None), "{key}");
            assert_eq!(range(max + 1), Some(max + 1), "{key}");
            if let Some(below) = min.checked_sub(1) {
                assert_eq!(range(below), Some(below), "{key}");
            }
        }
    }

    #[test]
    fn a_limit_that_is_too_small_for_another_is_refused() {
        let limits = Limits::new();
        let below = |limits: Limits| limits.check().map_err(|error| error.to_string());
        for (wrong, right, text) in [
            (
                limits.large_message(256 * KIB - 1),
                limits.large_message(256 * KIB),
                "the limit large-message is 262143: must be at least 262144, for the limit envelope",
            ),
            (
                limits.batch(MIB).envelope(MIB - 9 * KIB).link_queue(MIB - 1),
                limits.batch(MIB).envelope(MIB - 9 * KIB).link_queue(MIB),
                "the limit link-queue is 1048575: must be at least 1048576, for the limit batch",
            ),
            (
                limits.link_queue(264 * KIB - 1),
                limits.link_queue(264 * KIB),
                "the limit link-queue is 270335: must be at least 270336, for the limit envelope",
            ),
            (
                limits.batch(MIB).receive_window(2 * MIB - 1),
                limits.batch(MIB).receive_window(2 * MIB),
                "the limit receive-window is 2097151: must be at least 2097152, for the limit batch",
            ),
            (
                limits.receive_window(264 * KIB - 1),
                limits.receive_window(264 * KIB),
                "the limit receive-window is 270335: must be at least 270336, for the limit envelope",
            ),
            (
                limits.receive_total(4 * MIB - 1),
                limits.receive_total(4 * MIB),
                "the limit receive-total is 4194303: must be at least 4194304, for the limit receive-window",
            ),
        ] {
            assert_eq!(below(wrong), Err(text.to_owned()));
            assert_eq!(below(right), Ok(()));
        }
    }

    #[test]
    fn windows_shrink_with_the_number_of_peers_and_hold_two_batches() {
        let limits = Limits::new();
        assert_eq!(limits.window_of(0), 4 * MIB);
        assert_eq!(limits.window_of(64), 4 * MIB);
        assert_eq!(limits.window_of(65), 256 * MIB / 65);
        assert_eq!(limits.window_of(1024), 264 * KIB);
        assert_eq!(limits.envelope(KIB).window_of(65_536), 32 * KIB);
        // Unfinished messages have a share, and room for one.
        assert_eq!(
            [0, 4, 8, 1024].map(|peers| limits.assembly_of(peers)),
            [64, 64, 32, 8].map(|mib| mib * MIB)
        );
    }
}
