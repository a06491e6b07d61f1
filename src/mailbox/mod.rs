//! Mailboxes: how many messages an actor may have waiting, in which order it gets them, and what a full one does.
//!
//! The builder of an actor or a router, a dispatcher or the configuration chooses a [`Mailbox`]. Without a choice the
//! mailbox has no bound and keeps the order in which messages come.

// A mailbox has many senders and a single owner at a time; its state word says who owns it.
//
// Messages lie in a chain of blocks. A sender claims an index with one `fetch_add` on the [state word](state::StateWord),
// writes the slot that the index leads to, and stamps the slot. The owner takes slots in the order of their indices.
// At a claimed slot without a stamp the owner gets `Busy`: neither a push nor a take ever waits.
//
// # Why this shape
// * One allocation per message costs two to three times as much in bursts. Linked nodes, as in Vyukov's queue, need
//   it, and so does a stack that the owner reverses, as in CAF.
// * A locked deque makes each sender wait for a thread that is preempted inside the lock.
// * A bounded ring alone would have to refuse messages.
// * tokio's blocks need a second read-modify-write per message to mark a slot ready. A stamp carries the generation of
//   its block, so it needs none.
//
// # The ownership token
// Exactly one holder has the token and may run the actor. The holder is a worker, or the state word itself: under IDLE
// (nothing to do) or PARKED (suspended). The owner lays the token down by a compare-exchange that expects a word with
// no claim beyond `head` and without SYSTEM. Each later claim or control message is later in the modification order of
// the state word and sees IDLE. So no wake-up is lost (invariant 4 of the crate), and no fence is needed.
//
// # An idle mailbox owns no block
// The message that wakes an idle actor travels in the *inline* slot. When the owner goes idle, it takes the whole
// chain apart, and EPOCH flips: senders then recognise the pointer in `tail_block` as stale. The index of an inline
// message leaves a hole in the first block.
//
// The first message of all travels inline, too, although a new actor is owned from the beginning (FRESH): most actors
// that are created and told something at once need no block for it.
//
// One bit of epoch suffices. Between the claim of a sender and its publishing the owner cannot go idle, because `head`
// cannot pass the claim. EPOCH flips only when a chain existed: otherwise two idle transitions in a row would make the
// stale pointer look valid again.
//
// # Bounded and displacing mailboxes
// A bounded mailbox claims by compare-exchange after comparing `tail - head` with its capacity. A displacing mailbox
// claims like an unbounded one and then pushes to a bounded queue that displaces its oldest element. A displaced
// message moves `head` as a taken message does. So the state word alone decides close, going idle, positions and
// length in all three.
//
// # Priority mailboxes
// In a priority mailbox urgent messages overtake. Senders do the same as elsewhere; the owner keeps an
// [order](priority::PriorityOrder) beside the chain. Before the owner looks for the next message, it moves all published
// messages into the order, and takes from there. So there are two indices:
//
// * `head` counts the messages *handled*. Senders know `head` alone, so length, capacity, going idle and close are as
//   above.
// * `head` plus the number of messages in the order is the index of the next message to be moved. Everything about
//   published claims, such as the reclaiming of blocks, goes by this index.
//
// A position is reached when the lowest index that is not yet handled has reached it.
//
// # Rules
// * **M1** An atomic that several threads change is changed by read-modify-writes only.
// * **M2** A sender touches blocks only between its claim and its publishing.
// * **M3** An owner that has laid the token down touches nothing of the mailbox any more.
// * **M4** `inline_index` is written by the owner only, before it lays the token down.
// * **M5** Nothing that can unwind runs between claim and publishing: a claim cannot be undone.
// * **M6** An owner that finds the mailbox empty does not poll: polling would take the cache line of the senders away.
//   The owner goes idle, or first waits without a look for the rest of a stream (`scheduler/gather.rs`).
// * **M7** No borrow of the block cache is held across an allocation: the allocator may send.
//
// # Senders that are preempted
// Where more threads send than there are cores, nearly always some sender holds a claim that is not published. The
// owner cannot pass that claim, but other senders do: `tail_block` moves on when the claims of a block are made. A
// sender that finds `tail_block` beyond its own claim starts from `settled_block`. `settled_block` moves only over
// blocks whose claims are all published, behind `tail_block`.
//
// With a single pointer, that pointer had to wait for the slowest sender, and each other sender walked the chain from
// there: four senders to one actor cost each other 200 to 330 ns a message, and sixteen up to 1,300 ns. With two
// pointers the cost was some 50 ns.
//
// # Accepted limits
// The blocks behind an unpublished claim are kept until the claim is published. Then they come back a few at a time,
// as more messages are sent, or all together when the owner goes idle.
//
// A displacing mailbox may briefly wait inside `push` and `ready` for a preempted pusher, as its queue does.
//
// # Files
// In reading order:
//
// * `state.rs`: the state word
// * `mailbox.rs`: how senders and the owner use the state word
// * `slot.rs`, `block.rs` and `chain.rs`: where messages lie
// * `system_queue.rs`: control messages
// * `bounded.rs`: what the other mailboxes have beyond the plain one
// * `backpressure.rs`: where senders wait for room
// * `priority.rs`: the order of a priority mailbox
// * `kind.rs`: the kinds of mailbox that users choose from

pub(crate) mod state; // the state word: how many claims, and who owns
pub(crate) mod mailbox; // how senders and the owner use it
pub(crate) mod slot; // room for a single message
pub(crate) mod block; // blocks of slots
pub(crate) mod chain; // the chain of blocks
pub(crate) mod system_queue; // control messages
pub(crate) mod bounded; // what bounded mailboxes have
pub(crate) mod backpressure; // where senders wait for room
pub(crate) mod priority; // urgent messages first
pub(crate) mod kind; // the kinds that users choose from

pub use crate::mailbox::kind::{Mailbox, MailboxChoice, MailboxFault, MailboxRequirement, OverflowPolicy};
