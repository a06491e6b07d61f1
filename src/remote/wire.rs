//! The trait of messages that may leave the process: a name and a version that all nodes agree on.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest name of a type, in bytes; `#[derive(Wire)]` has the same.
pub(crate) const NAME_MAX: usize = 64;

/// A message that may be sent to another node.
///
/// The type is named by [`NAME`](Self::NAME) and [`VERSION`](Self::VERSION), which belong to the wire format: a type that
/// is moved to another module, or renamed, keeps them. The fields are written one after the other, without their names. So a
/// type with another field is another version, and a node that is to understand both versions registers both types.
///
/// ```
/// use pointsman::remote::{Wire, wire_id};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Order { article: u64, amount: u32 }
///
/// impl Wire for Order {
///     const NAME: &'static str = "shop.Order"; // `#[derive(Wire)]` writes the same
/// }
/// assert_eq!(wire_id("shop.Order", 1), 0x719a_0edb_7f86_4994);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no name by which other nodes know it",
    note = "declare one: `#[derive(Wire, Serialize, Deserialize)]` with `#[wire(name = \"shop.Order\")]`"
)]
pub trait Wire: Serialize + DeserializeOwned + Send + 'static {
    /// The name: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, of which the first is a letter or digit.
    const NAME: &'static str;
    /// The version, from 1. Two versions of a name are two types.
    const VERSION: u16 = 1;
}

/// Returns the number by which a batch names a type: FNV-1a in 64 bits over the name, a byte 0, and the version, low byte
/// first.
///
/// The numbers belong to the wire format and never change.
pub const fn wire_id(name: &str, version: u16) -> u64 {
    const fn feed(hash: u64, byte: u8) -> u64 {
        (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3)
    }
    let bytes = name.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = feed(hash, bytes[at]);
        at += 1;
    }
    let [low, high] = version.to_le_bytes();
    feed(feed(feed(hash, 0), low), high)
}

/// Whether this is a name: the derive refuses others at compile time, and the registry those that are written by hand.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |(at, byte): (usize, u8)| byte.is_ascii_alphanumeric() || at > 0 && b"._-".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().enumerate().all(allowed)
}

/// Types of the standard library have names of the crate.
macro_rules! of_std {
    ($($type:ty: $name:literal),* $(,)?) => {
        $(impl Wire for $type {
            const NAME: &'static str = concat!("pointsman.", $name);
        })*
    };
}

of_std! {
    (): "unit", bool: "bool", char: "char",
    u8: "u8", u16: "u16", u32: "u32", u64: "u64", u128: "u128",
    i8: "i8", i16: "i16", i32: "i32", i64: "i64", i128: "i128",
    f32: "f32", f64: "f64",
    String: "String", Vec<u8>: "bytes",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_names_never_change() {
        let ids = [
            wire_id("shop.Order", 1),
            wire_id("shop.Order", 2),
            wire_id("shop.Order", 256),
            wire_id("", 0),
            wire_id(<()>::NAME, <()>::VERSION),
        ];
        assert_eq!(ids, GOLDEN);
    }

    /// Nodes of all versions of the crate agree on these numbers, which another program has computed.
    const GOLDEN: [u64; 5] = [
        0x719a_0edb_7f86_4994,
        0x71a4_40db_7f8e_f30f,
        0x719d_73db_7f89_2b0a,
        0xd94d_1218_6c0f_2fb7,
        0xe811_e8e4_862e_4d3f,
    ];

    #[test]
    fn a_name_does_not_run_into_the_version() {
        assert_ne!(wire_id("a", 0x0062), wire_id("ab", 0));
    }

    #[test]
    fn names_have_1_to_64_plain_bytes() {
        for name in ["a", "9", "shop.Order", "a-b_c.d", "a.".repeat(32).as_str()] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".a", "-a", "_a", "a b", "a::b", "é", "a/b", "a".repeat(65).as_str()] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name(<Vec<u8>>::NAME) && is_name(<()>::NAME));
    }
}
