//! A server of one's own, for one machine with several processes and for tests.

use crate::debug_by_display::debug_by_display;
use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time in which a server starts.
const START_WITHIN: Duration = Duration::from_secs(20);
/// The pause between two looks for its port.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Where packages put the server, which may not be on the path of a user.
const PROGRAMS: [&str; 3] = ["nats-server", "/usr/sbin/nats-server", "/usr/local/bin/nats-server"];

/// There is no server of one's own.
#[non_exhaustive]
pub enum DevServerError {
    /// There is no program `nats-server`.
    NotInstalled,
    /// It has ended at once; the text is the end of its log.
    Failed {
        /// The end of its log.
        log: String,
    },
    /// It has not said in time where it listens.
    TimedOut {
        /// The end of its log.
        log: String,
    },
    /// The operating system refuses something.
    Io(io::Error),
}

impl fmt::Display for DevServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DevServerError::NotInstalled => f.write_str(
                "there is no program `nats-server`: install it (on Debian, `apt-get install nats-server`)",
            ),
            DevServerError::Failed { log } => write!(f, "nats-server has ended at once: {log}"),
            DevServerError::TimedOut { log } => {
                write!(f, "nats-server does not listen after {START_WITHIN:?}: {log}")
            }
            DevServerError::Io(error) => write!(f, "nats-server cannot be started: {error}"),
        }
    }
}

impl Error for DevServerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            DevServerError::Io(error) => Some(error),
            _ => None,
        }
    }
}

debug_by_display! { DevServerError }

impl From<io::Error> for DevServerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A `nats-server` of this process, which listens on this machine alone, at a free port. It ends when the value is dropped.
///
/// It takes every client of this machine, unless a configuration says otherwise: it is for development and for tests.
///
/// # Examples
///
/// ```
/// use pointsman_nats::{DevServer, DevServerError, Nats};
///
/// let server = match DevServer::start() {
///     Err(DevServerError::NotInstalled) => return,
///     started => started.unwrap(),
/// };
/// let engine = Nats::servers([server.url()]); // for `Node::engine`
/// ```
#[derive(Debug)]
pub struct DevServer {
    child: Child,
    port: u16,
    /// For the files with its port and its log.
    folder: PathBuf,
    config: Option<(PathBuf, PathBuf)>,
}

impl DevServer {
    /// Starts a server that takes every client of this machine.
    ///
    /// # Errors
    ///
    /// [`DevServerError::NotInstalled`] if there is no `nats-server`, and others if it does not start.
    pub fn start() -> Result<Self, DevServerError> {
        Self::launch(None)
    }

    /// Starts a server with this configuration, in this folder, where it looks for the files that the configuration names.
    /// The server listens on this machine alone and at a free port, regardless of the configuration.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn start_with(config: impl AsRef<Path>, folder: impl AsRef<Path>) -> Result<Self, DevServerError> {
        Self::launch(Some((config.as_ref().to_owned(), folder.as_ref().to_owned())))
    }

    fn launch(config: Option<(PathBuf, PathBuf)>) -> Result<Self, DevServerError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Ordering: Relaxed; each caller gets another number, and nothing else hangs on it.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("pointsman-nats-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let launched = run(&folder, config.as_ref(), None);
        let (child, port) = launched.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        Ok(Self { child, port, folder, config })
    }

    /// The address of the server: `nats://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("nats://{}", self.endpoint())
    }

    /// Host and port of the server: `127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The id of the server's process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server, as a crash would.
    ///
    /// # Errors
    ///
    /// The operating system refuses it.
    pub fn kill(&mut self) -> io::Result<()> {
        // One that has ended cannot be killed.
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        self.child.wait().map(drop)
    }

    /// Starts the server again at its old port, with an end before if it runs.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); the port may have been taken meanwhile.
    pub fn restart(&mut self) -> Result<(), DevServerError> {
        self.kill()?;
        (self.child, _) = run(&self.folder, self.config.as_ref(), Some(self.port))?;
        Ok(())
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            log::error!("nats-server {} cannot be ended: {error}", self.child.id());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts a server and waits until it listens.
fn run(
    folder: &Path,
    config: Option<&(PathBuf, PathBuf)>,
    port: Option<u16>,
) -> Result<(Child, u16), DevServerError> {
    let log_path = folder.join("log");
    let mut child = None;
    for program in PROGRAMS {
        let log = File::create(&log_path)?;
        let port = port.map_or("-1".to_owned(), |port| port.to_string());
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &port, "--ports_file_dir"]).arg(folder);
        if let Some((config, its_folder)) = config {
            command.arg("-c").arg(fs::canonicalize(config)?).current_dir(its_folder);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        match command.spawn() {
            Ok(spawned) => {
                child = Some(spawned);
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut child = child.ok_or(DevServerError::NotInstalled)?;
    let began = Instant::now();
    loop {
        match port_of(folder, child.id()) {
            Ok(Some(port)) => return Ok((child, port)),
            Ok(None) => {}
            Err(error) => {
                end(&mut child);
                return Err(error.into());
            }
        }
        if child.try_wait()?.is_some() {
            return Err(DevServerError::Failed { log: last_lines(&log_path) });
        }
        if began.elapsed() > START_WITHIN {
            end(&mut child);
            return Err(DevServerError::TimedOut { log: last_lines(&log_path) });
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The port in the file that the server of this process writes when it listens.
fn port_of(folder: &Path, process: u32) -> io::Result<Option<u16>> {
    let ending = format!("_{process}.ports");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(&ending) {
            continue;
        }
        // It may not be written to its end.
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(&fs::read(&path)?) else {
            return Ok(None);
        };
        let urls = json["nats"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str);
        return Ok(urls.filter_map(|url| url.rsplit(':').next()?.parse().ok()).next());
    }
    Ok(None)
}

/// The end of a log, as an error shows it.
fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
