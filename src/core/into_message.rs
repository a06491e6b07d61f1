//! Values that can be sent to an actor, and the compiler's words about others.

/// A value that can be sent to actors of messages `M`: any value that can be [converted](Into) to `M`.
///
/// The trait is implemented for all of them, and only there to say what is wrong where a value is none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be sent to an actor whose message is `{M}`",
    label = "no variant of `{M}` takes a `{Self}`",
    note = "add a variant that holds it and derive `Message`, or implement `From<{Self}>` for `{M}`"
)]
pub trait IntoMessage<M> {
    /// Makes the message.
    fn into_message(self) -> M;
}

#[diagnostic::do_not_recommend]
impl<T: Into<M>, M> IntoMessage<M> for T {
    #[inline]
    fn into_message(self) -> M {
        self.into()
    }
}
