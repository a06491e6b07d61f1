//! Raw NATS by the codec of the nodes: a thread that publishes, and another one that has subscribed.

use crate::{BATCH, REQUESTS, p50};
use pointsman_nats::DevServer;
use pointsman_nats::raw_client::{RawClient, RawSubject};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The bytes under way at most: a server cuts off a receiver for which more wait.
const UNDER_WAY: u64 = 16 << 20;

fn subject(text: &str) -> RawSubject {
    RawSubject::new(text).expect("a subject")
}

/// The messages of this length that are received in a second, one `PUB` for each.
pub fn messages(server: &DevServer, count: u64, len: usize) -> Result<f64, Box<dyn Error>> {
    let mut receiver = RawClient::connect(&server.endpoint(), &subject("raw.data"))?;
    let mut sender = RawClient::connect(&server.endpoint(), &subject("raw.none"))?;
    let (received, to, payload) = (AtomicU64::new(0), subject("raw.data"), vec![7; len]);
    let began = Instant::now();
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut bytes = 0;
            while received.load(Ordering::Relaxed) < count {
                let Ok(more) = receiver.receive(|payload| bytes += payload.len() as u64) else { break };
                received.fetch_add(more, Ordering::Relaxed);
            }
            bytes
        });
        for number in 0..count {
            while (number - received.load(Ordering::Relaxed)) * len as u64 > UNDER_WAY {
                thread::yield_now();
            }
            sender.publish(&to, &payload);
            if sender.buffered() >= BATCH {
                sender.flush()?;
            }
        }
        sender.flush()?;
        let bytes = receiving.join().map_err(|_| "the receiver has panicked")?;
        if bytes != count * len as u64 {
            return Err("messages are missing".into());
        }
        Ok(count as f64 / began.elapsed().as_secs_f64())
    })
}

/// The median of requests, one outstanding, in microseconds.
pub fn request(server: &DevServer) -> Result<f64, Box<dyn Error>> {
    let mut answerer = RawClient::connect(&server.endpoint(), &subject("raw.question"))?;
    let mut asker = RawClient::connect(&server.endpoint(), &subject("raw.answer"))?;
    let (question, answer) = (subject("raw.question"), subject("raw.answer"));
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut answered = 0;
            while answered < REQUESTS {
                let mut questions = Vec::new();
                let Ok(_) = answerer.receive(|question| questions.push(question.to_vec())) else { return };
                answered += questions.len();
                questions.iter().for_each(|question| answerer.publish(&answer, question));
                if answerer.flush().is_err() {
                    return;
                }
            }
        });
        let mut times = Vec::new();
        for number in 0..REQUESTS as u64 {
            let began = Instant::now();
            asker.publish(&question, &number.to_le_bytes());
            asker.flush()?;
            while asker.receive(|_| {})? == 0 {}
            times.push(began.elapsed());
        }
        Ok(p50(times))
    })
}
