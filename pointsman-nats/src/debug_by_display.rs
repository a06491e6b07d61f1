//! Errors show their sentence where a program prints them by `Debug`: when `main` returns them, and when they are
//! unwrapped.

/// Implements `Debug` for error types so.
macro_rules! debug_by_display {
    ($type:ident) => {
        /// Shows the sentence of the error.
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use debug_by_display;
