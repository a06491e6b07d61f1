//! What a process holds: things that live, and memory.

use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// Held by an actor's state and by whatever makes that: when all are dropped, the actor is gone.
pub struct Living(());

impl Living {
    pub fn new() -> Self {
        COUNT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }

    /// How many there are.
    pub fn count() -> u64 {
        COUNT.load(Ordering::Relaxed)
    }
}

impl Clone for Living {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Memory of this process that is in use, in bytes.
pub fn resident() -> usize {
    of_status("VmRSS:")
}

/// The most memory of this process that was ever in use, in bytes.
pub fn peak() -> usize {
    of_status("VmHWM:")
}

fn of_status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("bytes are measured on Linux alone");
    let line = status.lines().find(|line| line.starts_with(name)).expect("Linux has it");
    let kibibytes: usize = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kibibytes * 1024
}

/// Pages that the kernel has supplied to this process.
pub fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("faults are counted on Linux alone");
    // The name of the program, in brackets, may hold blanks. Behind it, the eighth word is the number of faults
    // without a look at a disk.
    let (_, words) = stat.rsplit_once(')').expect("Linux has it");
    words.split_whitespace().nth(7).expect("a number").parse().expect("a number")
}
