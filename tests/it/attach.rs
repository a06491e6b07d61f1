//! Streams attached to actors.

use crate::support::*;
use pointsman::actor::{StreamEvent, StreamKey};
use pointsman::prelude::*;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll, Waker};
use tokio_stream::Stream;

/// The items that wait, and the waker of the stream's reader.
type Waiting = (std::collections::VecDeque<Option<u32>>, Option<Waker>);

/// A stream of what the test puts in; `None` ends it.
#[derive(Clone, Default)]
struct Tap {
    items: Arc<Mutex<Waiting>>,
    polls: Arc<AtomicUsize>,
}

impl Tap {
    fn put(&self, item: Option<u32>) {
        let waker = {
            let mut items = self.items.lock().unwrap();
            items.0.push_back(item);
            items.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    fn polls(&self) -> usize {
        self.polls.load(Ordering::SeqCst)
    }
}

impl Stream for Tap {
    type Item = u32;
    fn poll_next(self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<u32>> {
        self.polls.fetch_add(1, Ordering::SeqCst);
        let mut items = self.items.lock().unwrap();
        match items.0.pop_front() {
            Some(Some(13)) => panic!("as told"),
            Some(item) => Poll::Ready(item),
            None => {
                items.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The message that notes an event.
fn noted(event: StreamEvent<u32>) -> Tell {
    Tell::new(move |puppet, _| {
        puppet.note(event);
        Ok(())
    })
}

fn attach(puppet: &ActorRef<Tell>, stream: impl Stream<Item = u32> + Send + 'static) -> StreamKey {
    query(puppet, move |_, ctx| ctx.attach(stream, noted)).expect("it answers")
}

#[test]
fn items_and_the_end_are_messages() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let tap = Tap::default();
    attach(&actor, tap.clone());
    tap.put(Some(1));
    stage.expect(&["a Started 1", "a Item(1)"]);
    note(&actor, "message");
    stage.expect(&["a message"]);
    tap.put(Some(2));
    tap.put(None);
    stage.expect(&["a Item(2)", "a End"]);
    let polls = tap.polls();
    tap.put(Some(3));
    run_turns();
    assert_eq!(tap.polls(), polls, "a stream that has ended is not polled");
    let ledger = stage.system.ledger();
    assert_eq!((ledger.sent, ledger.handled, ledger.balance()), (5, 5, 0), "{ledger}");
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_panic_of_the_stream_is_its_last_event() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let tap = Tap::default();
    let key = attach(&actor, tap.clone());
    tap.put(Some(13));
    stage.expect(&["a Started 1", "a Panicked { text: \"panicked: as told\" }"]);
    assert_eq!(query(&actor, move |_, ctx| ctx.detach(&key)), Ok(false));
    stage.end(&["a Stopped 1"]);
}

#[test]
fn the_next_item_is_polled_when_the_last_was_handled() {
    let stage = Stage::threads("one-by-one");
    let actor = stage.spawn(&stage.role("a"));
    let tap = Tap::default();
    (1..=3).for_each(|item| tap.put(Some(item)));
    let (release, held) = channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let stream = tap.clone();
    query(&actor, move |_, ctx| {
        ctx.attach(stream, move |event| {
            let held = held.clone();
            Tell::new(move |puppet, ctx| {
                puppet.note(&event);
                if matches!(event, StreamEvent::Item(_)) {
                    let _ = ctx.blocking(|| held.lock().unwrap().recv());
                }
                Ok(())
            })
        });
    })
    .expect("it answers");
    stage.expect(&["a Started 1"]);
    for item in 1..=3 {
        stage.expect(&[&format!("a Item({item})")]);
        assert_eq!(tap.polls(), item);
        // It takes turns with the messages that are queued meanwhile.
        note(&actor, "between");
        release.send(()).unwrap();
        stage.expect(&["a between"]);
    }
    stage.end(&["a Stopped 1"]);
}

#[test]
fn a_hold_in_the_handler_of_an_item_holds_the_stream_up() {
    let stage = Stage::turns();
    let actor = stage.spawn(&stage.role("a"));
    let tap = Tap::default();
    tap.put(Some(1));
    tap.put(Some(2));
    let gate = Tap::default();
    let (stream, opens) = (tap.clone(), gate.clone());
    query(&actor, move |_, ctx| {
        ctx.attach(stream, move |event| {
            let mut opens = opens.clone();
            Tell::new(move |puppet, ctx| {
                puppet.note(event);
                let opened = std::future::poll_fn(move |cx| Pin::new(&mut opens).poll_next(cx));
                ctx.hold(opened, |puppet: &mut Puppet, value, _| {
                    puppet.note(value);
                    Ok(())
                });
                Ok(())
            })
        });
    })
    .expect("it answers");
    stage.expect(&["a Started 1", "a Item(1)"]);
    run_turns();
    assert_eq!(tap.polls(), 1);
    gate.put(Some(7));
    stage.expect(&["a Some(7)", "a Item(2)"]);
    gate.put(None);
    stage.expect(&["a None"]);
    stage.end(&["a Stopped 1"]);
}

/// Tells when it is dropped.
struct Told(Sender<()>, Tap);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Stream for Told {
    type Item = u32;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Poller<'_>) -> Poll<Option<u32>> {
        Pin::new(&mut self.1).poll_next(cx)
    }
}

#[test]
fn a_stream_ends_with_its_state_and_when_it_is_detached() {
    let stage = Stage::turns();
    let parent = stage.spawn(&stage.role("p").strategy(|| Strategy::default().max_restarts(9)));
    let actor = child(&parent, &stage.role("a"));
    let (sender, dropped) = channel();
    let tap = Tap::default();
    let told = || Told(sender.clone(), tap.clone());
    stage.expect(&["p Started 1", "a Started 1"]);
    // A restart.
    attach(&actor, told());
    run_turns();
    fail(&actor);
    stage.expect(&["a Restarting 1", "a Restarted 2"]);
    assert_eq!(dropped.soon(), Ok(()));
    // Detached.
    let key = attach(&actor, told());
    run_turns();
    assert_eq!(query(&actor, move |_, ctx| ctx.detach(&key)), Ok(true));
    assert_eq!(dropped.soon(), Ok(()));
    // Its end, with an item that comes too late.
    attach(&actor, told());
    run_turns();
    actor.stop();
    stage.expect(&["a Stopped 2"]);
    assert_eq!(dropped.soon(), Ok(()));
    tap.put(Some(1));
    stage.end(&["p Stopped 1"]);
}

#[test]
fn a_channel_of_tokio_is_a_stream_like_any_other() {
    let stage = Stage::threads("tokio");
    let actor = stage.spawn(&stage.role("a"));
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    attach(&actor, tokio_stream::wrappers::ReceiverStream::new(receiver));
    stage.expect(&["a Started 1"]);
    for item in 0..100 {
        sender.blocking_send(item).expect("the actor listens");
    }
    drop(sender);
    for item in 0..100 {
        stage.expect(&[&format!("a Item({item})")]);
    }
    stage.expect(&["a End"]);
    stage.end(&["a Stopped 1"]);
}
