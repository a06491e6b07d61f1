//! The terminal: its raw mode and alternate screen, which come back to what they were however the program ends.

use crate::app::{App, ReaderGone};
use crate::view::Action;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The longest time between two screens.
const TICK: Duration = Duration::from_millis(100);

/// The time in which the program ends by itself after a signal.
#[cfg(unix)]
const GRACE: Duration = Duration::from_secs(2);

/// Why the program ends.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The user has asked for it.
    Quit,
    /// A signal has, whose number this is.
    Signal(i32),
}

/// A terminal in raw mode, with its alternate screen. Dropping it brings back what was there before.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal over. From then on a panic of any thread gives it back before it prints its message.
    ///
    /// # Errors
    ///
    /// Standard output is no terminal that can be taken over.
    pub fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                hook(info);
            }));
        });
        enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Shows a screen of the program.
    ///
    /// # Errors
    ///
    /// The terminal is gone.
    pub fn show(&mut self, app: &mut App) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            app.draw(area, frame.buffer_mut());
        })?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Brings back what was in the terminal before. A terminal that is gone needs nothing.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
}

/// Notes the signals that end programs, so that the terminal is given back first.
fn note_signals() -> io::Result<Arc<AtomicUsize>> {
    let noted = Arc::new(AtomicUsize::new(0));
    let mut signals = vec![SIGTERM, SIGINT];
    #[cfg(unix)]
    signals.push(signal_hook::consts::SIGHUP);
    for signal in &signals {
        signal_hook::flag::register_usize(*signal, Arc::clone(&noted), *signal as usize)?;
    }
    #[cfg(unix)]
    end_after_grace(signals)?;
    Ok(noted)
}

/// Ends the program by a signal that it does not follow in time: a terminal that goes while crossterm reads it keeps that
/// reading for ever.
#[cfg(unix)]
fn end_after_grace(signals: Vec<i32>) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new(signals)?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            std::thread::sleep(GRACE);
            give_back();
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Waits for a key, for `wait` at most.
///
/// # Errors
///
/// The terminal is gone, which crossterm does not tell.
#[cfg(unix)]
fn wait_for_key(wait: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let input = io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the terminal is gone"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn wait_for_key(wait: Duration) -> io::Result<()> {
    event::poll(wait).map(drop)
}

/// Shows the program in the terminal until the user or a signal ends it.
///
/// # Errors
///
/// The terminal is gone, or the thread that reads has ended.
pub fn run(app: &mut App) -> io::Result<End> {
    let signal = note_signals()?;
    let mut screen = Screen::open()?;
    loop {
        app.poll(Instant::now())
            .map_err(|ReaderGone| io::Error::other("the thread that reads the server has ended"))?;
        screen.show(app)?;
        wait_for_key(TICK)?;
        // All keys that have come are taken before the next screen.
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && app.key(key) == Action::Quit
            {
                return Ok(End::Quit);
            }
        }
        // Ordering: Relaxed; the number is all that the signal says.
        match signal.load(Ordering::Relaxed) {
            0 => {}
            signal => return Ok(End::Signal(signal as i32)),
        }
    }
}
