//! The values of settings as they stand in a configuration file: functions and types for serde's `with`.
//!
//! Each says what it was given and what is allowed.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use toml::Value;

/// A section of keys. A list is refused: serde would take one as the keys in the order of the struct's fields.
#[derive(Default)]
pub(crate) struct Section<T = toml::Table>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Section<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Keys<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a section with keys")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Keys(PhantomData)).map(Section)
    }
}

pub(crate) fn section<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Section::deserialize(deserializer).map(|section| section.0)
}

pub(crate) fn some_section<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    section(deserializer).map(Some)
}

pub(crate) fn named_sections<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let sections = BTreeMap::<String, Section<T>>::deserialize(deserializer)?;
    Ok(sections.into_iter().map(|(name, section)| (name, section.0)).collect())
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads what `take` accepts.
fn read<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    allowed: &str,
    take: impl FnOnce(&Value) -> Option<T>,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    take(&value).ok_or_else(|| Error::custom(format!("it is {value}: must be {allowed}")))
}

fn number(value: &Value) -> Option<u64> {
    value.as_integer().and_then(|number| u64::try_from(number).ok())
}

/// Writes a number. TOML has none beyond `i64::MAX`.
fn write_number<S: Serializer>(number: u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(i64::try_from(number).unwrap_or(i64::MAX))
}

/// An `N` from `MIN` to `MAX`, both included, or an option of one.
pub(crate) struct Whole<N, const MIN: u64, const MAX: u64>(PhantomData<N>);

/// Any number of things.
pub(crate) type Usize = Whole<usize, 0, { i64::MAX as u64 }>;
pub(crate) type U32 = Whole<u32, 0, { u32::MAX as u64 }>;
/// A number of things, at least one.
pub(crate) type Count = Whole<usize, 1, { i64::MAX as u64 }>;
pub(crate) type CountU32 = Whole<u32, 1, { u32::MAX as u64 }>;
pub(crate) type CountU64 = Whole<u64, 1, { i64::MAX as u64 }>;

impl<N: TryFrom<u64> + TryInto<u64>, const MIN: u64, const MAX: u64> Whole<N, MIN, MAX> {
    pub(crate) fn serialize<T: Copy + Into<Option<N>>, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match (*value).into() {
            Some(number) => write_number(number.try_into().unwrap_or(u64::MAX), serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: From<N>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let allowed = match MAX {
            _ if MAX == i64::MAX as u64 => format!("a whole number of at least {MIN}"),
            _ => format!("a whole number from {MIN} to {MAX}"),
        };
        let within = |number: &u64| (MIN..=MAX).contains(number);
        read(deserializer, &allowed, |value| Some(N::try_from(number(value).filter(within)?).ok()?.into()))
    }
}

/// A length of time, written as `"250ms"`, `"5s"` or `"1h 30m"`, or an option of one.
pub(crate) struct Span;

impl Span {
    pub(crate) fn serialize<T: Copy + Into<Option<Duration>>, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match (*value).into() {
            Some(length) => serializer.collect_str(&humantime::format_duration(length)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: From<Duration>, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
        let allowed = "a length of time with its unit, such as \"250ms\", \"5s\" or \"10m\"";
        read(d, allowed, |value| Some(humantime::parse_duration(value.as_str()?).ok()?.into()))
    }
}

/// A length of time, or `"never"` for `None`.
pub(crate) mod span_or_never {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match length {
            Some(length) => Span::serialize(length, serializer),
            None => serializer.serialize_str("never"),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let allowed =
            "a length of time of at least 2ms with its unit, such as \"250ms\" or \"5s\", or \"never\"";
        read(deserializer, allowed, |value| match value.as_str()? {
            "never" => Some(None),
            text => humantime::parse_duration(text).ok().filter(|length| length.as_millis() >= 2).map(Some),
        })
    }
}

/// The seed of random choices. TOML has no number beyond `i64::MAX`: larger seeds are written as texts.
pub(crate) mod seed {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(seed: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match seed {
            Some(seed) if i64::try_from(*seed).is_err() => serializer.collect_str(seed),
            Some(seed) => write_number(*seed, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        read(deserializer, "a whole number of at least 0, or a number in quotes", |value| match value {
            Value::String(text) => text.parse().ok().map(Some),
            value => number(value).map(Some),
        })
    }
}

/// A number, or `"all"` for `None`.
pub(crate) mod number_or_all {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(count: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match count {
            Some(count) => write_number(*count, serializer),
            None => serializer.serialize_str("all"),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        read(deserializer, "a whole number of at least 0, or \"all\"", |value| match value.as_str() {
            Some(text) => (text == "all").then_some(None),
            None => number(value).map(Some),
        })
    }
}

/// Reads texts, which may be written as texts, numbers or truth values.
pub(crate) fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    struct Text(String);
    impl<'de> Deserialize<'de> for Text {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            read(deserializer, "a text, a number, true or false", |value| match value {
                Value::String(text) => Some(Text(text.clone())),
                Value::Integer(_) | Value::Boolean(_) => Some(Text(value.to_string())),
                // Not as TOML writes it: 2.0 is 2.
                Value::Float(number) => Some(Text(number.to_string())),
                _ => None,
            })
        }
    }
    let texts = BTreeMap::<String, Text>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|(name, text)| (name, text.0)).collect())
}

/// Reads the numbers of cores.
pub(crate) fn cores<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<usize>>, D::Error> {
    #[derive(Deserialize)]
    struct Core(#[serde(with = "Whole::<usize, 0, 65535>")] usize);
    Ok(Some(Vec::deserialize(deserializer)?.into_iter().map(|Core(core)| core).collect()))
}
