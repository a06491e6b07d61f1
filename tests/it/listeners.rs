//! Whom an actor tells.

use crate::support::LONG;
use pointsman::pattern::{ListenerMessage, Listeners};
use pointsman::prelude::*;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Tells what it hears.
struct Ear(&'static str, Sender<(&'static str, u32)>);
impl Actor for Ear {
    type Message = u32;
    fn receive(&mut self, message: u32, _: &mut Context<u32>) -> HandlerResult {
        self.1.send((self.0, message))?;
        Ok(())
    }
}

enum NewsMsg {
    Listening(ListenerMessage<u32>),
    News(u32),
    Count(ReplyTo<usize>),
}

#[derive(Default)]
struct News(Listeners<u32>);
impl Actor for News {
    type Message = NewsMsg;
    fn receive(&mut self, message: NewsMsg, _: &mut Context<NewsMsg>) -> HandlerResult {
        match message {
            NewsMsg::Listening(request) => self.0.handle(request),
            NewsMsg::News(number) => _ = self.0.gossip(number),
            NewsMsg::Count(reply_to) => _ = reply_to.send(self.0.len()),
        }
        Ok(())
    }
}

fn ears(system: &SystemRef, names: [&'static str; 3]) -> ([ActorRef<u32>; 3], Receiver<(&'static str, u32)>) {
    let (sender, heard) = channel();
    let ears = names.map(|name| {
        let sender = sender.clone();
        system.actor(name).spawn(move || Ear(name, sender.clone())).unwrap()
    });
    (ears, heard)
}

#[test]
fn an_actor_tells_its_listeners_until_they_are_deafened() {
    let system = System::builder("listeners").build().unwrap();
    let ([a, b, c], heard) = ears(&system, ["a", "b", "c"]);
    let next = |count: usize| {
        let mut next: Vec<_> = (0..count).map(|_| heard.recv_timeout(LONG).unwrap()).collect();
        next.sort_unstable();
        next
    };
    let news = system.spawn(News::default).unwrap();
    let listen = |ear: &ActorRef<u32>| news.tell(NewsMsg::Listening(ListenerMessage::Listen(ear.clone())));
    let deafen = |ear: &ActorRef<u32>| news.tell(NewsMsg::Listening(ListenerMessage::Deafen(ear.clone())));
    news.tell(NewsMsg::News(0));
    [&a, &b, &a].into_iter().for_each(listen);
    news.tell(NewsMsg::News(1));
    assert_eq!(next(2), [("a", 1), ("b", 1)], "to listen twice is to listen once");
    [&a, &c].into_iter().for_each(deafen);
    news.tell(NewsMsg::News(2));
    assert_eq!(next(1), [("b", 2)]);
    // One that has ended is not forgotten: it was never watched.
    b.graceful_stop(LONG).wait().unwrap();
    news.tell(NewsMsg::News(3));
    assert_eq!(news.ask_with(NewsMsg::Count).wait(), Ok(1));
    deafen(&b);
    assert_eq!(news.ask_with(NewsMsg::Count).wait(), Ok(0));
    let ledger = system.shutdown(LONG).unwrap();
    assert_eq!((ledger.dead_lettered, ledger.balance()), (1, 0), "{ledger}");
    assert!(heard.try_recv().is_err());
}

#[test]
fn listeners_are_a_set_in_the_order_of_their_paths() {
    let system = System::builder("listeners").build().unwrap();
    let ([c, a, b], _heard) = ears(&system, ["c", "a", "b"]);
    let functions = [(); 2].map(|()| ActorRef::from_fn(|_: u32| ()));
    let mut listeners = Listeners::new();
    assert_eq!((listeners.is_empty(), listeners.gossip(1u32)), (true, 0));
    assert!(listeners.listen(c.clone()) && listeners.listen(a.clone()) && listeners.listen(b.clone()));
    assert!(!listeners.listen(c.clone()) && !listeners.listen(a.clone()));
    // What has no path is told apart, and comes first.
    assert!(functions.iter().all(|function| listeners.listen(function.clone())));
    assert!(!listeners.listen(functions[1].clone()));
    let mut seen = Vec::new();
    listeners.for_each(|listener| seen.push(listener.path().to_string()));
    assert_eq!(seen, ["/deadLetters", "/deadLetters", "/user/a", "/user/b", "/user/c"]);
    assert!(listeners.deafen(&a) && !listeners.deafen(&a) && listeners.deafen(&functions[0]));
    let (sender, told) = channel();
    listeners
        .handle(ListenerMessage::ForEach(Box::new(move |listener| sender.send(listener.clone()).unwrap())));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [functions[1].clone(), b, c]);
    assert_eq!((listeners.len(), listeners.iter().len()), (3, 3));
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}

#[test]
fn who_listens_by_an_adapter_listens_once_and_can_be_deafened() {
    let system = System::builder("listeners").build().unwrap();
    let ([a, b, _], _heard) = ears(&system, ["a", "b", "c"]);
    let narrow = |ear: &ActorRef<u32>| ear.narrow::<u16>();
    let mut listeners = Listeners::new();
    assert!(listeners.listen(narrow(&a)) && listeners.listen(narrow(&b)));
    assert!(!listeners.listen(narrow(&a)) && !listeners.listen(narrow(&b)), "each listens already");
    assert_eq!(listeners.gossip(7u16), 2);
    assert!(listeners.deafen(&narrow(&a)) && !listeners.deafen(&narrow(&a)));
    assert_eq!(listeners.iter().cloned().collect::<Vec<_>>(), [narrow(&b)]);
    assert_eq!(system.shutdown(LONG).unwrap().balance(), 0);
}
