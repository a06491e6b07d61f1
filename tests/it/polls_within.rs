//! Futures of tokio, polled by a system that is built with `polls_within`.

use crate::support::*;
use pointsman::pattern::PipeError;
use pointsman::prelude::*;
use pointsman::shutdown::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Piped = Result<u32, PipeError>;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread")
}

fn system(runtime: &tokio::runtime::Runtime) -> System {
    let tokio = runtime.handle().clone();
    System::builder("beside-tokio")
        .dispatcher("blocking", Dispatcher::blocking())
        .polls_within(move |poll| {
            let _entered = tokio.enter();
            poll();
        })
        .build()
        .expect("the settings are sound")
}

/// A reference that passes results on to the test.
fn results() -> (ActorRef<Piped>, Receiver<Piped>) {
    let (sender, piped) = channel();
    (ActorRef::from_fn(move |result| drop(sender.send(result))), piped)
}

#[test]
fn sleeps_and_sockets_of_tokio_work_in_a_pipe() {
    let runtime = runtime();
    let system = system(&runtime);
    let (target, piped) = results();
    let echo = async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_u32(7).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        server.read_u32().await.unwrap()
    };
    system.pipe(echo, &target, |result| result).unwrap();
    assert_eq!(piped.soon(), Ok(Ok(7)));
    let within = || tokio::runtime::Handle::current().block_on(async { 8 });
    system.pipe_blocking(within, &target, |result| result).unwrap();
    assert_eq!(piped.soon(), Ok(Ok(8)));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn without_it_a_future_of_tokio_panics_and_the_result_says_so() {
    let system = System::builder("alone").build().unwrap();
    let (target, piped) = results();
    let sleep = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        1
    };
    system.pipe(sleep, &target, |result| result).unwrap();
    match piped.soon() {
        Ok(Err(PipeError::Panicked { text })) => assert!(text.contains("reactor"), "{text}"),
        other => panic!("{other:?}"),
    }
}

/// Needs a runtime in its destructor, as a connection of sqlx does.
struct Returned(std::sync::mpsc::Sender<bool>);

impl Drop for Returned {
    fn drop(&mut self) {
        let _ = self.0.send(tokio::runtime::Handle::try_current().is_ok());
    }
}

#[test]
fn a_future_is_dropped_within_as_well() {
    let runtime = runtime();
    let system = system(&runtime);
    let (target, piped) = results();
    let (sender, returned) = channel();
    let (done, cancelled) = (Returned(sender.clone()), Returned(sender));
    // An `async` block drops its own variables in its last poll; this one is dropped with the future.
    let mut held = Some(done);
    let future = std::future::poll_fn(move |_| {
        let _ = &mut held;
        std::task::Poll::Ready(1)
    });
    system.pipe(future, &target, |result| result).unwrap();
    assert_eq!(piped.soon(), Ok(Ok(1)));
    assert_eq!(returned.soon(), Ok(true));
    let (polled, first_poll) = channel();
    let never = async move {
        let _cancelled = cancelled;
        let _ = polled.send(());
        std::future::pending().await
    };
    system.pipe(never, &target, |result| result).unwrap();
    first_poll.soon().expect("it is polled");
    system.shutdown(LONG).unwrap();
    assert_eq!(piped.soon(), Ok(Err(PipeError::Cancelled)));
    assert_eq!(returned.soon(), Ok(true));
}

#[test]
fn tasks_of_a_shutdown_run_within() {
    let runtime = runtime();
    let system = system(&runtime);
    let (sender, done) = channel();
    let shutdown = system.coordinated_shutdown();
    let flush = move || {
        // Made outside of any future: the sleep finds its runtime here, too.
        let sleep = tokio::time::sleep(Duration::from_millis(1));
        async move {
            sleep.await;
            sender.send(())?;
            Ok(())
        }
    };
    shutdown.add_future(Phase::BEFORE_SERVICE_UNBIND, "flush", flush).expect("the phase exists");
    shutdown.run("flush").wait().expect("all phases are done");
    assert_eq!(done.soon(), Ok(()));
}

#[test]
fn a_surrounding_that_does_not_poll_or_panics_fails_the_future_and_nothing_else() {
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let stage = Stage::turns_with(move |builder| {
        builder.polls_within(move |poll| match count.fetch_add(1, Ordering::SeqCst) {
            0 => {}
            1 => panic!("as told"),
            // A second call of the argument does nothing.
            _ => {
                poll();
                poll();
            }
        })
    });
    let (target, piped) = results();
    let mut texts = Vec::new();
    for _ in 0..2 {
        // One call polls; the next call drops, and is spoilt as well.
        calls.store(texts.len(), Ordering::SeqCst);
        stage.system.pipe(async { 1 }, &target, |result| result).unwrap();
        match piped.soon() {
            Ok(Err(PipeError::Panicked { text })) => texts.push(text),
            other => panic!("{other:?}"),
        }
    }
    assert!(texts[0].contains("polls_within"), "{texts:?}");
    assert_eq!(texts[1], "panicked: as told");
    stage.system.pipe(async { 2 }, &target, |result| result).unwrap();
    assert_eq!(piped.soon(), Ok(Ok(2)));
    stage.end(&[]);
}
