//! A failure is the reason why an actor failed.

use crate::util::panic::Guarded;
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::panic::resume_unwind;

/// The reason why an actor failed, as its parent sees it.
///
/// Any error converts into a `Failure`, so handlers use `?` for errors that they cannot handle:
///
/// ```
/// use pointsman::prelude::*;
///
/// fn read(line: &str) -> Result<u32, Failure> {
///     let number: u32 = line.parse()?; // a ParseIntError becomes a Failure
///     if number > 100 {
///         return Err(Failure::msg("number above 100"));
///     }
///     Ok(number)
/// }
/// assert!(read("x").unwrap_err().is::<std::num::ParseIntError>());
/// ```
///
/// As with `anyhow`, a `Failure` is itself no [`Error`]: otherwise this conversion could not exist.
pub struct Failure(Box<Inner>);

struct Inner {
    kind: FailureKind,
    /// Guarded, since failures are dropped in turns: a destructor that panics must not unwind through a turn.
    cause: Guarded<Cause>,
}

enum Cause {
    Error(Box<dyn Error + Send>),
    Panic(Box<dyn Any + Send>),
    Text(String),
}

/// The situation in which an actor failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The recipe or [`started`](crate::Actor::started) failed.
    Initialization,
    /// A handler or hook returned an error.
    Error,
    /// A handler or hook panicked.
    Panic,
    /// The actor was killed.
    Killed,
    /// A watched actor has ended, and the hook [`terminated`](crate::Actor::terminated) was not overridden.
    DeathPact,
}

impl Failure {
    /// Makes a failure from a text.
    pub fn msg(text: impl Into<String>) -> Self {
        Self::new(FailureKind::Error, Cause::Text(text.into()))
    }

    /// Makes a failure from an error that is already boxed.
    pub fn from_boxed(error: Box<dyn Error + Send>) -> Self {
        Self::new(FailureKind::Error, Cause::Error(error))
    }

    pub(crate) fn killed() -> Self {
        Self::new(FailureKind::Killed, Cause::Text("killed".to_owned()))
    }

    pub(crate) fn death_pact(path: &str) -> Self {
        let text = format!("watched actor {path} ended, and `terminated` was not overridden");
        Self::new(FailureKind::DeathPact, Cause::Text(text))
    }

    pub(crate) fn panic(payload: Box<dyn Any + Send>) -> Self {
        Self::new(FailureKind::Panic, Cause::Panic(payload))
    }

    /// The failure of an actor of another system, of whose cause the text alone has come.
    #[cfg(feature = "remote")]
    pub(crate) fn elsewhere(kind: FailureKind, text: String) -> Self {
        Self::new(kind, Cause::Text(text))
    }

    /// Returns the same cause as a failure of initialization.
    pub(crate) fn during_initialization(mut self) -> Self {
        self.0.kind = FailureKind::Initialization;
        self
    }

    fn new(kind: FailureKind, cause: Cause) -> Self {
        Self(Box::new(Inner { kind, cause: Guarded::new(cause) }))
    }

    /// Returns the situation in which the actor failed.
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// Returns whether the cause is an error of type `E`.
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.downcast_ref::<E>().is_some()
    }

    /// Returns the cause, if it is an error of type `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        match &*self.0.cause {
            Cause::Error(error) => error.downcast_ref::<E>(),
            _ => None,
        }
    }

    /// Returns the value that a panicking handler passed to `panic!`, if a panic is the cause.
    pub fn panic_payload(&self) -> Option<&(dyn Any + Send)> {
        match &*self.0.cause {
            Cause::Panic(payload) => Some(&**payload),
            _ => None,
        }
    }
}

/// A value that `?` makes a [`Failure`] of: any error.
///
/// The trait is implemented for all of them, and only there to say what is wrong where a value is none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no error, so `?` makes no failure of it",
    label = "no error: a text becomes a failure by `.map_err(Failure::msg)?`",
    note = "make a failure of a text: `.map_err(Failure::msg)?`; a type of your own implements `std::error::Error`"
)]
pub trait IntoFailure {
    /// Makes the failure.
    fn into_failure(self) -> Failure;
}

#[diagnostic::do_not_recommend]
impl<E: Error + Send + 'static> IntoFailure for E {
    fn into_failure(self) -> Failure {
        Failure::from_boxed(Box::new(self))
    }
}

impl<E: IntoFailure> From<E> for Failure {
    fn from(error: E) -> Self {
        error.into_failure()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.cause {
            Cause::Error(error) => error.fmt(f),
            Cause::Text(text) => f.write_str(text),
            Cause::Panic(payload) => {
                let text = payload
                    .downcast_ref::<&str>()
                    .copied()
                    .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
                write!(f, "panicked: {}", text.unwrap_or("with a payload that is no text"))
            }
        }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?}: {self})", self.kind())
    }
}

/// Runs user code; a panic becomes a failure.
pub(crate) fn guarded<R>(run: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(caught(payload)))
}

/// Makes a failure of a panic.
pub(crate) fn caught(payload: Box<dyn Any + Send>) -> Failure {
    // In a model the panic is a failure of the model, which must not go on as if an actor had failed.
    if crate::sync::EXPLORED {
        resume_unwind(payload);
    }
    Failure::panic(payload)
}
