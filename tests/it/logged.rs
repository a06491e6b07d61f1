//! What the engine logs. A process has one logger, so the records of all systems come together here, and their
//! texts tell whose they are.

use std::cell::RefCell;
use std::sync::Mutex;

/// Level, target and text.
type Record = (log::Level, String, String);

/// What a logger does with a text.
type Act = Box<dyn FnMut(&str)>;

struct Records(Mutex<Vec<Record>>);

static RECORDS: Records = Records(Mutex::new(Vec::new()));

thread_local! {
    /// What the logger does when this thread logs.
    static MEANWHILE: RefCell<Option<Act>> = const { RefCell::new(None) };
}

impl log::Log for Records {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("pointsman")
    }
    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            // Before the lock: what is logged may panic.
            let text = record.args().to_string();
            // Taken out, since it may log itself.
            if let Ok(Some(mut act)) = MEANWHILE.try_with(RefCell::take) {
                act(&text);
                MEANWHILE.set(Some(act));
            }
            self.0.lock().unwrap().push((record.level(), record.target().to_owned(), text));
        }
    }
    fn flush(&self) {}
}

/// From now on records are kept.
pub fn listen() {
    // An error says that another test has done so.
    let _ = log::set_logger(&RECORDS);
    log::set_max_level(log::LevelFilter::Info);
}

/// Has the logger do this with each text that this thread logs: the logger is an application's own code. If it panics,
/// it is done no more.
pub fn meanwhile(act: impl FnMut(&str) + 'static) {
    listen();
    MEANWHILE.set(Some(Box::new(act)));
}

/// The records for which `is_mine`; each once.
fn take(is_mine: impl Fn(&Record) -> bool) -> Vec<Record> {
    let mut records = RECORDS.0.lock().unwrap();
    let (mine, others) = std::mem::take(&mut *records).into_iter().partition(is_mine);
    *records = others;
    mine
}

/// The lines about one system since the last look, without its name; those above `info` begin with `!`.
pub fn lines(system: &str) -> Vec<String> {
    let of_system = format!("system {system:?}: ");
    let line = |(level, _, text): Record| {
        let mark = if level == log::Level::Info { "" } else { "! " };
        format!("{mark}{}", text.replace(&of_system, ""))
    };
    take(|(_, _, text)| text.contains(&of_system)).into_iter().map(line).collect()
}

/// What was logged about the actor at `path` since the last look.
pub fn about(path: &str) -> Vec<(log::Level, String)> {
    let prefix = format!("{path} ");
    let mine = take(|(_, target, text)| target == "pointsman" && text.starts_with(&prefix));
    mine.into_iter().map(|(level, _, text)| (level, text[prefix.len()..].to_owned())).collect()
}

/// The texts with `part` in them since the last look.
pub fn with(part: &str) -> Vec<String> {
    take(|(_, _, text)| text.contains(part)).into_iter().map(|(_, _, text)| text).collect()
}
