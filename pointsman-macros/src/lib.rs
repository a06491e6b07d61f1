//! The derive macros of [pointsman](https://docs.rs/pointsman). Use them through that crate.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod message;

use proc_macro::TokenStream;

/// Lets an enum be an actor's message: writes the conversions and `Answerable` that one would write by hand.
///
/// ```ignore
/// // Not compiled here, since this crate does not know pointsman; it is in pointsman's own documentation.
/// #[derive(Message)]
/// enum CacheMsg {
///     Get(Call<Get>),
///     Put(Put),
///     Sweep,
/// }
///
/// // What that writes:
/// impl From<Call<Get>> for CacheMsg { /* CacheMsg::Get */ }      // for `cache.ask(Get { key })`
/// impl From<Put> for CacheMsg { /* CacheMsg::Put */ }            // for `cache.tell(Put { key, value })`
/// impl pointsman::topology::Carries<Put> for CacheMsg { /* the `Put` again, or the message */ } // and one for the call
/// impl pointsman::Answerable for CacheMsg {
///     fn fork(&mut self, attempt: &pointsman::Attempt) -> bool { /* the port in `Get`; none in the others */ }
/// }
/// ```
///
/// # Conversions
/// A variant with exactly one field, not named, gets a `From` of the field's type, and a `Carries`. Variants with none, with
/// several, or with a named field get none.
///
/// Two variants with the same field type can't both have one, and neither can two whose types are bare type
/// parameters, which may stand for the same type: that is an error until all of them but one are marked with
/// `#[message(skip)]`. The derive sees how types are spelled, not what they are: for an alias of another
/// variant's type, or a type parameter beside a type that it may stand for, it is the compiler that reports
/// conflicting implementations (E0119), at the field, and `skip` helps just the same.
///
/// # Reply ports
/// A field is a reply port if its type is called `Call` or `ReplyTo`, whatever the path before, or if it is
/// marked with `#[message(reply)]`; then its type must implement `Answerable`. `Expiring` counts as one, since it says
/// in the same way whether anybody still wants the message. A variant has one port at most,
/// since a message has one answer: with several of them, the one to fork must be marked.
///
/// # Attributes
/// - on a variant: `#[message(skip)]` writes no `From` for it.
/// - on a field: `#[message(reply)]` makes it the variant's reply port.
/// - on the enum: `#[message(crate = "path")]` is where to find pointsman, if not at `::pointsman`; for a
///   library that re-exports it.
///
/// A struct is taken like an enum's only variant. Unions are refused.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    message::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
