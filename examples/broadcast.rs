//! Broadcast: every message to all routees; or only some messages, and the others to one.
//!
//! ```text
//!                    ┌─────────┐                               ┌─────────┐
//!               ┌───▶│ cache 0 │                    flush ┌───▶│ shard 0 │◀── put a
//!   invalidate ─┼───▶│ cache 1 │          broadcast_if ────┼───▶│ shard 1 │◀── put b
//!               └───▶│ cache 2 │                          └───▶│ shard 2 │◀── put c
//!                    └─────────┘                               └─────────┘
//! ```
//!
//! ```text
//! cargo run --example broadcast
//! ```

use pointsman::prelude::*;
use pointsman::routing::Broadcast;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Put(char),
    Flush,
}

struct Shard {
    number: usize,
    done: Sender<(usize, Order)>,
}

impl Actor for Shard {
    type Message = Order;
    fn receive(&mut self, order: Order, _: &mut Context<Order>) -> HandlerResult {
        self.done.send((self.number, order))?;
        Ok(())
    }
}

fn next(done: &Receiver<(usize, Order)>, count: usize) -> Result<Vec<(usize, Order)>, Box<dyn Error>> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(done.recv_timeout(Duration::from_secs(5))?);
    }
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all)
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("store").build()?;
    let (sender, done) = channel();
    let shard = move |ctx: &mut Context<Order>| Shard { number: ctx.routee_index(), done: sender.clone() };

    let all = system.router("all").pool(3, shard.clone()).logic(Broadcast).spawn()?;
    all.tell(Order::Flush);
    let flushed = next(&done, 3)?;
    println!("to all:  {flushed:?}");
    assert_eq!(flushed, [0, 1, 2].map(|number| (number, Order::Flush)));

    let is_for_all = |order: &Order| *order == Order::Flush;
    let some = system.router("some").pool(3, shard).broadcast_if(is_for_all).spawn()?;
    ['a', 'b', 'c'].into_iter().for_each(|name| some.tell(Order::Put(name)));
    let put = next(&done, 3)?;
    println!("in turn: {put:?}");
    assert_eq!(put, [(0, Order::Put('a')), (1, Order::Put('b')), (2, Order::Put('c'))]);
    some.tell(Order::Flush);
    assert_eq!(next(&done, 3)?, flushed);

    // And any router can be told to: whatever its logic.
    assert_eq!(some.broadcast(Order::Put('d')), 3);
    assert_eq!(next(&done, 3)?.len(), 3);
    assert_eq!(system.shutdown(Duration::from_secs(5))?.balance(), 0);
    Ok(())
}
