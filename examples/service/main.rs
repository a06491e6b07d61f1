//! A service to copy and begin with: accounts, which clients use by lines over TCP.
//!
//! ```text
//! cargo run --features config,console,signals --example service [FILE]     # examples/service/service.toml
//! printf 'deposit ada 500\nforecast ada 10\n' | nc -N 127.0.0.1 7070       # ok 500, ok 605
//! curl http://127.0.0.1:9464/metrics
//! ```
//!
//! Each account is an actor that its name finds (`account.rs`). A pool of calculators makes forecasts
//! (`calculator.rs`); a client hears `busy` while the pool is full, and `late` when an answer takes too long. Each
//! connection is an actor (`session.rs`). At SIGTERM the port closes, each client gets the answers to its lines, the
//! actors end, and the books of all messages are printed.

mod account;
mod calculator;
mod session;
#[cfg(test)]
mod tests;

use account::Account;
use calculator::Calculator;
use pointsman::config::EngineConfig;
use pointsman::net::{LineFramer, Listener, SocketAddress};
use pointsman::prelude::*;
use pointsman::routing::SmallestMailbox;
use pointsman::shutdown::Phase;
use pointsman::{SystemBuilder, console::StatsServer};
use session::{LINE_MAX, Services, Session};
use std::error::Error;
use std::time::Duration;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    service: ServiceConfig,
    #[serde(default)]
    engine: EngineConfig,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServiceConfig {
    listen: String,
    metrics: String,
    calculators: usize,
    answer_within_ms: u64,
    interest_per_mille: u64,
}

/// Starts a service, which runs until its system ends.
fn start(builder: SystemBuilder, config: Config) -> Result<(System, Listener, StatsServer), Box<dyn Error>> {
    let Config { service: config, engine } = config;
    let system = builder
        .dispatcher("calculators", Dispatcher::work_stealing().threads(config.calculators))
        .mailbox("accounts", Mailbox::bounded(1000))
        .mailbox("calculators", Mailbox::bounded(8))
        .config_section("engine", &engine)?
        .build()?;
    let accounts = system
        .group("accounts")
        .by_key(|call: &<Account as Actor>::Message| call.request.name.clone(), |_, _| Account::default())
        .mailbox("accounts")
        .spawn()?;
    let calculators = system
        .router("calculators")
        .pool(config.calculators, move |_| Calculator(config.interest_per_mille))
        .logic(SmallestMailbox::new())
        .dispatcher("calculators")
        .mailbox("calculators")
        .spawn()?;
    let services = Services {
        accounts: accounts.to_ref(),
        calculators: calculators.to_ref(),
        answer_within: Duration::from_millis(config.answer_within_ms),
        lines: LineFramer::new(LINE_MAX)?,
    };
    let stats = system.serve_stats(SocketAddress::tcp(config.metrics))?;
    let listener = system
        .listener("clients", SocketAddress::tcp(config.listen))
        .spawn(move |client, _| Session { client, services: services.clone(), is_asking: false })?;

    let shutdown = system.coordinated_shutdown();
    let port = listener.clone();
    shutdown.add_task(Phase::SERVICE_UNBIND, "drain the clients", move || {
        let report = port.drain(Duration::from_secs(5)).wait()?;
        if report.is_complete() { Ok(()) } else { Err(Failure::msg(report.to_string())) }
    })?;
    shutdown.add_task(Phase::SERVICE_STOP, "end the pool and the accounts", move || {
        calculators.drain()?;
        calculators.when_ended().wait()?;
        accounts.terminate("the service ends");
        accounts.when_ended().wait()?;
        Ok(())
    })?;
    Ok((system, listener, stats))
}

/// Runs the service until SIGTERM or SIGINT.
fn run(config: &str) -> Result<(), Box<dyn Error>> {
    let (system, listener, stats) = start(System::builder("service"), toml::from_str(config)?)?;
    system.coordinated_shutdown().on_signals()?;
    if let (Some(clients), Some(metrics)) = (listener.local_addr(), stats.local_addr()) {
        println!("serving clients at {clients}, and metrics at http://{metrics}/metrics");
    }
    let report = system.coordinated_shutdown().wait()?;
    println!("{report}");
    if report.ledger.balance() == 0 { Ok(()) } else { Err("the books do not balance".into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "examples/service/service.toml".to_owned());
    let config = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    run(&config)
}
