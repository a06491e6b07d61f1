//! The beginning of each frame: which association it belongs to, and for a batch its place in the lane.

use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// The bytes of the beginning that frames of both kinds have.
pub(crate) const PREFIX_LEN: usize = 24;

/// The bytes before the first envelope of a batch.
pub(crate) const HEADER_LEN: usize = 72;

/// The least window of a lane, in bytes.
pub(crate) const WINDOW_MIN: usize = 9 << 10;

const MAGIC: [u8; 2] = *b"PM";
pub(crate) const VERSION: u8 = 1;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Envelopes of a lane.
    Batch,
    /// A control message.
    Control,
}

/// The beginning of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) kind: FrameKind,
    /// The lane of a batch; 0 for control.
    pub(crate) lane: u8,
    /// The number of envelopes in a batch; 0 for control.
    pub(crate) envelopes: u16,
    /// The UID of the sending system.
    pub(crate) from: u64,
    /// The UID of the receiving system.
    pub(crate) to: u64,
}

/// The place of a batch in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The number of the batch in its lane, from 1.
    pub(crate) sequence: u64,
    /// The envelopes that were sent on the lane before.
    pub(crate) first: u64,
    /// The bytes that were sent on the lane before, whole frames.
    pub(crate) offset: u64,
    /// Control up to this number that waits for data may act, as far as this lane goes, once this batch is handled.
    pub(crate) mark: u64,
    /// This control number must have acted before the batch is handled.
    pub(crate) fence: u64,
    /// The sender's heartbeats so far, which tell a router that discards old batches how old this one is.
    pub(crate) heartbeat: u32,
    /// Whether the only envelope is a fragment of a message that goes on in the next batch. The message is counted with its last
    /// fragment, so this envelope is in no sum.
    pub(crate) is_part: bool,
}

/// The beginning of a frame is not one of this protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameError {
    Short {
        bytes: usize,
        needed: usize,
    },
    Magic,
    Version {
        version: u8,
    },
    Flags {
        flags: u8,
    },
    Kind {
        kind: u8,
    },
    /// The field is reserved and not 0.
    Reserved,
    /// The number of the lane is not below the number of lanes.
    Lane {
        lane: u8,
        lanes: u8,
    },
    /// Sequences begin with 1.
    Sequence,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Short { bytes, needed } => {
                write!(f, "the frame has {bytes} bytes, and its beginning alone has {needed}")
            }
            FrameError::Magic => f.write_str("the frame does not begin with \"PM\": it is not from a node"),
            FrameError::Version { version } => {
                write!(
                    f,
                    "the frame has version {version} of the format, and this node reads version {VERSION}"
                )
            }
            FrameError::Flags { flags } => {
                write!(f, "the frame has the flags {flags:#04x}, which this node does not read")
            }
            FrameError::Kind { kind } => {
                write!(f, "the frame has the kind {kind}, which this node does not know")
            }
            FrameError::Reserved => f.write_str("a reserved field of the frame is not 0"),
            FrameError::Lane { lane, lanes } => {
                write!(f, "the frame is of lane {lane}, and the association has {lanes} lanes")
            }
            FrameError::Sequence => {
                f.write_str("the batch has the number 0, and the first batch has the number 1")
            }
        }
    }
}

impl std::error::Error for FrameError {}

debug_by_display! { FrameError }

/// The bytes of a fixed field. The caller has checked the length of the frame.
fn field<const N: usize>(frame: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&frame[at..at + N]);
    bytes
}

impl Prefix {
    /// Reads the beginning of a frame; `lanes` is the number of lanes of the association.
    pub(crate) fn read(frame: &[u8], lanes: u8) -> Result<Self, FrameError> {
        if frame.len() < PREFIX_LEN {
            return Err(FrameError::Short { bytes: frame.len(), needed: PREFIX_LEN });
        }
        if frame[..2] != MAGIC {
            return Err(FrameError::Magic);
        }
        let [version, flags, lane, kind] = field(frame, 2);
        if version != VERSION {
            return Err(FrameError::Version { version });
        }
        if flags != 0 {
            return Err(FrameError::Flags { flags });
        }
        let envelopes = u16::from_le_bytes(field(frame, 6));
        let kind = match kind {
            0 => FrameKind::Batch,
            1 => FrameKind::Control,
            kind => return Err(FrameError::Kind { kind }),
        };
        match kind {
            FrameKind::Batch if lane >= lanes => return Err(FrameError::Lane { lane, lanes }),
            FrameKind::Control if lane != 0 || envelopes != 0 => return Err(FrameError::Reserved),
            _ => {}
        }
        let (from, to) = (u64::from_le_bytes(field(frame, 8)), u64::from_le_bytes(field(frame, 16)));
        Ok(Self { kind, lane, envelopes, from, to })
    }

    /// Writes the beginning over the first bytes of a frame.
    pub(crate) fn write(&self, frame: &mut [u8]) {
        let kind = match self.kind {
            FrameKind::Batch => 0,
            FrameKind::Control => 1,
        };
        frame[..2].copy_from_slice(&MAGIC);
        frame[2..6].copy_from_slice(&[VERSION, 0, self.lane, kind]);
        frame[6..8].copy_from_slice(&self.envelopes.to_le_bytes());
        frame[8..16].copy_from_slice(&self.from.to_le_bytes());
        frame[16..24].copy_from_slice(&self.to.to_le_bytes());
    }
}

impl Position {
    /// Reads the place of a batch, behind its prefix.
    pub(crate) fn read(frame: &[u8]) -> Result<Self, FrameError> {
        if frame.len() < HEADER_LEN {
            return Err(FrameError::Short { bytes: frame.len(), needed: HEADER_LEN });
        }
        let number = |at| u64::from_le_bytes(field(frame, at));
        let is_part = match field(frame, 68) {
            [0, 0, 0, 0] => false,
            [1, 0, 0, 0] => true,
            _ => return Err(FrameError::Reserved),
        };
        let position = Self {
            sequence: number(24),
            first: number(32),
            offset: number(40),
            mark: number(48),
            fence: number(56),
            heartbeat: u32::from_le_bytes(field(frame, 64)),
            is_part,
        };
        if position.sequence == 0 { Err(FrameError::Sequence) } else { Ok(position) }
    }

    /// Writes the place over the bytes behind the prefix.
    pub(crate) fn write(&self, frame: &mut [u8]) {
        for (at, number) in [
            (24, self.sequence),
            (32, self.first),
            (40, self.offset),
            (48, self.mark),
            (56, self.fence),
            (64, u64::from(self.heartbeat) | u64::from(self.is_part) << 32),
        ] {
            frame[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
    }

    /// The envelopes of this batch that the sums of the lane count, of so many in its frame.
    pub(crate) fn counted(&self, envelopes: u16) -> u16 {
        if self.is_part { 0 } else { envelopes }
    }
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(prefix: &Prefix, position: &Position) -> Vec<u8> {
        let mut frame = vec![0; HEADER_LEN];
        prefix.write(&mut frame);
        position.write(&mut frame);
        frame
    }

    const PREFIX: Prefix = Prefix { kind: FrameKind::Batch, lane: 1, envelopes: 3, from: 7, to: 9 };

    /// Nodes of all versions of the crate agree on these bytes.
    #[test]
    fn the_bytes_of_a_header_never_change() {
        let position =
            Position { sequence: 1, first: 2, offset: 3, mark: 4, fence: 5, heartbeat: 6, is_part: false };
        let mut expected = b"PM\x01\x00\x01\x00\x03\x00".to_vec();
        for number in [7, 9, 1, 2, 3, 4, 5, 6u64] {
            expected.extend(number.to_le_bytes());
        }
        assert_eq!(frame(&PREFIX, &position), expected);
        assert_eq!((Prefix::read(&expected, 2), Position::read(&expected)), (Ok(PREFIX), Ok(position)));
        let part = Position { is_part: true, ..position };
        expected[68] = 1;
        assert_eq!((frame(&PREFIX, &part), Position::read(&expected)), (expected.clone(), Ok(part)));
        assert_eq!((position.counted(3), part.counted(3)), (3, 0));
    }

    #[test]
    fn frames_of_another_form_are_refused() {
        let good = frame(&PREFIX, &Position { sequence: 1, ..Position::default() });
        for (at, byte, fault) in [
            (0, b'p', FrameError::Magic),
            (1, b'm', FrameError::Magic),
            (2, 0, FrameError::Version { version: 0 }),
            (2, 2, FrameError::Version { version: 2 }),
            (3, 1, FrameError::Flags { flags: 1 }),
            (3, 128, FrameError::Flags { flags: 128 }),
            (4, 2, FrameError::Lane { lane: 2, lanes: 2 }),
            (4, 255, FrameError::Lane { lane: 255, lanes: 2 }),
            (5, 2, FrameError::Kind { kind: 2 }),
            // Control of a lane, and with envelopes.
            (5, 1, FrameError::Reserved),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(Prefix::read(&bad, 2), Err(fault));
        }
        for (at, byte, fault) in
            [(24, 0, FrameError::Sequence), (68, 2, FrameError::Reserved), (71, 9, FrameError::Reserved)]
        {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!((Prefix::read(&bad, 2), Position::read(&bad)), (Ok(PREFIX), Err(fault)));
        }
        for bytes in [0, 1, 23] {
            assert_eq!(Prefix::read(&good[..bytes], 2), Err(FrameError::Short { bytes, needed: 24 }));
        }
        assert_eq!(Prefix::read(&good[..24], 2), Ok(PREFIX));
        assert_eq!(Position::read(&good[..71]), Err(FrameError::Short { bytes: 71, needed: 72 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        #[test]
        fn headers_come_back(
            is_control: bool, lane in 0u8..4, envelopes: u16, from: u64, to: u64,
            numbers: [u64; 4], sequence in 1u64.., heartbeat: u32, is_part: bool,
        ) {
            let prefix = if is_control {
                Prefix { kind: FrameKind::Control, lane: 0, envelopes: 0, from, to }
            } else {
                Prefix { kind: FrameKind::Batch, lane, envelopes, from, to }
            };
            let [first, offset, mark, fence] = numbers;
            let position = Position { sequence, first, offset, mark, fence, heartbeat, is_part };
            let frame = frame(&prefix, &position);
            prop_assert_eq!(Prefix::read(&frame, 4), Ok(prefix));
            prop_assert_eq!(Position::read(&frame), Ok(position));
        }
    }
}
