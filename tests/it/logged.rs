//! What the engine logs. A process has one logger, so the lines of all systems come together here.

use std::sync::Mutex;

struct Lines;

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("pointsman")
    }
    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let mark = if record.level() == log::Level::Info { "" } else { "! " };
            LINES.lock().unwrap().push(format!("{mark}{}", record.args()));
        }
    }
    fn flush(&self) {}
}

/// From now on lines are kept.
pub fn listen() {
    // An error says that another test has done so.
    let _ = log::set_logger(&Lines);
    log::set_max_level(log::LevelFilter::Info);
}

/// The lines about one system since the last look, without its name; those above `info` begin with `!`.
pub fn lines(system: &str) -> Vec<String> {
    let of_system = format!("system {system:?}: ");
    let mut lines = LINES.lock().unwrap();
    let (mine, others) = lines.drain(..).partition::<Vec<_>, _>(|line| line.contains(&of_system));
    *lines = others;
    mine.into_iter().map(|line| line.replace(&of_system, "")).collect()
}
