//! An order-processing service of groups: who is asked, who is told, and what each goes by is said in one place, and
//! changed while orders flow.
//!
//! ```text
//!                          Check, asked of `all`   ┌─ risk ────────────────────────┐
//!                       ┌─────────────────────────▶│ fraud │ credit │ … a desk each │
//!   4 clients           │    each says yes or no   └───────────────────────────────┘
//!    │ Place        ┌───┴─ gateway ──────┐
//!    └─────────────▶│ customer 0 │ 1 │ … │         ┌─ ledgers ─────────────────────┐
//!    ◀── Receipt ───│ by key             │────────▶│ account 0 │ 1 │ … │ by key     │
//!                   └───┬────────────────┘ Posting └─── to the two accounts of it ─┘
//!                       │                          ┌─ audit ───────────────────────┐
//!                       ├─────────────────────────▶│ internal │ external           │
//!                       │ Decided                  └─── to all ────────────────────┘
//!                       │                          ┌─ alerts ┐
//!                       └─ if amount ≥ 900 ───────▶│ 1 actor │
//!                                                  └─────────┘
//! ```
//!
//! ```text
//! cargo run --release --features config --example topology
//! ```
//!
//! The first configuration has strict desks and eight accounts. A second one that is wrong is rejected as a whole; a
//! third one raises the limits, adds a desk, and opens four accounts more. At the end every order has been booked once
//! or refused once, each account has what its bookings add up to, and every auditor has seen every order. It
//! ends by itself, with status 0 if all that is so.

use pointsman::group::{KeyRoute, RouterState};
use pointsman::prelude::*;
use pointsman::shutdown::Phase;
use pointsman::topology::{Outlet, TopologyError};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

const CLIENT_COUNT: u64 = 4;
const ORDERS_OF_EACH: u64 = 6_000;
/// Accounts that clients know; not all are open at first.
const ACCOUNTS: u64 = 12;
/// Alerts are about these.
const MUCH: i64 = 900;

const MORNING: &str = r#"
    [topology.risk]
    desks = { fraud = 600, credit = 800 }     # the most that each lets pass

    [topology.ledgers]
    accounts = 8                              # 0 to 7 are open

    [topology.audit]
    auditors = ["internal", "external"]
"#;

const WRONG: &str = r#"
    [topology.risk]
    desks = { fraud = 900, credit = -1 }

    [topology.ledgers]
    accounts = 12

    [topology.audit]
    auditors = ["internal", "external"]
"#;

const AFTERNOON: &str = r#"
    [topology.risk]
    desks = { fraud = 950, credit = 980, sanctions = 990 }

    [topology.ledgers]
    accounts = 12

    [topology.audit]
    auditors = ["internal", "external"]
"#;

// What is said between the groups.

/// Moves money from one account to another, unless somebody objects.
#[derive(Clone)]
struct Order {
    id: u64,
    from: u64,
    to: u64,
    amount: i64,
}

/// A client asks the gateway to do it.
#[derive(Clone)]
struct Place(Order);
impl Request for Place {
    type Reply = Receipt;
}

struct Receipt {
    order: Order,
    decision: Decision,
    desks_asked: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Booked,
    /// A desk lets no more than so much pass.
    OverLimit(i64),
    NoSuchAccount,
    /// Not every desk has answered.
    Unchecked,
}

/// Asked of every risk desk.
#[derive(Clone)]
struct Check {
    amount: i64,
}
impl Request for Check {
    type Reply = Verdict;
}

#[derive(Clone, Copy)]
enum Verdict {
    Pass,
    OverLimit(i64),
}

/// To be booked at both accounts.
#[derive(Clone)]
struct Posting(Order);

/// What has become of an order.
#[derive(Clone)]
struct Decided {
    order: u64,
    amount: i64,
    decision: Decision,
}

// The gateway: an actor for each customer.

struct Gateway {
    checks: Outlet<Call<Check>>,
    postings: Outlet<Posting>,
    decisions: Outlet<Decided>,
    /// Orders that desks are being asked about.
    open: usize,
    is_closing: bool,
}

#[derive(Clone, Message)]
enum GatewayMsg {
    Place(Call<Place>),
    Checked(Checked),
    /// No order comes after this.
    Close,
}

#[derive(Clone)]
struct Checked {
    order: Order,
    client: ReplyTo<Receipt>,
    verdicts: Result<Vec<Result<Verdict, AskError>>, AskError>,
}

impl Gateway {
    fn decide(&self, order: &Order, verdicts: Result<Vec<Result<Verdict, AskError>>, AskError>) -> Decision {
        let Ok(verdicts) = verdicts else { return Decision::Unchecked };
        for verdict in verdicts {
            match verdict {
                Ok(Verdict::Pass) => {}
                Ok(Verdict::OverLimit(limit)) => return Decision::OverLimit(limit),
                Err(_) => return Decision::Unchecked,
            }
        }
        match self.postings.try_send(Posting(order.clone())) {
            Ok(()) => Decision::Booked,
            Err(_) => Decision::NoSuchAccount, // the ledgers' router has let it go nowhere
        }
    }
}

impl Actor for Gateway {
    type Message = GatewayMsg;

    fn receive(&mut self, message: GatewayMsg, ctx: &mut Context<GatewayMsg>) -> HandlerResult {
        match message {
            GatewayMsg::Place(call) => {
                let (Place(order), client) = call.into_parts();
                self.open += 1;
                self.checks
                    .request(Check { amount: order.amount })
                    .all_in(ctx, |verdicts| GatewayMsg::Checked(Checked { order, client, verdicts }));
            }
            GatewayMsg::Checked(Checked { order, client, verdicts }) => {
                self.open -= 1;
                let desks_asked = verdicts.as_ref().map_or(0, Vec::len);
                let decision = self.decide(&order, verdicts);
                self.decisions.try_send(Decided { order: order.id, amount: order.amount, decision })?;
                let _ = client.send(Receipt { order, decision, desks_asked });
            }
            GatewayMsg::Close => self.is_closing = true,
        }
        if self.is_closing && self.open == 0 {
            ctx.stop();
        }
        Ok(())
    }
}

// Risk: an actor for each desk.

struct Desk {
    name: String,
    limit: i64,
}

/// The limit of each desk.
type Limits = BTreeMap<String, i64>;

#[derive(Clone, Message)]
enum RiskMsg {
    Check(Call<Check>),
    Limits(Arc<Limits>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RiskConfig {
    desks: Limits,
}

impl Actor for Desk {
    type Message = RiskMsg;

    fn receive(&mut self, message: RiskMsg, _: &mut Context<RiskMsg>) -> HandlerResult {
        match message {
            RiskMsg::Check(call) => call.answer(|Check { amount }| match self.limit {
                limit if amount > limit => Verdict::OverLimit(limit),
                _ => Verdict::Pass,
            }),
            RiskMsg::Limits(limits) => self.limit = limits.get(&self.name).copied().unwrap_or(self.limit),
        }
        Ok(())
    }
}

// Ledgers: an actor for each account.

struct Ledger {
    account: u64,
    balance: i64,
}

#[derive(Clone, Message)]
enum LedgerMsg {
    Posting(Posting),
    Statement(Call<Statement>),
}

#[derive(Clone)]
struct Statement;
impl Request for Statement {
    type Reply = (u64, i64);
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerConfig {
    accounts: u64,
}

impl Actor for Ledger {
    type Message = LedgerMsg;

    fn receive(&mut self, message: LedgerMsg, _: &mut Context<LedgerMsg>) -> HandlerResult {
        match message {
            LedgerMsg::Posting(Posting(order)) if order.from == self.account => self.balance -= order.amount,
            LedgerMsg::Posting(Posting(order)) => self.balance += order.amount,
            LedgerMsg::Statement(call) => call.answer(|Statement| (self.account, self.balance)),
        }
        Ok(())
    }
}

// Audit: an actor for each auditor.

#[derive(Default)]
struct Auditor {
    seen: HashMap<u64, Decision>,
}

#[derive(Clone, Message)]
enum AuditMsg {
    Decided(Decided),
    Findings(Call<Findings>),
}

#[derive(Clone)]
struct Findings;
impl Request for Findings {
    type Reply = HashMap<u64, Decision>;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuditConfig {
    auditors: Vec<String>,
}

impl Actor for Auditor {
    type Message = AuditMsg;

    fn receive(&mut self, message: AuditMsg, _: &mut Context<AuditMsg>) -> HandlerResult {
        match message {
            AuditMsg::Decided(Decided { order, decision, .. }) => {
                let before = self.seen.insert(order, decision);
                assert!(before.is_none(), "order {order} is decided once");
            }
            AuditMsg::Findings(call) => call.answer(|Findings| self.seen.clone()),
        }
        Ok(())
    }
}

// Alerts: one actor, which counts.

struct Alerts(Arc<AtomicU64>);

impl Actor for Alerts {
    type Message = Decided;

    fn receive(&mut self, _: Decided, _: &mut Context<Decided>) -> HandlerResult {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The order of this number; as random as it need be.
fn order(id: u64) -> Order {
    let random = id
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let from = (random >> 8) % ACCOUNTS;
    let to = (from + 1 + (random >> 24) % (ACCOUNTS - 1)) % ACCOUNTS;
    let amount = i64::try_from((random >> 40) % 1000).expect("below 1000") + 1;
    Order { id, from, to, amount }
}

fn main() -> Result<(), Box<dyn Error>> {
    let system = System::builder("bank").config(MORNING)?.build()?;

    // Who there is, and what goes where.
    let topology = system.topology();
    let gateway = topology.local::<GatewayMsg>("gateway")?.stop_order(0);
    let risk = topology.local::<RiskMsg>("risk")?.stop_order(1);
    let ledgers = topology.local::<LedgerMsg>("ledgers")?.stop_order(1);
    let audit = topology.local::<AuditMsg>("audit")?.stop_order(1);
    let alerts = topology.local::<Decided>("alerts")?.stop_order(1);
    gateway.route_all_to::<Call<Check>, _>(&risk);
    gateway.route_all_to::<Posting, _>(&ledgers);
    gateway.route_all_to::<Decided, _>(&audit);
    gateway.route_to(&alerts, |decided: &Decided| decided.amount >= MUCH);

    // What stands behind the names.
    let (checks, postings, decisions) = (gateway.outlet(), gateway.outlet(), gateway.outlet());
    let customers = system
        .group("gateway")
        .keyed(
            |message: &GatewayMsg| match message {
                GatewayMsg::Place(call) => KeyRoute::Unicast(call.request.0.from),
                GatewayMsg::Checked(_) => KeyRoute::Discard, // comes by the customer's own reference
                GatewayMsg::Close => KeyRoute::Broadcast,
            },
            move |_, _| Gateway {
                checks: checks.clone(),
                postings: postings.clone(),
                decisions: decisions.clone(),
                open: 0,
                is_closing: false,
            },
        )
        // It ends when the desks have answered, and not when its mailbox is empty.
        .terminate_by(|_| GatewayMsg::Close)
        .spawn()?;
    let gateway = gateway.mount(&customers);

    let limits = RouterState::new(Arc::new(Limits::new()));
    let router = limits.router(|limits, message: &RiskMsg| match message {
        RiskMsg::Check(_) => KeyRoute::Multicast(limits.keys().cloned().collect()),
        RiskMsg::Limits(_) => KeyRoute::Broadcast,
    });
    let known = limits.clone();
    let desks = system
        .group("risk")
        .keyed(router, move |_, key| {
            let name: String = key.clone();
            let limit = known.read(|limits| limits.get(&name).copied().unwrap_or(0));
            Desk { name, limit }
        })
        .config(
            |config| {
                let RiskConfig { desks } = config.decode()?;
                match desks.iter().find(|(_, limit)| **limit < 0) {
                    Some((desk, limit)) => Err(format!("the limit of {desk} is {limit}; it is at least 0")),
                    None => Ok(Arc::new(desks)),
                }
            },
            move |desks, new| {
                limits.update(|_| new.clone());
                new.keys().for_each(|desk| drop(desks.mount(desk.clone()))); // an error is in the log
                desks.tell(RiskMsg::Limits(new)); // to the desks that there were before, too
            },
        )
        .spawn()?;
    risk.mount(&desks);

    let open = RouterState::new(0);
    let router = open.router(|open, message: &LedgerMsg| match message {
        LedgerMsg::Posting(Posting(order)) if order.from.max(order.to) < *open => {
            KeyRoute::Multicast(vec![order.from, order.to])
        }
        LedgerMsg::Posting(_) => KeyRoute::Discard,
        LedgerMsg::Statement(_) => KeyRoute::Broadcast,
    });
    let accounts = system
        .group("ledgers")
        .keyed(router, |_, key| Ledger { account: *key, balance: 0 })
        .config(|config| config.decode::<LedgerConfig>(), move |_, config| open.update(|_| config.accounts))
        .spawn()?;
    ledgers.mount(&accounts);

    let auditors = system
        .group("audit")
        .keyed(|_: &AuditMsg| KeyRoute::Broadcast, |_, _| Auditor::default())
        .config(
            |config| config.decode::<AuditConfig>(),
            |group, config| config.auditors.into_iter().for_each(|auditor| drop(group.mount(auditor))),
        )
        .spawn()?;
    audit.mount(&auditors);

    let alerted = Arc::new(AtomicU64::new(0));
    let count = alerted.clone();
    alerts.mount(&system.actor("alerts").spawn(move || Alerts(count.clone()))?);

    topology.start()?; // with what the file says

    // Clients place orders, each after the one before is done.
    let (done, receipts) = mpsc::sync_channel(100); // so they are never far ahead
    let clients: Vec<_> = (0..CLIENT_COUNT)
        .map(|client| {
            let (gateway, done) = (gateway.clone(), done.clone());
            thread::spawn(move || {
                for number in 0..ORDERS_OF_EACH {
                    let receipt = gateway.ask(Place(order(client * ORDERS_OF_EACH + number))).wait();
                    done.send(receipt.expect("the gateway answers each")).expect("main listens");
                }
            })
        })
        .collect();
    let mut receipts_so_far: Vec<Receipt> = Vec::new();
    let order_count = CLIENT_COUNT * ORDERS_OF_EACH;
    let mut probe_id = order_count;
    let mut probe = |from, to, amount| {
        probe_id += 1;
        gateway.ask(Place(Order { id: probe_id, from, to, amount })).wait()
    };

    // In the morning.
    for _ in 0..order_count / 3 {
        receipts_so_far.push(receipts.recv()?);
    }
    let strict = [probe(0, 1, 700)?, probe(0, 11, 10)?];
    assert_eq!(
        strict.each_ref().map(|receipt| receipt.decision),
        [Decision::OverLimit(600), Decision::NoSuchAccount]
    );
    receipts_so_far.extend(strict);

    // A configuration that one group rejects, no group gets.
    match topology.reconfigure(WRONG, false) {
        Err(TopologyError::Rejected { rejections }) => {
            let [(_, reason)] = &*rejections else { panic!("a single group rejects: {rejections:?}") };
            println!("rejected: {reason}");
        }
        other => panic!("credit below 0: {other:?}"),
    }
    let unchanged = probe(0, 11, 10)?;
    assert_eq!(unchanged.decision, Decision::NoSuchAccount);
    receipts_so_far.push(unchanged);

    // Meanwhile orders flow.
    let changed = topology.reconfigure(AFTERNOON, false)?;
    println!("changed:  {}", changed.join(", "));
    assert_eq!(changed, ["risk", "ledgers"]); // nothing new for the auditors
    let lenient = [probe(0, 1, 700)?, probe(0, 11, 10)?];
    assert!(lenient.iter().all(|receipt| receipt.decision == Decision::Booked && receipt.desks_asked == 3));
    receipts_so_far.extend(lenient);
    drop(done);
    receipts_so_far.extend(receipts); // until the last client is done
    for client in clients {
        client.join().expect("no client panics");
    }

    // What should have been booked, and what has been.
    let mut decided = HashMap::new();
    let mut expected: BTreeMap<u64, i64> = BTreeMap::new();
    for Receipt { order, decision, .. } in &receipts_so_far {
        assert!(decided.insert(order.id, *decision).is_none(), "order {} is decided once", order.id);
        if *decision == Decision::Booked {
            *expected.entry(order.from).or_default() -= order.amount;
            *expected.entry(order.to).or_default() += order.amount;
        }
    }
    assert_eq!(receipts_so_far.len() as u64, order_count + 5);
    let statements = accounts.request(Statement).all().wait()?;
    let booked: BTreeMap<u64, i64> = statements.into_iter().collect::<Result<_, _>>()?;
    assert_eq!(booked, expected);
    assert_eq!(booked.values().sum::<i64>(), 0);
    let findings = auditors.request(Findings).all().wait()?;
    assert_eq!(findings.len(), 2);
    for seen in findings {
        assert!(seen? == decided, "each auditor has seen what each client has");
    }

    let orders = &receipts_so_far;
    let count = |is: &dyn Fn(&Receipt) -> bool| orders.iter().filter(|receipt| is(receipt)).count();
    let by_three_desks = count(&|receipt| receipt.desks_asked == 3 && receipt.order.id < order_count);
    assert!(by_three_desks > 0, "clients have not noticed the change");
    println!(
        "orders:   {} booked, {} over a limit, {} to or from no account; {by_three_desks} checked by the new desk, too",
        count(&|receipt| receipt.decision == Decision::Booked),
        count(&|receipt| matches!(receipt.decision, Decision::OverLimit(_))),
        count(&|receipt| receipt.decision == Decision::NoSuchAccount),
    );
    println!("balances: {:?}, in all 0", booked.into_values().collect::<Vec<_>>());

    // The gateway first, then all that it sends to: so nothing is lost on the way.
    let drawing = topology.to_dot();
    topology.stop_in(Phase::SERVICE_STOP, Duration::from_secs(1))?;
    let report = system.coordinated_shutdown().run("the day is over").wait()?;
    println!("{report}\n{drawing}");
    assert_eq!((report.ledger.dead_lettered, report.ledger.balance()), (0, 0));
    let much = orders.iter().filter(|receipt| receipt.order.amount >= MUCH).count();
    assert_eq!(alerted.load(Ordering::Relaxed), much as u64);
    Ok(())
}
