//! Nodes without systems: engines whose inbound side is written down.

use pointsman::remote::{ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, PeerOutbox};
use pointsman_nats::{DevServer, DevServerError, Nats};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// No event takes as long, on a machine that is busy.
pub const LIMIT: Duration = Duration::from_secs(60);

/// What an engine tells its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Up(usize),
    Down(String),
    Frame { from: String, kind: ChannelKind, frame: Vec<u8> },
    NoListener(String, u64),
}

/// Writes down what an engine tells.
#[derive(Default)]
pub struct Record {
    told: Mutex<Vec<Told>>,
    changed: Condvar,
    /// While it is held, no batch is taken.
    pub gate: Mutex<()>,
}

impl Record {
    fn add(&self, told: Told) {
        self.told().push(told);
        self.changed.notify_all();
    }

    pub fn told(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock().expect("no test panics with it")
    }

    /// Waits until the record has what is looked for.
    pub fn wait<T>(&self, what: &str, mut find: impl FnMut(&[Told]) -> Option<T>) -> T {
        let began = Instant::now();
        let mut told = self.told();
        loop {
            if let Some(found) = find(&told) {
                return found;
            }
            assert!(began.elapsed() < LIMIT, "{what} has not come: {:?}", shortened(&told));
            (told, _) =
                self.changed.wait_timeout(told, Duration::from_millis(200)).expect("no test panics with it");
        }
    }

    /// Waits until the engine is up for the `count`th time.
    pub fn wait_up(&self, count: usize) {
        let ups = |told: &[Told]| told.iter().filter(|told| matches!(told, Told::Up(_))).count();
        self.wait("a connection", |told| (ups(told) >= count).then_some(()));
    }

    /// Waits for the `count`th reason why there is no connection.
    pub fn wait_down(&self, count: usize) -> String {
        self.wait("the loss of a connection", |told| self::downs(told).nth(count - 1).map(str::to_owned))
    }

    /// The bodies of frames of this kind so far, with their senders.
    pub fn frames(&self, of: ChannelKind) -> Vec<(String, Vec<u8>)> {
        frames(&self.told(), of)
    }

    /// Waits for frames of this kind.
    pub fn wait_frames(&self, of: ChannelKind, count: usize) -> Vec<(String, Vec<u8>)> {
        self.wait("a frame", |told| {
            let found = frames(told, of);
            (found.len() >= count).then_some(found)
        })
    }
}

fn shortened(told: &[Told]) -> Vec<String> {
    let mut texts: Vec<String> =
        told.iter().map(|told| format!("{told:?}").chars().take(150).collect()).collect();
    if texts.len() > 20 {
        texts.drain(10..texts.len() - 10);
    }
    texts
}

fn downs(told: &[Told]) -> impl Iterator<Item = &str> {
    told.iter().filter_map(|told| if let Told::Down(why) = told { Some(why.as_str()) } else { None })
}

fn frames(told: &[Told], of: ChannelKind) -> Vec<(String, Vec<u8>)> {
    let of_kind = |told: &Told| match told {
        Told::Frame { from, kind, frame } if *kind == of => Some((from.clone(), frame.clone())),
        _ => None,
    };
    told.iter().filter_map(of_kind).collect()
}

impl Inbound for Record {
    fn up(&self, max_frame: usize) {
        self.add(Told::Up(max_frame));
    }

    fn down(&self, why: &str) {
        self.add(Told::Down(why.to_owned()));
    }

    fn frame(&self, from: &str, kind: ChannelKind, frame: Vec<u8>) {
        if kind == ChannelKind::Batch {
            drop(self.gate.lock());
        }
        self.add(Told::Frame { from: from.to_owned(), kind, frame });
    }

    fn no_listener(&self, node: &str, uid: u64) {
        self.add(Told::NoListener(node.to_owned(), uid));
    }
}

/// An engine with its record. It ends when it is dropped.
pub struct TestNode {
    pub record: Arc<Record>,
    pub fabric: Arc<dyn Fabric>,
}

impl TestNode {
    pub fn try_start(nats: Nats, node: &str, uid: u64) -> Result<Self, EngineError> {
        let record = Arc::new(Record::default());
        let fabric = Box::new(nats).start(&Identity::new(node, "pointsman", uid), record.clone())?;
        Ok(Self { record, fabric })
    }

    pub fn start(nats: Nats, node: &str, uid: u64) -> Self {
        Self::try_start(nats, node, uid).expect("the settings are right")
    }

    /// A node that is connected.
    pub fn connected(nats: Nats, node: &str, uid: u64) -> Self {
        let node = Self::start(nats, node, uid);
        node.record.wait_up(1);
        node
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.fabric.stop(Duration::ZERO);
    }
}

/// Bodies of so many batches, which end with their numbers.
pub fn bodies(count: usize, len: usize) -> Vec<Vec<u8>> {
    let body = |at: usize| {
        let mut body = vec![b'.'; len.max(8)];
        let end = body.len() - 8;
        body[end..].copy_from_slice(&(at as u64).to_le_bytes());
        body
    };
    (0..count).map(body).collect()
}

/// An outbox with a batch for each body.
pub fn outbox(peer: &str, bodies: &[Vec<u8>]) -> PeerOutbox {
    PeerOutbox::for_test(peer, &bodies.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// The numbers that frames of [`bodies`] end with.
pub fn numbers(frames: &[(String, Vec<u8>)]) -> Vec<u64> {
    let number = |frame: &[u8]| u64::from_le_bytes(frame[frame.len() - 8..].try_into().expect("eight bytes"));
    frames.iter().map(|(_, frame)| number(frame)).collect()
}

/// Ends the sender, which writes all that waits, and returns the numbers of all batches that have come to `n2`. `nats` are the
/// settings of the sender.
pub fn numbers_at_the_end(sender: TestNode, nats: Nats, n2: &TestNode) -> Vec<u64> {
    sender.fabric.stop(LIMIT);
    // The server has all of them, so this one comes behind them.
    let last = TestNode::connected(nats, "n1", u64::MAX);
    last.fabric.wants_out(&outbox("n2", &[u64::MAX.to_le_bytes().to_vec()]));
    n2.record.wait("the last batch", |told| {
        let mut numbers = numbers(&frames(told, ChannelKind::Batch));
        (numbers.pop() == Some(u64::MAX)).then_some(numbers)
    })
}

/// A server, or `None` where it is not installed: then the test says so and passes.
pub fn server_or_skip(start: impl FnOnce() -> Result<DevServer, DevServerError>) -> Option<DevServer> {
    match start() {
        Err(DevServerError::NotInstalled) => {
            assert!(std::env::var_os("POINTSMAN_NATS_DEMANDED").is_none(), "nats-server is not installed");
            eprintln!("SKIPPED: nats-server is not installed");
            None
        }
        started => Some(started.expect("the server starts")),
    }
}

/// The peak of the resident memory of this process so far, in bytes.
#[cfg(target_os = "linux")]
pub fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux has it");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes << 10
}

/// Runs a test in a process of its own, whose memory has nothing of other tests. `name` is the path of the test that calls this.
#[cfg(target_os = "linux")]
pub fn in_own_process(name: &str, test: impl FnOnce()) {
    const OWN: &str = "POINTSMAN_NATS_OWN_PROCESS";
    const DONE: &str = "all of it was done";
    if std::env::var_os(OWN).is_some_and(|own| own == name) {
        test();
        println!("{DONE}");
        return;
    }
    let mut command = std::process::Command::new(std::env::current_exe().expect("it has a name"));
    let output = command.args([name, "--exact", "--nocapture"]).env(OWN, name).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(DONE), "{said}");
}
