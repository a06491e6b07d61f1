//! The floor of the machine: loopback without a server.

use crate::{BATCH, BATCHES, MESSAGE, REQUESTS, p50};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    Ok((near, far))
}

/// The median of round trips between two threads, in microseconds.
pub fn round_trip() -> io::Result<f64> {
    let (mut near, mut far) = pair()?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut message = [0; MESSAGE];
            while far.read_exact(&mut message).is_ok() && far.write_all(&message).is_ok() {}
        });
        let mut message = [7; MESSAGE];
        let mut times = Vec::new();
        for _ in 0..REQUESTS {
            let began = Instant::now();
            near.write_all(&message)?;
            near.read_exact(&mut message)?;
            times.push(began.elapsed());
        }
        drop(near);
        Ok(p50(times))
    })
}

/// The bytes a second from one thread to another.
pub fn bytes() -> io::Result<f64> {
    let (mut near, mut far) = pair()?;
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            let batch = vec![7; BATCH];
            (0..BATCHES).try_for_each(|_| far.write_all(&batch))
        });
        let mut batch = vec![0; BATCH];
        (0..BATCHES).try_for_each(|_| near.read_exact(&mut batch))
    })?;
    Ok((BATCHES * BATCH as u64) as f64 / began.elapsed().as_secs_f64())
}
