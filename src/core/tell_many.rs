//! Sends of many messages at once: an unbounded mailbox is claimed once for several messages.
//!
//! A claim is the one step of a send that senders contend for. [`ActorRef::tell_many`] takes some messages from the
//! iterator before it claims: code of the iterator may unwind, and nothing may unwind between a claim and its publishing
//! (rule M5 of the mailbox). So an iterator that panics leaves messages that are not claimed. They are sent while the
//! thread unwinds, as if each had been told when the iterator returned it.

use crate::core::actor_ref::{ActorRef, Target};
use crate::core::cell::Local;
use crate::core::error::SendError;

/// The number of messages that are claimed at once. A block holds twice as many messages of 8 bytes.
const AT_ONCE: usize = if crate::sync::EXPLORED { 3 } else { 16 };

/// The largest message, in bytes, that is sent so: the messages of a batch lie on the stack of the sender.
const LARGEST: usize = 256;

impl<M: Send + 'static> ActorRef<M> {
    /// Sends each message as [`tell`](Self::tell) does, in the order of the iterator, at a lower cost for each message.
    ///
    /// An actor with an unbounded mailbox gets up to 16 messages with one change of the mailbox's state, which is the
    /// step that senders contend for. Other recipients, and messages of more than 256 bytes, are told one by one.
    ///
    /// The call takes up to 16 messages from the iterator before it sends them: a slow iterator delays them. A message
    /// that the iterator's own code sends to the same actor may overtake them.
    ///
    /// Returns the number of messages that the iterator has given. A message that cannot be delivered is a dead letter.
    ///
    /// # Panics
    ///
    /// The call panics if the iterator does. Messages that the iterator has given before are sent.
    ///
    /// ```
    /// # use pointsman::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let system = System::builder("demo").build()?;
    /// let inbox = system.inbox::<u32>()?;
    /// assert_eq!(inbox.to_ref().tell_many(1..=100), 100);
    /// for number in 1..=100 {
    ///     assert_eq!(inbox.receive(std::time::Duration::from_secs(10))?, number);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("tell_all", "send_many", "send_all", "extend"))]
    pub fn tell_many(&self, messages: impl IntoIterator<Item = M>) -> usize {
        match self.target() {
            Target::Local(local) if const { size_of::<M>() <= LARGEST } && local.mailbox.is_unbounded() => {
                self.tell_in_batches(local, messages)
            }
            _ => messages.into_iter().map(|message| self.tell(message)).count(),
        }
    }

    fn tell_in_batches(&self, local: &Local<M>, messages: impl IntoIterator<Item = M>) -> usize {
        let mut batch = Batch { to: self, local, messages: [const { None }; AT_ONCE], count: 0 };
        let (mut messages, mut given) = (messages.into_iter(), 0);
        loop {
            let last = batch.fill(&mut messages);
            given += batch.count;
            batch.send();
            if last {
                return given;
            }
        }
    }
}

/// Messages that the iterator has given and that are not sent yet. The drop sends them.
struct Batch<'a, M: Send + 'static> {
    to: &'a ActorRef<M>,
    local: &'a Local<M>,
    messages: [Option<M>; AT_ONCE],
    count: usize,
}

impl<M: Send + 'static> Batch<'_, M> {
    /// Takes messages until there is no more room. Returns true if the iterator has ended.
    #[inline]
    fn fill(&mut self, messages: &mut impl Iterator<Item = M>) -> bool {
        for place in &mut self.messages {
            let Some(message) = messages.next() else { return true };
            *place = Some(message);
            self.count += 1;
        }
        false
    }

    fn send(&mut self) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return;
        }
        self.local.core.system.ledger().for_this_thread().sent(count as u64);
        let messages = &mut self.messages[..count];
        match self.local.mailbox.push_many(messages) {
            Some(true) => self.to.schedule(),
            Some(false) => {}
            None => {
                let refused = messages.iter_mut().filter_map(Option::take);
                refused.for_each(|message| self.to.dead_letter(SendError::Closed(message)));
            }
        }
    }
}

impl<M: Send + 'static> Drop for Batch<'_, M> {
    fn drop(&mut self) {
        self.send();
    }
}
