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
    /// The numbers of the timers in `armed` that have names.
    pub(crate) named: HashMap<TimerName, u64>,
}

impl<M> Default for OwnTimers<M> {
    fn default() -> Self {
        Self { next: 0, armed: HashMap::default(), named: HashMap::default() }
    }
}

/// The key of a single timer of a single actor, to cancel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey(pub(crate) u64);

pub(crate) struct Timer<M> {
    pub(crate) what: What<M>,
    pub(crate) handle: TimerHandle,
    pub(crate) name: Option<TimerName>,
}

/// The name of a timer, by which its actor finds it again; see [`Context::timers`](crate::Context::timers).
///
/// Made from a text, a number, or both: `"flush"`, `7`, `("session", 7)`. A text that is part of the program
/// costs no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimerName {
    text: Cow<'static, str>,
    number: Option<u64>,
}

impl From<&'static str> for TimerName {
    fn from(text: &'static str) -> Self {
        Self { text: text.into(), number: None }
    }
}

impl From<String> for TimerName {
    fn from(text: String) -> Self {
        Self { text: text.into(), number: None }
    }
}

impl From<u64> for TimerName {
    fn from(number: u64) -> Self {
        Self { text: "".into(), number: Some(number) }
    }
}

impl From<(&'static str, u64)> for TimerName {
    fn from((text, number): (&'static str, u64)) -> Self {
        Self { text: text.into(), number: Some(number) }
    }
}

impl fmt::Display for TimerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => f.write_str(&self.text),
            Some(number) if self.text.is_empty() => number.fmt(f),
            Some(number) => write!(f, "{} {number}", self.text),
        }
    }
}
