//! A deserializer around another one, with a budget for nesting and for elements.
//!
//! A body of a few bytes could otherwise make a recursive type use up the stack, or a list of elements without a size go on
//! without end. The budget counts levels of nesting as serde does: an enum, a struct, an `Option` with a value, a list and
//! a newtype are a level each, and a variant with fields is two.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;

/// The levels and elements that are left to a value which is being decoded. A fault is remembered: the errors of a format need not keep it, and the
/// user's code may swallow them.
pub(crate) struct Budget {
    levels: Cell<u32>,
    elements: Cell<u64>,
    fault: Cell<Option<BudgetFault>>,
}

/// The bound that a body has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetFault {
    Depth,
    Elements,
}

impl Budget {
    pub(crate) fn new(levels: u32, elements: u64) -> Self {
        Self { levels: Cell::new(levels), elements: Cell::new(elements), fault: Cell::new(None) }
    }

    pub(crate) fn fault(&self) -> Option<BudgetFault> {
        self.fault.get()
    }

    fn enter<E: Error>(&self) -> Result<Level<'_>, E> {
        let Some(left) = self.levels.get().checked_sub(1) else {
            return Err(self.fail(BudgetFault::Depth));
        };
        self.levels.set(left);
        Ok(Level(self))
    }

    fn take_element<E: Error>(&self) -> Result<(), E> {
        let Some(left) = self.elements.get().checked_sub(1) else {
            return Err(self.fail(BudgetFault::Elements));
        };
        self.elements.set(left);
        Ok(())
    }

    fn fail<E: Error>(&self, fault: BudgetFault) -> E {
        self.fault.set(Some(fault));
        E::custom("a budget of decoding is used up")
    }

    /// A list announces no more elements than it may have, so that no code makes room for more.
    fn bound(&self, hint: Option<usize>) -> Option<usize> {
        hint.map(|hint| hint.min(usize::try_from(self.elements.get()).unwrap_or(usize::MAX)))
    }
}

/// A level of nesting, which ends with this value.
struct Level<'b>(&'b Budget);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.levels.set(self.0.levels.get() + 1);
    }
}

/// Anything of the wrapped format, with the budget.
pub(crate) struct Guarded<'b, T> {
    inner: T,
    budget: &'b Budget,
    /// Whether the number of elements comes from the bytes, and not from the type.
    is_list: bool,
}

impl<'b, T> Guarded<'b, T> {
    pub(crate) fn new(inner: T, budget: &'b Budget) -> Self {
        Self { inner, budget, is_list: false }
    }

    fn list(inner: T, budget: &'b Budget) -> Self {
        Self { inner, budget, is_list: true }
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*) as $wrap:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($argument,)* Guarded::$wrap(visitor, self.budget))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Guarded<'_, D> {
    type Error = D::Error;

    forward! {
        deserialize_any() as list;
        deserialize_bool() as new;
        deserialize_i8() as new;
        deserialize_i16() as new;
        deserialize_i32() as new;
        deserialize_i64() as new;
        deserialize_i128() as new;
        deserialize_u8() as new;
        deserialize_u16() as new;
        deserialize_u32() as new;
        deserialize_u64() as new;
        deserialize_u128() as new;
        deserialize_f32() as new;
        deserialize_f64() as new;
        deserialize_char() as new;
        deserialize_str() as new;
        deserialize_string() as new;
        deserialize_bytes() as new;
        deserialize_byte_buf() as new;
        deserialize_option() as new;
        deserialize_unit() as new;
        deserialize_unit_struct(name: &'static str) as new;
        deserialize_newtype_struct(name: &'static str) as new;
        deserialize_seq() as list;
        deserialize_tuple(len: usize) as new;
        deserialize_tuple_struct(name: &'static str, len: usize) as new;
        deserialize_map() as list;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]) as new;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) as new;
        deserialize_identifier() as new;
        deserialize_ignored_any() as list;
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! pass {
    ($($method:ident($type:ty);)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Guarded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    pass! {
        visit_bool(bool);
        visit_i8(i8);
        visit_i16(i16);
        visit_i32(i32);
        visit_i64(i64);
        visit_i128(i128);
        visit_u8(u8);
        visit_u16(u16);
        visit_u32(u32);
        visit_u64(u64);
        visit_u128(u128);
        visit_f32(f32);
        visit_f64(f64);
        visit_char(char);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let _level = self.budget.enter()?;
        self.inner.visit_some(Guarded::new(deserializer, self.budget))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let _level = self.budget.enter()?;
        self.inner.visit_newtype_struct(Guarded::new(deserializer, self.budget))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let _level = self.budget.enter()?;
        self.inner.visit_seq(Guarded { inner: access, budget: self.budget, is_list: self.is_list })
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let _level = self.budget.enter()?;
        self.inner.visit_map(Guarded { inner: access, budget: self.budget, is_list: self.is_list })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let _level = self.budget.enter()?;
        self.inner.visit_enum(Guarded::new(access, self.budget))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Guarded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Guarded::new(deserializer, self.budget))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let element = self.inner.next_element_seed(Guarded::new(seed, self.budget))?;
        // Behind the element: the look that finds the end counts for nothing, though it has no byte of its own.
        if self.is_list && element.is_some() {
            self.budget.take_element()?;
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.budget.bound(self.inner.size_hint())
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Guarded::new(seed, self.budget))?;
        if self.is_list && key.is_some() {
            self.budget.take_element()?;
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Guarded::new(seed, self.budget))
    }

    fn size_hint(&self) -> Option<usize> {
        self.budget.bound(self.inner.size_hint())
    }
}

impl<'de, 'b, A: EnumAccess<'de>> EnumAccess<'de> for Guarded<'b, A> {
    type Error = A::Error;
    type Variant = Guarded<'b, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Guarded<'b, A::Variant>), A::Error> {
        let (value, variant) = self.inner.variant_seed(Guarded::new(seed, self.budget))?;
        Ok((value, Guarded::new(variant, self.budget)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Guarded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let _level = self.budget.enter()?;
        self.inner.newtype_variant_seed(Guarded::new(seed, self.budget))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Guarded::new(visitor, self.budget))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Guarded::new(visitor, self.budget))
    }
}
