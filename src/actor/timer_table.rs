//! The timers of a single actor, as data.

use crate::actor::timers::What;
use crate::sync::HashMap;
use crate::time::timers::TimerHandle;
use std::borrow::Cow;
use std::fmt;

/// The timers of a single actor.
pub(crate) struct OwnTimers<M> {
    pub(crate) next: u64,
    pub(crate) armed: HashMap<u64, Timer<M>>,
    /// The numbers of those in `armed` that have names.
    pub(crate) named: HashMap<TimerKey, u64>,
}

impl<M> Default for OwnTimers<M> {
    fn default() -> Self {
        Self { next: 0, armed: HashMap::default(), named: HashMap::default() }
    }
}

impl<M> OwnTimers<M> {
    /// The number of the timer in `armed` that has this key or name.
    pub(crate) fn number(&self, key: &TimerKey) -> Option<u64> {
        self.named.get(key).copied().or_else(|| match key.0 {
            Key::Number(number) => self.armed.contains_key(&number).then_some(number),
            Key::Name { .. } => None,
        })
    }
}

pub(crate) struct Timer<M> {
    pub(crate) what: What<M>,
    pub(crate) handle: TimerHandle,
    pub(crate) name: Option<TimerKey>,
}

/// Says which timer of an actor is meant; see [`Context::timers`](crate::Context::timers).
///
/// A start returns the key of its timer, which no other timer ever has. A name is a key, too: it is made from a text, a
/// number, or both: `"flush"`, `7`, `("session", 7)`. A text that is part of the program costs no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimerKey(Key);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    /// The timer's own number.
    Number(u64),
    Name {
        text: Cow<'static, str>,
        number: Option<u64>,
    },
}

impl TimerKey {
    pub(crate) fn of_number(number: u64) -> Self {
        Self(Key::Number(number))
    }

    fn name(text: impl Into<Cow<'static, str>>, number: Option<u64>) -> Self {
        Self(Key::Name { text: text.into(), number })
    }
}

impl From<&TimerKey> for TimerKey {
    fn from(key: &TimerKey) -> Self {
        key.clone()
    }
}

impl From<&'static str> for TimerKey {
    fn from(text: &'static str) -> Self {
        Self::name(text, None)
    }
}

impl From<String> for TimerKey {
    fn from(text: String) -> Self {
        Self::name(text, None)
    }
}

impl From<u64> for TimerKey {
    fn from(number: u64) -> Self {
        Self::name("", Some(number))
    }
}

impl From<(&'static str, u64)> for TimerKey {
    fn from((text, number): (&'static str, u64)) -> Self {
        Self::name(text, Some(number))
    }
}

impl fmt::Display for TimerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Key::Number(number) => write!(f, "#{number}"),
            Key::Name { text, number: None } => f.write_str(text),
            Key::Name { text, number: Some(number) } if text.is_empty() => number.fmt(f),
            Key::Name { text, number: Some(number) } => write!(f, "{text} {number}"),
        }
    }
}
