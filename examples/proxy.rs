//! A proxy for lines: each client gets a connection of its own to an upstream server, and lines go both ways.
//!
//! ```text
//! cargo run --example proxy                              # with a client and an upstream server of its own
//! cargo run --example proxy 127.0.0.1:7000 db.local:7001 # until the process is ended
//! ```

use pointsman::net::{ConnectError, Connection, LineFramer, Listener, ReadOutcome, Ready, SocketAddress};
use pointsman::prelude::*;
use pointsman::shutdown::Phase;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

const LINE_MAX: usize = 64 * 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
const DRAIN_WITHIN: Duration = Duration::from_secs(4);

enum SessionMsg {
    Client(Ready),
    Upstream(Ready),
    Connected(Result<Connection, ConnectError>),
}

impl From<Ready> for SessionMsg {
    fn from(ready: Ready) -> Self {
        SessionMsg::Client(ready)
    }
}

/// A client and its upstream connection.
struct Session {
    client: Connection,
    address: SocketAddress,
    upstream: Option<Connection>,
    requests: LineFramer,
    answers: LineFramer,
}

/// Sends the lines that have come on. Returns whether no more will come.
fn relay(from: &mut Connection, to: &mut Connection, lines: &mut LineFramer) -> Result<bool, Failure> {
    // A slow reader makes us read no further, and so slows the writer. A `Ready` comes when it has caught up.
    let outcome = if to.is_congested() { ReadOutcome::Blocked } else { from.fill(LINE_MAX) };
    while let Some(line) = from.next_frame(lines)? {
        to.write(line);
        to.write(b"\n");
    }
    to.flush();
    if outcome == ReadOutcome::Eof {
        to.shutdown_write();
    }
    Ok(matches!(outcome, ReadOutcome::Eof | ReadOutcome::Closed(_)))
}

impl Session {
    fn relay(&mut self, ctx: &mut Context<SessionMsg>) -> HandlerResult {
        let Some(upstream) = &mut self.upstream else { return Ok(()) };
        relay(&mut self.client, upstream, &mut self.requests)?;
        if self.client.is_draining() {
            // The upstream server answers what it has got, and then ends its half.
            upstream.shutdown_write();
        }
        let is_over = relay(upstream, &mut self.client, &mut self.answers)?;
        if is_over || self.client.closed().is_some() {
            ctx.stop();
        }
        Ok(())
    }
}

impl Actor for Session {
    type Message = SessionMsg;

    fn started(&mut self, ctx: &mut Context<SessionMsg>) -> HandlerResult {
        let connect = ctx.connect(self.address.clone()).within(CONNECT_WITHIN);
        Ok(connect.start_as(SessionMsg::Upstream, SessionMsg::Connected)?)
    }

    fn receive(&mut self, message: SessionMsg, ctx: &mut Context<SessionMsg>) -> HandlerResult {
        match message {
            SessionMsg::Client(ready) => self.client.ready(ready),
            SessionMsg::Upstream(ready) => {
                if let Some(upstream) = &mut self.upstream {
                    upstream.ready(ready);
                }
            }
            SessionMsg::Connected(Ok(upstream)) => self.upstream = Some(upstream),
            SessionMsg::Connected(Err(error)) => {
                self.client.write(format!("ERROR {error}\n").as_bytes());
                ctx.stop();
            }
        }
        if let Err(failure) = self.relay(ctx) {
            self.client.write(format!("ERROR {failure}\n").as_bytes());
            ctx.stop();
        }
        Ok(())
    }
}

/// Starts a proxy, which drains when the system shuts down.
pub fn start(system: &System, listen: &str, upstream: &str) -> Result<Listener, Box<dyn Error>> {
    let (address, lines) = (SocketAddress::tcp(upstream), LineFramer::new(LINE_MAX)?);
    let make = move |client, _: &mut Context<SessionMsg>| {
        let (requests, answers) = (lines.clone(), lines.clone());
        Session { client, address: address.clone(), upstream: None, requests, answers }
    };
    let listener = system.listener("proxy", SocketAddress::tcp(listen)).spawn(make)?;
    let port = listener.clone();
    system.coordinated_shutdown().add_task(Phase::SERVICE_UNBIND, "drain the proxy", move || {
        port.drain(DRAIN_WITHIN).wait()?;
        Ok(())
    })?;
    Ok(listener)
}

#[allow(dead_code)] // its test starts the proxy by itself
fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("proxy").build()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [listen, upstream] = &arguments[..] {
        let listener = start(&system, listen, upstream)?;
        println!("lines from {:?} go to {upstream}", listener.local_addr());
        return Ok(system.coordinated_shutdown().wait().map(|report| println!("{report}"))?);
    }
    // An upstream server that shouts.
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    let listener = start(&system, "127.0.0.1:0", &server.local_addr()?.to_string())?;
    let mut client = TcpStream::connect(listener.local_addr().expect("a TCP listener"))?;
    client.write_all(b"hello\nworld\n")?;
    client.shutdown(std::net::Shutdown::Write)?;
    let (mut upstream, _) = server.accept()?;
    for line in BufReader::new(upstream.try_clone()?).lines() {
        writeln!(upstream, "{}", line?.to_uppercase())?;
    }
    drop(upstream);
    let answers: Vec<String> = BufReader::new(client).lines().collect::<Result<_, _>>()?;
    println!("the client got {answers:?}");
    assert_eq!(answers, ["HELLO", "WORLD"]);
    println!("{}", system.coordinated_shutdown().run("the example is over").wait()?);
    Ok(())
}
