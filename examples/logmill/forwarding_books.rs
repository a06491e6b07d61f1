//! The books of the node that reads lines and has another one write them.

use crate::books::{Books, Count};
use std::fmt;
use std::sync::Arc;

/// The counts of lines by their outcome, as far as this node can know it.
///
/// A line is *acknowledged* when the other node has told that it is written. It is *in doubt* when its message was under way
/// as the other node went: it may be in a file there, or not. It is *handed back* when the other node has not taken it by
/// the end of this one. A line that the other node hands back before is sent again, and is none of these.
pub struct ForwardingBooks {
    pub lines: Arc<Books>,
    /// The most lines that have a place between the entrance and their receipts.
    pub window: u64,
    /// Messages that were sent.
    pub messages: Count,
    /// Lines that came back and were sent again.
    pub sent_again: Count,
    /// The ends of the other node, or of this one's patience, that left lines in doubt.
    pub ends: Count,
}

impl ForwardingBooks {
    pub fn new(window: usize) -> Self {
        let [messages, sent_again, ends] = Default::default();
        Self { lines: Arc::default(), window: window as u64, messages, sent_again, ends }
    }

    /// The most lines that can be in doubt: those of a window for each end of the other node.
    pub fn in_doubt_max(&self) -> u64 {
        self.window.saturating_mul(self.ends.get())
    }

    /// Whether each line has come to one end, and no more are in doubt than can be.
    pub fn balance(&self) -> bool {
        self.lines.are_complete() && self.lines.in_doubt.get() <= self.in_doubt_max()
    }
}

impl fmt::Display for ForwardingBooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Books { read, written, panicked, lost, handed_back, in_doubt, .. } = &*self.lines;
        let Books { connections, bytes, empty, waits, .. } = &*self.lines;
        let (ends, window, most) = (self.ends.get(), self.window, self.in_doubt_max());
        let bound =
            format!("at most {most}: a window of {window} lines for each end of the other node ({ends})");
        let rows = [
            ("read", read, "lines"),
            ("  acknowledged", written, "the other node has written them"),
            ("  lost to panics", panicked, "at the other node"),
            ("  lost otherwise", lost, ""),
            ("  handed back", handed_back, "the other node has not taken them"),
            ("  in doubt", in_doubt, &bound),
            ("sent again", &self.sent_again, "they had come back"),
            ("messages", &self.messages, "to the other node"),
            ("connections", connections, ""),
            ("bytes read", bytes, ""),
            ("empty lines", empty, "not counted as lines"),
            ("waits for room", waits, "a connection read nothing until the entrance had room"),
        ];
        for (name, count, remark) in rows {
            writeln!(f, "{}", format!("{name:<20}{:>12}  {remark}", count.get()).trim_end())?;
        }
        Ok(())
    }
}
