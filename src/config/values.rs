//! Values of a configuration file whose type says what is allowed.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// A whole number from `MIN` to `MAX`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub fn usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub fn u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Whole<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // TOML has no number beyond this.
        serializer.serialize_i64(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Number<MIN, MAX> {
            type Value = Whole<MIN, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match MAX {
                    u64::MAX => write!(f, "a whole number of at least {MIN}"),
                    _ => write!(f, "a whole number from {MIN} to {MAX}"),
                }
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&number) {
                    Ok(Whole(number))
                } else {
                    Err(E::invalid_value(Unexpected::Unsigned(number), &self))
                }
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }
        }
        deserializer.deserialize_u64(Number)
    }
}

/// A length of time, written as `"250ms"`, `"5s"` or `"1h 30m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time with its unit, such as \"250ms\", \"5s\" or \"10m\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                match humantime::parse_duration(text) {
                    Ok(length) => Ok(Span(length)),
                    Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_str(Text)
    }
}
