//! Readings that many threads take and one actor writes down in batches.
//!
//! A message for each reading would be one turn for each when there is little to do. So a reading goes into a basket
//! which the actor is told to empty, and it is told once until it has begun to: that is a protocol of this package,
//! beside Pointsman's own, and what the models in `tests/models.rs` are about.

pub mod sync;

use pointsman::prelude::*;
use sync::atomic::{AtomicBool, Ordering};
use sync::{Arc, Mutex};

#[derive(Default)]
struct Basket {
    readings: Mutex<Vec<u64>>,
    /// Whether the writer has been told to empty the basket and has not begun to.
    is_announced: AtomicBool,
}

impl Basket {
    fn put(&self, reading: u64) {
        self.readings.lock().expect("no holder panics").push(reading);
    }

    /// Takes all readings.
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.readings.lock().expect("no holder panics"))
    }
}

/// What the writer understands.
#[derive(Message)]
pub enum WriterMsg {
    /// There is something in the basket.
    Collect,
    /// What has been written so far?
    Written(Call<Written>),
}

/// Asks a [writer](spawn) for all that it has written.
pub struct Written;

impl Request for Written {
    type Reply = Vec<u64>;
}

/// Where readings are put. Clones share the basket.
#[derive(Clone)]
pub struct Meter {
    basket: Arc<Basket>,
    writer: ActorRef<WriterMsg>,
}

impl Meter {
    /// Hands a reading in: it will be written without any further call.
    pub fn record(&self, reading: u64) {
        self.basket.put(reading);
        // Acquire and Release: whoever finds it announced relies on the writer, which has yet to clear the flag, and
        // sees this reading then.
        if !self.basket.is_announced.swap(true, Ordering::AcqRel) {
            self.writer.tell(WriterMsg::Collect);
        }
    }
}

struct Writer {
    basket: Arc<Basket>,
    written: Vec<u64>,
}

impl Writer {
    /// First clears the flag, then takes: who puts a reading in behind the taking announces it anew.
    #[cfg(not(feature = "planted"))]
    fn collect(&mut self) {
        self.basket.is_announced.swap(false, Ordering::AcqRel);
        self.written.extend(self.basket.take());
    }

    /// The planted bug: a reading that comes between the two finds itself announced, and stays in the basket.
    #[cfg(feature = "planted")]
    fn collect(&mut self) {
        self.written.extend(self.basket.take());
        self.basket.is_announced.swap(false, Ordering::AcqRel);
    }
}

impl Actor for Writer {
    type Message = WriterMsg;
    fn receive(&mut self, message: WriterMsg, _: &mut Context<WriterMsg>) -> HandlerResult {
        match message {
            WriterMsg::Collect => self.collect(),
            WriterMsg::Written(call) => call.answer(|Written| self.written.clone()),
        }
        Ok(())
    }
}

/// Starts a writer, and returns the meter that feeds it and the reference that answers [`Written`].
///
/// # Errors
///
/// If the system has an actor of this name.
pub fn spawn(system: &SystemRef, name: &str) -> Result<(Meter, ActorRef<WriterMsg>), SpawnError> {
    let basket = Arc::new(Basket::default());
    let kept = basket.clone();
    let writer = system.actor(name).spawn(move || Writer { basket: kept.clone(), written: Vec::new() })?;
    Ok((Meter { basket, writer: writer.clone() }, writer))
}
