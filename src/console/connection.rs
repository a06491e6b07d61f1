//! The actor of a connection: it reads the head of one request, answers, and ends.
//!
//! A client gets a single answer for each connection. When the answer is sent, this side ends its half. Then the actor
//! throws away what the client still sends, until the client closes: a socket that closes with unread input would reset the
//! connection, and the client might lose the answer.

use crate::actor::actor::{Actor, HandlerResult};
use crate::actor::context::Context;
use crate::console::clients::{ClientEntry, Clients};
use crate::console::pages::{Answer, Pages, refusal, trace};
use crate::console::request::{HEAD_MAX, Method, parse};
use crate::console::response::{Response, Status};
use crate::console::server::Limits;
use crate::net::connection::{Connection, ReadOutcome};
use crate::net::ready::Ready;
use crate::telemetry::flight_recorder::Recording;
use std::sync::Arc as StdArc;
use std::time::Duration;

/// Bytes of a client that are thrown away in one turn.
const UNWANTED_MAX: usize = 64 * 1024;

/// A client.
pub(crate) struct Client {
    connection: Connection,
    pages: StdArc<Pages>,
    /// The time that the client has to read its answer and to close.
    response_within: Duration,
    phase: Phase,
    /// The recording that the client has asked for.
    recording: Option<Recording>,
    /// Taken out of the list of clients with this value.
    _entry: ClientEntry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The head of the request has not come.
    Reading,
    /// The answer comes when the recording has run long enough.
    Recording,
    /// The answer is written.
    Answered,
}

pub(crate) enum Message {
    Ready(Ready),
    /// The time for this phase is over.
    Late(Phase),
    /// A new client needs the place.
    GiveWay,
}

impl From<Ready> for Message {
    fn from(ready: Ready) -> Self {
        Message::Ready(ready)
    }
}

impl Client {
    pub(crate) fn new(
        connection: Connection,
        pages: StdArc<Pages>,
        clients: &StdArc<Clients>,
        limits: Limits,
        ctx: &mut Context<Message>,
    ) -> Self {
        ctx.after(limits.request_within, Message::Late(Phase::Reading));
        Self {
            connection,
            pages,
            response_within: limits.response_within,
            phase: Phase::Reading,
            recording: None,
            _entry: clients.enter(ctx.me()),
        }
    }

    /// Reads what has come, and answers if that is a whole head.
    fn read(&mut self, ctx: &mut Context<Message>) {
        let connection = &mut self.connection;
        let outcome = connection.fill(HEAD_MAX - connection.received().len());
        match parse(connection.received()) {
            Ok(Some(request)) => {
                let system = ctx.system();
                // The walk over many actors takes a while, in which no task may wait for this worker.
                match ctx.blocking(|| self.pages.answer(&request, &system)) {
                    Answer::Now(response) => self.answer(&response, request.method != Method::Head, ctx),
                    Answer::After(length, recording) => {
                        self.recording = Some(recording);
                        self.phase = Phase::Recording;
                        ctx.after(length, Message::Late(Phase::Recording));
                    }
                }
            }
            Err(fault) => self.answer(&refusal(fault), true, ctx),
            Ok(None) => match outcome {
                ReadOutcome::Eof if !connection.received().is_empty() => {
                    let response = Response::plain(Status::BadRequest, "the request ends within its head\n");
                    self.answer(&response, true, ctx);
                }
                ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
                ReadOutcome::Read(_) | ReadOutcome::Blocked => {}
            },
        }
    }

    fn answer(&mut self, response: &Response, has_page: bool, ctx: &mut Context<Message>) {
        self.phase = Phase::Answered;
        let connection = &mut self.connection;
        connection.consume(connection.received().len());
        response.write(has_page, connection.output());
        // Sends what the socket takes; the rest goes out when the client has read.
        connection.shutdown_write();
        ctx.after(self.response_within, Message::Late(Phase::Answered));
        self.await_end(ctx);
    }

    /// Ends the connection for another client. A request that has come is answered before.
    fn give_way(&mut self, ctx: &mut Context<Message>) {
        if self.phase == Phase::Reading {
            self.read(ctx);
        }
        // An answer that the socket has taken goes out by itself.
        if self.phase != Phase::Answered || self.connection.pending() > 0 {
            self.connection.abort();
        }
        ctx.stop();
    }

    /// Throws away what the client sends, and ends when the client has closed.
    fn await_end(&mut self, ctx: &mut Context<Message>) {
        let connection = &mut self.connection;
        match connection.fill(UNWANTED_MAX) {
            ReadOutcome::Read(_) => connection.consume(connection.received().len()),
            ReadOutcome::Blocked => {}
            // A client may end its half before it reads.
            ReadOutcome::Eof if connection.pending() > 0 => {}
            ReadOutcome::Eof | ReadOutcome::Closed(_) => ctx.stop(),
        }
    }
}

impl Actor for Client {
    type Message = Message;

    fn receive(&mut self, message: Message, ctx: &mut Context<Message>) -> HandlerResult {
        match message {
            Message::Ready(ready) => {
                self.connection.ready(ready);
                match self.phase {
                    Phase::Reading => self.read(ctx),
                    Phase::Recording => {}
                    Phase::Answered => self.await_end(ctx),
                }
            }
            Message::GiveWay => self.give_way(ctx),
            Message::Late(phase) if phase != self.phase => {}
            Message::Late(Phase::Reading) => {
                let response = Response::plain(Status::RequestTimeout, "the request did not come in time\n");
                self.answer(&response, true, ctx);
            }
            Message::Late(Phase::Recording) => {
                if let Some(recording) = self.recording.take() {
                    let system = ctx.system();
                    let response = ctx.blocking(|| trace(recording, &system));
                    self.answer(&response, true, ctx);
                }
            }
            Message::Late(Phase::Answered) => {
                self.connection.abort();
                ctx.stop();
            }
        }
        Ok(())
    }

    fn stopped(&mut self, _: &mut Context<Message>) {
        // The end of the system does not wait for clients that have not asked for anything.
        if self.phase != Phase::Answered {
            self.connection.abort();
        }
    }
}
