//! The stages behind the entrance: how they are joined, and how they end one behind the other.

use crate::books::Books;
use crate::connection::Line;
use crate::host::{Desk, Host, HostMsg};
use crate::mill::Settings;
use crate::sink::{self, Output, Sink, SinkMsg};
use crate::stages::{Enricher, Parsed, Parser, Sabotage};
use pointsman::SystemBuilder;
use pointsman::group::Group;
use pointsman::prelude::*;
use pointsman::routing::ConsistentHashing;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The shortest receive timeout that there is. With a shorter one no host's actor would begin, and each line that is parsed
/// would be lost.
const IDLE_MIN: Duration = Duration::from_millis(1);

/// The outputs of each sink, for lines and for windows.
pub type Outputs = Vec<(Output, Output)>;

/// The stages of a mill. They take lines that have tickets.
pub struct Pipeline {
    parsers: Router<Line>,
    enrichers: Router<Parsed>,
    hosts: Group<HostMsg, Arc<str>>,
    sinks: Router<SinkMsg>,
}

/// Opens the files of all sinks.
pub fn files(settings: &Settings) -> std::io::Result<Outputs> {
    std::fs::create_dir_all(&settings.out)?;
    let open = |kind: &str| -> std::io::Result<Vec<Output>> {
        (0..settings.sinks).map(|n| sink::file(&settings.out, &format!("{kind}-{n}.ndjson"))).collect()
    };
    Ok(open("lines")?.into_iter().zip(open("windows")?).collect())
}

/// Gives a system the threads on which so many sinks write.
pub fn with_disk(builder: SystemBuilder, sinks: usize) -> SystemBuilder {
    builder.dispatcher("disk", Dispatcher::blocking().thread_range(1..=sinks.max(1)))
}

impl Pipeline {
    /// Starts the stages in a system that was made [with a disk](with_disk).
    pub fn spawn(
        system: &System,
        settings: &Settings,
        books: &Arc<Books>,
        outputs: Outputs,
    ) -> Result<Self, Box<dyn Error>> {
        let Settings { width, window, idle_after, .. } = *settings;
        if idle_after < IDLE_MIN {
            return Err(format!("idle after {idle_after:?}: must be at least {IDLE_MIN:?}").into());
        }

        // From the end to the beginning, so that each stage knows the next.
        let sink_count = outputs.len();
        // Each output is for one sink, which is never made anew: see `on_failure`.
        let outputs = Mutex::new(outputs);
        let sinks = system
            .router("sinks")
            .pool(sink_count, move |_| {
                let output = outputs.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let (lines, windows) = output.ok_or_else(|| Failure::msg("there is no file for it"))?;
                Ok::<_, Failure>(Sink::new(lines, windows))
            })
            .logic(ConsistentHashing::by(|message: &SinkMsg, key| key.feed(message.key())))
            .on_failure(Strategy::resume())
            .dispatcher("disk")
            .spawn()?;

        let desk = Desk { sinks: sinks.to_ref(), books: books.clone() };
        let hosts = system
            .group("hosts")
            .by_key(HostMsg::key, move |_, key| Host::new(key.clone(), desk.clone(), window, idle_after))
            .spawn()?;
        let to = hosts.to_ref();
        let enrichers = system
            .router("enrichers")
            .pool(width, move |_| Enricher { hosts: to.clone() })
            .on_failure(Strategy::resume())
            .spawn()?;

        let (to, raw, parser_books) = (enrichers.to_ref(), sinks.to_ref(), books.clone());
        let sabotage = Sabotage::new(settings.panic_every);
        let parsers = system
            .router("parsers")
            .balancing_pool(width, move |_| Parser {
                enrichers: to.clone(),
                sinks: raw.clone(),
                books: parser_books.clone(),
                sabotage: sabotage.clone(),
            })
            // A parser keeps nothing from line to line, so there is nothing to make anew.
            .on_failure(Strategy::resume())
            .spawn()?;
        Ok(Self { parsers, enrichers, hosts, sinks })
    }

    /// The way into the stages.
    pub fn to_ref(&self) -> ActorRef<Line> {
        self.parsers.to_ref()
    }

    /// Has each stage handle what it has before the next one ends.
    pub fn drain(&self) -> HandlerResult {
        drain(&self.parsers)?;
        drain(&self.enrichers)?;
        self.hosts.terminate("the mill ends");
        self.hosts.when_ended().wait()?;
        drain(&self.sinks)
    }
}

/// Has a stage handle what it has, and waits until it has ended.
fn drain<M: Send + 'static>(stage: &Router<M>) -> HandlerResult {
    stage.drain()?;
    stage.when_ended().wait()?;
    Ok(())
}
