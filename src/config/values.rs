//! The values of a configuration file have types that define what is allowed.

use super::file::DispatcherSection;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

/// A whole number from `MIN` to `MAX`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(crate) fn usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    pub(crate) fn u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Whole<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // TOML has no number beyond `i64::MAX`.
        serializer.serialize_i64(i64::try_from(self.0).unwrap_or(i64::MAX))
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Number<MIN, MAX> {
            type Value = Whole<MIN, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if MAX >= i64::MAX as u64 {
                    write!(f, "a whole number of at least {MIN}")
                } else {
                    write!(f, "a whole number from {MIN} to {MAX}")
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
pub(crate) struct Span(pub Duration);

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

/// A number of things, at least one.
pub(crate) type Count = Whole<1, { i64::MAX as u64 }>;

/// The seed of random choices. TOML has no number beyond `i64::MAX`: larger seeds are written as texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(pub u64);

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(self.0) {
            Ok(number) => serializer.serialize_i64(number),
            Err(_) => serializer.collect_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(NumberOr { text: "a number in quotes", parse: |text| text.parse().ok() })
            .map(Seed)
    }
}

/// The number of dead letters logged before each pause; `None` for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LetterCount(pub Option<u64>);

impl Serialize for LetterCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(count) => serializer.serialize_i64(i64::try_from(count).unwrap_or(i64::MAX)),
            None => serializer.serialize_str("all"),
        }
    }
}

impl<'de> Deserialize<'de> for LetterCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = NumberOr { text: "\"all\"", parse: |text| (text == "all").then_some(u64::MAX) };
        let count = deserializer.deserialize_any(all)?;
        Ok(Self((count != u64::MAX).then_some(count)))
    }
}

/// A whole number, or a text that stands for one.
struct NumberOr {
    /// The allowed texts.
    text: &'static str,
    parse: fn(&str) -> Option<u64>,
}

impl Visitor<'_> for NumberOr {
    type Value = u64;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number of at least 0, or {}", self.text)
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        (self.parse)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// The name of a dispatcher, or the settings of a dispatcher for this router alone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PoolDispatcher {
    Named(String),
    Own(Box<DispatcherSection>),
}

impl Serialize for PoolDispatcher {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Named(name) => serializer.serialize_str(name),
            Self::Own(section) => section.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PoolDispatcher {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = PoolDispatcher;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a dispatcher, or the keys of one")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<PoolDispatcher, E> {
                Ok(PoolDispatcher::Named(name.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PoolDispatcher, A::Error> {
                let section = DispatcherSection::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PoolDispatcher::Own(Box::new(section)))
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}

/// A value that is kept as a text, and may be written as a text, a number or a truth value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub String);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Plain;
        impl Visitor<'_> for Plain {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number, true or false")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_bool<E: Error>(self, is_on: bool) -> Result<Text, E> {
                Ok(Text(is_on.to_string()))
            }
        }
        deserializer.deserialize_any(Plain)
    }
}
