//! A client's connection: lines in, one answer for each, in order.
//!
//! A session reads no further while it waits for an answer, so a client that sends faster than it is served is slowed
//! down by TCP.

use crate::account::AccountRequest;
use crate::calculator::Forecast;
use pointsman::net::{Connection, LineFramer, ReadOutcome, Ready};
use pointsman::prelude::*;
use std::time::Duration;

/// The longest line of a client in bytes.
pub const LINE_MAX: usize = 256;
const USE: &str = "use deposit NAME CENTS, withdraw NAME CENTS, balance NAME or forecast NAME YEARS";

type AccountReply = Result<Result<u64, &'static str>, AskError>;

pub enum SessionMsg {
    Ready(Ready),
    /// With the years of the forecast that begins with this balance.
    Account(AccountReply, Option<u32>),
    Forecast(Result<u64, AskError>),
}

impl From<Ready> for SessionMsg {
    fn from(ready: Ready) -> Self {
        SessionMsg::Ready(ready)
    }
}

/// The actors that a session asks, and how it asks.
#[derive(Clone)]
pub struct Services {
    pub accounts: ActorRef<Call<AccountRequest>>,
    pub calculators: ActorRef<Call<Forecast>>,
    pub answer_within: Duration,
    pub lines: LineFramer,
}

pub struct Session {
    pub client: Connection,
    pub services: Services,
    /// Whether the answer to a line is still to come.
    pub is_asking: bool,
}

impl Session {
    /// Serves the lines that have come, up to a line whose answer has to be waited for.
    fn serve(&mut self, ctx: &mut Context<SessionMsg>) -> HandlerResult {
        let outcome = self.client.fill(LINE_MAX);
        while let Some(line) = self.client.next_frame(&mut self.services.lines)? {
            let line = String::from_utf8_lossy(line).into_owned();
            let Err(reason) = self.ask(&line, ctx) else { return Ok(()) };
            self.answer(&format!("error {reason}"));
        }
        if matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)) || self.client.is_draining() {
            ctx.stop();
        }
        Ok(())
    }

    /// Asks for the answer to a line.
    fn ask(&mut self, line: &str, ctx: &mut Context<SessionMsg>) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (&[verb, name] | &[verb, name, _]) = &words[..] else { return Err(USE.to_owned()) };
        let number =
            words.get(2).map(|word| word.parse::<u32>().map_err(|error| format!("{word:?}: {error}")));
        let (change, years) = match (verb, number.transpose()?) {
            ("deposit", Some(cents)) => (i64::from(cents), None),
            ("withdraw", Some(cents)) => (-i64::from(cents), None),
            ("balance", None) => (0, None),
            ("forecast", Some(years)) => (0, Some(years)),
            _ => return Err(USE.to_owned()),
        };
        let Services { accounts, answer_within, .. } = &self.services;
        let request = AccountRequest { name: name.to_owned(), change };
        ctx.ask_within(accounts, request, *answer_within, move |reply| SessionMsg::Account(reply, years));
        self.is_asking = true;
        Ok(())
    }

    /// Answers a line whose ask is over.
    fn finish(&mut self, reply: AccountReply) {
        self.is_asking = false;
        self.answer(&match reply {
            Ok(Ok(cents)) => format!("ok {cents}"),
            Ok(Err(reason)) => format!("refused {reason}"),
            Err(error) if error.is_full() => "busy".to_owned(), // nothing is done: the client may try again
            Err(AskError::Timeout { .. }) => "late".to_owned(),
            Err(error) => format!("error {error}"),
        });
    }

    fn answer(&mut self, text: &str) {
        self.client.write(format!("{text}\n").as_bytes());
    }
}

impl Actor for Session {
    type Message = SessionMsg;

    fn receive(&mut self, message: SessionMsg, ctx: &mut Context<SessionMsg>) -> HandlerResult {
        match message {
            SessionMsg::Ready(ready) => self.client.ready(ready),
            SessionMsg::Account(Ok(Ok(cents)), Some(years)) => {
                let Services { calculators, answer_within, .. } = &self.services;
                ctx.ask_within(calculators, Forecast { cents, years }, *answer_within, SessionMsg::Forecast);
            }
            SessionMsg::Account(reply, _) => self.finish(reply),
            SessionMsg::Forecast(reply) => self.finish(reply.map(Ok)),
        }
        let served = if self.is_asking { Ok(()) } else { self.serve(ctx) };
        if let Err(failure) = served {
            self.answer(&format!("error {failure}"));
            ctx.stop();
        }
        self.client.flush();
        Ok(())
    }
}
