//! What `#[derive(Message)]` writes, and what it refuses.

mod support;

use pointsman_macros::Message;
use support::{Answerable, Attempt, Call, ReplyTo, Request};

#[derive(Debug, PartialEq)]
struct Get(u32);

impl Request for Get {
    type Reply = u64;
}

#[derive(Debug, PartialEq)]
struct Put(u32);

#[derive(Message, Debug, PartialEq)]
#[message(crate = "support")]
enum CacheMsg {
    Get(Call<Get>),
    Put(Put),
    Move(Put, Put),
    Ask { key: u32, reply_to: support::ReplyTo<u8> },
    Evict { key: u32 },
    Sweep,
}

/// What the real crate's `tell` and `ask` demand.
fn tell<M>(message: impl Into<M>) -> M {
    message.into()
}

fn ask<Q: Request, M: From<Call<Q>>>(request: Q) -> M {
    M::from(Call::new(request))
}

#[test]
fn payloads_convert_to_their_variants() {
    assert_eq!(tell::<CacheMsg>(Put(1)), CacheMsg::Put(Put(1)));
    assert_eq!(ask::<_, CacheMsg>(Get(2)), CacheMsg::Get(Call::new(Get(2))));
    assert_eq!(tell::<CacheMsg>(CacheMsg::Sweep), CacheMsg::Sweep);
}

#[test]
fn fork_reaches_the_port_of_the_variant_and_tells_when_there_is_none() {
    let attempt = Attempt(7);
    let mut get = CacheMsg::from(Call::new(Get(1)));
    assert!(get.fork(&attempt));
    assert!(matches!(get, CacheMsg::Get(call) if call.reply_to.attempt == 7));
    let mut ask = CacheMsg::Ask { key: 1, reply_to: ReplyTo::new() };
    assert!(ask.fork(&attempt));
    assert!(matches!(ask, CacheMsg::Ask { key: 1, reply_to } if reply_to.attempt == 7));
    for mut silent in
        [Put(1).into(), CacheMsg::Move(Put(1), Put(2)), CacheMsg::Evict { key: 1 }, CacheMsg::Sweep]
    {
        assert!(!silent.fork(&attempt));
    }
}

#[test]
fn fork_reaches_a_message_with_a_deadline() {
    #[derive(Message)]
    #[message(crate = "crate::support")]
    enum Msg {
        Put(support::Expiring<Put>),
        Sweep,
    }

    let mut put = Msg::from(support::Expiring(Put(1)));
    assert!(put.fork(&Attempt(1)) && !put.fork(&Attempt(2)));
    assert!(!Msg::Sweep.fork(&Attempt(1)));
}

#[test]
fn a_marked_field_is_the_port_even_beside_others() {
    /// A port under a name of the user's.
    type Port = ReplyTo<u8>;

    #[derive(Message)]
    #[message(crate = "crate::support")]
    enum Msg {
        Renamed(#[message(reply)] Port),
        Two(ReplyTo<u8>, #[message(reply)] ReplyTo<u8>),
    }

    let mut renamed = Msg::from(Port::new());
    assert!(renamed.fork(&Attempt(3)));
    assert!(matches!(renamed, Msg::Renamed(port) if port.attempt == 3));
    let mut two = Msg::Two(ReplyTo::new(), ReplyTo::new());
    assert!(two.fork(&Attempt(3)));
    assert!(matches!(two, Msg::Two(first, second) if first.attempt == 0 && second.attempt == 3));
}

#[test]
fn skipped_variants_leave_the_conversion_to_the_others() {
    #[derive(Message, Debug, PartialEq)]
    #[message(crate = "support")]
    enum Msg {
        #[message(skip)]
        Quietly(Put),
        Loudly(Put),
        #[message(skip)]
        First(u8),
        #[message(skip)]
        Second(u8),
    }

    // By hand, which conflicts with nothing as both are skipped.
    impl From<u8> for Msg {
        fn from(number: u8) -> Self {
            Msg::Second(number)
        }
    }

    assert_eq!(Msg::from(Put(1)), Msg::Loudly(Put(1)));
    assert_eq!(Msg::from(1), Msg::Second(1));
    assert!(!Msg::Quietly(Put(1)).fork(&Attempt(1)) && !Msg::First(1).fork(&Attempt(1)));
}

#[test]
fn generic_messages_keep_their_bounds() {
    #[derive(Message, Debug, PartialEq)]
    #[message(crate = "support")]
    enum Items<'a, T, const N: usize = 2>
    where
        T: PartialEq,
    {
        Bare(T),
        Listed(Vec<T>),
        Fixed([&'a T; N]),
    }

    #[derive(Message)]
    #[message(crate = "support")]
    enum Question<Q: Request> {
        Asked(Call<Q>),
        Withdrawn,
    }

    type Puts<'a> = Items<'a, Put>;
    assert_eq!(Puts::from(Put(1)), Items::Bare(Put(1)));
    assert_eq!(Puts::from(vec![Put(1)]), Items::Listed(vec![Put(1)]));
    assert_eq!(Puts::from([&Put(1), &Put(2)]), Items::Fixed([&Put(1), &Put(2)]));
    assert!(!Puts::from(Put(1)).fork(&Attempt(1)));
    assert!(Question::from(Call::new(Get(1))).fork(&Attempt(1)));
    assert!(!Question::<Get>::Withdrawn.fork(&Attempt(1)));
}

#[test]
fn constants_are_not_taken_for_what_the_derive_names() {
    #[allow(non_upper_case_globals, dead_code)] // that they are not is the point
    mod within {
        use super::*;

        const payload: u32 = 1;
        const other: u32 = 2;
        const port: u32 = 3;
        const attempt: u32 = 4;

        #[derive(Message)]
        #[message(crate = "support")]
        pub enum Msg {
            Asked(Call<Get>),
            Told(Put),
        }
    }

    assert!(ask::<_, within::Msg>(Get(1)).fork(&Attempt(1)));
    assert!(!tell::<within::Msg>(Put(1)).fork(&Attempt(1)));
}

#[test]
fn structs_are_like_one_variant() {
    #[derive(Message)]
    #[message(crate = "support")]
    struct Only(Call<Get>);

    #[derive(Message)]
    #[message(crate = "support")]
    struct Named {
        key: u32,
        reply_to: ReplyTo<u8>,
    }

    #[derive(Message)]
    #[message(crate = "support")]
    struct Tick;

    let mut only: Only = ask(Get(1));
    assert!(only.fork(&Attempt(4)) && only.0.reply_to.attempt == 4);
    let mut named = Named { key: 1, reply_to: ReplyTo::new() };
    assert!(named.fork(&Attempt(4)) && named.reply_to.attempt == 4 && named.key == 1);
    assert!(!Tick.fork(&Attempt(4)));
}

#[test]
fn an_enum_without_variants_is_a_message() {
    #[derive(Message)]
    #[message(crate = "support")]
    enum Never {}

    fn is_answerable<M: Answerable>() {}
    is_answerable::<Never>();
}

#[test]
fn types_from_a_macro_are_recognised() {
    macro_rules! message {
        ($name:ident, $port:ty, $other:ty) => {
            #[derive(Message)]
            #[message(crate = "support")]
            enum $name {
                Asked($port),
                Told($other),
            }
        };
    }
    message!(Msg, Call<Get>, Put);
    assert!(ask::<_, Msg>(Get(1)).fork(&Attempt(1)));
    let mut told = Msg::from(Put(1));
    assert!(!told.fork(&Attempt(1)) && matches!(told, Msg::Told(Put(1))));
}

#[test]
fn refusals_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

#[test]
fn what_was_carried_is_given_back_by_its_variant_only() {
    use support::topology::Wraps;

    #[derive(Debug, PartialEq, Message)]
    #[message(crate = "support")]
    enum Carrier<T> {
        Number(u32),
        Rest(Vec<T>),
        Nothing,
    }

    assert_eq!(Wraps::<u32>::give_back(Carrier::<u8>::from(7)), Ok(7));
    assert_eq!(Wraps::<Vec<u8>>::give_back(Carrier::Rest(vec![1_u8])), Ok(vec![1]));
    assert_eq!(Wraps::<u32>::give_back(Carrier::<u8>::Nothing), Err(Carrier::Nothing));
}
