//! What `#[derive(HashKey)]` feeds, compared with what the fields feed themselves.

use pointsman::prelude::*;
use pointsman::routing::{ConsistentHashing, HashKey, KeySink, Keyed, RouterValue};
use std::marker::PhantomData;

fn hash_of(feed: impl Fn(&mut KeySink)) -> u64 {
    let mut sink = KeySink::new();
    feed(&mut sink);
    sink.finish()
}

#[derive(HashKey, Clone)]
struct Customer {
    region: u16,
    name: String,
}

#[derive(HashKey)]
#[hash_key(crate = "::pointsman")]
struct Pair(u8, &'static str);

#[derive(HashKey)]
struct Cached {
    name: String,
    #[hash_key(skip)]
    _length: usize,
}

#[test]
fn a_struct_feeds_its_fields_in_their_order() {
    let customer = Customer { region: 7, name: "Ada".into() };
    assert_eq!(customer.key_hash(), (7_u16, "Ada").key_hash());
    assert_eq!(Pair(1, "b").key_hash(), (1_u8, "b").key_hash());
    assert_ne!(Pair(1, "b").key_hash(), Pair(2, "b").key_hash());
    let cached = |length| Cached { name: "Ada".into(), _length: length }.key_hash();
    assert_eq!((cached(3), cached(4)), ("Ada".key_hash(), "Ada".key_hash()));
}

#[derive(HashKey)]
enum Place {
    Nowhere,
    Street(String, u32),
    Point { x: i64, y: i64 },
}

#[test]
fn an_enum_feeds_the_number_of_the_variant_first() {
    assert_eq!(Place::Nowhere.key_hash(), 0_u32.key_hash());
    assert_eq!(Place::Street("Elm".into(), 5).key_hash(), (1_u32, "Elm", 5_u32).key_hash());
    assert_eq!(Place::Point { x: -1, y: 2 }.key_hash(), (2_u32, -1_i64, 2_i64).key_hash());
}

#[derive(HashKey)]
enum CacheMsg {
    Get(#[hash_key(key)] String, ReplyTo<u64>),
    Put {
        #[hash_key(key)]
        name: String,
        _value: u64,
    },
}

#[test]
fn the_marked_fields_alone_are_the_key_of_a_message_whatever_its_variant() {
    let put = |value| CacheMsg::Put { name: "a".into(), _value: value }.key_hash();
    assert_eq!((put(1), put(2)), ("a".key_hash(), "a".key_hash()));
    let system = System::builder("marked").build().unwrap();
    let asked = ActorRef::from_fn(|message: CacheMsg| {
        let hash = message.key_hash();
        if let CacheMsg::Get(_, reply_to) = message {
            let _ = reply_to.send(hash);
        }
    });
    let router = RouterValue::new(&system, ConsistentHashing::new()).unwrap().with_routees([&asked]);
    let answers = router.ask_all_with(|reply_to| CacheMsg::Get("a".into(), reply_to)).wait().unwrap();
    assert_eq!(answers[0].1, Ok("a".key_hash()));
}

/// Holds more than keys.
trait Named {
    type Id;
}
struct Ship;
impl Named for Ship {
    type Id = u32;
}

#[derive(HashKey)]
struct Of<T: Named, K> {
    id: T::Id,
    keys: Vec<K>,
    #[hash_key(skip)]
    _of: PhantomData<T>,
}

#[derive(HashKey)]
struct Borrowed<'a, const N: usize> {
    words: [&'a str; N],
}

/// Recursive, and generic.
#[derive(HashKey)]
enum List<T> {
    End,
    Cons(T, Box<List<T>>),
}

#[derive(HashKey)]
#[allow(dead_code)] // nothing can make it
enum Never {}

#[test]
fn generic_types_ask_for_keys_where_they_feed_them() {
    let of = Of::<Ship, &str> { id: 5, keys: vec!["a"], _of: PhantomData };
    assert_eq!(of.key_hash(), (5_u32, vec!["a"]).key_hash());
    assert_eq!(Borrowed { words: ["a", "b"] }.key_hash(), ["a", "b"].key_hash());
    let list = List::Cons(7_u8, Box::new(List::End));
    assert_eq!(list.key_hash(), (1_u32, 7_u8, 0_u32).key_hash());
    fn is_key<K: HashKey>() {}
    is_key::<Never>();
}

#[test]
fn derived_keys_are_fed_by_envelopes_and_long_ones_are_hashed_the_same() {
    let customer = Customer { region: 1, name: "x".repeat(1000) };
    let keyed = Keyed { key: customer.clone(), message: () };
    assert_eq!(keyed.key_hash(), customer.key_hash());
    let by_hand = hash_of(|sink| {
        1_u16.feed(sink);
        "x".repeat(1000).feed(sink);
    });
    assert_eq!(customer.key_hash(), by_hand);
}

/// Names that the derive uses itself.
#[derive(HashKey)]
struct Awkward {
    r#type: u8,
    sink: u8,
    to: u8,
}

#[test]
fn names_of_fields_do_not_meet_those_of_the_derive() {
    assert_eq!(Awkward { r#type: 1, sink: 2, to: 3 }.key_hash(), (1_u8, 2_u8, 3_u8).key_hash());
}
