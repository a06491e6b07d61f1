//! Storms on the engine, with every message accounted for.
//!
//! ```sh
//! cargo run --release -p soak -- --seconds 120 --seed 1 --profile everyday
//! ```
//!
//! A run is a row of [rounds](round::Round), each with an actor system of its own and one [storm](storms) or several in
//! it. A round has bouts: threads send while everything changes; then they stop, and when nothing is under way any more
//! the books are compared. So a fault is found within seconds of when it happened, and dated. All decisions come from the
//! seed; how many messages a bout has depends on the machine, too.
//!
//! # What is checked
//!
//! | check | by |
//! |---|---|
//! | each message, and each copy of one, comes to one end: handled, dead, dropped by policy, handed back | its slot in the [books], its destructor |
//! | the engine's ledger says the same, term by term, and balances to 0 with nothing queued | `Stage::compare` |
//! | a broadcast is handled by each routee once | `storms::broadcast` |
//! | each question has one outcome, and none is pending at rest | `Stage::compare`, `ReplyCounts` |
//! | messages of one sender to one actor are handled in the order sent, also across restarts and the retirements of a key | [`worker::Worker`] |
//! | never two threads in one actor, and each turn sees what the one before wrote | [`worker::Worker`] |
//! | what lies in a mailbox is handled without a further push; an idle actor is woken | `Stage::come_to_rest`, `storms::wakes` |
//! | states of actors made = dropped + alive; none, and no actor, is left when the system has ended | `Stage::come_to_rest`, `Stage::play` |
//! | every message and every question is dropped | `Stage::play` |
//! | who takes a watch back, or ends, is not kept by what it has watched | `storms::watches` |
//! | memory is flat: what is allocated when a round has ended, and what is resident | [`memory`] |
//!
//! # Faults that it has found
//!
//! Planted in the engine, one at a time; what was said of each:
//!
//! | fault | found by |
//! |---|---|
//! | a routee that leaves drops one leftover message in 64, and the ledger counts it as handled | the message's destructor: it is in no account; and no rest, with messages under way |
//! | a broadcast sends one copy in 1,000 twice, and the ledger counts it | the order: message 53 was handled after 53 |
//! | one block of a mailbox in 16 is not freed | memory: allocated 8.9 MB in the second quarter, 21.4 MB in the last |
//! | one state of an actor in 64 is not dropped | no rest: 17 states of actors where there are 16 |
//! | one task in 20 from outside wakes no worker | `wakes`: an idle actor got a message and was not woken |
//! | the watched actor is not told that a watch is taken back | `watches`: 1280 watchers have ended and left 809040 bytes behind |
//!
//! Waiting counts pauses instead of time, so that a machine that is slow, or stopped for a while, is no fault.

pub mod books;
pub mod dice;
pub mod heap;
pub mod machine;
pub mod memory;
pub mod parcel;
pub mod patience;
pub mod profile;
pub mod round;
pub mod scene;
pub mod storms;
pub mod worker;
