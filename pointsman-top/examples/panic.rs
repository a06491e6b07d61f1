//! Panics while the terminal is taken over, for the check that a panic gives the terminal back (`.ci/top`).

use pointsman_top::terminal::Screen;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let _screen = Screen::open()?;
    // Any thread may panic, and its message must be read.
    let thread = std::thread::spawn(|| panic!("as it was told"));
    thread.join().map_err(|_| "the thread has panicked")?;
    Ok(())
}
