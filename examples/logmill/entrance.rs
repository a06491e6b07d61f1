//! The way into the mill: an actor that gives each line its place, and the only one that waits for places.
//!
//! Places bound the mill. When all are taken, the entrance holds: its mailbox, which is bounded, fills up; connections wait
//! for room there by `send_when_room` and read nothing more from their sockets, and TCP makes the senders wait. The entrance
//! goes on when half of the places are free. No timer and no list of those that wait takes part.

use crate::connection::Line;
use pointsman::prelude::*;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The actor.
pub struct Entrance {
    parsers: ActorRef<Line>,
    places: Arc<Semaphore>,
    /// So many places must be free before it goes on.
    half: u32,
}

impl Entrance {
    /// Has so many lines in the stages behind it at most, at least 1.
    pub fn new(parsers: ActorRef<Line>, lines_max: usize) -> Self {
        let places = lines_max.clamp(1, u32::MAX as usize >> 3);
        Self { parsers, places: Arc::new(Semaphore::new(places)), half: places.div_ceil(2) as u32 }
    }

    /// How many lines its mailbox is to hold.
    pub fn room(lines_max: usize) -> usize {
        (lines_max / 4).max(1)
    }

    fn admit(&self, mut line: Line, place: OwnedSemaphorePermit) {
        line.ticket.has_place(place);
        self.parsers.tell(line);
    }
}

impl Actor for Entrance {
    type Message = Line;

    fn receive(&mut self, line: Line, ctx: &mut Context<Line>) -> HandlerResult {
        match self.places.clone().try_acquire_owned() {
            Ok(place) => self.admit(line, place),
            Err(_) => {
                let room = self.places.clone().acquire_many_owned(self.half);
                ctx.hold(room, move |entrance: &mut Entrance, room, _| {
                    let place = room?.split(1).ok_or_else(|| Failure::msg("there is no place among them"))?;
                    entrance.admit(line, place);
                    Ok(())
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::{Books, Ticket};
    use crate::connection::Origin;
    use crate::framing::Whole;
    use std::sync::mpsc::channel;
    use std::time::{Duration, SystemTime};

    /// Only failing tests wait for so long.
    const LONG: Duration = Duration::from_secs(60);

    fn line(books: &Arc<Books>, number: u64) -> Line {
        let origin = Arc::new(Origin { host: "192.0.2.7".into(), connection: 1 });
        let (bytes, received, ticket) = (Vec::new(), SystemTime::now(), Ticket::new(books));
        Line { bytes, whole: Whole::Yes, origin, number, received, ticket }
    }

    #[test]
    fn lines_wait_until_half_of_the_places_are_free_and_keep_their_order() {
        for lines_max in 1..20 {
            let books = Arc::<Books>::default();
            let (let_in, inside) = channel();
            let parsers = ActorRef::from_fn(move |line: Line| let_in.send(line).expect("the test listens"));
            let system = System::builder("mill").build().unwrap();
            let entrance = system.spawn(move || Entrance::new(parsers.clone(), lines_max)).unwrap();
            (0..2 * lines_max as u64).for_each(|number| entrance.tell(line(&books, number)));
            let mut lines: Vec<Line> =
                (0..lines_max).map(|_| inside.recv_timeout(LONG).expect("a place")).collect();
            // The last one that is needed makes room for all of them.
            let half = lines_max.div_ceil(2);
            for line in lines.drain(..half) {
                assert!(inside.try_recv().is_err(), "no place before");
                line.ticket.written();
            }
            lines.extend((0..half).map(|_| inside.recv_timeout(LONG).expect("a place that is free again")));
            assert!(lines.iter().zip(half as u64..).all(|(line, number)| line.number == number));
            lines.into_iter().for_each(|line| line.ticket.written());
            // The lines that still wait, if any, come when more than half are free.
            let rest: Vec<Line> =
                (0..lines_max - half).map(|_| inside.recv_timeout(LONG).expect("a place")).collect();
            rest.into_iter().for_each(|line| line.ticket.written());
            assert_eq!(books.written.get(), 2 * lines_max as u64);
            assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
        }
    }
}
