//! The stage that stands for all others where lines are read: an actor that sends them to another node, and keeps each line
//! with its ticket until that node tells what became of it.
//!
//! A message has the lines that have come meanwhile, and a number; its reply tells the outcomes of its lines. A few messages
//! are under way at a time, and the other lines wait here. When the other node goes, the lines of the messages under way are
//! in doubt: they are counted, and not sent again, since each may be in a file there. The lines that wait here, and those that
//! the other node hands back, go to its next start, which the forwarder looks for.

use crate::books::Fate;
use crate::connection::Line;
use crate::forwarding_books::ForwardingBooks;
use crate::shipment::{self, Lines, Receipt, ToMill};
use pointsman::ask::{NoReplyCause, RefusedBy};
use pointsman::pattern::PipeError;
use pointsman::prelude::*;
use pointsman::remote::ResolveError;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// So many messages are under way at most.
const MESSAGES_MAX: usize = 8;
/// A look for the other node's actor takes so long at most.
const LOOK_WITHIN: Duration = Duration::from_secs(10);
/// The time between two looks, and before lines that came back are sent again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The messages of the forwarder.
pub enum ForwarderMsg {
    Line(Line),
    /// Send the lines that are here.
    Flush,
    /// Look for the actor of the other node.
    Look,
    /// The look has ended.
    Found(Result<Result<ActorRef<ToMill>, ResolveError>, PipeError>),
    /// The message of this number has ended.
    Answered(u64, Result<Receipt, AskError>),
    /// End when each line has come to its end. No more lines come.
    Finish,
    /// Wait for the other node so long, and no longer.
    GiveUpAfter(Duration),
    /// The wait is over.
    GiveUp,
}

/// A message to the other node that has no reply yet.
struct UnderWay {
    to: ActorRef<ToMill>,
    lines: Vec<Line>,
}

/// The actor.
pub struct Forwarder {
    /// The path of the other node's actor.
    path: String,
    books: Arc<ForwardingBooks>,
    /// The other node's actor, while it is known.
    to: Option<ActorRef<ToMill>>,
    /// Lines that wait, in their order.
    waiting: VecDeque<Line>,
    under_way: BTreeMap<u64, UnderWay>,
    /// The number of the last message.
    number: u64,
    /// The start of the other node that has left lines in doubt last.
    doubted: Option<ActorRef<ToMill>>,
    /// Whether a `Flush` is on its way.
    flush_comes: bool,
    /// Whether no more lines come.
    is_finishing: bool,
    has_given_up: bool,
}

impl Forwarder {
    pub fn new(path: String, books: Arc<ForwardingBooks>) -> Self {
        Self {
            path,
            books,
            to: None,
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            number: 0,
            doubted: None,
            flush_comes: false,
            is_finishing: false,
            has_given_up: false,
        }
    }

    /// Looks for the other node's actor: at once if that node is up, and else as soon as it is.
    fn look(&self, ctx: &mut Context<ForwarderMsg>) -> HandlerResult {
        let found = ctx.system().resolve::<ToMill>(&self.path, LOOK_WITHIN);
        Ok(ctx.pipe_to_self(found, ForwarderMsg::Found)?)
    }

    /// Forgets an actor of the other node, and looks for another one. Returns false if that was done before.
    fn forget(&mut self, to: &ActorRef<ToMill>, ctx: &mut Context<ForwarderMsg>) -> bool {
        let is_known = self.to.take_if(|known| known == to).is_some();
        if is_known {
            ctx.after(LOOK_AGAIN_AFTER, ForwarderMsg::Look);
        }
        is_known
    }

    /// Sends lines that wait, in as many messages as may be under way.
    fn flush(&mut self, ctx: &mut Context<ForwarderMsg>) {
        while let Some(to) = self.to.clone() {
            if self.waiting.is_empty() || self.under_way.len() >= MESSAGES_MAX {
                break;
            }
            if to.is_closed() {
                self.forget(&to, ctx);
                break;
            }
            let lines = self.next_lines();
            self.number += 1;
            self.books.messages.add(1);
            let number = self.number;
            ctx.ask(&to, Lines::of(&lines), move |outcome| ForwarderMsg::Answered(number, outcome));
            self.under_way.insert(number, UnderWay { to, lines });
        }
    }

    /// Takes the lines of the next message.
    fn next_lines(&mut self) -> Vec<Line> {
        let mut bytes = 0;
        let fits = |line: &&Line| {
            let is_first = bytes == 0;
            bytes += shipment::size(line);
            is_first || bytes <= shipment::BYTES_MAX
        };
        let count = self.waiting.iter().take_while(fits).count();
        self.waiting.drain(..count).collect()
    }

    fn answered(&mut self, number: u64, outcome: Result<Receipt, AskError>, ctx: &mut Context<ForwarderMsg>) {
        // The lines of a message that was given up are counted.
        let Some(UnderWay { to, lines }) = self.under_way.remove(&number) else { return };
        match outcome {
            Ok(receipt) => settle(lines, &receipt),
            Err(error) if was_refused(&error) => {
                self.books.sent_again.add(lines.len() as u64);
                lines.into_iter().rev().for_each(|line| self.waiting.push_front(line));
                if self.forget(&to, ctx) {
                    eprintln!("logmill: lines came back and are sent again: {error}");
                }
            }
            Err(error) => {
                if self.doubted.as_ref() != Some(&to) {
                    self.doubted = Some(to.clone());
                    self.books.ends.add(1);
                    eprintln!("logmill: the lines under way are in doubt: {error}");
                }
                lines.into_iter().for_each(|line| line.ticket.settle(Fate::InDoubt));
                self.forget(&to, ctx);
            }
        }
        self.flush(ctx);
    }

    /// Counts all lines that are here, and those that still come.
    fn give_up(&mut self) {
        self.has_given_up = true;
        self.waiting.drain(..).for_each(|line| line.ticket.settle(Fate::HandedBack));
        let under_way = std::mem::take(&mut self.under_way);
        self.books.ends.add(u64::from(!under_way.is_empty()));
        let lines = under_way.into_values().flat_map(|message| message.lines);
        lines.for_each(|line| line.ticket.settle(Fate::InDoubt));
    }
}

/// Whether no handler of the other node has seen the message, and none will.
fn was_refused(error: &AskError) -> bool {
    match error {
        AskError::Undeliverable { .. } | AskError::NoRoutees { .. } => true,
        AskError::NoReply { cause, .. } => *cause == NoReplyCause::Unread,
        AskError::Refused { by, .. } => matches!(
            by,
            RefusedBy::WrongType | RefusedBy::UnknownType | RefusedBy::Undecodable | RefusedBy::NotAllowed
        ),
        _ => false,
    }
}

/// Counts the lines of a message as the other node tells. It does not tell which line had which outcome.
fn settle(lines: Vec<Line>, &Receipt { written, panicked, lost }: &Receipt) {
    let mut lines = lines.into_iter();
    for (fate, count) in [(Fate::Written, written), (Fate::Panicked, panicked), (Fate::Lost, lost)] {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        lines.by_ref().take(count).for_each(|line| line.ticket.settle(fate));
    }
}

impl Actor for Forwarder {
    type Message = ForwarderMsg;

    fn started(&mut self, ctx: &mut Context<ForwarderMsg>) -> HandlerResult {
        self.look(ctx)
    }

    fn receive(&mut self, message: ForwarderMsg, ctx: &mut Context<ForwarderMsg>) -> HandlerResult {
        match message {
            ForwarderMsg::Line(line) if self.has_given_up => line.ticket.settle(Fate::HandedBack),
            ForwarderMsg::Line(line) => {
                self.waiting.push_back(line);
                // The flush takes its place behind the lines that have come already.
                if !std::mem::replace(&mut self.flush_comes, true) {
                    ctx.me().tell(ForwarderMsg::Flush);
                }
            }
            ForwarderMsg::Flush => {
                self.flush_comes = false;
                self.flush(ctx);
            }
            ForwarderMsg::Look => self.look(ctx)?,
            ForwarderMsg::Found(Ok(Ok(to))) => {
                self.to = Some(to);
                self.flush(ctx);
            }
            ForwarderMsg::Found(Ok(Err(_)) | Err(_)) => {
                ctx.after(LOOK_AGAIN_AFTER, ForwarderMsg::Look);
            }
            ForwarderMsg::Answered(number, outcome) => self.answered(number, outcome, ctx),
            ForwarderMsg::Finish => self.is_finishing = true,
            ForwarderMsg::GiveUpAfter(wait) => {
                ctx.after(wait, ForwarderMsg::GiveUp);
            }
            ForwarderMsg::GiveUp => self.give_up(),
        }
        if self.is_finishing && self.waiting.is_empty() && self.under_way.is_empty() {
            ctx.stop();
        }
        Ok(())
    }
}
