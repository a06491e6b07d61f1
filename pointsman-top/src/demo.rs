//! A system to look at: a shop with routers, an overload, failures, dead letters and a handler that is stuck at times.

use crate::server_address::ServerAddress;
use pointsman::actor::RecipientLoad;
use pointsman::console::StatsServer;
use pointsman::net::SocketAddress;
use pointsman::prelude::*;
use pointsman::routing::{ConsistentHashing, SmallestMailbox};
use pointsman::telemetry::Telemetry;
use std::error::Error;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The time between two loads of messages.
const STEP: Duration = Duration::from_millis(20);
/// The seconds after which the scenes begin anew.
const CYCLE: u64 = 40;
const CUSTOMERS: u64 = 400;
const ACCOUNTS: u64 = 12;
const SHARDS: [usize; 2] = [4, 7];

/// A system that runs in this process and serves its statistics, until it is dropped.
pub struct Demo {
    server: StatsServer,
    address: ServerAddress,
    stop: Arc<AtomicBool>,
    driver: Option<JoinHandle<()>>,
    system: Option<System>,
}

/// Handles the orders of some customers.
struct Shard {
    orders: u64,
}

/// An order of a customer.
struct Order {
    customer: u64,
}

/// Packs parcels, each in a moment.
struct Packer;

/// A customer's account.
struct Account {
    sum: u64,
}

/// Takes money, and fails at false coins.
struct Till {
    coins: u64,
}

enum TillMsg {
    Coin { is_false: bool },
    Count(ReplyTo<u64>),
}

/// Writes reports. That takes so long that the watchdog takes it for stuck.
struct Reporter {
    stop: Arc<AtomicBool>,
}

impl Actor for Shard {
    type Message = Order;
    fn receive(&mut self, order: Order, _: &mut Context<Order>) -> HandlerResult {
        self.orders += 1;
        // Some customers order more at once.
        spin(Duration::from_micros(4 + order.customer % 16));
        Ok(())
    }
}

impl Actor for Packer {
    type Message = u64;
    fn receive(&mut self, parcel: u64, _: &mut Context<u64>) -> HandlerResult {
        thread::sleep(Duration::from_micros(500 + parcel % 7 * 100));
        Ok(())
    }
}

impl Actor for Account {
    type Message = (u64, u64);
    fn receive(&mut self, (_, amount): (u64, u64), _: &mut Context<(u64, u64)>) -> HandlerResult {
        self.sum += amount;
        Ok(())
    }
}

impl Actor for Till {
    type Message = TillMsg;
    fn receive(&mut self, message: TillMsg, _: &mut Context<TillMsg>) -> HandlerResult {
        match message {
            TillMsg::Coin { is_false: true } => return Err(Failure::msg("a false coin")),
            TillMsg::Coin { is_false: false } => self.coins += 1,
            TillMsg::Count(reply_to) => _ = reply_to.send(self.coins),
        }
        Ok(())
    }
}

impl Actor for Reporter {
    type Message = Duration;
    fn receive(&mut self, length: Duration, _: &mut Context<Duration>) -> HandlerResult {
        let end = Instant::now() + length;
        // Ordering: Relaxed; the flag is all that is told.
        while Instant::now() < end && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(STEP);
        }
        Ok(())
    }
}

/// Keeps the processor busy.
fn spin(length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// The references that the driver sends to.
struct Shop {
    orders: Router<Order>,
    packers: Router<u64>,
    accounts: ActorRef<(u64, u64)>,
    till: ActorRef<TillMsg>,
    reporter: ActorRef<Duration>,
    closed: ActorRef<u64>,
}

impl Demo {
    /// Starts the system, which serves its statistics at an address, by default at a free port of the loopback.
    ///
    /// # Errors
    ///
    /// The address is in use, or is not one of this machine.
    pub fn start(address: Option<&ServerAddress>) -> Result<Self, Box<dyn Error>> {
        let telemetry = Telemetry::sampled()
            .waits(NonZeroU32::MIN)
            .turns(NonZeroU32::new(4).expect("4 is not 0"))
            .stuck_after(Duration::from_secs(1));
        let system = System::builder("shop")
            .telemetry(telemetry)
            // The screen is there to show it.
            .stderr_without_logger(false)
            // Packers sleep: only three of them do so at once.
            .dispatcher("packing", Dispatcher::work_stealing().threads(3))
            .dispatcher("reports", Dispatcher::pinned())
            .build()?;
        let stop = Arc::new(AtomicBool::new(false));
        let shop = Shop::open(&system, &stop)?;
        let at = match address {
            None => SocketAddress::tcp("127.0.0.1:0"),
            Some(ServerAddress::Tcp(host)) => SocketAddress::tcp(host.clone()),
            #[cfg(unix)]
            Some(ServerAddress::Unix(path)) => SocketAddress::unix(path),
            #[cfg(not(unix))]
            Some(ServerAddress::Unix(_)) => return Err("there are no Unix sockets here".into()),
        };
        let server = system.serve_stats(at)?;
        let address = match (server.local_addr(), address) {
            (Some(address), _) => ServerAddress::Tcp(address.to_string()),
            (None, Some(address)) => address.clone(),
            (None, None) => return Err("the server has no address".into()),
        };
        let driver = thread::spawn({
            let stop = Arc::clone(&stop);
            move || shop.drive(&stop)
        });
        Ok(Self { server, address, stop, driver: Some(driver), system: Some(system) })
    }

    /// The address at which the system serves its statistics.
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Ordering: Relaxed; the flag is all that is told.
        self.stop.store(true, Ordering::Relaxed);
        self.server.stop();
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
        if let Some(system) = self.system.take() {
            let _ = system.shutdown(Duration::from_secs(5));
        }
    }
}

impl Shop {
    fn open(system: &System, stop: &Arc<AtomicBool>) -> Result<Self, Box<dyn Error>> {
        let by_customer = ConsistentHashing::by(|order: &Order, hash| hash.feed(&order.customer));
        let stop = Arc::clone(stop);
        let closed =
            system.actor("closed").spawn(|| Account { sum: 0 })?.contramap(|amount: u64| (0, amount));
        closed.stop();
        Ok(Self {
            orders: system
                .router("orders")
                .pool(SHARDS[0], |_| Shard { orders: 0 })
                .logic(by_customer)
                .spawn()?,
            packers: system
                .router("packers")
                .pool(6, |_| Packer)
                .logic(SmallestMailbox::new())
                .dispatcher("packing")
                .spawn()?,
            accounts: system
                .group("accounts")
                .by_key(|payment: &(u64, u64)| format!("account-{}", payment.0), |_, _| Account { sum: 0 })
                .spawn()?
                .to_ref(),
            till: system
                .actor("till")
                .on_failure(Strategy::decide(|_| Directive::Restart))
                .spawn(|| Till { coins: 0 })?,
            reporter: system
                .actor("reporter")
                .dispatcher("reports")
                .spawn(move || Reporter { stop: Arc::clone(&stop) })?,
            closed,
        })
    }

    /// Sends messages, until it is stopped.
    fn drive(&self, stop: &AtomicBool) {
        let began = Instant::now();
        let (mut step, mut number) = (0_u64, 0_u64);
        // Ordering: Relaxed; the flag is all that is told.
        while !stop.load(Ordering::Relaxed) {
            let second = began.elapsed().as_secs() % CYCLE;
            let shards = if (12..28).contains(&second) { SHARDS[1] } else { SHARDS[0] };
            if self.orders.size() != shards {
                let _ = self.orders.resize_to(shards);
            }
            for _ in 0..80 {
                number =
                    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let is_rush = (32..38).contains(&second) && number >> 63 == 1;
                let customer = if is_rush { 7 } else { (number >> 33) % CUSTOMERS };
                self.orders.tell(Order { customer });
            }
            // In the overload the packers cannot keep up.
            let parcels = if (18..22).contains(&second) { 150 } else { 20 };
            (0..parcels).for_each(|parcel| self.packers.tell(number ^ parcel));
            self.accounts.tell(((number >> 40) % ACCOUNTS, 5));
            self.till.tell(TillMsg::Coin { is_false: step % 200 == 199 });
            if step.is_multiple_of(10) {
                drop(self.till.ask_with(TillMsg::Count).within(Duration::from_millis(200)).wait());
            }
            if step.is_multiple_of(60) {
                self.closed.tell(1_u64);
            }
            if step % (CYCLE * 25) == CYCLE * 20 && self.reporter.load() == RecipientLoad::Idle {
                self.reporter.tell(Duration::from_secs(5));
            }
            step += 1;
            thread::sleep(STEP);
        }
    }
}
