//! Hash keys: a fixed encoding of keys, hashed by xxh3-64 with seed 0.
//!
//! # Wire contract
//!
//! Nodes that share a hash ring must agree on every key's hash, whatever compiler and processor they have.
//! `std::hash::Hash` promises neither, so keys have an encoding of their own, which never changes:
//!
//! | type | bytes |
//! | --- | --- |
//! | `u8` … `u128`, `i8` … `i128` | little-endian, in their own width |
//! | `usize`, `isize` | as `u64`, `i64` |
//! | `bool` | one byte, 0 or 1 |
//! | `char` | its code point as `u32` |
//! | `str`, `String` | length in bytes as `u64`, then UTF-8 |
//! | `[T]`, `Vec<T>` | number of elements as `u64`, then each element |
//! | `[T; N]`, tuples | each element; their number is part of the type |
//! | `Option<T>` | one byte, 0, or 1 and then the value |
//! | `&T`, `Box<T>`, `Rc<T>`, `Arc<T>` | as `T` |
//! | a derived struct; a derived enum | each field; the number of the variant as `u32`, then each field |
//! | one with marked fields | each marked field |
//!
//! Lengths come first, so `("ab", "c")` and `("a", "bc")` differ. Tests hold the hashes of some keys as constants.

use std::fmt;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Keys up to this many encoded bytes are hashed in one go; it is also where xxh3 starts to work in stripes.
const INLINE: usize = 240;

/// A value that has a hash of its own on every machine.
///
/// ```
/// use pointsman::routing::{HashKey, KeySink};
///
/// struct Customer { region: u16, name: String }
///
/// impl HashKey for Customer {
///     fn feed(&self, to: &mut KeySink) {
///         self.region.feed(to);
///         self.name.feed(to);
///     }
/// }
/// ```
///
/// `#[derive(HashKey)]` (feature `macros`) writes that: all fields are the key, in their order, and in an enum the
/// number of the variant before them. Of a message only some fields are its key: where a field is marked
/// `#[hash_key(key)]`, the marked fields alone count, and every variant has one. `#[hash_key(skip)]` leaves a field
/// out.
///
#[cfg_attr(feature = "macros", doc = "```")]
#[cfg_attr(not(feature = "macros"), doc = "```ignore")]
/// use pointsman::prelude::*;
/// use pointsman::routing::{ConsistentHashing, HashKey};
///
/// #[derive(HashKey)]
/// struct Customer {
///     region: u16,
///     name: String,
/// }
///
/// #[derive(HashKey)]
/// enum AccountMsg {
///     Pay { #[hash_key(key)] from: Customer, cents: u64 },
///     Balance(#[hash_key(key)] Customer, ReplyTo<u64>),
/// }
/// # struct Accounts;
/// # impl Actor for Accounts {
/// #     type Message = AccountMsg;
/// #     fn receive(&mut self, _: AccountMsg, _: &mut Context<AccountMsg>) -> HandlerResult { Ok(()) }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let system = System::builder("demo").build()?;
/// let accounts = system.router("accounts").pool(8, |_| Accounts).logic(ConsistentHashing::new()).spawn()?;
/// let from = Customer { region: 7, name: "Ada".into() };
/// accounts.tell(AccountMsg::Pay { from, cents: 100 });
/// # Ok(())
/// # }
/// ```
pub trait HashKey {
    /// Feeds the encoded value. Two values that should go to the same routee must feed the same bytes.
    fn feed(&self, to: &mut KeySink);

    /// The value's hash.
    fn key_hash(&self) -> u64 {
        let mut sink = KeySink::new();
        self.feed(&mut sink);
        sink.finish()
    }
}

/// Takes the bytes of a key and hashes them.
///
/// Short keys stay in a buffer on the stack, since preparing a streaming hasher costs more than hashing them.
/// The result doesn't depend on how the bytes were cut into calls, nor on which of both ways was taken.
pub struct KeySink {
    length: usize,
    short: [std::mem::MaybeUninit<u8>; INLINE],
    /// Present after the key is longer than `short`.
    long: Option<Long>,
    /// All bytes are kept, for another hash than that of this crate.
    keeps: bool,
}

/// The state of a long key.
enum Long {
    Hashed(Box<Xxh3>),
    Kept(Vec<u8>),
}

impl KeySink {
    /// An empty key.
    #[inline]
    pub fn new() -> Self {
        Self {
            length: 0,
            short: [const { std::mem::MaybeUninit::uninit() }; INLINE],
            long: None,
            keeps: false,
        }
    }

    /// An empty key that keeps all its bytes.
    pub(crate) fn keeping() -> Self {
        Self { keeps: true, ..Self::new() }
    }

    /// The bytes so far, of a sink that keeps them.
    pub(crate) fn kept(&self) -> &[u8] {
        match &self.long {
            Some(Long::Kept(bytes)) => bytes,
            _ => self.buffered(),
        }
    }

    /// Appends bytes as they are, without a length before them.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if self.long.is_some() || end > INLINE {
            return self.spill(bytes);
        }
        // SAFETY: initialised bytes are valid as bytes that need not be, and lie in memory in the same way.
        let bytes = unsafe { &*(std::ptr::from_ref(bytes) as *const [std::mem::MaybeUninit<u8>]) };
        self.short[self.length..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// Feeds a key, or a part of one.
    #[inline]
    pub fn feed<K: HashKey + ?Sized>(&mut self, key: &K) {
        key.feed(self);
    }

    /// The hash of all bytes so far.
    #[inline]
    pub fn finish(&self) -> u64 {
        match &self.long {
            None => xxh3_64(self.buffered()),
            Some(Long::Hashed(hasher)) => hasher.digest(),
            Some(Long::Kept(bytes)) => xxh3_64(bytes),
        }
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.long.is_none() {
            self.long = Some(if self.keeps {
                Long::Kept(self.buffered().to_vec())
            } else {
                let mut hasher = Box::new(Xxh3::new());
                hasher.update(self.buffered());
                Long::Hashed(hasher)
            });
        }
        match &mut self.long {
            Some(Long::Hashed(hasher)) => hasher.update(bytes),
            Some(Long::Kept(kept)) => kept.extend_from_slice(bytes),
            None => unreachable!("just made"),
        }
    }

    #[inline]
    fn buffered(&self) -> &[u8] {
        // SAFETY: `bytes` initialised the first `length` places, and `MaybeUninit<u8>` is laid out as `u8`.
        unsafe { std::slice::from_raw_parts(self.short.as_ptr().cast::<u8>(), self.length) }
    }
}

impl Default for KeySink {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for KeySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySink").field("hash", &self.finish()).finish_non_exhaustive()
    }
}

macro_rules! little_endian {
    ($($type:ty)*) => {$(
        impl HashKey for $type {
            #[inline]
            fn feed(&self, to: &mut KeySink) {
                to.bytes(&self.to_le_bytes());
            }
        }
    )*};
}
little_endian! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 }

impl HashKey for usize {
    #[inline]
    fn feed(&self, to: &mut KeySink) {
        (*self as u64).feed(to);
    }
}

impl HashKey for isize {
    #[inline]
    fn feed(&self, to: &mut KeySink) {
        (*self as i64).feed(to);
    }
}

impl HashKey for bool {
    fn feed(&self, to: &mut KeySink) {
        u8::from(*self).feed(to);
    }
}

impl HashKey for char {
    fn feed(&self, to: &mut KeySink) {
        u32::from(*self).feed(to);
    }
}

impl HashKey for str {
    #[inline]
    fn feed(&self, to: &mut KeySink) {
        self.len().feed(to);
        to.bytes(self.as_bytes());
    }
}

impl HashKey for String {
    #[inline]
    fn feed(&self, to: &mut KeySink) {
        self.as_str().feed(to);
    }
}

impl<T: HashKey> HashKey for [T] {
    fn feed(&self, to: &mut KeySink) {
        self.len().feed(to);
        self.iter().for_each(|element| element.feed(to));
    }
}

impl<T: HashKey> HashKey for Vec<T> {
    fn feed(&self, to: &mut KeySink) {
        self.as_slice().feed(to);
    }
}

impl<T: HashKey, const N: usize> HashKey for [T; N] {
    fn feed(&self, to: &mut KeySink) {
        self.iter().for_each(|element| element.feed(to));
    }
}

impl<T: HashKey> HashKey for Option<T> {
    fn feed(&self, to: &mut KeySink) {
        self.is_some().feed(to);
        if let Some(value) = self {
            value.feed(to);
        }
    }
}

macro_rules! transparent {
    ($($type:ty)*) => {$(
        impl<T: HashKey + ?Sized> HashKey for $type {
            #[inline]
            fn feed(&self, to: &mut KeySink) {
                (**self).feed(to);
            }
        }
    )*};
}
transparent! { &T Box<T> std::rc::Rc<T> crate::sync::Arc<T> }

macro_rules! tuples {
    ($(($($name:ident)+))*) => {$(
        impl<$($name: HashKey),+> HashKey for ($($name,)+) {
            fn feed(&self, to: &mut KeySink) {
                #[allow(non_snake_case)] // one name for a type and its value
                let ($($name,)+) = self;
                $($name.feed(to);)+
            }
        }
    )*};
}
tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use super::{HashKey, INLINE, KeySink};
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn the_encodings_are_as_documented() {
        let check = |key: &dyn HashKey, bytes: &[u8]| assert_eq!(key.key_hash(), xxh3_64(bytes));
        check(&0x0102_u16, &[2, 1]);
        check(&-2_i32, &[0xfe, 0xff, 0xff, 0xff]);
        check(&1_usize, &[1, 0, 0, 0, 0, 0, 0, 0]);
        check(&true, &[1]);
        check(&'ä', &[0xe4, 0, 0, 0]);
        check(&"hi", &[2, 0, 0, 0, 0, 0, 0, 0, b'h', b'i']);
        check(&vec![7_u8, 8], &[2, 0, 0, 0, 0, 0, 0, 0, 7, 8]);
        check(&[7_u8, 8], &[7, 8]);
        check(&(1_u8, false), &[1, 0]);
        check(&Some(5_u8), &[1, 5]);
        check(&None::<u8>, &[0]);
        check(&Box::new(String::from("")), &[0; 8]);
    }

    #[test]
    fn the_hashes_are_fixed_for_ever() {
        let found =
            [42_u64.key_hash(), "customer-17".key_hash(), ("eu", 7_u16).key_hash(), GOLDEN_LONG.key_hash()];
        assert_eq!(found, GOLDEN, "nodes of different versions would disagree about the owner of a key");
    }

    const GOLDEN_LONG: [u64; 40] = [0x0123_4567_89ab_cdef; 40];
    const GOLDEN: [u64; 4] =
        [15395265915043915720, 10271533302137489215, 3582120815615275245, 13106128424304907398];

    #[test]
    fn long_keys_hash_as_if_given_at_once_however_they_are_cut() {
        let bytes: Vec<u8> = (0..3 * INLINE).map(|i| (i * 7) as u8).collect();
        for length in [0, 1, INLINE - 1, INLINE, INLINE + 1, 2 * INLINE, 3 * INLINE] {
            for piece in [1, 8, 100, INLINE, 3 * INLINE] {
                let mut sink = KeySink::new();
                bytes[..length].chunks(piece).for_each(|piece| sink.bytes(piece));
                assert_eq!(sink.finish(), xxh3_64(&bytes[..length]), "{length} bytes by {piece}");
                let mut keeping = KeySink::keeping();
                bytes[..length].chunks(piece).for_each(|piece| keeping.bytes(piece));
                assert_eq!(keeping.kept(), &bytes[..length]);
                assert_eq!(keeping.finish(), sink.finish());
            }
        }
    }

    #[test]
    fn neighbouring_strings_keep_their_border() {
        assert_ne!(("ab", "c").key_hash(), ("a", "bc").key_hash());
    }
}
