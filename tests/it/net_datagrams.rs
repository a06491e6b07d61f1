//! Datagram sockets: UDP and Unix.

use pointsman::net::{
    Datagram, DatagramAddress, DatagramCounts, DatagramError, DatagramOutcome, DatagramSendError,
    DatagramSocket, Ready,
};
use pointsman::prelude::*;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

type Act = Box<dyn FnOnce(&mut DatagramSocket) + Send>;

enum PostMsg {
    Ready(Ready),
    Do(Act),
}

impl From<Ready> for PostMsg {
    fn from(ready: Ready) -> Self {
        PostMsg::Ready(ready)
    }
}

/// A datagram, whole or not.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Whole(Vec<u8>, Option<DatagramAddress>),
    Part(Vec<u8>),
    Failed(io::ErrorKind),
}

/// Tells what it receives.
struct Post {
    socket: DatagramSocket,
    got: Sender<Got>,
    /// The number of datagrams of each turn.
    turns: Sender<usize>,
}

impl Actor for Post {
    type Message = PostMsg;
    fn receive(&mut self, message: PostMsg, _: &mut Context<PostMsg>) -> HandlerResult {
        match message {
            PostMsg::Do(act) => act(&mut self.socket),
            PostMsg::Ready(ready) => {
                self.socket.ready(ready);
                let mut count = 0;
                loop {
                    let got = match self.socket.receive() {
                        DatagramOutcome::Received(Datagram { bytes, from }) => {
                            Got::Whole(bytes.to_vec(), from)
                        }
                        DatagramOutcome::Truncated(Datagram { bytes, .. }) => Got::Part(bytes.to_vec()),
                        DatagramOutcome::Failed(kind) => Got::Failed(kind),
                        DatagramOutcome::Blocked => break,
                    };
                    count += 1;
                    self.got.send(got)?;
                }
                self.turns.send(count)?;
            }
        }
        Ok(())
    }
}

struct Office {
    post: ActorRef<PostMsg>,
    addr: DatagramAddress,
    got: Receiver<Got>,
    turns: Receiver<usize>,
}

impl Office {
    fn open(system: &System, address: impl Into<DatagramAddress>, length_max: usize) -> Self {
        let (got, gets) = mpsc::channel();
        let ((turns, counts), (bound, local)) = (mpsc::channel(), mpsc::channel());
        let address = address.into();
        let post = system
            .actor("post")
            .spawn_with(move |ctx| {
                let socket = DatagramSocket::bind(ctx, address.clone(), length_max)?;
                bound.send(socket.local_addr().clone())?;
                Ok::<_, Failure>(Post { socket, got: got.clone(), turns: turns.clone() })
            })
            .unwrap();
        Office { post, addr: local.recv_timeout(LONG).unwrap(), got: gets, turns: counts }
    }

    fn next(&self) -> Got {
        self.got.recv_timeout(LONG).expect("a datagram comes")
    }

    /// Has the actor do something with its socket.
    fn with<R: Send + 'static>(&self, act: impl FnOnce(&mut DatagramSocket) -> R + Send + 'static) -> R {
        let (done, result) = mpsc::channel();
        self.post.tell(PostMsg::Do(Box::new(move |socket| done.send(act(socket)).unwrap())));
        result.recv_timeout(LONG).unwrap()
    }

    fn counts(&self) -> DatagramCounts {
        self.with(|socket| socket.counts())
    }
}

fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn ends_balanced(system: System) {
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!(ledger.balance(), 0, "{ledger}");
}

#[test]
fn datagrams_come_whole_and_in_order_and_go_out() {
    let system = System::builder("post").build().unwrap();
    let office = Office::open(&system, local(), 1000);
    let client = UdpSocket::bind(local()).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let to = DatagramAddress::from(client.local_addr().unwrap());
    for length in [1usize, 0, 999, 1000] {
        client.send_to(&vec![7; length], office.addr.udp().unwrap()).unwrap();
        assert_eq!(office.next(), Got::Whole(vec![7; length], Some(to.clone())));
    }
    office.with(move |socket| socket.send_to(b"back", &to)).unwrap();
    let mut back = [0; 10];
    assert_eq!(client.recv_from(&mut back).unwrap(), (4, office.addr.udp().unwrap()));
    let counts = office.counts();
    assert_eq!((counts.received, counts.sent, counts.truncated, counts.refused), (4, 1, 0, 0));
    ends_balanced(system);
}

#[test]
fn a_datagram_that_is_too_long_is_cut_and_says_so_and_the_next_is_whole() {
    let system = System::builder("post").build().unwrap();
    let office = Office::open(&system, local(), 10);
    let client = UdpSocket::bind(local()).unwrap();
    let to = office.addr.udp().unwrap();
    let long: Vec<u8> = (0..11).collect();
    client.send_to(&long, to).unwrap();
    client.send_to(&[9; 60_000], to).unwrap();
    client.send_to(b"next", to).unwrap();
    assert_eq!(office.next(), Got::Part(long[..10].to_vec()));
    assert_eq!(office.next(), Got::Part(vec![9; 10]));
    assert!(matches!(office.next(), Got::Whole(bytes, _) if bytes == b"next"));
    let counts = office.counts();
    assert_eq!((counts.received, counts.truncated), (1, 2));
    ends_balanced(system);
}

#[test]
fn a_flood_leaves_others_their_turn_and_all_of_it_comes() {
    let system = System::builder("post").build().unwrap();
    let office = Office::open(&system, local(), 100);
    let client = UdpSocket::bind(local()).unwrap();
    // All lie in the socket before the actor reads the first.
    let (inside, entered) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    office.post.tell(PostMsg::Do(Box::new(move |_| {
        inside.send(()).unwrap();
        released.recv().unwrap();
    })));
    entered.recv_timeout(LONG).unwrap();
    for number in 0..150u8 {
        client.send_to(&[number], office.addr.udp().unwrap()).unwrap();
    }
    release.send(()).unwrap();
    for number in 0..150u8 {
        assert!(matches!(office.next(), Got::Whole(bytes, _) if bytes == [number]));
    }
    assert_eq!(office.counts().received, 150);
    let turns: Vec<usize> = office.turns.try_iter().collect();
    assert!(turns.iter().all(|count| *count <= 64) && turns.iter().sum::<usize>() == 150, "{turns:?}");
    ends_balanced(system);
}

#[test]
fn what_cannot_be_sent_is_a_typed_error_and_is_counted() {
    let system = System::builder("post").build().unwrap();
    let office = Office::open(&system, local(), 10);
    let over_ipv6 = DatagramAddress::from(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 9)));
    let over_ipv4 = DatagramAddress::from(SocketAddr::from(([127, 0, 0, 1], 9)));
    let (own, to) = (office.addr.clone(), over_ipv6.clone());
    let error = office.with(move |socket| socket.send_to(b"a", &to)).unwrap_err();
    let is_wrong =
        matches!(&error, DatagramSendError::WrongFamily { from, to } if *from == own && *to == over_ipv6);
    assert!(is_wrong, "{error:?}");
    let to = DatagramAddress::from(std::path::PathBuf::from("/nowhere"));
    let error = office.with(move |socket| socket.send_to(b"a", &to)).unwrap_err();
    assert!(matches!(error, DatagramSendError::WrongFamily { .. }), "{error:?}");
    let error = office.with(move |socket| socket.send_to(&[0; 65_508], &over_ipv4)).unwrap_err();
    assert!(matches!(error, DatagramSendError::TooLong { length: 65_508 }), "{error:?}");
    // Port 0 is no port.
    let to = DatagramAddress::from(local());
    let error = office.with(move |socket| socket.send_to(b"a", &to)).unwrap_err();
    assert!(matches!(error, DatagramSendError::Failed { .. }), "{error:?}");
    let counts = office.counts();
    assert_eq!((counts.sent, counts.refused), (0, 4));
    ends_balanced(system);
}

/// Binds in an actor, and returns the error.
fn bind_error(system: &System, address: DatagramAddress, length_max: usize) -> DatagramError {
    struct Never;
    impl Actor for Never {
        type Message = Ready;
        fn receive(&mut self, _: Ready, _: &mut Context<Ready>) -> HandlerResult {
            Ok(())
        }
    }
    let (tell, told) = mpsc::channel();
    system
        .spawn_with_error(move |ctx| {
            let _ = tell.send(DatagramSocket::bind(ctx, address.clone(), length_max).map(drop));
            Never
        })
        .unwrap();
    told.recv_timeout(LONG).unwrap().unwrap_err()
}

/// Spawns an actor whose recipe sees the context.
trait SpawnWith {
    fn spawn_with_error<A: Actor>(
        &self,
        recipe: impl FnMut(&mut Context<A::Message>) -> A + Send + 'static,
    ) -> Result<ActorRef<A::Message>, pointsman::SpawnError>;
}

impl SpawnWith for System {
    fn spawn_with_error<A: Actor>(
        &self,
        recipe: impl FnMut(&mut Context<A::Message>) -> A + Send + 'static,
    ) -> Result<ActorRef<A::Message>, pointsman::SpawnError> {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.actor(&format!("binds-{number}")).spawn_with(recipe)
    }
}

#[test]
fn a_socket_that_cannot_be_had_is_a_typed_error() {
    let system = System::builder("post").build().unwrap();
    let taken = UdpSocket::bind(local()).unwrap();
    let error = bind_error(&system, taken.local_addr().unwrap().into(), 10);
    assert_eq!(error.kind(), Some(io::ErrorKind::AddrInUse), "{error}");
    let error = bind_error(&system, local().into(), 0);
    assert!(matches!(error, DatagramError::LengthMax { length_max: 0 }), "{error:?}");
    let error = bind_error(&system, local().into(), usize::MAX);
    assert!(error.to_string().contains("1 to 16777216"), "{error}");
    // An address of the documentation's net is none of this machine.
    let error = bind_error(&system, SocketAddr::from(([192, 0, 2, 1], 0)).into(), 10);
    assert_eq!(error.kind(), Some(io::ErrorKind::AddrNotAvailable), "{error}");
    ends_balanced(system);
}

#[cfg(unix)]
#[test]
fn unix_datagrams_come_and_go_and_the_file_goes_with_the_socket() {
    use std::os::unix::net::UnixDatagram;
    let path =
        |name: &str| std::env::temp_dir().join(format!("pointsman-post-{name}-{}", std::process::id()));
    let (ours, theirs) = (path("ours"), path("theirs"));
    let system = System::builder("post").build().unwrap();
    let office = Office::open(&system, ours.clone(), 100);
    let client = UnixDatagram::bind(&theirs).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client.send_to(b"hello", &ours).unwrap();
    assert_eq!(office.next(), Got::Whole(b"hello".to_vec(), Some(theirs.clone().into())));
    let unnamed = UnixDatagram::unbound().unwrap();
    unnamed.send_to(&[1; 101], &ours).unwrap();
    unnamed.send_to(b"", &ours).unwrap();
    assert_eq!(office.next(), Got::Part(vec![1; 100]));
    assert_eq!(office.next(), Got::Whole(Vec::new(), None));
    let to = DatagramAddress::from(theirs.clone());
    office
        .with({
            let to = to.clone();
            move |socket| socket.send_to(b"back", &to)
        })
        .unwrap();
    let mut back = [0; 10];
    assert_eq!(client.recv(&mut back).unwrap(), 4);
    // A receiver that does not read has no room in the end, and the sender is not blocked.
    let error = office.with(move |socket| {
        loop {
            if let Err(error) = socket.send_to(&[2; 100], &to) {
                break error;
            }
        }
    });
    assert!(matches!(error, DatagramSendError::Full), "{error:?}");
    let udp = DatagramAddress::from(local());
    let error = office.with(move |socket| socket.send_to(b"a", &udp)).unwrap_err();
    assert!(matches!(error, DatagramSendError::WrongFamily { .. }), "{error:?}");
    ends_balanced(system);
    assert!(!ours.exists());
    std::fs::remove_file(theirs).unwrap();
}
