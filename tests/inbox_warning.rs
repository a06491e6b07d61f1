//! What an inbox that overflows says in the log. In a program of its own, since a logger is for ever.

use pointsman::prelude::*;
use std::sync::Mutex;
use std::time::Duration;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("pointsman")
    }
    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.lock().unwrap().push(format!("{} {}", record.level(), record.args()));
        }
    }
    fn flush(&self) {}
}

#[test]
fn an_inbox_warns_of_surplus_once() -> Result<(), Box<dyn std::error::Error>> {
    log::set_logger(&Lines).map_err(|error| error.to_string())?;
    log::set_max_level(log::LevelFilter::Trace);
    let system = System::builder("warning").build()?;
    let inbox = system.inbox_with_capacity::<u32>(2)?;
    for round in 0..3 {
        for number in 0..4_u32 {
            inbox.to_ref().tell(number);
        }
        while system.ledger().dropped < 2 * (round + 1) {
            std::thread::yield_now();
        }
        for number in 0..2 {
            assert_eq!(inbox.receive(Duration::from_secs(30))?, number);
        }
    }
    let lines = LINES.lock().unwrap().clone();
    assert_eq!(
        lines,
        [
            "WARN inbox /system/$a is full with 2 messages and drops what comes: receive more often, or give it a \
          larger capacity"
        ]
    );
    assert_eq!(system.shutdown(Duration::from_secs(30))?.balance(), 0);
    Ok(())
}
