//! The derive macros of [pointsman](https://docs.rs/pointsman). Use them through that crate.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod hash_key;
mod message;
mod wire;

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
/// impl pointsman::topology::Wraps<Put> for CacheMsg { /* the `Put` again, or the message */ } // and one for the call
/// impl pointsman::ask::Answerable for CacheMsg {
///     fn fork(&mut self, attempt: &pointsman::ask::Attempt) -> bool { /* the port in `Get`; none in the others */ }
/// }
/// ```
///
/// # Conversions
/// A variant with exactly one field, not named, gets a `From` of the field's type, and a `Wraps`. Variants with none, with
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
/// in the same way whether an asker still wants the message. A variant has one port at most,
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

/// Makes a struct or an enum a key for consistent hashing: writes the `HashKey` that can be written by hand.
///
/// ```ignore
/// // Not compiled here, since this crate does not know pointsman; it is in pointsman's own documentation.
/// #[derive(HashKey)]
/// struct Customer { region: u16, name: String }              // both fields are the key
///
/// #[derive(HashKey)]
/// enum CacheMsg {                                             // a message: the marked fields are its key
///     Get(#[hash_key(key)] String, ReplyTo<Option<u64>>),
///     Put { #[hash_key(key)] name: String, value: u64 },
/// }
///
/// // What that writes:
/// impl pointsman::routing::HashKey for CacheMsg {
///     fn feed(&self, to: &mut pointsman::routing::KeySink) { /* the `String` of either */ }
/// }
/// ```
///
/// # What is the key
/// - Where no field is marked, *all* fields are, in the order in which they are declared. In an enum the number of the
///   variant goes first, from 0 in the order of declaration, as `u32`; so add variants at the end, or keys move.
/// - Where a field is marked `#[hash_key(key)]`, the marked fields *alone* are, and the number of the variant is not: so
///   that `Get` and `Put` of one name meet the same routee. Then each variant must have one.
///
/// Fields of the key must implement `HashKey`. Equal keys must be fed as equal bytes, so their fields have types of the
/// same encoding: a `u32` in one variant and a `u64` in another are different keys. The encoding is fixed: the bytes are
/// those of the fields, one after the other, as `HashKey` documents them.
///
/// # Attributes
/// - on a field: `#[hash_key(key)]` makes it (a part of) the key; `#[hash_key(skip)]` leaves it out where no field is
///   marked.
/// - on the type: `#[hash_key(crate = "path")]` is where to find pointsman, if not at `::pointsman`; for a library that
///   re-exports it.
///
/// Each type parameter that a field of the key uses is required to be a `HashKey`. Unions are refused, and so are structs
/// without a field that is fed.
#[proc_macro_derive(HashKey, attributes(hash_key))]
pub fn derive_hash_key(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    hash_key::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Gives an enum or a struct the name and the version by which other nodes know it: writes the `Wire` that can be written
/// by hand.
///
/// ```ignore
/// // Not compiled here, since this crate does not know pointsman; it is in pointsman's own documentation.
/// #[derive(Wire, Serialize, Deserialize)]
/// #[wire(name = "shop.Order", version = 2)]
/// struct Order { article: u64, amount: u32 }
///
/// // What that writes:
/// impl pointsman::remote::Wire for Order {
///     const NAME: &'static str = "shop.Order";
///     const VERSION: u16 = 2;
/// }
/// ```
///
/// # Attributes
/// All of them stand on the type:
///
/// - `name = "shop.Order"` is the name, which is required. It has 1 to 64 ASCII letters, digits, `.`, `_` and `-`, and
///   begins with a letter or digit. It belongs to the wire format: a type that is moved or renamed keeps it.
/// - `version = 2` is the version, from 1, and 1 if it is left out. Two versions of a name are two types.
/// - `crate = "path"` is where to find pointsman, if not at `::pointsman`; for a library that re-exports it.
///
/// Unions and types with parameters are refused.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn derive_wire(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    wire::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
