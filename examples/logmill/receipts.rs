//! The receipts for the lines of a message from another node: one reply tells what became of all of them.

use crate::books::{Count, Fate};
use crate::shipment::Receipt;
use pointsman::ReplyTo;

/// Counts the outcomes of the lines of a message. Each line's ticket has a share, and the end of the last one is the reply.
pub struct Receipts {
    written: Count,
    panicked: Count,
    lost: Count,
    reply_to: Option<ReplyTo<Receipt>>,
}

impl Receipts {
    pub fn new(reply_to: ReplyTo<Receipt>) -> Self {
        let [written, panicked, lost] = Default::default();
        Self { written, panicked, lost, reply_to: Some(reply_to) }
    }

    /// Counts a line of the message.
    pub fn count(&self, fate: Fate) {
        let count = match fate {
            Fate::Written => &self.written,
            Fate::Panicked => &self.panicked,
            // The node that has the files sends no line on.
            Fate::Lost | Fate::InDoubt | Fate::HandedBack => &self.lost,
        };
        count.add(1);
    }
}

impl Drop for Receipts {
    fn drop(&mut self) {
        let [written, panicked, lost] = [&self.written, &self.panicked, &self.lost].map(Count::get);
        if let Some(reply_to) = self.reply_to.take() {
            // A sender that has gone counts its lines as in doubt.
            drop(reply_to.send(Receipt { written, panicked, lost }));
        }
    }
}
