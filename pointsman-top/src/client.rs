//! A client of the console: one request for each connection, within a time and a size.

use crate::fault::Fault;
use crate::query::Query;
use crate::server_address::ServerAddress;
use crate::snapshot::Snapshot;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// The most bytes of the head of an answer.
const HEAD_MAX: usize = 16 * 1024;
/// The most headers of an answer.
const HEADERS_MAX: usize = 64;
/// The most characters that are shown of a refusal.
const REFUSAL_MAX: usize = 200;

/// Limits of what a server may do with a client.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time in which the whole answer must come.
    pub within: Duration,
    /// The most bytes of a page.
    pub page_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { within: Duration::from_secs(5), page_max: 32 << 20 }
    }
}

/// Reads snapshots from a server.
#[derive(Debug, Clone)]
pub struct Client {
    address: ServerAddress,
    limits: Limits,
}

/// A connected socket.
enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

/// The head of an answer.
struct Head {
    /// The number of bytes up to the page.
    length: usize,
    status: u16,
    page_length: Option<usize>,
}

impl Client {
    /// Returns a client, which connects with each request.
    pub fn new(address: ServerAddress, limits: Limits) -> Self {
        Self { address, limits }
    }

    /// Asks the server for a snapshot.
    ///
    /// # Errors
    ///
    /// Each [`Fault`]: the server is away, slow, or sends anything but a snapshot.
    pub fn snapshot(&self, query: &Query) -> Result<Snapshot, Fault> {
        Snapshot::read(&self.page(&query.target())?)
    }

    /// Returns the page of a successful answer.
    fn page(&self, target: &str) -> Result<Vec<u8>, Fault> {
        let deadline = Instant::now() + self.limits.within;
        let mut socket = Socket::connect(&self.address, deadline)?;
        let host = match &self.address {
            ServerAddress::Tcp(host) => host,
            ServerAddress::Unix(_) => "localhost",
        };
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n");
        socket.set_timeouts(remaining(deadline)?)?;
        socket.write_all(request.as_bytes()).map_err(of_socket)?;

        let mut answer = Vec::new();
        let head = loop {
            let is_whole = !receive(&mut socket, deadline, &mut answer)?;
            if let Some(head) = head(&answer)? {
                break head;
            }
            if is_whole {
                return Err(Fault::Http("it ends within its head"));
            }
            if answer.len() >= HEAD_MAX {
                return Err(Fault::Http("its head is too long"));
            }
        };
        answer.drain(..head.length);
        if head.page_length.is_some_and(|length| length > self.limits.page_max) {
            return Err(Fault::TooLarge(self.limits.page_max));
        }
        while head.page_length.is_none_or(|length| answer.len() < length) {
            if answer.len() > self.limits.page_max {
                return Err(Fault::TooLarge(self.limits.page_max));
            }
            if !receive(&mut socket, deadline, &mut answer)? {
                break;
            }
        }
        match head.page_length {
            Some(length) if answer.len() < length => return Err(Fault::Http("it ends within its page")),
            Some(length) => answer.truncate(length),
            None => {}
        }
        if head.status != 200 {
            let text = String::from_utf8_lossy(&answer);
            let line = text.lines().next().unwrap_or_default();
            let shown = line.chars().filter(|c| !c.is_control()).take(REFUSAL_MAX);
            return Err(Fault::Status(head.status, shown.collect()));
        }
        Ok(answer)
    }
}

impl Socket {
    fn connect(address: &ServerAddress, deadline: Instant) -> Result<Self, Fault> {
        match address {
            ServerAddress::Tcp(host) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in host.to_socket_addrs().map_err(Fault::Connect)? {
                    match TcpStream::connect_timeout(&address, remaining(deadline)?) {
                        Ok(stream) => return Ok(Socket::Tcp(stream)),
                        Err(error) => last = error,
                    }
                }
                Err(Fault::Connect(last))
            }
            #[cfg(unix)]
            ServerAddress::Unix(path) => {
                std::os::unix::net::UnixStream::connect(path).map(Socket::Unix).map_err(Fault::Connect)
            }
            #[cfg(not(unix))]
            ServerAddress::Unix(_) => Err(Fault::Connect(io::Error::new(
                io::ErrorKind::Unsupported,
                "there are no Unix sockets here",
            ))),
        }
    }

    /// Bounds the time of the next call for reading and for writing.
    fn set_timeouts(&self, within: Duration) -> Result<(), Fault> {
        let within = Some(within);
        match self {
            Socket::Tcp(stream) => {
                stream.set_read_timeout(within).and_then(|()| stream.set_write_timeout(within))
            }
            #[cfg(unix)]
            Socket::Unix(stream) => {
                stream.set_read_timeout(within).and_then(|()| stream.set_write_timeout(within))
            }
        }
        .map_err(Fault::Io)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.write_all(bytes),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(bytes),
            #[cfg(unix)]
            Socket::Unix(stream) => stream.read(bytes),
        }
    }
}

/// Appends to the answer what has come; returns whether more may come.
fn receive(socket: &mut Socket, deadline: Instant, answer: &mut Vec<u8>) -> Result<bool, Fault> {
    let mut piece = [0; 64 * 1024];
    loop {
        socket.set_timeouts(remaining(deadline)?)?;
        match socket.read(&mut piece) {
            Ok(count) => {
                answer.extend_from_slice(&piece[..count]);
                return Ok(count > 0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(of_socket(error)),
        }
    }
}

/// Returns the head of an answer, or `None` if it has not come whole.
fn head(answer: &[u8]) -> Result<Option<Head>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(&answer[..answer.len().min(HEAD_MAX)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Fault::Http("its head is malformed")),
    };
    let mut page_length = None;
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(Fault::Http("its page comes in chunks"));
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(header.value).unwrap_or_default().trim();
            let length = text.parse::<usize>().map_err(|_| Fault::Http("its length is no number"))?;
            if page_length.is_some_and(|before| before != length) {
                return Err(Fault::Http("it has two lengths"));
            }
            page_length = Some(length);
        }
    }
    Ok(Some(Head { length, status: response.code.unwrap_or_default(), page_length }))
}

fn remaining(deadline: Instant) -> Result<Duration, Fault> {
    match deadline.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => Ok(left),
        _ => Err(Fault::TimedOut),
    }
}

fn of_socket(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Fault::TimedOut,
        _ => Fault::Io(error),
    }
}
