//! Messages to bytes and back: postcard, within limits. A panic in the user's `Serialize` or `Deserialize` is caught.

use crate::remote::guarded_deserializer::{Budget, BudgetFault, Guarded};
use crate::util::debug_by_display::debug_by_display;
use crate::util::panic::{discard, drop_guarded};
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The levels of nesting that a value may have, unless a setting says otherwise.
pub(crate) const DEPTH_MAX: u32 = 64;

/// The elements of lists and maps that a body may have beyond the number of its bytes: those of elements without a size.
pub(crate) const EXTRA_ELEMENTS: u64 = 64;

/// A value could not be encoded.
pub(crate) enum EncodeError {
    /// It has `size` bytes, and `max` are allowed.
    TooLarge { size: usize, max: usize },
    /// Its `Serialize` has returned an error, or asked for a kind of value that the format does not have.
    Refused { why: String },
    /// Its `Serialize` has panicked. The caller resumes the panic when it has undone what the encoding began.
    Panicked(Box<dyn Any + Send>),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::TooLarge { size, max } => {
                write!(
                    f,
                    "the value has {size} bytes when encoded, and at most {max} are allowed: send less at once"
                )
            }
            EncodeError::Refused { why } => {
                write!(f, "the value cannot be encoded: {why}; mend its `Serialize`, or send another type")
            }
            EncodeError::Panicked(payload) => write!(f, "`Serialize` panicked: {}", text_of(&**payload)),
        }
    }
}

impl std::error::Error for EncodeError {}

debug_by_display! { EncodeError }

/// The bytes of a body are no value of the type.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// The bytes end too early, or are no encoding of this type, or its `Deserialize` refuses the value.
    Malformed { why: String },
    /// The value is nested more deeply than `max` levels.
    TooDeep { max: u32 },
    /// The lists and maps have more elements than `max`.
    TooManyElements { max: u64 },
    /// `bytes` bytes stand behind the value.
    Leftover { bytes: usize },
    /// The `Deserialize` of the type panicked.
    Panicked { text: String },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Malformed { why } => write!(
                f,
                "the bytes are no value of the type: {why}; compare the versions of the type on both nodes"
            ),
            DecodeError::TooDeep { max } => {
                write!(f, "the value is nested more deeply than {max} levels: send a flatter one")
            }
            DecodeError::TooManyElements { max } => {
                write!(f, "the value has more than {max} elements, which is more than its bytes can hold")
            }
            DecodeError::Leftover { bytes } => write!(
                f,
                "{bytes} bytes stand behind the value; compare the versions of the type on both nodes"
            ),
            DecodeError::Panicked { text } => write!(f, "`Deserialize` panicked: {text}"),
        }
    }
}

impl std::error::Error for DecodeError {}

debug_by_display! { DecodeError }

/// Appends the encoded value to `to`, and returns its size. After an error `to` is as it was before.
pub(crate) fn encode<T: Serialize + ?Sized>(
    value: &T,
    to: &mut Vec<u8>,
    max: usize,
) -> Result<usize, EncodeError> {
    let before = to.len();
    let sink = Bounded { to: &mut *to, size: 0, max };
    let outcome = catch_unwind(AssertUnwindSafe(|| postcard::serialize_with_flavor(value, sink)));
    let fault = match outcome {
        Ok(Ok(size)) if size <= max => return Ok(size),
        Ok(Ok(size)) => EncodeError::TooLarge { size, max },
        Ok(Err(error)) => EncodeError::Refused { why: error.to_string() },
        Err(payload) => EncodeError::Panicked(payload),
    };
    to.truncate(before);
    Err(fault)
}

/// Decodes a value that has all these bytes.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    decode_within(bytes, DEPTH_MAX)
}

/// Decodes a value that has all these bytes, and at most so many levels.
pub(crate) fn decode_within<T: DeserializeOwned>(bytes: &[u8], depth: u32) -> Result<T, DecodeError> {
    let elements = bytes.len() as u64 + EXTRA_ELEMENTS;
    let budget = Budget::new(depth, elements);
    let run = || {
        let mut deserializer = postcard::Deserializer::from_bytes(bytes);
        let value = T::deserialize(Guarded::new(&mut deserializer, &budget))?;
        Ok::<_, postcard::Error>((value, deserializer.finalize()?.len()))
    };
    let outcome = catch_unwind(AssertUnwindSafe(run));
    // The user's code may have swallowed the error, so the fault is looked at first.
    let fault = budget.fault().map(|fault| match fault {
        BudgetFault::Depth => DecodeError::TooDeep { max: depth },
        BudgetFault::Elements => DecodeError::TooManyElements { max: elements },
    });
    match outcome {
        Ok(Ok((value, 0))) if fault.is_none() => Ok(value),
        Ok(Ok((value, bytes))) => {
            drop_guarded(value);
            Err(fault.unwrap_or(DecodeError::Leftover { bytes }))
        }
        Ok(Err(error)) => Err(fault.unwrap_or_else(|| DecodeError::Malformed { why: error.to_string() })),
        Err(payload) => {
            let text = text_of(&*payload);
            discard(payload);
            Err(DecodeError::Panicked { text })
        }
    }
}

/// The text of a panic, if it has one.
fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no text").to_owned()
}

/// Keeps as much as is allowed and counts the rest, so that an error can say how large the value is.
struct Bounded<'a> {
    to: &'a mut Vec<u8>,
    size: usize,
    max: usize,
}

impl Flavor for Bounded<'_> {
    type Output = usize;

    #[inline]
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.size = self.size.saturating_add(data.len());
        if self.size <= self.max {
            self.to.extend_from_slice(data);
        }
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.size = self.size.saturating_add(1);
        if self.size <= self.max {
            self.to.push(data);
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::*;
    use serde::{Deserialize, Deserializer};
    use std::collections::{BTreeMap, HashMap};

    #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
    enum Sample {
        Unit,
        One(u64),
        Two(i32, String),
        Named { bytes: Vec<u8>, inner: Option<Box<Sample>>, map: BTreeMap<String, i16> },
        Many(Vec<Sample>),
    }

    fn sample() -> impl Strategy<Value = Sample> {
        let leaf = prop_oneof![
            Just(Sample::Unit),
            any::<u64>().prop_map(Sample::One),
            (any::<i32>(), ".{0,8}").prop_map(|(number, text)| Sample::Two(number, text)),
        ];
        leaf.prop_recursive(6, 40, 5, |inner| {
            let named =
                (vec(any::<u8>(), 0..9), option::of(inner.clone()), btree_map(".{0,4}", any::<i16>(), 0..4));
            prop_oneof![
                vec(inner, 0..5).prop_map(Sample::Many),
                named.prop_map(|(bytes, inner, map)| Sample::Named {
                    bytes,
                    inner: inner.map(Box::new),
                    map
                }),
            ]
        })
    }

    fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(value, &mut bytes, 1 << 20).expect("it is encoded");
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        #[test]
        fn values_come_back(value in sample()) {
            let bytes = encoded(&value);
            prop_assert_eq!(&bytes, &postcard::to_allocvec(&value).unwrap());
            prop_assert_eq!(decode::<Sample>(&bytes), Ok(value));
        }

        #[test]
        fn what_is_cut_off_or_added_is_an_error(value in sample(), at in any::<prop::sample::Index>(), more in 0u8..) {
            let mut bytes = encoded(&value);
            let cut = at.index(bytes.len());
            prop_assert!(decode::<Sample>(&bytes[..cut]).is_err());
            bytes.push(more);
            prop_assert_eq!(decode::<Sample>(&bytes), Err(DecodeError::Leftover { bytes: 1 }));
        }

        #[test]
        fn any_bytes_are_a_value_or_an_error(bytes in vec(any::<u8>(), 0..80)) {
            let _ = decode::<Sample>(&bytes);
            let _ = decode::<Vec<Vec<(u8, Option<String>)>>>(&bytes);
            let _ = decode::<HashMap<u16, Vec<()>>>(&bytes);
            let _ = decode::<Deep>(&bytes);
        }
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Deep(Option<Box<Deep>>);

    /// As many levels of nesting: a newtype and an `Option` each.
    fn deep(pairs: usize) -> Vec<u8> {
        let mut bytes = vec![1; pairs];
        bytes.push(0);
        bytes
    }

    #[test]
    fn nesting_ends_at_64_levels() {
        // The innermost newtype has no value in its `Option`: one level.
        let mut value = decode::<Deep>(&deep(31)).expect("63 levels");
        let mut pairs = 0;
        while let Some(inner) = value.0 {
            (value, pairs) = (*inner, pairs + 1);
        }
        assert_eq!(pairs, 31);
        let too_deep = Err(DecodeError::TooDeep { max: 64 });
        assert_eq!(decode::<Deep>(&deep(32)), too_deep);
        assert_eq!(decode::<Deep>(&deep(1_000_000)), too_deep);
        // The depth is a setting.
        assert!(decode_within::<Deep>(&deep(3), 7).is_ok());
        assert_eq!(decode_within::<Deep>(&deep(3), 6), Err(DecodeError::TooDeep { max: 6 }));

        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        enum List {
            End,
            More(Box<List>),
        }
        // The enum and its variant are a level each, and the innermost enum is one.
        let more = |count: usize| [vec![1; count], vec![0]].concat();
        assert!(decode::<List>(&more(31)).is_ok());
        assert_eq!(decode::<List>(&more(32)), Err(DecodeError::TooDeep { max: 64 }));
        // 64 levels exactly: `Option` around 63.
        assert!(decode::<Option<Deep>>(&deep(32)).is_ok());
        assert_eq!(decode::<Option<Option<Deep>>>(&deep(33)), Err(DecodeError::TooDeep { max: 64 }));
    }

    #[test]
    fn elements_without_a_size_end_with_the_budget() {
        let list = |len: u64| postcard::to_allocvec(&len).unwrap();
        // One byte, and 64 more.
        assert_eq!(decode::<Vec<()>>(&list(65)).map(|list| list.len()), Ok(65));
        assert_eq!(decode::<Vec<()>>(&list(66)), Err(DecodeError::TooManyElements { max: 65 }));
        assert_eq!(decode::<Vec<()>>(&list(u64::MAX)), Err(DecodeError::TooManyElements { max: 74 }));
        assert_eq!(decode::<HashMap<(), ()>>(&list(66)), Err(DecodeError::TooManyElements { max: 65 }));
        // Many lists without elements are no more elements than bytes.
        assert_eq!(
            decode::<Vec<Vec<u8>>>(&encoded(&vec![Vec::<u8>::new(); 5000])).map(|list| list.len()),
            Ok(5000)
        );
    }

    #[test]
    fn a_length_beyond_the_bytes_makes_no_room() {
        /// Makes room as it is told to.
        struct Trusting(usize);
        impl<'de> Deserialize<'de> for Trusting {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = Trusting;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a list")
                    }
                    fn visit_seq<A: serde::de::SeqAccess<'de>>(
                        self,
                        access: A,
                    ) -> Result<Trusting, A::Error> {
                        Ok(Trusting(access.size_hint().unwrap_or(0)))
                    }
                }
                deserializer.deserialize_seq(Visitor)
            }
        }
        // The format bounds the announcement by the bytes, and the budget would otherwise. The elements are left over.
        let announced = |len: u64| {
            let bytes = [postcard::to_allocvec(&len).unwrap(), vec![0; 8]].concat();
            let mut deserializer = postcard::Deserializer::from_bytes(&bytes);
            let budget = Budget::new(DEPTH_MAX, 5);
            Trusting::deserialize(Guarded::new(&mut deserializer, &budget)).map(|list| list.0)
        };
        assert_eq!([4, 8, 9, u64::MAX].map(announced), [Ok(4), Ok(5), Ok(0), Ok(0)]);
        for len in [9, u64::from(u32::MAX), u64::MAX] {
            let bytes = [postcard::to_allocvec(&len).unwrap(), vec![0; 8]].concat();
            assert!(matches!(decode::<Vec<u8>>(&bytes), Err(DecodeError::Malformed { .. })), "{len}");
            assert!(matches!(decode::<String>(&bytes), Err(DecodeError::Malformed { .. })), "{len}");
        }
    }

    #[test]
    fn a_fault_that_the_type_swallows_is_one_all_the_same() {
        #[derive(Debug, PartialEq)]
        struct Lenient;
        impl<'de> Deserialize<'de> for Lenient {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Vec::<()>::deserialize(deserializer).map_or(Ok(Lenient), |_| Ok(Lenient))
            }
        }
        assert_eq!(decode::<Lenient>(&[127]), Err(DecodeError::TooManyElements { max: 65 }));
        assert_eq!(decode::<Lenient>(&[1]), Ok(Lenient));
    }

    struct Panics;

    impl Serialize for Panics {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("planted in serialize")
        }
    }

    impl<'de> Deserialize<'de> for Panics {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("planted in deserialize")
        }
    }

    #[test]
    fn panics_of_user_code_are_caught() {
        let mut bytes = vec![7];
        let fault = encode(&(1u8, Panics), &mut bytes, 100).expect_err("it panics");
        assert!(matches!(fault, EncodeError::Panicked(_)));
        assert_eq!(fault.to_string(), "`Serialize` panicked: planted in serialize");
        assert_eq!(bytes, [7]);
        let fault = decode::<Panics>(&[]).err();
        assert_eq!(fault, Some(DecodeError::Panicked { text: "planted in deserialize".to_owned() }));
    }

    #[test]
    fn a_value_that_is_too_large_says_how_large_it_is_and_leaves_nothing() {
        let mut bytes = vec![7];
        assert!(matches!(encode(&[1u8; 10], &mut bytes, 10), Ok(10)));
        bytes.truncate(1);
        let fault = encode(&[1u8; 11], &mut bytes, 10).expect_err("a byte too many");
        assert!(matches!(fault, EncodeError::TooLarge { size: 11, max: 10 }), "{fault}");
        assert_eq!(bytes, [7]);
    }

    #[test]
    fn an_error_of_the_type_leaves_nothing() {
        struct Refuses;
        impl Serialize for Refuses {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("no"))
            }
        }
        let mut bytes = Vec::new();
        let fault = encode(&(1u8, Refuses), &mut bytes, 10).expect_err("it refuses");
        assert!(matches!(fault, EncodeError::Refused { .. }), "{fault}");
        assert!(bytes.is_empty());
    }
}
