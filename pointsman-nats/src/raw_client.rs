//! A client that waits for its socket: NATS by this codec without nodes, for `benches/remote` alone.
#![allow(missing_docs)] // the measurement in `benches/remote` says what each of them is for

use crate::client::{Client, ClientOptions, Event};
use crate::codec::{Subject, put_pub};
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A connection to a server in plain text, with one subscription.
pub struct RawClient {
    stream: TcpStream,
    client: Client,
    out: Vec<u8>,
}

/// A subject that was checked.
pub struct RawSubject(Subject);

impl RawSubject {
    pub fn new(text: &str) -> Option<Self> {
        Subject::new(text).map(Self)
    }
}

impl RawClient {
    /// Connects, and subscribes: the server has the subscription when this returns.
    pub fn connect(endpoint: &str, subscription: &RawSubject) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(endpoint)?;
        stream.set_nodelay(true)?;
        let options = ClientOptions {
            name: "raw".to_owned(),
            echo: false,
            tls: false,
            has_certificate: false,
            user: None,
            password: None,
            subscriptions: vec![(subscription.0.clone(), 1)],
        };
        let mut raw = Self { stream, client: Client::new(options, Instant::now()), out: Vec::new() };
        raw.client.opened();
        while !raw.client.is_up() {
            raw.receive(|_| {})?;
        }
        Ok(raw)
    }

    /// Puts a message into the buffer, which [`flush`](Self::flush) writes.
    pub fn publish(&mut self, to: &RawSubject, payload: &[u8]) {
        put_pub(&mut self.out, &to.0, None, payload.len());
        self.out.extend_from_slice(payload);
        self.out.extend_from_slice(b"\r\n");
    }

    /// The bytes in the buffer.
    pub fn buffered(&self) -> usize {
        self.out.len()
    }

    pub fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Reads once, and gives each payload that has come whole. Returns their number.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<u64, Box<dyn Error>> {
        let count = self.stream.read(self.client.space())?;
        if count == 0 {
            return Err(std::io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        self.client.filled(count, Instant::now());
        let mut messages = 0;
        let mut answers = Vec::new();
        while let Some(event) = self.client.next(&mut answers)? {
            if let Event::Message(message) = event {
                messages += 1;
                take(message.payload);
            }
        }
        self.stream.write_all(&answers)?;
        Ok(messages)
    }
}
