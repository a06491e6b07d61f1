//! Histories: threads use one object at the same time, and a checker looks for an order in which a plain sequential
//! one would have done the same.
//!
//! That is linearizability (Herlihy and Wing, 1990): each operation takes effect at one moment between its call and
//! its return. The search is Wing and Gong's with Lowe's improvements, from the crate `todc-utils`. A history is
//! short, some fifty operations of two to four threads, so that the search ends soon; there are thousands. What is
//! recorded is when an operation was called and when it returned, by one counter that all threads share. Receiving
//! is an operation, too: an actor takes its next message between the end of one handler and the begin of the next.
//!
//! Each file shows that its specification rejects illegal histories, and names the faults that were planted and
//! found.

mod mailbox;
mod recorder;
mod table;
