//! The mailbox of an actor: many senders, one owner at a time, and the word that says who that is.
//!
//! Messages lie in a chain of blocks. A sender claims an index with one `fetch_add` on the
//! [word](state::Word), writes the slot that the index leads to, and stamps it; the owner takes slots in the
//! order of their indices. A claimed slot that is not stamped yet makes the owner see
//! [`Busy`](Ready::Busy): nobody ever waits inside a push or a take.
//!
//! # Why this shape
//! One allocation per message (linked nodes, as in Vyukov's queue, or a stack that the owner reverses, as in
//! CAF) costs two to three times as much in bursts. A locked deque makes senders wait for whoever is
//! preempted in it. A bounded ring alone would have to refuse. tokio's blocks need a second read-modify-write
//! per message to mark a slot ready; stamps that carry the block's generation need none.
//!
//! # The ownership token
//! Exactly one holder may run the actor: a worker, or the word itself, under IDLE (nothing to do) or PARKED
//! (suspended). The owner lays the token down by a compare-exchange that succeeds only on the word that says
//! "nothing claimed beyond `head`, no LANE". Every later claim or system message is later in the order of
//! changes of that one word and sees IDLE. So no wake-up is lost (invariant 4 of the crate), without a fence.
//!
//! # An idle mailbox owns no block
//! The message that wakes an idle actor travels in the *inline* slot. When the owner goes idle it takes the
//! whole chain apart; EPOCH flips, so that senders know the pointer in `tail_block` for a stale one. The index
//! of an inline message leaves a hole in the first block.
//!
//! One bit of epoch suffices: between a sender's claim and its publishing the owner cannot go idle, because
//! its head cannot pass the claim. It flips only when a chain existed, for otherwise two idle transitions in a
//! row would make the stale pointer look valid again.
//!
//! # Bounded mailboxes and rings
//! A bounded mailbox claims by compare-exchange after comparing `tail - head` with its capacity. A ring claims
//! like an unbounded one and then pushes to a bounded queue that displaces its oldest element; a displaced
//! message moves `head` as a taken one does. So close, going idle, positions and length are one word's matter
//! for all three.
//!
//! # Ordered mailboxes
//! Here urgent messages overtake. Senders do what they do elsewhere; the owner keeps an [order](priority::Order)
//! beside the chain. Before it looks for the next message it moves there whatever is published, and takes from
//! there. So two indices run ahead of each other: `head` counts the messages *handled*, and `head` and the
//! number of messages in the order give the index of the next one to be moved. What senders know of is `head`
//! alone, hence length, capacity, going idle and close are as above. Whatever is about published claims, as the
//! reclaiming of blocks is, goes by the second index. A position is reached when the lowest index that is not
//! yet handled has reached it.
//!
//! # Rules
//! * **M1** An atomic that several threads change is changed by read-modify-writes only.
//! * **M2** A sender touches blocks only between its claim and its publishing.
//! * **M3** Whoever has laid the token down touches nothing of the mailbox any more.
//! * **M4** `inline_index` is written by the owner only, before it lays the token down.
//! * **M5** Nothing that can unwind runs between claim and publishing: a claim cannot be undone.
//! * **M6** An owner that finds the mailbox empty goes idle at once: polling would take the senders' line away.
//! * **M7** No borrow of the block cache is held across an allocation: the allocator may send.
//!
//! # Senders that are preempted
//! Where more threads send than there are cores, somebody nearly always holds a claim that is not published. The owner
//! cannot pass it, but senders do: `tail_block` moves on whenever a block's claims are made. Who finds it beyond
//! its own claim starts from `settled_block`, which moves only over blocks whose claims are all published, behind
//! `tail_block`. One pointer alone had to wait for the slowest sender, and every other one walked the chain from there:
//! four senders to one actor cost each other 200 to 330 ns a message, and sixteen up to 1,300; with two pointers it was
//! some 50.
//!
//! # Accepted limits
//! The blocks behind a claim that is not published are kept until it is, then come back a few at a time, as more
//! are sent, or all together when the owner goes idle.
//!
//! A ring may briefly wait inside `push` and `ready` for a preempted pusher, as its queue does.
//!
//! # Files
//! In reading order: `state.rs` the word; `mod.rs` how both sides use it; `slot.rs`, `block.rs` and `chain.rs` where
//! messages lie; `system_queue.rs` system messages; `policy.rs` what other mailboxes have beyond the plain one, with `backpressure.rs`,
//! where senders wait for room, and `priority.rs`; `recipe.rs` the kinds that users choose from.

pub(crate) mod state; // the word: how many claims, and who owns
pub(crate) mod mailbox; // how senders and the owner use it
pub(crate) mod slot; // room for one message
pub(crate) mod block; // blocks of slots
pub(crate) mod chain; // the chain of blocks
pub(crate) mod system_queue; // system messages
pub(crate) mod bounded; // what bounded mailboxes have
pub(crate) mod backpressure; // where senders wait for room
pub(crate) mod priority; // urgent messages first
pub(crate) mod kind; // what users choose from
