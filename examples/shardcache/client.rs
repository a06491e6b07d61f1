//! A connection's actor: cuts requests out of the byte stream, routes them, and puts the replies in order.
//!
//! Shards answer in any order; the client expects the order of its requests. Each request has a *slot* in a
//! queue, numbered without a gap; an answer fills its slot, and what is filled at the front goes out.
//!
//! How much is under way is bounded at both ends. No more requests are taken while so many slots are open,
//! or while more replies wait for the client than it reads; then nothing is read from the socket either, and
//! TCP slows the client down. A client that never reads is cut off once the replies that were under way
//! anyway exceed a hard limit. A reply is counted against that limit before it is made: one that is longer by itself
//! is refused with an error, and the client goes on. Until its turn comes, a reply that was gathered shares its values
//! with the shards instead of copying them.
//!
//! Three things make a connection wait for its own earlier requests before it goes on: a new generation of
//! shards (see `shard.rs`), a request for all shards, and a change of their number. So they keep their place
//! among the client's requests too.

use crate::bytes::Bytes;
use crate::command::{
    AllRequest, Command, Gather, KeyRequest, Local, ManyRequest, ServerInfo, Session, Then,
};
use crate::coordinator::{CoordinatorMsg, Generation, SHARDS_MAX};
use crate::keyspace::{PartReply, Reply};
use crate::resp::{
    Arguments, Limits, RequestReader, parse_integer, put_error, put_integer, put_simple, put_too_long,
};
use crate::server::Shared;
use crate::shard::{ShardMsg, now_ms};
use pointsman::net::{Connection, ReadOutcome, Ready};
use pointsman::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

/// Read from the socket in one turn at most.
const READ_MAX: usize = 64 * 1024;
/// At most this many requests of one client are under way.
const SLOTS_MAX: usize = 1024;
/// Replies wait for those of the same pipeline until this many bytes are there.
const FLUSH_AT: usize = 16 * 1024;
/// No more requests are taken while replies of so many bytes are written and wait for those before them.
const WRITTEN_MAX: usize = 256 * 1024;
/// Replies that are no longer are never refused: an error is no shorter.
const SHORT: usize = 256;

/// What a connection's actor takes.
pub enum ClientMsg {
    Ready(Ready),
    /// A shard's answer to a request for one key.
    Reply {
        slot: u64,
        reply: Reply,
    },
    /// A share of the answer to a request for some keys.
    Part {
        slot: u64,
        part: PartReply,
    },
    /// The answer of all shards.
    Gathered {
        slot: u64,
        gather: Gather,
    },
    /// The number of shards is changed.
    Resized {
        slot: u64,
    },
    /// There is a new generation.
    Moved,
}

impl From<Ready> for ClientMsg {
    fn from(ready: Ready) -> Self {
        ClientMsg::Ready(ready)
    }
}

/// The place of one reply.
enum Slot {
    Waiting,
    Gathering(Gather),
    Filled(Reply),
    Gathered(Gather),
    /// What to send.
    Written(Vec<u8>),
}

/// A request that waits until all earlier ones are answered, and lets no later one pass.
enum Barrier {
    All(AllRequest),
    Info(Vec<Bytes>),
    Resize(usize),
    /// It is on its way; for INFO with the sections asked for.
    Sent {
        info: Option<Vec<Bytes>>,
    },
}

/// The actor.
pub struct Client {
    connection: Connection,
    reader: RequestReader,
    session: Session,
    shared: Arc<Shared>,
    generation: Arc<Generation>,
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u64,
    /// Requests that shards have not answered in full.
    in_flight: usize,
    /// Bytes in the slots that are [`Slot::Written`].
    written: usize,
    barrier: Option<Barrier>,
    /// There is a newer generation than ours.
    outdated: bool,
    /// The client sends no more.
    eof: bool,
    /// Take no more requests, and close when all are answered.
    closing: bool,
    /// Taken since the last count.
    requests: u64,
}

impl Client {
    pub fn new(
        connection: Connection,
        session: Session,
        shared: Arc<Shared>,
        generation: Arc<Generation>,
    ) -> Self {
        Self {
            connection,
            reader: RequestReader::new(Limits::default()),
            session,
            shared,
            generation,
            slots: VecDeque::new(),
            first: 0,
            in_flight: 0,
            written: 0,
            barrier: None,
            outdated: false,
            eof: false,
            closing: false,
            requests: 0,
        }
    }

    /// Takes requests as long as there are any and they may be taken, and reads once if they run out.
    fn pump(&mut self, ctx: &mut Context<ClientMsg>) {
        self.take_requests(ctx);
        if self.may_take() && !self.eof {
            match self.connection.fill(READ_MAX) {
                ReadOutcome::Read(count) => {
                    self.reader.push(self.connection.received());
                    self.connection.consume(count);
                    self.take_requests(ctx);
                }
                ReadOutcome::Blocked => {}
                ReadOutcome::Eof => self.eof = true,
                ReadOutcome::Closed(_) => ctx.stop(),
            }
        }
        self.shared.count_requests(std::mem::take(&mut self.requests));
    }

    fn may_take(&self) -> bool {
        !self.closing
            && !self.outdated
            && self.barrier.is_none()
            && self.slots.len() < SLOTS_MAX
            && self.written < WRITTEN_MAX
            && !self.connection.is_congested()
    }

    fn take_requests(&mut self, ctx: &Context<ClientMsg>) {
        let now = now_ms();
        // Taken out for the moment, since the arguments borrow from it.
        let mut reader = std::mem::replace(&mut self.reader, RequestReader::new(Limits::default()));
        while self.may_take() {
            match reader.next_request() {
                Ok(Some(arguments)) => {
                    self.requests += 1;
                    self.take(arguments, now, ctx);
                }
                Ok(None) => break,
                Err(error) => {
                    self.answer(|out| error.put(out));
                    self.closing = true;
                }
            }
        }
        self.reader = reader;
    }

    fn take(&mut self, arguments: Arguments<'_>, now: u64, ctx: &Context<ClientMsg>) {
        let name = arguments.at(0);
        if name.eq_ignore_ascii_case(b"shards") {
            return self.shards(arguments, ctx);
        }
        if name.eq_ignore_ascii_case(b"shutdown") {
            self.closing = true;
            return self.shared.ask_for_end(true);
        }
        match Command::parse(arguments, now) {
            Ok(Command::Key(request)) => self.route_key(request, ctx),
            Ok(Command::Many(request)) => self.route_many(request, ctx),
            Ok(Command::All(request)) => self.wait_with(Barrier::All(request), ctx),
            Ok(Command::Local(Local::Info(sections))) => self.wait_with(Barrier::Info(sections), ctx),
            Ok(Command::Local(local)) if local.len(&self.session) > self.output_max() => {
                let output_max = self.output_max();
                self.answer(|out| put_too_long(out, output_max));
            }
            Ok(Command::Local(local)) => {
                let mut session = self.session.clone();
                let mut then = Then::Continue;
                self.answer(|out| then = local.answer(&mut session, &ServerInfo::default(), out));
                self.session = session;
                self.closing = then == Then::Close;
            }
            Err(error) => self.answer(|out| error.put(out)),
        }
    }

    /// `SHARDS` tells how many there are, `SHARDS n` changes it. Ours, not Redis'.
    fn shards(&mut self, arguments: Arguments<'_>, ctx: &Context<ClientMsg>) {
        if arguments.len() == 1 {
            let count = self.generation.map.members.len();
            return self.answer(|out| put_integer(out, count as i64));
        }
        let count = parse_integer(arguments.at(1)).and_then(|count| usize::try_from(count).ok());
        match count.filter(|count| (1..=SHARDS_MAX).contains(count) && arguments.len() == 2) {
            Some(count) => self.wait_with(Barrier::Resize(count), ctx),
            None => self.answer(|out| {
                put_error(out, format!("ERR usage: SHARDS [count], count from 1 to {SHARDS_MAX}").as_bytes());
            }),
        }
    }

    // ---- to the shards

    fn open_slot(&mut self, slot: Slot) -> u64 {
        self.slots.push_back(slot);
        self.first + self.slots.len() as u64 - 1
    }

    fn route_key(&mut self, request: KeyRequest, ctx: &Context<ClientMsg>) {
        let slot = self.open_slot(Slot::Waiting);
        self.in_flight += 1;
        let (client, generation) = (ctx.me().clone(), self.generation.map.generation);
        self.generation.routes().tell(ShardMsg::Key { request, client, slot, generation });
    }

    fn route_many(&mut self, request: ManyRequest, ctx: &Context<ClientMsg>) {
        let slot = self.open_slot(Slot::Gathering(Gather::many(&request, self.output_max())));
        self.in_flight += 1;
        let map = &self.generation.map;
        let place = |key: &[u8]| map.owner(key).map(|owner| owner.id);
        for (_, request) in request.partition(place) {
            let (client, generation) = (ctx.me().clone(), map.generation);
            self.generation.routes().tell(ShardMsg::Many { request, client, slot, generation });
        }
    }

    fn wait_with(&mut self, barrier: Barrier, ctx: &Context<ClientMsg>) {
        self.slots.push_back(Slot::Waiting);
        self.barrier = Some(barrier);
        self.go_on_if_quiet(ctx);
    }

    /// Once no shard owes us an answer: changes over to the new generation, and sends what has waited.
    fn go_on_if_quiet(&mut self, ctx: &Context<ClientMsg>) {
        if self.in_flight > 0 {
            return;
        }
        if self.outdated {
            if let Some(generation) = self.shared.generation() {
                self.generation = generation;
                self.outdated = false;
            }
        }
        // The barrier is the last request that was taken.
        let (slot, client) = ((self.first + self.slots.len() as u64).wrapping_sub(1), ctx.me().clone());
        let mut info = None;
        let message = match self.barrier.take() {
            Some(Barrier::All(request)) => CoordinatorMsg::All { request, client, slot },
            Some(Barrier::Info(sections)) => {
                info = Some(sections);
                CoordinatorMsg::All { request: AllRequest::Size, client, slot }
            }
            Some(Barrier::Resize(count)) => CoordinatorMsg::Resize { count, client, slot },
            other => {
                self.barrier = other;
                return;
            }
        };
        self.barrier = Some(Barrier::Sent { info });
        self.shared.coordinator().tell(message);
    }

    // ---- replies

    /// Answers a request at once, if those before it are answered.
    fn answer(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.slots.is_empty() {
            self.first += 1;
            return put(self.connection.output());
        }
        let mut written = Vec::new();
        put(&mut written);
        self.written += written.len();
        self.slots.push_back(Slot::Written(written));
    }

    fn output_max(&self) -> usize {
        self.shared.settings.output_max
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        self.slots.get_mut(number.checked_sub(self.first)? as usize)
    }

    fn reply(&mut self, number: u64, reply: Reply) {
        self.in_flight -= 1;
        if number == self.first && self.connection.pending().saturating_add(reply.len()) <= self.output_max()
        {
            // The usual case: nothing before it is open.
            reply.put(self.connection.output());
            self.slots.pop_front();
            self.first += 1;
        } else if let Some(slot) = self.slot(number) {
            *slot = Slot::Filled(reply);
        }
    }

    fn part(&mut self, number: u64, part: PartReply) {
        let Some(slot) = self.slot(number) else { return };
        let Slot::Gathering(gather) = slot else { return };
        gather.accept(part);
        if gather.is_complete() {
            if let Slot::Gathering(gather) = std::mem::replace(slot, Slot::Waiting) {
                *slot = Slot::Gathered(gather);
            }
            self.in_flight -= 1;
        }
    }

    /// The answer to what had waited for all earlier ones.
    fn pass_barrier(&mut self, number: u64, answer: impl FnOnce(&mut Self, Option<Vec<Bytes>>) -> Slot) {
        let Some(Barrier::Sent { info }) = self.barrier.take() else { return };
        let answer = answer(self, info);
        if let Slot::Written(written) = &answer {
            self.written += written.len();
        }
        if let Some(slot) = self.slot(number) {
            *slot = answer;
        }
    }

    fn info(&mut self, sections: Vec<Bytes>, key_count: usize, out: &mut Vec<u8>) {
        let mut server = self.shared.info();
        server.key_count = key_count;
        server.shard_count = self.generation.map.members.len();
        let _ = Local::Info(sections).answer(&mut self.session, &server, out);
    }

    /// Moves what is filled at the front to the connection, and lets it go out when it is time.
    fn deliver(&mut self, ctx: &mut Context<ClientMsg>) {
        let output_max = self.output_max();
        loop {
            let len = match self.slots.front() {
                Some(Slot::Filled(reply)) => reply.len(),
                Some(Slot::Gathered(gather)) => gather.len(),
                Some(Slot::Written(bytes)) => bytes.len(),
                Some(Slot::Waiting | Slot::Gathering(_)) | None => break,
            };
            let refused = len > output_max.max(SHORT);
            let len = if refused { SHORT } else { len };
            let is_full = |pending: usize| pending > 0 && pending.saturating_add(len) > output_max;
            if is_full(self.connection.pending()) {
                self.connection.flush();
                if is_full(self.connection.pending()) {
                    return self.cut_off(ctx);
                }
            }
            let Some(slot) = self.slots.pop_front() else { break };
            self.first += 1;
            match slot {
                refused_slot if refused => {
                    if let Slot::Written(bytes) = refused_slot {
                        self.written -= bytes.len();
                    }
                    put_too_long(self.connection.output(), output_max);
                }
                Slot::Filled(reply) => reply.put(self.connection.output()),
                Slot::Gathered(gather) => gather.put(self.connection.output()),
                Slot::Written(bytes) => {
                    self.written -= bytes.len();
                    self.connection.write(&bytes);
                }
                Slot::Waiting | Slot::Gathering(_) => unreachable!("their lengths are not known"),
            }
        }
        let pending = self.connection.pending();
        if self.in_flight == 0 || pending >= FLUSH_AT {
            self.connection.flush();
            if self.connection.pending() > output_max {
                self.cut_off(ctx);
            }
        }
    }

    /// The client reads too slowly.
    fn cut_off(&mut self, ctx: &mut Context<ClientMsg>) {
        self.connection.abort();
        ctx.stop();
    }

    /// Ends the connection when everything that was asked is answered and nothing more can be.
    fn end_if_done(&self, ctx: &Context<ClientMsg>) {
        // If requests could be taken, they have been: what the reader holds then is no whole request.
        let no_more = self.closing || self.eof && (self.may_take() || self.reader.buffered() == 0);
        if no_more && self.slots.is_empty() {
            // What is not sent yet goes out behind us.
            ctx.stop();
        }
    }
}

impl Actor for Client {
    type Message = ClientMsg;

    fn receive(&mut self, message: ClientMsg, ctx: &mut Context<ClientMsg>) -> HandlerResult {
        // Only a pause that this message ends leaves requests behind; and only a `Ready` brings new ones.
        let mut go_on = !self.may_take();
        match message {
            ClientMsg::Ready(ready) => {
                self.connection.ready(ready);
                go_on = true;
            }
            ClientMsg::Reply { slot, reply } => self.reply(slot, reply),
            ClientMsg::Part { slot, part } => self.part(slot, part),
            ClientMsg::Gathered { slot, gather } => self.pass_barrier(slot, |this, info| match info {
                None => Slot::Gathered(gather),
                Some(sections) => {
                    let mut written = Vec::new();
                    this.info(sections, gather.number().unwrap_or(0), &mut written);
                    Slot::Written(written)
                }
            }),
            ClientMsg::Resized { slot } => self.pass_barrier(slot, |_, _| {
                let mut written = Vec::new();
                put_simple(&mut written, "OK");
                Slot::Written(written)
            }),
            ClientMsg::Moved => self.outdated = true,
        }
        if self.outdated || self.barrier.is_some() {
            self.go_on_if_quiet(ctx);
        }
        self.deliver(ctx);
        if go_on {
            self.pump(ctx);
            self.deliver(ctx);
        }
        self.end_if_done(ctx);
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<ClientMsg>) {
        self.shared.leave(self.session.id);
    }
}
