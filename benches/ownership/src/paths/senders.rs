//! Threads that send to actors, directly or through a router: `src/routing/routing_ref.rs` and `src/routing/logics`.

use crate::paths::blocks::ThreadCache;
use crate::paths::scheduler::Pool;
use crate::threads::Thread;
use std::rc::Rc;

/// Instructions of a `tell`, of one by round robin, and of one by the smallest of eight mailboxes:
/// `benches/instructions/table.txt`.
const TELL: f64 = 48.6;
const ROUND_ROBIN: f64 = 141.3;
const SMALLEST: f64 = 335.8;
const LOOK: f64 = (SMALLEST - ROUND_ROBIN) / 8.0;

/// The way in which a sender chooses the next actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The one with the number of the sender, in turn if there are fewer.
    Direct,
    RoundRobin,
    SmallestMailbox,
}

/// A sender of this number.
pub async fn send(pool: Rc<Pool>, thread: Rc<Thread>, choice: Choice, number: usize) {
    let cache = ThreadCache::default();
    let mut cursor = number % pool.actors.len();
    while pool.messages.send() {
        match choice {
            Choice::Direct => thread.instructions(TELL).await,
            Choice::RoundRobin => {
                thread.instructions(ROUND_ROBIN).await;
                cursor = (cursor + 1) % pool.actors.len();
            }
            Choice::SmallestMailbox => {
                cursor = smallest(&pool, &thread, (cursor + 1) % pool.actors.len()).await
            }
        }
        if pool.actors[cursor].push(&thread, &pool.depot, &cache).await {
            pool.schedule(&thread, cursor).await;
        }
    }
}

/// `src/routing/logics/smallest_mailbox.rs: least`: looks from `start` on, up to the first idle actor.
async fn smallest(pool: &Pool, thread: &Thread, start: usize) -> usize {
    let order = || (start..pool.actors.len()).chain(0..start);
    let idle = order().find(|actor| pool.actors[*actor].is_idle());
    let looked = || order().take_while(|actor| Some(*actor) != idle).chain(idle);
    // `Gate::load_snapshot`: W, and O of an actor that is not idle.
    let lines = looked().flat_map(|actor| {
        let mailbox = &pool.actors[actor];
        [Some(mailbox.word), (Some(actor) != idle).then_some(mailbox.owner)].into_iter().flatten()
    });
    thread.read_all(lines).await;
    thread.instructions(ROUND_ROBIN + LOOK * looked().count() as f64).await;
    idle.unwrap_or_else(|| looked().min_by_key(|actor| pool.actors[*actor].len()).unwrap_or(start))
}
