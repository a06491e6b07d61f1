//! Consistent hashing: equal keys meet the same routee, and when one leaves, only its keys move.
//!
//! ```text
//!            ┌──── 2 ────┐          each routee has points on the ring (here one,
//!   "pear" ──▶           0          in truth 160) and owns the keys before them
//!            │           │
//!            1           ◀── "apple"
//!            └─── 3 ─────┘
//! ```
//!
//! ```text
//! cargo run --example consistent_hashing
//! ```

use pointsman::prelude::*;
use pointsman::routing::ConsistentHashing;
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

struct WhoOwns(String);
impl Request for WhoOwns {
    type Reply = usize;
}

/// Holds a part of the keys.
struct Shard {
    number: usize,
}

impl Actor for Shard {
    type Message = Call<WhoOwns>;
    fn receive(&mut self, call: Call<WhoOwns>, _: &mut Context<Call<WhoOwns>>) -> HandlerResult {
        call.answer(|_| self.number);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("store").build()?;
    let shards = system
        .router("shards")
        .pool(5, |ctx| Shard { number: ctx.routee_index() })
        .logic(ConsistentHashing::by(|call: &Call<WhoOwns>, key| key.feed(&call.request.0)))
        .spawn()?;
    let owners = || -> Result<BTreeMap<String, usize>, AskError> {
        let keys = (0..1000).map(|number| format!("customer-{number}"));
        keys.map(|key| Ok((key.clone(), shards.ask(WhoOwns(key)).wait()?))).collect()
    };

    let before = owners()?;
    assert_eq!(before, owners()?, "the same key, the same shard");
    let leaves = shards.routees()?[2].clone();
    shards.remove(&leaves)?;
    let after = owners()?;
    let moved = before.iter().filter(|(key, owner)| after[*key] != **owner).count();
    let lost = before.values().filter(|owner| **owner == 2).count();
    println!("shard 2 left with {lost} of 1000 keys, and {moved} keys have moved");
    assert_eq!(moved, lost);
    assert_eq!(system.shutdown(Duration::from_secs(5))?.balance(), 0);
    Ok(())
}
