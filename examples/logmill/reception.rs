//! The way of lines from their senders to the first stage: the port, the connections and the entrance.

use crate::books::Books;
use crate::connection::{Intake, Line, Receiver};
use crate::entrance::Entrance;
use crate::mill::Settings;
use pointsman::net::{Listener, SocketAddress};
use pointsman::prelude::*;
use pointsman::shutdown::Phase;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The port and the entrance of a mill.
pub struct Reception {
    listener: Listener,
    entrance: ActorRef<Line>,
}

impl Reception {
    /// Starts to listen, and to send lines on.
    pub fn spawn(
        system: &System,
        settings: &Settings,
        books: &Arc<Books>,
        to: ActorRef<Line>,
    ) -> Result<Self, Box<dyn Error>> {
        let Settings { in_flight, line_max, drain_for, .. } = *settings;
        let entrance = system
            .actor("entrance")
            .mailbox(Mailbox::bounded(Entrance::room(in_flight)).on_full(OverflowPolicy::Reject))
            .spawn(move || Entrance::new(to.clone(), in_flight))?;
        let (connections, books, to) = (AtomicU64::new(0), books.clone(), entrance.clone());
        let intake = Arc::new(Intake { books, connections, entrance: to, line_max, drain_for });
        let listener = system
            .listener("intake", SocketAddress::tcp(settings.listen.as_str()))
            .linger(drain_for)
            .spawn(move |connection, _| Receiver::new(connection, intake.clone()))?;
        Ok(Self { listener, entrance })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.listener.local_addr().expect("a TCP listener has an address")
    }

    /// Plans the end: the port closes, what has arrived is read, and the entrance gives out what it has. Then `rest` runs,
    /// for the stages behind.
    pub fn plan_end(
        &self,
        system: &System,
        drain_within: Duration,
        rest: impl FnOnce() -> HandlerResult + Send + 'static,
    ) -> Result<(), Box<dyn Error>> {
        let shutdown = system.coordinated_shutdown();
        let (listener, port, entrance) =
            (self.listener.clone(), self.listener.clone(), self.entrance.clone());
        shutdown.add_task(Phase::SERVICE_UNBIND, "close the port", move || Ok(port.unbind().wait()?))?;
        shutdown.add_task(Phase::SERVICE_REQUESTS_DONE, "read what has arrived", move || {
            let report = listener.drain(drain_within).wait()?;
            if report.is_complete() { Ok(()) } else { Err(Failure::msg(report.to_string())) }
        })?;
        shutdown.add_task(Phase::SERVICE_STOP, "drain the stages", move || {
            entrance.graceful_stop(drain_within).wait()?;
            rest()
        })?;
        Ok(())
    }
}
