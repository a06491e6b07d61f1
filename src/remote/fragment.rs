//! A fragment: a piece of a message that is too large for one envelope.
//!
//! The fragments of a message follow each other in its lane, each in a batch of its own. Each goes to the message's place, and
//! the last one has the ports. The body of such an envelope is written so:
//!
//! ```text
//! kind u8 | offset u32 | size u32 | piece
//! ```
//!
//! The kind is that of the whole message, the offset the number of its bytes before the piece, and the size that of all its
//! bytes. A piece has at least one byte, and is never the whole message.

use crate::remote::batch::{BatchWriter, Entry, EnvelopeKind};
use crate::remote::frame::HEADER_LEN;
use crate::remote::outbox::Outgoing;

/// The bytes before the piece.
const HEAD_LEN: usize = 9;

/// The shortest piece that is worth its batch.
const PIECE_MIN: usize = 256;

/// A fragment that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment<'a> {
    /// The kind of the message.
    pub(crate) kind: EnvelopeKind,
    /// The bytes of the message before the piece.
    pub(crate) offset: usize,
    /// The bytes of the message.
    pub(crate) size: usize,
    pub(crate) piece: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Reads the body of an envelope; `None` if it is no fragment.
    pub(crate) fn read(body: &'a [u8]) -> Option<Self> {
        let (&[kind, a, b, c, d, e, f, g, h], piece) = body.split_first_chunk::<HEAD_LEN>()?;
        let kind = *EnvelopeKind::ALL.get(usize::from(kind)).filter(|kind| kind.may_be_large())?;
        let number = |bytes| usize::try_from(u32::from_le_bytes(bytes)).ok();
        let (offset, size) = (number([a, b, c, d])?, number([e, f, g, h])?);
        let end = offset.checked_add(piece.len())?;
        let is_piece = !piece.is_empty() && end <= size && piece.len() < size;
        is_piece.then_some(Self { kind, offset, size, piece })
    }

    /// Whether the message ends with it.
    pub(crate) fn is_last(&self) -> bool {
        self.offset + self.piece.len() == self.size
    }
}

/// Cuts a message into the frames of its batches, each of at most so many bytes, whose headers are still to be written. `None`
/// if such frames have no room, or the message is longer than its fragments can tell.
pub(crate) fn cut(message: &Outgoing<'_>, frame_max: usize) -> Option<Vec<Vec<u8>>> {
    let Outgoing { kind, place, tokens, body } = *message;
    let size = u32::try_from(body.len()).ok()?;
    let entry = Entry::New(place);
    let rest = HEADER_LEN + BatchWriter::size_max(&entry, tokens.len(), HEAD_LEN);
    let room = frame_max.checked_sub(rest).filter(|room| *room >= PIECE_MIN)?;
    let length = room.min(body.len().div_ceil(2)).max(1);
    let mut frames = Vec::with_capacity(body.len().div_ceil(length));
    for (number, piece) in body.chunks(length).enumerate() {
        // It is at most the size.
        let offset = (number * length) as u32;
        let mut head = [kind as u8; HEAD_LEN];
        head[1..5].copy_from_slice(&offset.to_le_bytes());
        head[5..].copy_from_slice(&size.to_le_bytes());
        let is_last = offset as usize + piece.len() == body.len();
        let mut batch = BatchWriter::within(Vec::with_capacity(rest + piece.len()));
        let tokens = if is_last { tokens } else { &[] };
        batch.push_parts(EnvelopeKind::Fragment, &entry, tokens, [&head, piece]);
        frames.push(batch.into_frame());
    }
    Some(frames)
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use crate::remote::batch::{Batch, Place};
    use crate::remote::frame::{FrameKind, Position, Prefix};

    const PLACE: Place<'_> = Place::Actor { path: "/user/a", uid: 1, type_id: 2 };

    #[test]
    fn a_message_is_cut_into_frames_of_the_size_and_its_last_fragment_has_the_ports() {
        for bytes in [2, 3, 255, 256, 1000, 4000, 4001, 60_000] {
            let body: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            let tokens = [[7; 16]; 3];
            let message = Outgoing { kind: EnvelopeKind::Tell, place: PLACE, tokens: &tokens, body: &body };
            let frames = cut(&message, 1000).expect("there is room");
            assert!(frames.len() >= 2);
            let mut whole = Vec::new();
            for (number, mut frame) in (1..).zip(frames.clone()) {
                assert!(frame.len() <= 1000, "{}", frame.len());
                let is_part = number < frames.len();
                let prefix = Prefix { kind: FrameKind::Batch, lane: 0, envelopes: 1, from: 1, to: 2 };
                prefix.write(&mut frame);
                Position { sequence: 1, is_part, ..Position::default() }.write(&mut frame);
                let batch = Batch::read(&frame, 1, 1000).expect("it was written here");
                let envelope = batch.envelopes().next().expect("there is one");
                let fragment = Fragment::read(envelope.body).expect("it was written here");
                assert_eq!((fragment.kind, fragment.offset), (EnvelopeKind::Tell, whole.len()));
                assert_eq!((fragment.size, fragment.is_last()), (bytes, !is_part));
                assert_eq!(envelope.tokens.iter().count(), if is_part { 0 } else { 3 });
                let kind = if is_part { EnvelopeKind::Fragment } else { EnvelopeKind::Tell };
                assert_eq!((envelope.ends(), batch.places()), (kind, &[PLACE][..]));
                whole.extend_from_slice(fragment.piece);
            }
            assert_eq!(whole, body);
        }
    }

    #[test]
    fn frames_without_room_for_a_piece_are_none() {
        let message = Outgoing { kind: EnvelopeKind::Tell, place: PLACE, tokens: &[], body: &[0; 9000] };
        let least = (0..1000).find(|bytes| cut(&message, *bytes).is_some()).expect("1000 are enough");
        assert!(cut(&message, least).is_some_and(|frames| frames.iter().all(|frame| frame.len() <= least)));
        assert!(least > HEADER_LEN + PIECE_MIN && cut(&message, 0).is_none());
    }

    #[test]
    fn a_body_that_is_no_fragment_is_refused() {
        let head = |kind: u8, offset: u32, size: u32, piece: &[u8]| {
            [&[kind][..], &offset.to_le_bytes(), &size.to_le_bytes(), piece].concat()
        };
        let tell = EnvelopeKind::Tell as u8;
        for (body, is_last) in [
            (head(tell, 0, 2, &[1]), false),
            (head(tell, 1, 2, &[1]), true),
            (head(EnvelopeKind::Reply as u8, 1, 2, &[1]), true),
            (head(EnvelopeKind::Select as u8, 1, u32::MAX, &[1]), false),
            (head(tell, u32::MAX - 1, u32::MAX, &[1]), true),
        ] {
            assert_eq!(Fragment::read(&body).map(|fragment| fragment.is_last()), Some(is_last), "{body:?}");
        }
        for body in [
            vec![],
            head(tell, 0, 2, &[])[..8].to_vec(),
            head(tell, 0, 2, &[]),
            // A whole message, and a piece beyond the end.
            head(tell, 0, 1, &[1]),
            head(tell, 1, 2, &[1, 2]),
            head(tell, u32::MAX, u32::MAX, &[1]),
            head(tell, 0, 0, &[1]),
            // Kinds that are never large, and one that there is not.
            head(EnvelopeKind::Pill as u8, 0, 2, &[1]),
            head(EnvelopeKind::Fragment as u8, 0, 2, &[1]),
            head(EnvelopeKind::ALL.len() as u8, 0, 2, &[1]),
        ] {
            assert_eq!(Fragment::read(&body), None, "{body:?}");
        }
    }
}
