//! Smallest mailbox: the routee with the least to do, by looking at all of them.
//!
//! ```text
//!                 ┌──────────────────┐
//!                 │ cashier 0  ■■■■■ │  stuck with a large trolley
//!   customer ──┐  ├──────────────────┤
//!              └─▶│ cashier 1        │  free: gets the next one
//!                 └──────────────────┘
//! ```
//!
//! ```text
//! cargo run --example smallest_mailbox
//! ```

use pointsman::prelude::*;
use pointsman::routing::SmallestMailbox;
use std::error::Error;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);
/// How many wait behind the trolley.
const WAITING: usize = 5;

enum Customer {
    /// Takes until the customer says that the trolley is empty.
    Trolley {
        began: Sender<usize>,
        empty: Receiver<()>,
    },
    Basket {
        paid: Sender<usize>,
    },
}

struct Cashier {
    number: usize,
}

impl Actor for Cashier {
    type Message = Customer;
    fn receive(&mut self, customer: Customer, _: &mut Context<Customer>) -> HandlerResult {
        match customer {
            Customer::Trolley { began, empty } => {
                began.send(self.number)?;
                let _ = empty.recv();
            }
            Customer::Basket { paid } => paid.send(self.number)?,
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Handlers that wait belong on threads of their own.
    let system =
        System::builder("shop").dispatcher("tills", Dispatcher::blocking().thread_range(1..=3)).build()?;
    let cashiers = system
        .router("cashiers")
        .pool(3, |ctx| Cashier { number: ctx.routee_index() })
        .dispatcher("tills")
        .logic(SmallestMailbox::new())
        .spawn()?;
    let (began, beginnings) = channel();
    let (emptied, empty) = channel();
    cashiers.tell(Customer::Trolley { began, empty });
    let stuck = beginnings.recv_timeout(SOON)?;

    // These go to that till by themselves, past the router, and wait there. From now on it has the most to do, even
    // while both others have not yet closed the drawer behind the customer before.
    let till = cashiers.routees()?[stuck].clone();
    let (paid_late, late_payments) = channel();
    (0..WAITING).for_each(|_| till.tell(Customer::Basket { paid: paid_late.clone() }));

    let (paid, payments) = channel();
    let mut served = [0; 3];
    for _ in 0..20 {
        cashiers.tell(Customer::Basket { paid: paid.clone() });
        served[payments.recv_timeout(SOON)?] += 1;
    }
    println!("cashier {stuck} has the trolley; baskets of each: {served:?}");
    assert_eq!(served[stuck], 0, "nobody queues behind a trolley while another till is free");
    emptied.send(())?;
    for _ in 0..WAITING {
        assert_eq!(late_payments.recv_timeout(SOON)?, stuck, "who waits there is served there");
    }
    assert_eq!(system.shutdown(SOON)?.balance(), 0);
    Ok(())
}
