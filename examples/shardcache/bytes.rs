//! [`Bytes`]: a short byte string for keys and values, 24 bytes wide and cheap to clone.
//!
//! Most keys and many values of a cache are short. Up to [`Bytes::INLINE_MAX`] bytes live inside the
//! value itself, so a GET of a counter touches no allocator. Longer strings sit behind an `Arc`: the
//! reply to a GET shares them with the store instead of copying them. The `Arc` holds a `Vec` and not
//! a slice, because APPEND wants spare capacity: a value that nobody else is reading grows in place.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// An immutable byte string that only its owner can append to.
#[derive(Clone)]
pub struct Bytes(Store);

#[derive(Clone)]
enum Store {
    Inline { len: u8, data: [u8; Bytes::INLINE_MAX] },
    Shared(Arc<Vec<u8>>),
}

const _: () = assert!(size_of::<Bytes>() == 24 && size_of::<Option<Bytes>>() == 24);

impl Bytes {
    /// The longest string that needs no allocation.
    pub const INLINE_MAX: usize = 22;

    /// Copies `bytes`.
    pub fn copy_from(bytes: &[u8]) -> Bytes {
        match Bytes::inline(&[bytes]) {
            Some(short) => short,
            None => Bytes(Store::Shared(Arc::new(bytes.to_vec()))),
        }
    }

    /// Adds `tail` at the end. Amortised O(`tail`) while no clone of a long string is alive; a string
    /// that is shared is copied first.
    pub fn append(&mut self, tail: &[u8]) {
        if let Store::Shared(long) = &mut self.0 {
            Arc::make_mut(long).extend_from_slice(tail);
            return;
        }
        *self = Bytes::inline(&[self, tail]).unwrap_or_else(|| {
            // Twice the length, so that a string which grows by small steps leaves room for the next.
            let mut long = Vec::with_capacity(2 * (self.len() + tail.len()));
            long.extend_from_slice(self);
            long.extend_from_slice(tail);
            Bytes(Store::Shared(Arc::new(long)))
        });
    }

    /// The parts one after the other, if they fit.
    fn inline(parts: &[&[u8]]) -> Option<Bytes> {
        let mut data = [0; Bytes::INLINE_MAX];
        let mut len = 0;
        for part in parts {
            data.get_mut(len..len + part.len())?.copy_from_slice(part);
            len += part.len();
        }
        // `len` is at most INLINE_MAX here, since every part found its place.
        Some(Bytes(Store::Inline { len: len as u8, data }))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Store::Inline { len, data } => &data[..usize::from(*len)],
            Store::Shared(long) => long,
        }
    }
}

/// Lets a map with `Bytes` keys be searched with a slice of the read buffer.
impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As the slice hashes, which `Borrow` demands.
        self[..].hash(state);
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Bytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Bytes) -> std::cmp::Ordering {
        self[..].cmp(&other[..])
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn every_length_around_the_inline_bound_keeps_its_bytes() {
        let source: Vec<u8> = (0..64).collect();
        for len in 0..source.len() {
            let bytes = Bytes::copy_from(&source[..len]);
            assert_eq!(bytes[..], source[..len]);
            assert_eq!(bytes.clone(), bytes);
        }
    }

    #[test]
    fn append_crosses_the_inline_bound_at_every_place() {
        for (head, tail) in (0..40).flat_map(|h| (0..40).map(move |t| (h, t))) {
            let mut bytes = Bytes::copy_from(&vec![b'h'; head]);
            bytes.append(&vec![b't'; tail]);
            assert_eq!(bytes[..], [vec![b'h'; head], vec![b't'; tail]].concat());
        }
    }

    #[test]
    fn append_leaves_clones_alone() {
        for len in [3, 22, 23, 100] {
            let original = Bytes::copy_from(&vec![b'x'; len]);
            let mut grown = original.clone();
            grown.append(b"more");
            assert_eq!(original[..], vec![b'x'; len]);
            assert_eq!(grown.len(), len + 4);
        }
    }
}
