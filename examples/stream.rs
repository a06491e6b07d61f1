//! Streams in and out of actors: a stream of tokio is attached to an actor, and the actor sends to a slower one, which
//! holds for a future of tokio.
//!
//! Nothing is lost, no thread is blocked, and no timer tries again: the next reading is taken from the stream when the
//! last one has been handled, which is when the archive has had room for it.
//!
//!     cargo run --example stream

use pointsman::actor::StreamEvent;
use pointsman::prelude::*;
use std::error::Error;
use std::time::Duration;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Passes readings on to the archive.
struct Meter {
    readings: Option<ReceiverStream<u32>>,
    archive: ActorRef<ArchiveMsg>,
}

impl Actor for Meter {
    type Message = StreamEvent<u32>;

    fn started(&mut self, ctx: &mut Context<StreamEvent<u32>>) -> HandlerResult {
        let readings = self.readings.take().ok_or(Failure::msg("a meter has one stream of readings"))?;
        // Even ones alone: any stream will do.
        ctx.attach(readings.filter(|reading| reading % 2 == 0), |event| event);
        Ok(())
    }

    fn receive(&mut self, event: StreamEvent<u32>, ctx: &mut Context<StreamEvent<u32>>) -> HandlerResult {
        let message = match event {
            StreamEvent::Item(reading) => ArchiveMsg::Keep(reading),
            end => {
                println!("readings: {end:?}");
                ArchiveMsg::End
            }
        };
        // The next reading is taken when the archive has taken this one. An actor with other messages to handle
        // meanwhile uses `send_when_room` instead.
        ctx.hold(self.archive.send(message), |_: &mut Self, sent, _| Ok(sent?));
        Ok(())
    }
}

enum ArchiveMsg {
    Keep(u32),
    End,
}

/// Keeps readings; each takes a moment.
struct Archive {
    sum: u32,
    done: std::sync::mpsc::Sender<u32>,
}

impl Actor for Archive {
    type Message = ArchiveMsg;

    fn receive(&mut self, message: ArchiveMsg, ctx: &mut Context<ArchiveMsg>) -> HandlerResult {
        match message {
            ArchiveMsg::Keep(reading) => {
                let stored = async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    reading
                };
                // The next message waits until this one is stored; a stop would not.
                ctx.hold(stored, |archive: &mut Self, reading, _| {
                    archive.sum += reading;
                    Ok(())
                });
            }
            ArchiveMsg::End => self.done.send(self.sum)?,
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let tokio = runtime.handle().clone();
    let system = System::builder("meters")
        .polls_within(move |poll| {
            let _entered = tokio.enter();
            poll();
        })
        .build()?;
    let (done, sum) = std::sync::mpsc::channel();
    let archive = system
        .actor("archive")
        .mailbox(Mailbox::bounded(4))
        .spawn(move || Archive { sum: 0, done: done.clone() })?;

    let (sensor, readings) = tokio::sync::mpsc::channel(8);
    let mut readings = Some(ReceiverStream::new(readings));
    system.spawn(move || Meter { readings: readings.take(), archive: archive.clone() })?;
    runtime.spawn(async move {
        for reading in 0..100 {
            // A channel of tokio that is full waits, too.
            if sensor.send(reading).await.is_err() {
                break;
            }
        }
    });
    let sum = sum.recv()?;
    println!("the archive has {sum}");
    assert_eq!(sum, (0..100).step_by(2).sum::<u32>());
    Ok(())
}
