//! The diagnosis of `pointsman-doctor` for each server: whether it can be reached, how fast it is, and what a node may do there.
//!
//! It disturbs no node: what it publishes under the name of the node is empty, and engines pass over empty frames. It measures by
//! a subject that no node listens to.

use crate::client::{CONNECT_WITHIN, Client, ClientOptions, Event};
use crate::codec::{Subject, put_hpub, put_pub, put_sub, put_unsub};
use crate::connect_error::{ConnectError, Stage};
use crate::settings::{Nats, ServerAddress, SettingsError};
use crate::subjects::Subjects;
use crate::transport::{Transport, Written};
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The questions of which the median is the round trip.
const QUESTIONS: usize = 51;
/// The payload of a question.
const QUESTION_LEN: usize = 64;
/// The time of the measurement of bytes.
const MEASURED_FOR: Duration = Duration::from_millis(500);
/// The frames of this measurement, as large as the batches of nodes.
const FRAME_LEN: usize = 16 * 1024;
/// The bytes that are under way at a time.
const UNDER_WAY_MAX: usize = 1024 * 1024;
/// The time for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a read waits before the time is looked at.
const READ_FOR: Duration = Duration::from_millis(100);
/// A node that does not exist, in subjects that are tried.
const NO_NODE: &str = "pointsman-doctor";
/// Headers as the protocol has them.
const HEADERS: &[u8] = b"NATS/1.0\r\nDoctor: yes\r\n\r\n";

/// The diagnosis of one server: see [`Nats::diagnose`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Its address.
    pub server: String,
    /// The abilities of the server, or the reason why there is no connection.
    pub outcome: Result<Report, ConnectError>,
}

/// The abilities of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The name that the server gives itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Whether the connection is TLS.
    pub is_secure: bool,
    /// The bytes of the longest frame.
    pub max_payload: u64,
    /// Whether frames may have headers, which the server needs to say that a node does not listen.
    pub has_headers: bool,
    /// The time to the connection, with TLS and login.
    pub connected_after: Duration,
    /// The time for a frame to the server and back: the median and the longest. `None` if it may not be sent or received.
    pub round_trip: Option<(Duration, Duration)>,
    /// Frames of 16 KiB to the server and back. `None` as above.
    pub throughput: Option<Throughput>,
    /// The permissions of the node: those that it needs, and those that it had better not have.
    pub permissions: Vec<Permission>,
}

/// The bytes that went to a server and back within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Throughput {
    /// The bytes.
    pub bytes: u64,
    /// The time.
    pub took: Duration,
}

/// Something that a node may do, or may not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permission {
    /// Whether it is to publish; else, to subscribe.
    pub is_publish: bool,
    /// The subject that was tried.
    pub subject: String,
    /// Whether the server allows it.
    pub is_allowed: bool,
    /// Whether the node needs it. A permission that it does not need is that of another node.
    pub is_needed: bool,
}

impl Diagnosis {
    /// Whether a node can work with the server: it is connected, and has all permissions that it needs.
    pub fn is_usable(&self) -> bool {
        let Ok(report) = &self.outcome else { return false };
        report.permissions.iter().all(|permission| permission.is_allowed || !permission.is_needed)
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = match &self.outcome {
            Err(error) => return write!(f, "{}: NOT USABLE: {error}", self.server),
            Ok(report) => report,
        };
        let usable = if self.is_usable() { "usable" } else { "NOT USABLE" };
        writeln!(f, "{}: {usable}", self.server)?;
        writeln!(f, "  server       {} {}", report.version, report.name)?;
        writeln!(
            f,
            "  connection   {}, after {:.1?}",
            if report.is_secure { "TLS" } else { "plain text" },
            report.connected_after
        )?;
        writeln!(f, "  frames       up to {} bytes", report.max_payload)?;
        if !report.has_headers {
            writeln!(f, "  headers      NONE: a node that is gone is noticed later")?;
        }
        match report.round_trip {
            Some((median, longest)) => {
                writeln!(f, "  round trip   {median:.1?}, at most {longest:.1?} of {QUESTIONS}")?
            }
            None => writeln!(f, "  round trip   not measured, since it is not allowed")?,
        }
        if let Some(Throughput { bytes, took }) = report.throughput {
            let rate = bytes as f64 / took.as_secs_f64() / 1e6;
            writeln!(
                f,
                "  throughput   {rate:.0} MB/s to the server and back, in frames of {} KiB",
                FRAME_LEN / 1024
            )?;
        }
        for Permission { is_publish, subject, is_allowed, is_needed } in &report.permissions {
            let what = if *is_publish { "publish" } else { "subscribe" };
            let judgement = match (is_needed, is_allowed) {
                (true, true) => "allowed",
                (true, false) => "REFUSED, and the node needs it: see nats-server.conf",
                (false, false) => "refused, as it should be",
                (false, true) => "allowed: nodes are not kept apart, see nats-server.conf",
            };
            writeln!(f, "  {what:12} {subject}: {judgement}")?;
        }
        Ok(())
    }
}

impl Nats {
    /// Looks at each server as a node would see it. This takes seconds, and waits.
    ///
    /// # Errors
    ///
    /// A [`SettingsError`] for settings that can never work; what is wrong with a server stands in its [`Diagnosis`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pointsman_nats::Nats;
    ///
    /// let found = Nats::servers(["nats://127.0.0.1:1"]).diagnose("pointsman", "n1")?;
    /// assert!(!found[0].is_usable());
    /// assert!(found[0].to_string().starts_with("nats://127.0.0.1:1: NOT USABLE: the connection failed"));
    /// # Ok::<(), pointsman_nats::SettingsError>(())
    /// ```
    pub fn diagnose(&self, cluster: &str, node: &str) -> Result<Vec<Diagnosis>, SettingsError> {
        let servers = self.addresses()?;
        let subjects = Subjects::new(cluster, node)?;
        #[cfg(feature = "tls")]
        let tls = match servers.iter().any(|server| server.tls) {
            true => Some(crate::tls::TlsConfig::load(&self.files)?),
            false => None,
        };
        let diagnose = |server: &ServerAddress| {
            let trust = Trust {
                insecure: self.insecure,
                #[cfg(feature = "tls")]
                tls: tls.as_ref(),
                #[cfg(not(feature = "tls"))]
                tls: std::marker::PhantomData,
            };
            Diagnosis { server: server.to_string(), outcome: examine(server, &subjects, cluster, &trust) }
        };
        Ok(servers.iter().map(diagnose).collect())
    }
}

/// How servers are trusted.
struct Trust<'a> {
    insecure: bool,
    #[cfg(feature = "tls")]
    tls: Option<&'a crate::tls::TlsConfig>,
    #[cfg(not(feature = "tls"))]
    tls: std::marker::PhantomData<&'a ()>,
}

fn examine(
    server: &ServerAddress,
    subjects: &Subjects,
    cluster: &str,
    trust: &Trust<'_>,
) -> Result<Report, ConnectError> {
    let began = Instant::now();
    let mut session = Session::connect(server, subjects, trust)?;
    let connected_after = began.elapsed();
    let info = session.client.info().cloned();
    let info = info.ok_or(ConnectError::Closed)?;
    let mut permissions = Vec::new();
    let node = subjects.node();
    let token = format!("doctor-{}", std::process::id());
    let own = format!("{cluster}.u.{node}.{token}");
    let needed = [
        (false, subjects.all_data().to_string()),
        (false, subjects.all_control().to_string()),
        (false, subjects.all_heartbeats().to_string()),
        (false, subjects.all_registries().to_string()),
        (false, own.clone()),
        (false, subjects.answers().to_string()),
        (true, format!("{cluster}.d.{NO_NODE}.{node}")),
        (true, format!("{cluster}.c.{NO_NODE}.{node}")),
        (true, subjects.heartbeat().to_string()),
        (true, subjects.registry().to_string()),
        (true, own.clone()),
    ];
    let of_others = [
        (true, format!("{cluster}.d.{NO_NODE}.{NO_NODE}")),
        (true, format!("{cluster}.c.{NO_NODE}.{NO_NODE}")),
        (true, format!("{cluster}.h.{NO_NODE}")),
        (false, format!("{cluster}.d.{NO_NODE}.*")),
        (false, format!("{cluster}.c.{NO_NODE}.*")),
    ];
    let tried = needed
        .into_iter()
        .map(|tried| (tried, true))
        .chain(of_others.into_iter().map(|tried| (tried, false)));
    for ((is_publish, subject), is_needed) in tried {
        let is_allowed = session.may(is_publish, &subject)?;
        permissions.push(Permission { is_publish, subject, is_allowed, is_needed });
    }
    let may_measure =
        permissions.iter().filter(|permission| permission.subject == own).all(|own| own.is_allowed);
    let (mut round_trip, mut throughput) = (None, None);
    if let Some(own) = Subject::new(&own).filter(|_| may_measure) {
        round_trip = Some(session.round_trip(&own, info.headers)?);
        throughput = Some(session.throughput(&own)?);
    }
    Ok(Report {
        name: info.server_name,
        version: info.version,
        is_secure: server.tls,
        max_payload: info.max_payload,
        has_headers: info.headers,
        connected_after,
        round_trip,
        throughput,
        permissions,
    })
}

/// A stream whose reads give up after a while, which looks like a stream that never waits.
struct Patient(TcpStream);

impl Read for Patient {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // Windows says so.
        self.0.read(buf).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => io::ErrorKind::WouldBlock.into(),
            _ => error,
        })
    }
}

impl Write for Patient {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The notes on an event.
enum Noted {
    Up,
    Message { len: usize, has_headers: bool },
    Pong,
    Refused,
    Other,
}

/// A connection that waits.
struct Session {
    stream: Patient,
    transport: Transport,
    client: Client,
    last_sid: u64,
}

impl Session {
    fn connect(server: &ServerAddress, subjects: &Subjects, trust: &Trust<'_>) -> Result<Self, ConnectError> {
        let io = |error: io::Error| ConnectError::of_io(&error);
        let resolved = (server.host.as_str(), server.port).to_socket_addrs();
        let resolve = |why: String| ConnectError::Resolve { host: server.host.clone(), why };
        let mut error = resolve("none was found".to_owned());
        let mut stream = None;
        for address in resolved.map_err(|error| resolve(error.to_string()))? {
            if !server.tls && !trust.insecure && !address.ip().is_loopback() {
                error = ConnectError::PlainText { address: address.to_string() };
                continue;
            }
            match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
                Ok(connected) => {
                    stream = Some(connected);
                    break;
                }
                Err(refused) => error = io(refused),
            }
        }
        let Some(stream) = stream else { return Err(error) };
        stream.set_nodelay(true).map_err(io)?;
        stream.set_read_timeout(Some(READ_FOR)).map_err(io)?;
        stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(io)?;
        let options = ClientOptions {
            name: format!("pointsman-doctor of {}", subjects.node()),
            echo: true,
            tls: server.tls,
            has_certificate: trust.has_certificate(),
            user: server.user.clone(),
            password: server.password.clone(),
            subscriptions: Vec::new(),
        };
        let mut client = Client::new(options, Instant::now());
        client.opened();
        let mut secure = if server.tls { Some(trust.secure_transport(&server.tls_name)?) } else { None };
        let mut session = Self { stream: Patient(stream), transport: Transport::Plain, client, last_sid: 0 };
        loop {
            // The client looks at the time itself until it is up.
            let noted = session.next(&mut secure)?;
            if matches!(noted, Noted::Up) {
                return Ok(session);
            }
        }
    }

    /// Waits for the next event.
    fn next(&mut self, secure: &mut Option<Transport>) -> Result<Noted, ConnectError> {
        let mut answers = Vec::new();
        loop {
            let event = self.client.next(&mut answers)?;
            let mut begins_tls = false;
            let noted = event.map(|event| match event {
                Event::StartTls => {
                    begins_tls = true;
                    Noted::Other
                }
                Event::Up { .. } => Noted::Up,
                Event::Message(message) => {
                    Noted::Message { len: message.payload.len(), has_headers: !message.headers.is_empty() }
                }
                Event::Pong => Noted::Pong,
                Event::Refused(_) => Noted::Refused,
                Event::Info(_) => Noted::Other,
            });
            if begins_tls {
                self.transport = secure.take().ok_or(ConnectError::TlsRequired)?;
            }
            self.write(&answers)?;
            answers.clear();
            if let Some(noted) = noted {
                return Ok(noted);
            }
            match self.transport.read(&mut self.stream, self.client.space())? {
                None => self.client.tick(Instant::now(), &mut answers)?,
                Some(0) => {}
                Some(count) => self.client.filled(count, Instant::now()),
            }
            if self.client.is_securing() && self.is_secured() {
                self.client.secured(&mut answers);
            } else if self.transport.wants_write() {
                self.write_some(&[])?;
            }
            self.write(&answers)?;
            answers.clear();
        }
    }

    #[cfg(feature = "tls")]
    fn is_secured(&self) -> bool {
        matches!(&self.transport, Transport::Tls(session) if !session.is_handshaking())
    }

    #[cfg(not(feature = "tls"))]
    fn is_secured(&self) -> bool {
        false
    }

    fn write_some(&mut self, bytes: &[u8]) -> Result<usize, ConnectError> {
        let part = &bytes[..bytes.len().min(self.transport.write_max())];
        let slices = if part.is_empty() { &[][..] } else { &[IoSlice::new(part)][..] };
        match self.transport.write(&mut self.stream, slices)? {
            Written::Bytes(count) => Ok(count),
            Written::Blocked { .. } => {
                Err(ConnectError::TimedOut { stage: Stage::Pong, after: ANSWER_WITHIN })
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), ConnectError> {
        while !bytes.is_empty() {
            let count = self.write_some(bytes)?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Waits for an event that is looked for; errors of the server are noted on the way.
    fn wait(&mut self, mut is_it: impl FnMut(Noted) -> bool) -> Result<(), ConnectError> {
        let began = Instant::now();
        loop {
            let noted = self.next(&mut None)?;
            if is_it(noted) {
                return Ok(());
            }
            if began.elapsed() > ANSWER_WITHIN {
                return Err(ConnectError::TimedOut { stage: Stage::Pong, after: ANSWER_WITHIN });
            }
        }
    }

    /// Whether the server allows it.
    fn may(&mut self, is_publish: bool, subject: &str) -> Result<bool, ConnectError> {
        let Some(subject) = Subject::new(subject) else { return Ok(false) };
        let mut out = Vec::new();
        if is_publish {
            put_pub(&mut out, &subject, None, 0);
            out.extend_from_slice(b"\r\n");
        } else {
            self.last_sid += 1;
            put_sub(&mut out, &subject, self.last_sid);
            put_unsub(&mut out, self.last_sid);
        }
        self.client.ping(&mut out);
        self.write(&out)?;
        let mut is_allowed = true;
        self.wait(|noted| {
            is_allowed &= !matches!(noted, Noted::Refused);
            matches!(noted, Noted::Pong)
        })?;
        Ok(is_allowed)
    }

    /// The median and the longest of the times of questions that come back.
    fn round_trip(
        &mut self,
        subject: &Subject,
        has_headers: bool,
    ) -> Result<(Duration, Duration), ConnectError> {
        self.last_sid += 1;
        let sid = self.last_sid;
        let mut out = Vec::new();
        put_sub(&mut out, subject, sid);
        let mut times = Vec::with_capacity(QUESTIONS);
        for _ in 0..QUESTIONS {
            if has_headers {
                put_hpub(&mut out, subject, None, HEADERS.len(), HEADERS.len() + QUESTION_LEN);
                out.extend_from_slice(HEADERS);
            } else {
                put_pub(&mut out, subject, None, QUESTION_LEN);
            }
            out.extend_from_slice(&[b'.'; QUESTION_LEN]);
            out.extend_from_slice(b"\r\n");
            let began = Instant::now();
            self.write(&out)?;
            out.clear();
            let is_ours = |noted| matches!(noted, Noted::Message { len: QUESTION_LEN, has_headers: with } if with == has_headers);
            self.wait(is_ours)?;
            times.push(began.elapsed());
        }
        put_unsub(&mut out, sid);
        self.write(&out)?;
        times.sort();
        Ok((times[QUESTIONS / 2], times[QUESTIONS - 1]))
    }

    /// Frames to the server and back, a bounded number under way.
    fn throughput(&mut self, subject: &Subject) -> Result<Throughput, ConnectError> {
        self.last_sid += 1;
        let sid = self.last_sid;
        let mut frame = Vec::new();
        put_pub(&mut frame, subject, None, FRAME_LEN);
        frame.resize(frame.len() + FRAME_LEN, b'.');
        frame.extend_from_slice(b"\r\n");
        let mut out = Vec::new();
        put_sub(&mut out, subject, sid);
        self.write(&out)?;
        out.clear();
        let (began, mut sent, mut received) = (Instant::now(), 0, 0);
        while began.elapsed() < MEASURED_FOR || received < sent {
            while sent - received < UNDER_WAY_MAX && began.elapsed() < MEASURED_FOR {
                self.write(&frame)?;
                sent += FRAME_LEN;
            }
            self.wait(|noted| {
                let Noted::Message { len, .. } = noted else { return false };
                received += len;
                true
            })?;
        }
        let took = began.elapsed();
        put_unsub(&mut out, sid);
        self.write(&out)?;
        Ok(Throughput { bytes: received as u64, took })
    }
}

impl Trust<'_> {
    #[cfg(feature = "tls")]
    fn has_certificate(&self) -> bool {
        self.tls.is_some_and(|tls| tls.has_certificate())
    }

    #[cfg(feature = "tls")]
    fn secure_transport(&self, host: &str) -> Result<Transport, ConnectError> {
        let tls = self.tls.ok_or(ConnectError::TlsRequired)?;
        Ok(Transport::Tls(Box::new(tls.session(host)?)))
    }

    #[cfg(not(feature = "tls"))]
    fn has_certificate(&self) -> bool {
        false
    }

    #[cfg(not(feature = "tls"))]
    fn secure_transport(&self, _: &str) -> Result<Transport, ConnectError> {
        let std::marker::PhantomData = self.tls;
        // Settings with `tls://` were refused.
        Err(ConnectError::TlsRequired)
    }
}
