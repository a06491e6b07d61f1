//! The way of lines from another node into the stages: an actor that gives each line a ticket of this node.
//!
//! It has no bound of its own: the node that reads the lines has so many under way at most as it has places.

use crate::books::{Books, Ticket};
use crate::connection::Line;
use crate::receipts::Receipts;
use crate::shipment::ToMill;
use pointsman::prelude::*;
use std::sync::Arc;

/// The actor.
pub struct Unpacker {
    pub parsers: ActorRef<Line>,
    pub books: Arc<Books>,
}

impl Actor for Unpacker {
    type Message = ToMill;

    fn receive(&mut self, ToMill::Lines(call): ToMill, _: &mut Context<ToMill>) -> HandlerResult {
        let (lines, reply_to) = call.into_parts();
        let receipts = Arc::new(Receipts::new(reply_to));
        for line in lines.with_tickets(|| Ticket::received(&self.books, &receipts)) {
            self.parsers.tell(line);
        }
        Ok(())
    }
}
