//! A batch: the envelopes of one frame of a lane, with a dictionary of the places that they go to.
//!
//! Behind the [header](crate::remote::frame) each envelope is written so:
//!
//! ```text
//! kind:4 flags:4 | entry varint | [token count, tokens of 16 bytes] | length varint | body
//! ```
//!
//! The entry is an index into the dictionary of the batch. The first envelope to a place has the index that is next, and the
//! place follows it: 0 an actor (path, uid, type), 1 a port (nothing), 2 a selection (text, type). So a further small
//! message to the same actor has three bytes besides its body, and each batch can be read alone.
//!
//! Tokens stand before the body, so a receiver can refuse the ports of an envelope that it cannot decode. The first token of
//! a reply, a refusal and an identity is that of the port that they answer.
//!
//! A batch is taken or refused as a whole: [`Batch::read`] checks all of it before the first envelope is handled.

use crate::path::canonical_path::{CanonicalFault, PATH_MAX, check_canonical};
use crate::remote::fragment::Fragment;
use crate::remote::frame::{FrameError, FrameKind, HEADER_LEN, Position, Prefix};
use crate::util::debug_by_display::debug_by_display;
use std::fmt;

/// The most envelopes of a batch.
pub(crate) const ENVELOPES_MAX: u16 = u16::MAX;

/// The most entries of a batch's dictionary.
pub(crate) const ENTRIES_MAX: usize = 255;

/// The longest varint of 32 bits, in bytes.
const VARINT_MAX: usize = 5;

/// The flag of an envelope with tokens.
const HAS_TOKENS: u8 = 1;

/// The token of a reply port.
pub(crate) type Token = [u8; TOKEN_LEN];

pub(crate) const TOKEN_LEN: usize = 16;

/// The tokens of an envelope that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tokens<'a>(&'a [u8]);

impl Tokens<'_> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Token> {
        self.0.chunks_exact(TOKEN_LEN).map(|token| {
            let mut copy = [0; TOKEN_LEN];
            copy.copy_from_slice(token);
            copy
        })
    }
}

/// The kind of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnvelopeKind {
    Tell = 0,
    Reply = 1,
    RefusedReply = 2,
    Select = 3,
    Pill = 4,
    Kill = 5,
    Leave = 6,
    Identify = 7,
    Identity = 8,
    Fragment = 9,
    /// A message of which each actor that gets it is to answer: see `asking_each.rs`.
    AskEach = 10,
    /// The reply of one of these actors.
    PartReply = 11,
    /// One of these actors gives no reply.
    RefusedPart = 12,
}

impl EnvelopeKind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Tell,
        Self::Reply,
        Self::RefusedReply,
        Self::Select,
        Self::Pill,
        Self::Kill,
        Self::Leave,
        Self::Identify,
        Self::Identity,
        Self::Fragment,
        Self::AskEach,
        Self::PartReply,
        Self::RefusedPart,
    ];

    /// Whether it is a message, which the books count.
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Self::Tell | Self::Select | Self::AskEach)
    }

    /// Whether an envelope of this kind is cut into fragments if it is large.
    pub(crate) fn may_be_large(self) -> bool {
        matches!(self, Self::Tell | Self::AskEach | Self::Reply | Self::PartReply | Self::Select)
    }

    /// Whether an envelope of this kind goes to such a place, with so many tokens.
    fn fits(self, place: &Place<'_>, tokens: usize) -> bool {
        match self {
            // The kind of its message decides.
            Self::Fragment => true,
            Self::Tell | Self::AskEach | Self::Leave => matches!(place, Place::Actor { .. }),
            Self::Pill | Self::Kill => matches!(place, Place::Actor { .. }) && tokens == 0,
            Self::Reply | Self::PartReply => matches!(place, Place::Port) && tokens > 0,
            Self::RefusedReply | Self::RefusedPart | Self::Identity => {
                matches!(place, Place::Port) && tokens == 1
            }
            Self::Select => matches!(place, Place::Selection { .. }),
            Self::Identify => matches!(place, Place::Selection { .. }) && tokens == 1,
        }
    }
}

/// The place that envelopes go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// An incarnation of an actor, with the number of its message type.
    Actor { path: &'a str, uid: u32, type_id: u64 },
    /// Reply ports, which the tokens name.
    Port,
    /// A selection, with the number of the message type.
    Selection { text: &'a str, type_id: u64 },
}

/// An envelope within a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) kind: EnvelopeKind,
    /// The index of the place in the dictionary.
    pub(crate) entry: u8,
    pub(crate) place: Place<'a>,
    pub(crate) tokens: Tokens<'a>,
    pub(crate) body: &'a [u8],
}

impl Envelope<'_> {
    /// The kind of the message that ends with this envelope; [`EnvelopeKind::Fragment`] if it goes on in the next batch.
    pub(crate) fn ends(&self) -> EnvelopeKind {
        match self.kind {
            EnvelopeKind::Fragment => Fragment::read(self.body)
                .filter(Fragment::is_last)
                .map_or(EnvelopeKind::Fragment, |last| last.kind),
            kind => kind,
        }
    }
}

/// A frame is no batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchError {
    Frame(FrameError),
    /// A control frame came on the channel of batches.
    Control,
    /// The frame ends within an envelope, or a length is larger than the bytes that are left.
    Truncated {
        position: usize,
    },
    /// A number has more bytes than it needs, or is larger than 32 bits.
    Varint {
        position: usize,
    },
    EnvelopeKind {
        kind: u8,
    },
    EnvelopeFlags {
        flags: u8,
    },
    /// The index is larger than the dictionary.
    Index {
        index: u32,
        entries: usize,
    },
    TooManyEntries,
    EntryTag {
        tag: u8,
    },
    Path(CanonicalFault),
    /// The text of a selection is longer than a path.
    Selection {
        bytes: usize,
    },
    /// A path or a selection is not UTF-8.
    Text {
        position: usize,
    },
    /// No actor has the uid 0.
    Uid,
    /// The kind of envelope does not go to such a place, or not with so many tokens.
    Unfit {
        kind: EnvelopeKind,
    },
    /// The flag says that there are tokens, and there are none.
    NoTokens,
    /// The body is no fragment.
    Fragment,
    /// The header says that a message goes on in the next batch, and the batch is not one fragment of it, or the reverse.
    Part,
    /// The body is longer than an envelope may be.
    TooLarge {
        size: usize,
        max: usize,
    },
    /// Bytes follow the last envelope.
    Leftover {
        bytes: usize,
    },
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchError::Frame(error) => error.fmt(f),
            BatchError::Control => f.write_str("a control frame came on the channel of batches"),
            BatchError::Truncated { position } => {
                write!(f, "the batch ends within what begins at byte {position}")
            }
            BatchError::Varint { position } => {
                write!(f, "the number at byte {position} is longer than it may be")
            }
            BatchError::EnvelopeKind { kind } => write!(f, "an envelope has the unknown kind {kind}"),
            BatchError::EnvelopeFlags { flags } => write!(f, "an envelope has the unknown flags {flags:#x}"),
            BatchError::Index { index, entries } => {
                write!(f, "an envelope goes to entry {index}, and the batch has {entries} entries so far")
            }
            BatchError::TooManyEntries => {
                write!(f, "the batch has more than {ENTRIES_MAX} entries in its dictionary")
            }
            BatchError::EntryTag { tag } => write!(f, "a place has the unknown kind {tag}"),
            BatchError::Path(fault) => write!(f, "a path is not canonical: {fault}"),
            BatchError::Selection { bytes } => {
                write!(f, "a selection has {bytes} bytes, and at most {PATH_MAX} are allowed")
            }
            BatchError::Text { position } => write!(f, "the text at byte {position} is not UTF-8"),
            BatchError::Uid => f.write_str("an envelope goes to the uid 0, which no actor has"),
            BatchError::Unfit { kind } => {
                write!(
                    f,
                    "an envelope of kind {kind:?} has a place, or a number of tokens, that it cannot have"
                )
            }
            BatchError::NoTokens => f.write_str("an envelope says that it has tokens, and has none"),
            BatchError::Fragment => {
                f.write_str("the body of a fragment has a head or a length that it cannot have")
            }
            BatchError::Part => f.write_str(
                "the header does not say whether a message goes on in the next batch, as one does",
            ),
            BatchError::TooLarge { size, max } => {
                write!(f, "a body has {size} bytes, and at most {max} are allowed")
            }
            BatchError::Leftover { bytes } => write!(f, "{bytes} bytes follow the last envelope"),
        }
    }
}

impl std::error::Error for BatchError {}

debug_by_display! { BatchError }

impl From<FrameError> for BatchError {
    fn from(error: FrameError) -> Self {
        BatchError::Frame(error)
    }
}

/// The place of an envelope that is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// The index that an earlier envelope of the same batch has got.
    Known(u8),
    New(Place<'a>),
}

/// A batch that is being filled.
pub(crate) struct BatchWriter {
    /// The header, which is written when the batch is given out, and the envelopes.
    frame: Vec<u8>,
    entries: u8,
    envelopes: u16,
}

impl BatchWriter {
    pub(crate) fn new() -> Self {
        Self::within(Vec::new())
    }

    /// Begins a batch in the memory of another one.
    pub(crate) fn within(mut frame: Vec<u8>) -> Self {
        frame.clear();
        frame.resize(HEADER_LEN, 0);
        Self { frame, entries: 0, envelopes: 0 }
    }

    /// The bytes of the frame so far, the header included.
    pub(crate) fn len(&self) -> usize {
        self.frame.len()
    }

    pub(crate) fn envelopes(&self) -> u16 {
        self.envelopes
    }

    /// Whether the batch has no room in its dictionary, or for another envelope.
    pub(crate) fn is_full(&self, needs_entry: bool) -> bool {
        self.envelopes == ENVELOPES_MAX || needs_entry && usize::from(self.entries) == ENTRIES_MAX
    }

    /// The most bytes that an envelope takes.
    pub(crate) fn size_max(entry: &Entry<'_>, tokens: usize, body: usize) -> usize {
        let place = match entry {
            Entry::Known(_) | Entry::New(Place::Port) => 1,
            Entry::New(Place::Actor { path, .. }) => 1 + VARINT_MAX + path.len() + 4 + 8,
            Entry::New(Place::Selection { text, .. }) => 1 + VARINT_MAX + text.len() + 8,
        };
        // The kind, the entry, the place, the tokens and the length.
        1 + VARINT_MAX + place + 1 + tokens * TOKEN_LEN + VARINT_MAX + body
    }

    /// Writes an envelope, and returns the index of its place. The caller has looked that there is room, that the path is
    /// canonical, that the place fits the kind, and that there are at most 255 tokens.
    pub(crate) fn push(
        &mut self,
        kind: EnvelopeKind,
        entry: &Entry<'_>,
        tokens: &[Token],
        body: &[u8],
    ) -> u8 {
        self.push_parts(kind, entry, tokens, [body, &[]])
    }

    /// As [`push`](Self::push), with a body in two parts.
    pub(crate) fn push_parts(
        &mut self,
        kind: EnvelopeKind,
        entry: &Entry<'_>,
        tokens: &[Token],
        body: [&[u8]; 2],
    ) -> u8 {
        debug_assert!(!self.is_full(matches!(entry, Entry::New(_))) && tokens.len() <= usize::from(u8::MAX));
        let flags = if tokens.is_empty() { 0 } else { HAS_TOKENS };
        self.frame.push(kind as u8 | flags << 4);
        let index = match entry {
            Entry::Known(index) => *index,
            Entry::New(_) => self.entries,
        };
        debug_assert!(index <= self.entries);
        write_varint(&mut self.frame, index.into());
        if let Entry::New(place) = entry {
            self.push_place(place);
            self.entries += 1;
        }
        if !tokens.is_empty() {
            self.frame.push(tokens.len() as u8);
            self.frame.extend_from_slice(tokens.as_flattened());
        }
        write_varint(&mut self.frame, (body[0].len() + body[1].len()) as u32);
        body.iter().for_each(|part| self.frame.extend_from_slice(part));
        self.envelopes += 1;
        index
    }

    fn push_place(&mut self, place: &Place<'_>) {
        match place {
            Place::Actor { path, uid, type_id } => {
                self.frame.push(0);
                self.push_text(path);
                self.frame.extend_from_slice(&uid.to_le_bytes());
                self.frame.extend_from_slice(&type_id.to_le_bytes());
            }
            Place::Port => self.frame.push(1),
            Place::Selection { text, type_id } => {
                self.frame.push(2);
                self.push_text(text);
                self.frame.extend_from_slice(&type_id.to_le_bytes());
            }
        }
    }

    fn push_text(&mut self, text: &str) {
        write_varint(&mut self.frame, text.len() as u32);
        self.frame.extend_from_slice(text.as_bytes());
    }

    /// Returns the frame, whose header is still to be written.
    pub(crate) fn into_frame(self) -> Vec<u8> {
        self.frame
    }
}

/// Where an envelope that was checked stands in the bytes behind the header.
#[derive(Clone, Copy)]
struct Span {
    kind: EnvelopeKind,
    entry: u8,
    /// The number of tokens.
    tokens: u8,
    /// The first byte of the tokens.
    tokens_at: u32,
    /// The first byte of the body, and the one behind it.
    body_at: u32,
    end: u32,
    /// Whether it is a fragment, and not the last one of its message.
    goes_on: bool,
}

/// The least bytes of an envelope.
const ENVELOPE_MIN: usize = 3;

/// A batch that was checked as a whole.
pub(crate) struct Batch<'a> {
    pub(crate) prefix: Prefix,
    pub(crate) position: Position,
    /// The dictionary.
    places: Vec<Place<'a>>,
    bytes: &'a [u8],
    envelopes: Vec<Span>,
}

impl<'a> Batch<'a> {
    /// Checks a frame. A body has at most `body_max` bytes.
    pub(crate) fn read(frame: &'a [u8], lanes: u8, body_max: usize) -> Result<Self, BatchError> {
        let prefix = Prefix::read(frame, lanes)?;
        if prefix.kind != FrameKind::Batch {
            return Err(BatchError::Control);
        }
        let position = Position::read(frame)?;
        let bytes = &frame[HEADER_LEN..];
        // So positions have 32 bits.
        if u32::try_from(bytes.len()).is_err() {
            return Err(BatchError::Leftover { bytes: bytes.len() });
        }
        let mut reader = Reader { bytes, at: 0 };
        let mut places = Vec::new();
        // The header may tell of more envelopes than there are.
        let room = usize::from(prefix.envelopes).min(bytes.len() / ENVELOPE_MIN);
        let mut envelopes = Vec::with_capacity(room);
        let mut goes_on = false;
        for _ in 0..prefix.envelopes {
            let span = reader.envelope(&mut places)?;
            goes_on |= span.goes_on;
            let body = (span.end - span.body_at) as usize;
            if body > body_max {
                return Err(BatchError::TooLarge { size: body, max: body_max });
            }
            envelopes.push(span);
        }
        if goes_on != position.is_part || goes_on && prefix.envelopes != 1 {
            return Err(BatchError::Part);
        }
        match bytes.len() - reader.at {
            0 => Ok(Self { prefix, position, places, bytes, envelopes }),
            bytes => Err(BatchError::Leftover { bytes }),
        }
    }

    /// The places that its envelopes go to.
    pub(crate) fn places(&self) -> &[Place<'a>] {
        &self.places
    }

    /// The envelopes, in the order in which they were sent.
    pub(crate) fn envelopes(&self) -> impl Iterator<Item = Envelope<'a>> {
        self.envelopes.iter().map(|span| {
            let Span { kind, entry, tokens, tokens_at, body_at, end, .. } = *span;
            let tokens_end = tokens_at as usize + usize::from(tokens) * TOKEN_LEN;
            Envelope {
                kind,
                entry,
                place: self.places[usize::from(entry)],
                tokens: Tokens(&self.bytes[tokens_at as usize..tokens_end]),
                body: &self.bytes[body_at as usize..end as usize],
            }
        })
    }
}

/// Reads envelopes; positions in errors are those behind the header.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], BatchError> {
        let taken = self.bytes[self.at..].get(..count).ok_or(BatchError::Truncated { position: self.at })?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BatchError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, BatchError> {
        let byte = *self.bytes.get(self.at).ok_or(BatchError::Truncated { position: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn varint(&mut self) -> Result<u32, BatchError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u32, BatchError> {
        let position = self.at;
        let mut number = 0u64;
        for place in 0..VARINT_MAX {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                // One number has one form.
                let is_short = place == 0 || byte != 0;
                return u32::try_from(number)
                    .ok()
                    .filter(|_| is_short)
                    .ok_or(BatchError::Varint { position });
            }
        }
        Err(BatchError::Varint { position })
    }

    fn text(&mut self) -> Result<&'a str, BatchError> {
        let length = self.varint()?;
        let position = self.at;
        let bytes = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        std::str::from_utf8(bytes).map_err(|_| BatchError::Text { position })
    }

    fn place(&mut self) -> Result<Place<'a>, BatchError> {
        match self.byte()? {
            0 => {
                let path = self.text()?;
                let uid = u32::from_le_bytes(self.array()?);
                let type_id = u64::from_le_bytes(self.array()?);
                if uid == 0 {
                    return Err(BatchError::Uid);
                }
                check_canonical(path, true).map_err(BatchError::Path)?;
                Ok(Place::Actor { path, uid, type_id })
            }
            1 => Ok(Place::Port),
            2 => {
                let text = self.text()?;
                let type_id = u64::from_le_bytes(self.array()?);
                match text.len() {
                    0..=PATH_MAX => Ok(Place::Selection { text, type_id }),
                    bytes => Err(BatchError::Selection { bytes }),
                }
            }
            tag => Err(BatchError::EntryTag { tag }),
        }
    }

    #[inline]
    fn envelope(&mut self, places: &mut Vec<Place<'a>>) -> Result<Span, BatchError> {
        let byte = self.byte()?;
        let (kind, flags) = (byte & 0xf, byte >> 4);
        let kind = *EnvelopeKind::ALL.get(usize::from(kind)).ok_or(BatchError::EnvelopeKind { kind })?;
        if flags & !HAS_TOKENS != 0 {
            return Err(BatchError::EnvelopeFlags { flags });
        }
        let index = self.varint()?;
        let entries = places.len();
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        if at > entries {
            return Err(BatchError::Index { index, entries });
        }
        if at == entries {
            if entries == ENTRIES_MAX {
                return Err(BatchError::TooManyEntries);
            }
            let place = self.place()?;
            places.push(place);
        }
        let (mut tokens, mut tokens_at) = (0, self.at);
        if flags & HAS_TOKENS != 0 {
            tokens = self.byte()?;
            if tokens == 0 {
                return Err(BatchError::NoTokens);
            }
            tokens_at = self.at;
            self.take(usize::from(tokens) * TOKEN_LEN)?;
        }
        if !kind.fits(&places[at], tokens.into()) {
            return Err(BatchError::Unfit { kind });
        }
        let length = self.varint()?;
        let body_at = self.at;
        let body = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        let mut goes_on = false;
        if kind == EnvelopeKind::Fragment {
            let fragment = Fragment::read(body).ok_or(BatchError::Fragment)?;
            goes_on = !fragment.is_last();
            // The last one alone has the tokens.
            let fits = match (goes_on, tokens) {
                (true, 0) => fragment.kind.fits(&places[at], 1),
                (true, _) => false,
                (false, tokens) => fragment.kind.fits(&places[at], tokens.into()),
            };
            if !fits {
                return Err(BatchError::Unfit { kind });
            }
        }
        // The caller has looked that all positions have 32 bits.
        let [tokens_at, body_at, end] = [tokens_at, body_at, self.at].map(|at| at as u32);
        Ok(Span { kind, entry: at as u8, tokens, tokens_at, body_at, end, goes_on })
    }
}

fn write_varint(to: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const BODY_MAX: usize = 1000;
    const ACTOR: Place<'_> = Place::Actor { path: "/user/a", uid: 7, type_id: 9 };

    fn position() -> Position {
        Position { sequence: 1, ..Position::default() }
    }

    fn sealed(batch: BatchWriter) -> Vec<u8> {
        with_header(batch, 0, 1, 2, &position())
    }

    fn with_header(batch: BatchWriter, lane: u8, from: u64, to: u64, position: &Position) -> Vec<u8> {
        let prefix = Prefix { kind: FrameKind::Batch, lane, envelopes: batch.envelopes(), from, to };
        let mut frame = batch.into_frame();
        prefix.write(&mut frame);
        position.write(&mut frame);
        frame
    }

    /// A frame with these bytes for envelopes, of which the header tells so many.
    fn raw(count: u16, envelopes: &[u8]) -> Vec<u8> {
        let mut frame = sealed(BatchWriter::new());
        frame[6..8].copy_from_slice(&count.to_le_bytes());
        frame.extend_from_slice(envelopes);
        frame
    }

    fn fault(count: u16, envelopes: &[u8]) -> Option<BatchError> {
        Batch::read(&raw(count, envelopes), 1, BODY_MAX).err()
    }

    /// The bytes of a place.
    fn actor(path: &[u8], uid: u32) -> Vec<u8> {
        let mut bytes = vec![0];
        write_varint(&mut bytes, path.len() as u32);
        bytes.extend_from_slice(path);
        bytes.extend_from_slice(&uid.to_le_bytes());
        bytes.extend_from_slice(&9u64.to_le_bytes());
        bytes
    }

    #[test]
    fn a_further_message_to_the_same_actor_has_three_bytes_more_than_its_body() {
        let mut batch = BatchWriter::new();
        let index = batch.push(EnvelopeKind::Tell, &Entry::New(ACTOR), &[], b"first");
        let before = batch.len();
        assert_eq!(batch.push(EnvelopeKind::Tell, &Entry::Known(index), &[], b"second"), index);
        assert_eq!(batch.len() - before, 3 + "second".len());
        let frame = sealed(batch);
        let batch = Batch::read(&frame, 1, BODY_MAX).expect("it was written here");
        let bodies: Vec<_> = batch.envelopes().map(|envelope| (envelope.place, envelope.body)).collect();
        assert_eq!(bodies, [(ACTOR, &b"first"[..]), (ACTOR, b"second")]);
        assert_eq!(batch.places(), [ACTOR]);
    }

    /// Nodes of all versions of the crate agree on these bytes.
    #[test]
    fn the_bytes_of_envelopes_never_change() {
        let mut batch = BatchWriter::new();
        batch.push(EnvelopeKind::Tell, &Entry::New(ACTOR), &[[5; 16]], b"xy");
        batch.push(EnvelopeKind::Reply, &Entry::New(Place::Port), &[[6; 16]], b"");
        batch.push(
            EnvelopeKind::Select,
            &Entry::New(Place::Selection { text: "/user/*", type_id: 1 }),
            &[],
            b"z",
        );
        let expected = [
            b"\x10\x00\x00\x07/user/a\x07\0\0\0\x09\0\0\0\0\0\0\0\x01".to_vec(),
            vec![5; 16],
            b"\x02xy\x11\x01\x01\x01".to_vec(),
            vec![6; 16],
            b"\x00\x03\x02\x02\x07/user/*\x01\0\0\0\0\0\0\0\x01z".to_vec(),
        ]
        .concat();
        assert_eq!(&sealed(batch)[HEADER_LEN..], expected);
    }

    #[test]
    fn counts_and_lengths_that_do_not_fit_the_frame_are_refused() {
        let one = [&[0, 0][..], &actor(b"/a", 1), &[2, 8, 9]].concat();
        assert_eq!(fault(1, &one), None);
        assert_eq!(fault(0, &[]), None);
        // A count without envelopes, and the reverse.
        assert_eq!(fault(1, &[]), Some(BatchError::Truncated { position: 0 }));
        assert_eq!(fault(2, &one), Some(BatchError::Truncated { position: one.len() }));
        assert_eq!(fault(u16::MAX, &one), Some(BatchError::Truncated { position: one.len() }));
        assert_eq!(fault(0, &one), Some(BatchError::Leftover { bytes: one.len() }));
        assert_eq!(fault(1, &[&one[..], &[0]].concat()), Some(BatchError::Leftover { bytes: 1 }));
        for cut in 0..one.len() {
            assert!(matches!(fault(1, &one[..cut]), Some(BatchError::Truncated { .. })), "{cut}");
        }
        let longer = |length: &[u8]| [&one[..one.len() - 3], length, &[8, 9]].concat();
        let at = one.len() - 2;
        assert_eq!(fault(1, &longer(&[3])), Some(BatchError::Truncated { position: at }));
        // 2^32 - 1, 2^32, and a number of six bytes.
        let last = [0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(fault(1, &longer(&last)), Some(BatchError::Truncated { position: at + 4 }));
        let varint = Some(BatchError::Varint { position: at - 1 });
        assert_eq!(fault(1, &longer(&[0x80, 0x80, 0x80, 0x80, 0x10])), varint);
        assert_eq!(fault(1, &longer(&[0x80; 6])), varint);
        // A number that is longer than it needs to be.
        assert_eq!(fault(1, &longer(&[0x82, 0])), varint);
    }

    #[test]
    fn a_body_of_the_limit_is_taken_and_one_byte_more_is_not() {
        for (size, is_taken) in [(BODY_MAX, true), (BODY_MAX + 1, false)] {
            let mut batch = BatchWriter::new();
            batch.push(EnvelopeKind::Tell, &Entry::New(ACTOR), &[], &vec![1; size]);
            let frame = sealed(batch);
            let outcome = Batch::read(&frame, 1, BODY_MAX).map(|batch| batch.envelopes().count());
            let too_large = Err(BatchError::TooLarge { size, max: BODY_MAX });
            assert_eq!(outcome, if is_taken { Ok(1) } else { too_large });
        }
    }

    #[test]
    fn the_dictionary_ends_at_255_entries() {
        let mut batch = BatchWriter::new();
        for uid in 1..=255 {
            assert!(!batch.is_full(true));
            let place = Place::Actor { path: "/a", uid, type_id: 0 };
            assert_eq!(u32::from(batch.push(EnvelopeKind::Tell, &Entry::New(place), &[], b"")), uid - 1);
        }
        assert!(batch.is_full(true) && !batch.is_full(false));
        batch.push(EnvelopeKind::Tell, &Entry::Known(254), &[], b"");
        let frame = sealed(batch);
        let read = Batch::read(&frame, 1, BODY_MAX).expect("255 entries");
        assert_eq!((read.places().len(), read.envelopes().count()), (255, 256));
        // One more.
        let mut envelopes = frame[HEADER_LEN..].to_vec();
        envelopes.extend([0, 0xff, 0x01]);
        envelopes.extend(actor(b"/a", 1));
        envelopes.push(0);
        assert_eq!(fault(257, &envelopes), Some(BatchError::TooManyEntries));
        // An index beyond the next.
        assert_eq!(fault(1, &[0, 1]), Some(BatchError::Index { index: 1, entries: 0 }));
        let one = [&[0, 0][..], &actor(b"/a", 1), &[0]].concat();
        assert_eq!(
            fault(2, &[&one[..], &[0, 2, 0]].concat()),
            Some(BatchError::Index { index: 2, entries: 1 })
        );
    }

    #[test]
    fn a_batch_ends_at_65535_envelopes() {
        let mut batch = BatchWriter::new();
        let index = batch.push(EnvelopeKind::Tell, &Entry::New(ACTOR), &[], b"");
        for _ in 1..ENVELOPES_MAX {
            assert!(!batch.is_full(false));
            batch.push(EnvelopeKind::Tell, &Entry::Known(index), &[], b"");
        }
        assert!(batch.is_full(false));
        let frame = sealed(batch);
        let read = Batch::read(&frame, 1, BODY_MAX).expect("it is full");
        assert_eq!(read.envelopes().count(), usize::from(ENVELOPES_MAX));
    }

    #[test]
    fn places_that_no_actor_has_are_refused() {
        let to = |place: Vec<u8>| fault(1, &[&[0, 0][..], &place, &[0]].concat());
        let long = |bytes: usize| format!("/{}", "a".repeat(bytes - 1)).into_bytes();
        assert_eq!(to(actor(b"/user/$a", 1)), None);
        assert_eq!(to(actor(&long(1024), 1)), None);
        assert_eq!(to(actor("/a".repeat(32).as_bytes(), 1)), None);
        let path = |fault| Some(BatchError::Path(fault));
        assert_eq!(to(actor(b"/user/a", 0)), Some(BatchError::Uid));
        assert_eq!(to(actor(&long(1025), 1)), path(CanonicalFault::Long { bytes: 1025 }));
        assert_eq!(to(actor("/a".repeat(33).as_bytes(), 1)), path(CanonicalFault::Deep));
        assert_eq!(to(actor(b"/a/../b", 1)), path(CanonicalFault::Element { position: 3 }));
        assert_eq!(to(actor(b"/a/%zz", 1)), path(CanonicalFault::Character { position: 3 }));
        assert_eq!(to(actor(b"/a\xff", 1)), Some(BatchError::Text { position: 4 }));
        assert_eq!(to(vec![3]), Some(BatchError::EntryTag { tag: 3 }));
        let selection = |bytes: usize| {
            let mut place = vec![2];
            write_varint(&mut place, bytes as u32);
            fault(1, &[&[3, 0][..], &place, &vec![b'*'; bytes], &[0; 8], &[0]].concat())
        };
        assert_eq!(selection(PATH_MAX), None);
        assert_eq!(selection(PATH_MAX + 1), Some(BatchError::Selection { bytes: PATH_MAX + 1 }));
    }

    #[test]
    fn kinds_flags_and_tokens_that_do_not_belong_together_are_refused() {
        let to_actor = |first: u8| fault(1, &[&[first, 0][..], &actor(b"/a", 1), &[0]].concat());
        assert_eq!(to_actor(0), None);
        for kind in 13..16 {
            assert_eq!(to_actor(kind), Some(BatchError::EnvelopeKind { kind }));
        }
        for flags in [2, 3, 4, 8, 15] {
            assert_eq!(to_actor(flags << 4), Some(BatchError::EnvelopeFlags { flags }));
        }
        assert_eq!(
            fault(1, &[&[0x10, 0][..], &actor(b"/a", 1), &[0, 0]].concat()),
            Some(BatchError::NoTokens)
        );
        let places = [ACTOR, Place::Port, Place::Selection { text: "*", type_id: 0 }];
        // Which of the places above, and how many tokens, a kind may have.
        let last_of = |kind: EnvelopeKind| [kind as u8, 1, 0, 0, 0, 2, 0, 0, 0, 7];
        let large = EnvelopeKind::ALL.map(|kind| (EnvelopeKind::Fragment, kind, last_of(kind).to_vec()));
        let others = EnvelopeKind::ALL.map(|kind| (kind, kind, Vec::new()));
        let is_sound = |(kind, of, _): &(EnvelopeKind, EnvelopeKind, Vec<u8>)| {
            if *kind == EnvelopeKind::Fragment { of.may_be_large() } else { true }
        };
        for (kind, of, body) in large.into_iter().chain(others).filter(is_sound) {
            let (at, tokens): (usize, &[usize]) = match of {
                EnvelopeKind::Fragment => continue,
                EnvelopeKind::Tell | EnvelopeKind::AskEach | EnvelopeKind::Leave => (0, &[0, 1, 2, 255]),
                EnvelopeKind::Pill | EnvelopeKind::Kill => (0, &[0]),
                EnvelopeKind::Reply | EnvelopeKind::PartReply => (1, &[1, 2, 255]),
                EnvelopeKind::RefusedReply | EnvelopeKind::RefusedPart | EnvelopeKind::Identity => (1, &[1]),
                EnvelopeKind::Select => (2, &[0, 1, 2, 255]),
                EnvelopeKind::Identify => (2, &[1]),
            };
            for (other, place) in places.iter().enumerate() {
                for count in [0, 1, 2, 255] {
                    let mut batch = BatchWriter::new();
                    batch.push(kind, &Entry::New(*place), &vec![[1; 16]; count], &body);
                    let outcome = Batch::read(&sealed(batch), 1, BODY_MAX).map(|_| ()).err();
                    let expected =
                        (other != at || !tokens.contains(&count)).then_some(BatchError::Unfit { kind });
                    assert_eq!(outcome, expected, "{place:?} {count}");
                }
            }
        }
    }

    #[test]
    fn a_control_frame_is_no_batch() {
        let mut frame = raw(0, &[]);
        frame[5] = 1;
        assert_eq!(Batch::read(&frame, 1, BODY_MAX).err(), Some(BatchError::Control));
        assert_eq!(
            Batch::read(&frame[..23], 1, BODY_MAX).err(),
            Some(BatchError::Frame(FrameError::Short { bytes: 23, needed: 24 }))
        );
    }

    /// An envelope to one of a few places.
    #[derive(Debug, Clone)]
    struct Sent {
        kind: EnvelopeKind,
        place: Place<'static>,
        tokens: Vec<Token>,
        body: Vec<u8>,
    }

    fn sent() -> impl Strategy<Value = Sent> {
        let paths = prop::sample::select(vec!["/user/a", "/user/b/c", "/deadLetters"]);
        let actor = (paths, 1u32..4).prop_map(|(path, uid)| Place::Actor { path, uid, type_id: 3 });
        let tokens = vec(any::<Token>(), 0..3);
        let tell = (actor, tokens, vec(any::<u8>(), 0..200)).prop_map(|(place, tokens, body)| Sent {
            kind: EnvelopeKind::Tell,
            place,
            tokens,
            body,
        });
        let reply = (vec(any::<Token>(), 1..3), vec(any::<u8>(), 0..40)).prop_map(|(tokens, body)| Sent {
            kind: EnvelopeKind::Reply,
            place: Place::Port,
            tokens,
            body,
        });
        prop_oneof![3 => tell, 1 => reply]
    }

    fn written(envelopes: &[Sent]) -> Vec<u8> {
        let mut batch = BatchWriter::new();
        let mut places: Vec<Place<'_>> = Vec::new();
        for Sent { kind, place, tokens, body } in envelopes {
            let known = places.iter().position(|known| known == place);
            let entry = known.map_or(Entry::New(*place), |index| Entry::Known(index as u8));
            if known.is_none() {
                places.push(*place);
            }
            let before = batch.len();
            batch.push(*kind, &entry, tokens, body);
            assert!(batch.len() - before <= BatchWriter::size_max(&entry, tokens.len(), body.len()));
        }
        sealed(batch)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn envelopes_come_back_in_their_order(envelopes in vec(sent(), 0..30)) {
            let frame = written(&envelopes);
            let batch = Batch::read(&frame, 1, BODY_MAX).unwrap();
            let read: Vec<_> = batch.envelopes().collect();
            prop_assert_eq!(read.len(), envelopes.len());
            for (read, sent) in read.iter().zip(&envelopes) {
                prop_assert_eq!((read.kind, read.place, read.body), (sent.kind, sent.place, &sent.body[..]));
                prop_assert_eq!(batch.places()[usize::from(read.entry)], sent.place);
                prop_assert_eq!(read.tokens.iter().collect::<Vec<_>>(), sent.tokens.clone());
            }
        }

        /// Bytes that are changed, cut off or added are refused, or are a batch that is written in the same way: no batch has
        /// two forms, and none makes the reader panic.
        #[test]
        fn a_changed_batch_is_refused_or_another_batch(
            envelopes in vec(sent(), 0..8), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in option_of_index(), more in vec(any::<u8>(), 0..3),
        ) {
            let mut frame = written(&envelopes);
            for (at, byte) in changes {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            if let Some(cut) = cut {
                frame.truncate(cut.index(frame.len()));
            }
            frame.extend(more);
            if let Ok(batch) = Batch::read(&frame, 1, BODY_MAX) {
                let mut again = BatchWriter::new();
                for Envelope { kind, entry, place, tokens, body } in batch.envelopes() {
                    let is_new = entry == again.entries;
                    let entry = if is_new { Entry::New(place) } else { Entry::Known(entry) };
                    again.push(kind, &entry, &tokens.iter().collect::<Vec<_>>(), body);
                }
                prop_assert_eq!(again.envelopes(), batch.prefix.envelopes);
                let Prefix { lane, from, to, .. } = batch.prefix;
                prop_assert_eq!(with_header(again, lane, from, to, &batch.position), frame);
            }
        }

        #[test]
        fn any_bytes_are_a_batch_or_an_error(count in 0u16..6, envelopes in vec(byte(), 0..60)) {
            let frame = raw(count, &envelopes);
            if let Ok(batch) = Batch::read(&frame, 1, BODY_MAX) {
                prop_assert_eq!(batch.envelopes().count(), usize::from(count));
            }
        }
    }

    fn option_of_index() -> impl Strategy<Value = Option<prop::sample::Index>> {
        prop::option::weighted(0.3, any::<prop::sample::Index>())
    }

    /// Bytes of which many are kinds, small numbers and names.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![4 => 0u8..4, 1 => Just(b'/'), 1 => Just(b'a'), 1 => any::<u8>()]
    }
}
