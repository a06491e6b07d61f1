//! A connection of a client to a server, without sockets: bytes in, bytes and events out.
//!
//! The server speaks first, by `INFO`. Then TLS begins, if it is wanted, and then come `CONNECT`, the subscriptions and a
//! `PING`. The connection is *up* with the first `PONG`, which says that the server has taken all of these.

use crate::codec::{
    Connect, Decoded, Decoder, Message, PING, PONG, ServerInfo, Subject, put_connect, put_sub, put_unsub,
};
use crate::connect_error::{CertificateFault, CertificateOwner, ConnectError, Stage};
use crate::server_fault::ServerFault;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time from the beginning of a connection to its first `PONG`.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A `PING` goes out when the server has been silent for so long, and again after each such time.
pub(crate) const PING_AFTER: Duration = Duration::from_secs(5);
/// A server that has answered none of so many is taken for dead after the time of one more.
const PINGS_MAX: u32 = 2;

/// How a client introduces itself.
#[derive(Clone)] // no `Debug`, which would show the password
pub(crate) struct ClientOptions {
    /// The name by which the server lists the connection.
    pub(crate) name: String,
    /// Whether own messages come back.
    pub(crate) echo: bool,
    pub(crate) tls: bool,
    /// Whether there is a certificate to show.
    pub(crate) has_certificate: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) subscriptions: Vec<(Subject, u64)>,
}

/// Something that the owner of the connection must know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// TLS must begin. Then the owner calls [`Client::secured`].
    StartTls,
    /// The connection is up, and a payload may have so many bytes.
    Up {
        max_payload: usize,
    },
    Message(Message<'a>),
    /// The answer to a [`ping`](Client::ping) of the owner.
    Pong,
    /// The server refuses an operation, and the connection stays.
    Refused(ServerFault),
    /// The server has said something new of itself. It is told over TLS alone.
    Info(&'a ServerInfo),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening,
    Info,
    Tls,
    Pong,
    Up,
}

pub(crate) struct Client {
    decoder: Decoder,
    options: ClientOptions,
    phase: Phase,
    opened: Instant,
    /// The time of the last bytes, or of the beginning.
    heard: Instant,
    /// The `PING`s since.
    pings: u32,
    /// The `PING`s without an answer, oldest first: whether the owner has asked. Answers come in this order.
    asked: VecDeque<bool>,
    info: Option<ServerInfo>,
}

impl Client {
    /// Begins a connection.
    pub(crate) fn new(options: ClientOptions, now: Instant) -> Self {
        Self {
            decoder: Decoder::new(),
            options,
            phase: Phase::Opening,
            opened: now,
            heard: now,
            pings: 0,
            asked: VecDeque::new(),
            info: None,
        }
    }

    /// TCP is connected.
    pub(crate) fn opened(&mut self) {
        self.phase = Phase::Info;
    }

    pub(crate) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    /// Whether the handshake of TLS is awaited.
    pub(crate) fn is_securing(&self) -> bool {
        self.phase == Phase::Tls
    }

    /// The last `INFO` of the server.
    pub(crate) fn info(&self) -> Option<&ServerInfo> {
        self.info.as_ref()
    }

    /// Room for bytes of the server: plain ones, also under TLS.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.decoder.space()
    }

    /// So many bytes have come.
    pub(crate) fn filled(&mut self, count: usize, now: Instant) {
        self.decoder.filled(count);
        self.heard = now;
        self.pings = 0;
    }

    /// The next event in the bytes that have come; `None` if there is none. Answers are written to `out`.
    ///
    /// # Errors
    ///
    /// The connection must be closed.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Event<'_>>, ConnectError> {
        loop {
            let decoded = self.decoder.advance();
            let decoded = decoded.map_err(|error| ConnectError::Protocol { why: error.to_string() })?;
            let Some(decoded) = decoded else { return Ok(None) };
            if self.info.is_none() && !matches!(decoded, Decoded::Info(_)) {
                let why = "the server has not begun with INFO: is it a NATS server?".to_owned();
                return Err(ConnectError::Protocol { why });
            }
            match decoded {
                Decoded::Info(info) => {
                    let is_first = self.info.is_none();
                    let info: &ServerInfo = self.info.insert(*info);
                    if is_first {
                        if self.options.tls {
                            self.begin_tls()?;
                            return Ok(Some(Event::StartTls));
                        }
                        if info.tls_required {
                            return Err(ConnectError::TlsRequired);
                        }
                        self.introduce(out);
                    } else if self.options.tls {
                        // In plain text another machine on the way could write it, and lead the client elsewhere.
                        return Ok(self.info.as_ref().map(Event::Info));
                    }
                }
                Decoded::Message(at) => return Ok(Some(Event::Message(self.decoder.message(&at)))),
                Decoded::Ping => out.extend_from_slice(PONG),
                Decoded::Pong => {
                    if self.phase == Phase::Pong {
                        self.phase = Phase::Up;
                        let max_payload = self.info.as_ref().map_or(0, |info| info.max_payload);
                        let max_payload = usize::try_from(max_payload).unwrap_or(usize::MAX);
                        return Ok(Some(Event::Up { max_payload }));
                    }
                    if self.asked.pop_front() == Some(true) {
                        return Ok(Some(Event::Pong));
                    }
                }
                Decoded::Ok => {}
                Decoded::Error(text) => match ServerFault::of(self.decoder.text(&text)) {
                    ServerFault::Fatal(error) => return Err(error),
                    ServerFault::Subscribe { subject } if self.phase != Phase::Up => {
                        return Err(ConnectError::Subscription { subject });
                    }
                    fault => return Ok(Some(Event::Refused(fault))),
                },
            }
        }
    }

    fn begin_tls(&mut self) -> Result<(), ConnectError> {
        let Some(info) = &self.info else { return Ok(()) };
        if !info.tls_required && !info.tls_available {
            return Err(ConnectError::TlsNotOffered);
        }
        if info.tls_verify && !self.options.has_certificate {
            let (of, fault) = (CertificateOwner::Client, CertificateFault::Absent);
            return Err(ConnectError::Certificate { of, fault });
        }
        if self.decoder.buffered() > 0 {
            return Err(ConnectError::PlainTextBeforeTls);
        }
        self.phase = Phase::Tls;
        Ok(())
    }

    /// The handshake of TLS is done.
    pub(crate) fn secured(&mut self, out: &mut Vec<u8>) {
        self.introduce(out);
    }

    fn introduce(&mut self, out: &mut Vec<u8>) {
        let has_headers = self.info.as_ref().is_some_and(|info| info.headers);
        let connect = Connect {
            verbose: false,
            pedantic: false,
            echo: self.options.echo,
            headers: has_headers,
            no_responders: has_headers,
            tls_required: self.options.tls,
            protocol: 1,
            name: &self.options.name,
            lang: "rust",
            version: env!("CARGO_PKG_VERSION"),
            user: self.options.user.as_deref(),
            pass: self.options.password.as_deref(),
        };
        put_connect(out, &connect);
        for (pattern, sid) in &self.options.subscriptions {
            put_sub(out, pattern, *sid);
        }
        out.extend_from_slice(PING);
        self.phase = Phase::Pong;
    }

    /// Replaces a subscription: messages for the pattern come with this number.
    pub(crate) fn resubscribe(&mut self, old: u64, pattern: &Subject, sid: u64, out: &mut Vec<u8>) {
        self.options.subscriptions.retain(|(_, number)| *number != old);
        self.options.subscriptions.push((pattern.clone(), sid));
        if matches!(self.phase, Phase::Pong | Phase::Up) {
            put_unsub(out, old);
            put_sub(out, pattern, sid);
        }
    }

    /// Writes a `PING` whose answer is an event. Then the server has taken all that was written before.
    pub(crate) fn ping(&mut self, out: &mut Vec<u8>) {
        self.asked.push_back(true);
        out.extend_from_slice(PING);
    }

    /// The time at which [`tick`](Self::tick) has something to do.
    pub(crate) fn next_tick(&self) -> Instant {
        match self.phase {
            Phase::Up => self.heard + PING_AFTER * (self.pings + 1),
            _ => self.opened + CONNECT_WITHIN,
        }
    }

    /// Looks at the time.
    ///
    /// # Errors
    ///
    /// The server has been silent for too long.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Vec<u8>) -> Result<(), ConnectError> {
        if now < self.next_tick() {
            return Ok(());
        }
        let stage = match self.phase {
            Phase::Opening => Stage::Connect,
            Phase::Info => Stage::Info,
            Phase::Tls => Stage::Tls,
            Phase::Pong => Stage::Pong,
            Phase::Up if self.pings >= PINGS_MAX => {
                return Err(ConnectError::Silent { since: now - self.heard });
            }
            Phase::Up => {
                self.pings += 1;
                self.asked.push_back(false);
                out.extend_from_slice(PING);
                return Ok(());
            }
        };
        Err(ConnectError::TimedOut { stage, after: CONNECT_WITHIN })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "INFO {\"max_payload\":1048576,\"headers\":true}\r\n";
    const SECURE: &str = "INFO {\"max_payload\":1048576,\"headers\":true,\"tls_required\":true}\r\n";

    fn options(tls: bool) -> ClientOptions {
        ClientOptions {
            name: "shop/n1/data".to_owned(),
            echo: false,
            tls,
            has_certificate: false,
            user: None,
            password: None,
            subscriptions: vec![(Subject::new("shop.d.n1.*").unwrap(), 1)],
        }
    }

    /// A client whose TCP is connected.
    fn client(tls: bool) -> Client {
        let mut client = Client::new(options(tls), Instant::now());
        client.opened();
        client
    }

    /// The events and the answers that these bytes lead to, or the error.
    fn hear(client: &mut Client, bytes: &str) -> Result<(Vec<String>, String), ConnectError> {
        let (mut events, mut out) = (Vec::new(), Vec::new());
        for chunk in bytes.as_bytes().chunks(4096) {
            client.space()[..chunk.len()].copy_from_slice(chunk);
            client.filled(chunk.len(), Instant::now());
            while let Some(event) = client.next(&mut out)? {
                events.push(format!("{event:?}"));
            }
        }
        Ok((events, String::from_utf8(out).unwrap()))
    }

    fn up() -> Client {
        let mut client = client(false);
        hear(&mut client, PLAIN).unwrap();
        let (events, _) = hear(&mut client, "PONG\r\n").unwrap();
        assert_eq!(events, ["Up { max_payload: 1048576 }"]);
        client
    }

    #[test]
    fn a_client_waits_for_the_info_introduces_itself_and_is_up_with_the_first_pong() {
        let mut client = client(false);
        let (events, answers) = hear(&mut client, PLAIN).unwrap();
        assert!(events.is_empty() && !client.is_up());
        let (connect, rest) = answers.split_once("\r\n").unwrap();
        let json: serde_json::Value =
            serde_json::from_str(connect.strip_prefix("CONNECT ").unwrap()).unwrap();
        for (key, value) in [
            ("verbose", false),
            ("pedantic", false),
            ("echo", false),
            ("headers", true),
            ("no_responders", true),
            ("tls_required", false),
        ] {
            assert_eq!(json[key].as_bool(), Some(value), "{key}");
        }
        assert_eq!((json["name"].as_str(), json["protocol"].as_u64()), (Some("shop/n1/data"), Some(1)));
        assert_eq!(rest, "SUB shop.d.n1.* 1\r\nPING\r\n");
        let (events, answers) = hear(&mut client, "+OK\r\nPING\r\nPONG\r\nPONG\r\nPING\r\n").unwrap();
        assert_eq!(events, ["Up { max_payload: 1048576 }"]);
        assert_eq!(answers, "PONG\r\nPONG\r\n");
        assert!(client.is_up());
    }

    #[test]
    fn a_server_without_headers_is_asked_for_none() {
        let (_, answers) = hear(&mut client(false), "INFO {\"max_payload\":1}\r\n").unwrap();
        assert!(answers.contains("\"headers\":false,\"no_responders\":false"), "{answers}");
    }

    #[test]
    fn messages_may_come_before_the_pong() {
        let mut client = client(false);
        let (events, _) =
            hear(&mut client, &format!("{PLAIN}MSG shop.d.n1.n2 1 2\r\nhi\r\nPONG\r\n")).unwrap();
        assert!(events[0].starts_with("Message(") && events[1].starts_with("Up"), "{events:?}");
    }

    #[test]
    fn a_server_that_does_not_begin_with_info_is_none() {
        for bytes in ["PING\r\n", "PONG\r\n", "+OK\r\n", "-ERR 'x'\r\n"] {
            assert!(matches!(hear(&mut client(false), bytes), Err(ConnectError::Protocol { .. })), "{bytes}");
        }
        let error = hear(&mut client(true), "SSH-2.0-OpenSSH_9.2p1\r\n").unwrap_err().to_string();
        assert!(error.contains("SSH-2.0") && error.contains("is it a NATS server?"), "{error}");
    }

    #[test]
    fn tls_begins_behind_the_info_and_before_any_byte_of_ours() {
        let mut client = client(true);
        let (events, answers) = hear(&mut client, SECURE).unwrap();
        assert_eq!((events[0].as_str(), answers.as_str()), ("StartTls", ""));
        let mut out = Vec::new();
        client.secured(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("CONNECT {") && text.contains("\"tls_required\":true"), "{text}");
    }

    #[test]
    fn a_server_that_offers_no_tls_gets_nothing_where_tls_is_wanted() {
        let mut client = client(true);
        let mut out = Vec::new();
        client.space()[..PLAIN.len()].copy_from_slice(PLAIN.as_bytes());
        client.filled(PLAIN.len(), Instant::now());
        assert_eq!(client.next(&mut out), Err(ConnectError::TlsNotOffered));
        assert!(out.is_empty());
    }

    #[test]
    fn more_plain_text_where_tls_must_begin_is_not_taken() {
        for more in ["PING\r\n", "P", SECURE] {
            let error = hear(&mut client(true), &format!("{SECURE}{more}"));
            assert_eq!(error, Err(ConnectError::PlainTextBeforeTls), "{more}");
        }
    }

    #[test]
    fn a_certificate_that_the_server_will_ask_for_is_missed_at_once() {
        let info = SECURE.replace("{", "{\"tls_verify\":true,");
        let (of, fault) = (CertificateOwner::Client, CertificateFault::Absent);
        assert_eq!(hear(&mut client(true), &info), Err(ConnectError::Certificate { of, fault }));
        let with_one = ClientOptions { has_certificate: true, ..options(true) };
        let mut client = Client::new(with_one, Instant::now());
        assert_eq!(hear(&mut client, &info).unwrap().0, ["StartTls"]);
    }

    #[test]
    fn a_server_that_demands_tls_is_not_spoken_to_in_plain_text() {
        let mut client = client(false);
        let mut out = Vec::new();
        client.space()[..SECURE.len()].copy_from_slice(SECURE.as_bytes());
        client.filled(SECURE.len(), Instant::now());
        assert_eq!(client.next(&mut out), Err(ConnectError::TlsRequired));
        assert!(out.is_empty());
    }

    /// A second `INFO` changes what is known, and never the way of speaking.
    #[test]
    fn an_info_may_come_again() {
        let mut client = up();
        let (events, answers) = hear(&mut client, &format!("{SECURE}{PLAIN}")).unwrap();
        assert!(events.is_empty() && answers.is_empty(), "{events:?} {answers}");
        assert!(client.is_up());
        // Servers of a cluster are believed over TLS alone.
        let mut client = self::client(true);
        hear(&mut client, SECURE).unwrap();
        client.secured(&mut Vec::new());
        let (events, _) =
            hear(&mut client, "INFO {\"max_payload\":5,\"connect_urls\":[\"10.0.0.1:4222\"]}\r\n").unwrap();
        assert!(events[0].starts_with("Info(") && events[0].contains("10.0.0.1:4222"), "{events:?}");
    }

    #[test]
    fn an_error_of_the_server_ends_the_connection_or_is_told() {
        let error = hear(&mut up(), "-ERR 'Stale Connection'\r\n").unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }));
        let (events, _) =
            hear(&mut up(), "-ERR 'Permissions Violation for Publish to \"a.b\"'\r\nPING\r\n").unwrap();
        assert_eq!(events, ["Refused(Publish { subject: \"a.b\" })"]);
        let (events, _) =
            hear(&mut up(), "-ERR 'Permissions Violation for Subscription to \"a\"'\r\n").unwrap();
        assert_eq!(events, ["Refused(Subscribe { subject: \"a\" })"]);
    }

    #[test]
    fn before_the_pong_a_refused_subscription_and_a_wrong_login_are_errors() {
        let before = |bytes: &str| hear(&mut client(false), &format!("{PLAIN}{bytes}")).unwrap_err();
        let subject = "shop.d.n1.*".to_owned();
        let bytes = "-ERR 'Permissions Violation for Subscription to \"shop.d.n1.*\"'\r\nPONG\r\n";
        assert_eq!(before(bytes), ConnectError::Subscription { subject });
        let said = "Authorization Violation".to_owned();
        assert_eq!(before("-ERR 'Authorization Violation'\r\n"), ConnectError::Authorization { said });
    }

    #[test]
    fn each_step_has_its_time() {
        let begun = Instant::now();
        let mut out = Vec::new();
        let stage = |client: &mut Client, out: &mut Vec<u8>| {
            assert_eq!(client.tick(begun + CONNECT_WITHIN - Duration::from_millis(1), out), Ok(()));
            match client.tick(begun + CONNECT_WITHIN, out) {
                Err(ConnectError::TimedOut { stage, after: CONNECT_WITHIN }) => stage,
                other => panic!("{other:?}"),
            }
        };
        let mut client = Client::new(options(true), begun);
        assert_eq!(stage(&mut client, &mut out), Stage::Connect);
        client.opened();
        assert_eq!(stage(&mut client, &mut out), Stage::Info);
        hear(&mut client, SECURE).unwrap();
        assert_eq!(stage(&mut client, &mut out), Stage::Tls);
        client.secured(&mut out);
        // The server sends PINGs, and never the answer.
        hear(&mut client, "PING\r\nPING\r\n").unwrap();
        assert_eq!(stage(&mut client, &mut out), Stage::Pong);
    }

    #[test]
    fn a_silent_server_is_asked_twice_and_then_given_up() {
        let mut client = up();
        let heard = client.heard;
        let mut out = Vec::new();
        for round in 1..=2 {
            assert_eq!(client.next_tick(), heard + PING_AFTER * round);
            client.tick(heard + PING_AFTER * round, &mut out).unwrap();
            assert_eq!(out.len(), 6 * round as usize);
        }
        let error = client.tick(heard + PING_AFTER * 3, &mut out);
        assert_eq!(error, Err(ConnectError::Silent { since: PING_AFTER * 3 }));
        // Any byte is a sign of life.
        let mut client = up();
        let heard = client.heard;
        client.tick(heard + PING_AFTER, &mut out).unwrap();
        hear(&mut client, "PONG\r\n").unwrap();
        assert!(client.pings == 0 && client.asked.is_empty());
    }

    #[test]
    fn only_the_answer_to_the_owners_ping_is_an_event() {
        let mut client = up();
        let mut out = Vec::new();
        client.tick(client.heard + PING_AFTER, &mut out).unwrap();
        client.ping(&mut out);
        assert_eq!(out, b"PING\r\nPING\r\n");
        let (events, _) = hear(&mut client, "PONG\r\n").unwrap();
        assert!(events.is_empty());
        assert_eq!(hear(&mut client, "PONG\r\nPONG\r\n").unwrap().0, ["Pong"]);
    }

    #[test]
    fn a_subscription_is_replaced_here_and_at_the_next_connection() {
        let pattern = Subject::new("shop.u.n1.2").unwrap();
        let mut out = Vec::new();
        let mut client = up();
        client.resubscribe(1, &pattern, 9, &mut out);
        assert_eq!(out, b"UNSUB 1\r\nSUB shop.u.n1.2 9\r\n");
        let mut client = self::client(false);
        out.clear();
        client.resubscribe(1, &pattern, 9, &mut out);
        assert!(out.is_empty());
        let (_, answers) = hear(&mut client, PLAIN).unwrap();
        assert!(
            answers.ends_with("SUB shop.u.n1.2 9\r\nPING\r\n") && !answers.contains("shop.d"),
            "{answers}"
        );
    }
}
