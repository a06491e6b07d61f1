//! What the operating system says of this process.

use std::fs;

fn status(key: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Memory in use, in bytes; 0 where nobody says.
pub fn resident() -> u64 {
    let kilobytes = status("VmRSS").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Gives back to the operating system what the allocator keeps for later, where it can be told to. What is resident
/// afterwards is in use, and not what the heaps of threads that have ended were once large for.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: declared as the C library defines it; it takes any number, and may be called at any time on any thread.
        unsafe extern "C" {
            safe fn malloc_trim(pad: usize) -> i32;
        }
        malloc_trim(0);
    }
}

/// Threads of this process; 0 where nobody says.
pub fn thread_count() -> usize {
    status("Threads").and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The cores that this process may run on, which may have holes.
pub fn cores() -> Vec<usize> {
    let list = status("Cpus_allowed_list").unwrap_or_default();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    };
    let cores: Vec<_> = list.split(',').filter_map(range).flatten().collect();
    if cores.is_empty() { vec![0] } else { cores }
}
