//! Errors show their sentence where a program prints them by `Debug`: when `main` returns them, and when they are
//! unwrapped.

use std::error::Error;
use std::fmt;

/// Writes the sentence of an error, and behind it those of its sources that it does not contain.
pub(crate) fn write_sentences(error: &dyn Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    f.write_str(&text)
}

/// Implements `Debug` for error types so: `debug_by_display! { SpawnError }`, or `debug_by_display! { SendError<M> }` where
/// the type has parameters.
macro_rules! debug_by_display {
    ($type:ident $(<$parameter:ident>)?) => {
        /// Shows the sentence of the error, and those of its sources.
        impl$(<$parameter>)? std::fmt::Debug for $type$(<$parameter>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::util::debug_by_display::write_sentences(self, f)
            }
        }
    };
}
pub(crate) use debug_by_display;

#[cfg(all(test, not(pointsman_loom)))]
mod tests {
    use std::error::Error;
    use std::fmt;

    struct Outer(&'static str, Option<Box<Outer>>);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|inner| inner as _)
        }
    }

    super::debug_by_display! { Outer }

    #[test]
    fn the_sentence_is_followed_by_the_sources_that_it_does_not_contain() {
        let inner = || Some(Box::new(Outer("no such file", None)));
        assert_eq!(format!("{:?}", Outer("cannot read a.toml", inner())), "cannot read a.toml: no such file");
        assert_eq!(format!("{:#?}", Outer("a.toml: no such file", inner())), "a.toml: no such file");
        assert_eq!(format!("{:?}", Outer("alone", None)), "alone");
    }
}
