//! A logic of your own: redundancy. Each message goes to `copies` routees, and the next message to the next ones.
//!
//! ```text
//!            ┌───┬───┬───┬───┬───┬───┬───┐
//!   message  │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │
//!            ├───┴───┴───┼───┴───┴───┼───┤
//!      a ───▶│ a   a   a │           │   │
//!      b ───▶│           │ b   b   b │   │
//!      c ───▶│ c   c     │           │ c │
//!            └───────────┴───────────┴───┘
//! ```
//!
//! ```text
//! cargo run --example redundancy
//! ```

use pointsman::SendError;
use pointsman::prelude::*;
use pointsman::routing::{RoundRobin, RouteContext, Routees, RouterValue, RoutingLogic};
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Redundancy {
    in_turn: RoundRobin,
    copies: usize,
}

impl<M: Clone + Send + 'static> RoutingLogic<M> for Redundancy {
    fn select(&self, message: &M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Option<usize> {
        self.in_turn.select(message, routees, cx)
    }

    fn route(&self, message: M, routees: &Routees<M>, cx: &RouteContext<'_>) -> Result<(), SendError<M>> {
        let picks = (0..self.copies).filter_map(|_| routees.picked(self.select(&message, routees, cx)));
        let picks: Vec<_> = picks.collect();
        cx.deliver_to_each(message, picks)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("copies").build()?;
    let got: Arc<Mutex<Vec<(usize, char)>>> = Arc::default();
    let disk = |number: usize| {
        let got = got.clone();
        ActorRef::from_fn(move |block| got.lock().expect("no panic").push((number, block)))
    };
    let disks: Vec<ActorRef<char>> = (1..=7).map(disk).collect();
    let three_copies = || Redundancy { in_turn: RoundRobin::new(), copies: 3 };
    let expected = [('a', [1, 2, 3]), ('b', [4, 5, 6]), ('c', [7, 1, 2])]
        .into_iter()
        .flat_map(|(block, disks)| disks.map(|disk| (disk, block)));
    let expected: Vec<_> = expected.collect();

    // As a router with a head, which can be managed while it is used …
    let router = system.router("disks").group(disks.clone()).logic(three_copies()).spawn()?;
    ['a', 'b', 'c'].into_iter().for_each(|block| router.tell(block));
    let written = std::mem::take(&mut *got.lock().expect("no panic"));
    println!("(disk, block): {written:?}");
    assert_eq!(written, expected);

    // … and as a value.
    let value = RouterValue::new(&system, three_copies())?.with_routees(&disks);
    ['a', 'b', 'c'].into_iter().for_each(|block| value.route(block));
    assert_eq!(*got.lock().expect("no panic"), expected);
    let ledger = system.shutdown(Duration::from_secs(5))?;
    assert_eq!((ledger.handled, ledger.balance()), (18, 0), "{ledger}");
    Ok(())
}
