//! A balancing pool: pages to be rendered, a few of which take very long.
//!
//! ```text
//!                           one queue               routees
//!   tell ─▶ renderers ─▶ ▒▒▒▒▒▒▒▒▒▒▒▒ ──┬──▶ 0  ████████████████  one long page
//!                                       ├──▶ 1  █ █ █ █ █ █ █ █   whoever is idle takes the next
//!                                       ├──▶ 2  █ █ █ █ █ █ █ █
//!                                       └──▶ 3  █ █ █ █ █ █ █ █
//! ```
//!
//! One routee is kept busy by the first page until all the others are done: no page waits behind it, as some would
//! if each routee had a queue of its own. Then every routee is asked how much it has done, through its own
//! reference, and all are told to close by a broadcast.
//!
//! ```text
//! cargo run --release --example balancing
//! ```

use pointsman::prelude::*;
use std::error::Error;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const ROUTEES: usize = 4;
const PAGES: u32 = 1000;

#[derive(Clone)]
enum Page {
    /// A page that takes as long as somebody else holds the lock.
    Long(Arc<Mutex<()>>),
    Short(u32, Sender<u32>),
    HowMany(ReplyTo<u32>),
    Close(Sender<usize>),
}

#[derive(Default)]
struct Renderer {
    rendered: u32,
}

impl Actor for Renderer {
    type Message = Page;
    fn receive(&mut self, page: Page, ctx: &mut Context<Page>) -> HandlerResult {
        match page {
            Page::Long(until) => {
                drop(until.lock());
                self.rendered += 1;
            }
            Page::Short(number, done) => {
                self.rendered += 1;
                done.send(number)?;
            }
            Page::HowMany(reply_to) => drop(reply_to.send(self.rendered)),
            Page::Close(closed) => {
                closed.send(ctx.routee_index())?;
                ctx.stop();
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("pages")
        .dispatcher("rendering", Dispatcher::blocking().thread_range(1..=ROUTEES).throughput(8))
        .build()?;
    let renderers = system
        .router("renderers")
        .balancing_pool(ROUTEES, |_| Renderer::default())
        .queue(Mailbox::bounded(10_000).on_full(OverflowPolicy::Reject))
        .dispatcher("rendering")
        .spawn()?;

    let until = Arc::new(Mutex::new(()));
    let still_rendering = until.lock().map_err(|_| "nobody panics with the lock")?;
    renderers.tell(Page::Long(until.clone()));
    let (done, pages) = channel();
    for number in 0..PAGES {
        renderers.tell(Page::Short(number, done.clone()));
    }
    let mut seen: Vec<u32> =
        (0..PAGES).map(|_| pages.recv_timeout(Duration::from_secs(60))).collect::<Result<_, _>>()?;
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..PAGES), "each page is rendered once");
    println!("{PAGES} short pages are done while a long one is still being rendered");
    drop(still_rendering);

    let mut total = 0;
    for routee in renderers.routees()? {
        let rendered = routee.ask_with(Page::HowMany).wait()?;
        println!("{} has rendered {rendered}", routee.path());
        total += rendered;
    }
    assert_eq!(total, PAGES + 1);

    let (closed, numbers) = channel();
    assert_eq!(renderers.broadcast(Page::Close(closed)), ROUTEES);
    let mut numbers: Vec<usize> = numbers.iter().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3], "a broadcast reaches each routee once");

    let ledger = system.shutdown(Duration::from_secs(60))?;
    println!("{ledger}");
    assert_eq!(ledger.balance(), 0);
    Ok(())
}
