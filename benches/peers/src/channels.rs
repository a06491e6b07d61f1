//! What people build routers from by hand: a channel, and a task or a thread around each receiver.

use crate::peer::{Answer, Peer, Tell, Words};
use crate::tasks::runtime;
use crate::work::{Recipe, Work};
use std::marker::PhantomData;
use std::ops::Range;
use std::thread;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// An unbounded channel whose receiver can be awaited.
pub trait Channel: Sized + 'static {
    type Sender<T: Send + 'static>: Clone + Send + Sync + 'static;
    type Receiver<T: Send + 'static>: Send + 'static;

    fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>);
    fn send<T: Send + 'static>(sender: &Self::Sender<T>, message: T);
    fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>)
    -> impl Future<Output = Option<T>> + Send;

    /// A second receiver of the same channel, if it can have one.
    fn share<T: Send + 'static>(receiver: &Self::Receiver<T>) -> Option<Self::Receiver<T>> {
        let _ = receiver;
        None
    }
}

pub struct TokioMpsc;

impl Channel for TokioMpsc {
    type Sender<T: Send + 'static> = tokio::sync::mpsc::UnboundedSender<T>;
    type Receiver<T: Send + 'static> = tokio::sync::mpsc::UnboundedReceiver<T>;

    fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        tokio::sync::mpsc::unbounded_channel()
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, message: T) {
        assert!(sender.send(message).is_ok(), "the receiver lives");
    }

    async fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().await
    }
}

pub struct Kanal;

impl Channel for Kanal {
    type Sender<T: Send + 'static> = kanal::Sender<T>;
    type Receiver<T: Send + 'static> = kanal::AsyncReceiver<T>;

    fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        let (sender, receiver) = kanal::unbounded();
        (sender, receiver.to_async())
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, message: T) {
        assert!(sender.send(message).is_ok(), "the receiver lives");
    }

    async fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().await.ok()
    }

    fn share<T: Send + 'static>(receiver: &Self::Receiver<T>) -> Option<Self::Receiver<T>> {
        Some(receiver.clone())
    }
}

pub struct Flume;

impl Channel for Flume {
    type Sender<T: Send + 'static> = flume::Sender<T>;
    type Receiver<T: Send + 'static> = flume::Receiver<T>;

    fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        flume::unbounded()
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, message: T) {
        assert!(sender.send(message).is_ok(), "the receiver lives");
    }

    async fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv_async().await.ok()
    }

    fn share<T: Send + 'static>(receiver: &Self::Receiver<T>) -> Option<Self::Receiver<T>> {
        Some(receiver.clone())
    }
}

pub struct AsyncChannel;

impl Channel for AsyncChannel {
    type Sender<T: Send + 'static> = async_channel::Sender<T>;
    type Receiver<T: Send + 'static> = async_channel::Receiver<T>;

    fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        async_channel::unbounded()
    }

    fn send<T: Send + 'static>(sender: &Self::Sender<T>, message: T) {
        assert!(sender.try_send(message).is_ok(), "the receiver lives");
    }

    async fn receive<T: Send + 'static>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.recv().await.ok()
    }

    fn share<T: Send + 'static>(receiver: &Self::Receiver<T>) -> Option<Self::Receiver<T>> {
        Some(receiver.clone())
    }
}

/// A task of tokio's for each receiver.
pub struct Tasks<C> {
    runtime: Runtime,
    channel: PhantomData<C>,
}

impl<C: Channel> Tasks<C> {
    pub fn start() -> Self {
        Self { runtime: runtime(), channel: PhantomData }
    }

    fn run(&self, mut receiver: C::Receiver<Words>, mut work: Work<Sender<C>>) {
        self.runtime.spawn(async move {
            while let Some(words) = C::receive(&mut receiver).await {
                work.handle(words);
            }
        });
    }

    fn spawn_answerer(&self) -> C::Sender<Question> {
        let (sender, mut receiver) = C::unbounded::<Question>();
        self.runtime.spawn(async move {
            while let Some((number, reply)) = C::receive(&mut receiver).await {
                let _ = reply.send(number + 1);
            }
        });
        sender
    }
}

/// One end of a channel.
pub struct Sender<C: Channel>(C::Sender<Words>);

impl<C: Channel> Clone for Sender<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Channel> Tell for Sender<C> {
    fn tell(&self, words: Words) {
        C::send(&self.0, words);
    }
}

impl<C: Channel> Peer for Tasks<C> {
    type Target = Sender<C>;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Sender<C> {
        let (sender, receiver) = C::unbounded();
        self.run(receiver, recipe.make(number));
        Sender(sender)
    }

    /// A task ends when its channel has no sender.
    fn stop(&self, target: Sender<C>) {
        drop(target);
    }

    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let (sender, receiver) = C::unbounded();
        for number in 0..size {
            self.run(C::share(&receiver)?, recipe.make(number));
        }
        Some(Sender::<C>(sender))
    }

    fn answerer(&self) -> impl Answer {
        Asked::<C>(self.spawn_answerer())
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let answerer = self.spawn_answerer();
        let (result, results) = oneshot::channel();
        self.runtime.spawn(async move {
            let mut number = 0;
            for _ in 0..asks {
                let (reply, answer) = oneshot::channel();
                C::send(&answerer, (number, reply));
                number = answer.await.expect("it answers");
            }
            let _ = result.send(number);
        });
        results.blocking_recv().expect("every ask is answered")
    }
}

/// A number and where its answer goes.
type Question = (u64, oneshot::Sender<u64>);

struct Asked<C: Channel>(C::Sender<Question>);

impl<C: Channel> Clone for Asked<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Channel> Answer for Asked<C> {
    fn ask(&self, number: u64) -> u64 {
        let (reply, answer) = oneshot::channel();
        C::send(&self.0, (number, reply));
        answer.blocking_recv().expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        let asks: Vec<_> = numbers
            .map(|number| {
                let (reply, answer) = oneshot::channel();
                C::send(&self.0, (number, reply));
                answer
            })
            .collect();
        asks.into_iter().map(|answer| answer.blocking_recv().expect("it answers")).sum()
    }
}

/// crossbeam-channel, with a thread for each receiver, since nobody can await one.
pub struct Threads;

impl Threads {
    pub fn start() -> Self {
        Self
    }

    fn run(
        &self,
        receiver: crossbeam_channel::Receiver<Words>,
        mut work: Work<crossbeam_channel::Sender<Words>>,
    ) {
        thread::spawn(move || receiver.iter().for_each(|words| work.handle(words)));
    }
}

impl Tell for crossbeam_channel::Sender<Words> {
    fn tell(&self, words: Words) {
        self.send(words).expect("the receiver lives");
    }
}

/// A number and where its answer goes.
type ThreadQuestion = (u64, crossbeam_channel::Sender<u64>);

fn spawn_answering_thread() -> crossbeam_channel::Sender<ThreadQuestion> {
    let (sender, receiver) = crossbeam_channel::unbounded::<ThreadQuestion>();
    thread::spawn(move || receiver.iter().for_each(|(number, reply)| _ = reply.send(number + 1)));
    sender
}

impl Peer for Threads {
    type Target = crossbeam_channel::Sender<Words>;

    fn spawn(&self, number: usize, recipe: Recipe<Self::Target>) -> Self::Target {
        let (sender, receiver) = crossbeam_channel::unbounded();
        self.run(receiver, recipe.make(number));
        sender
    }

    /// A thread ends when its channel has no sender.
    fn stop(&self, target: Self::Target) {
        drop(target);
    }

    fn shared_queue(&self, size: usize, recipe: Recipe<Self::Target>) -> Option<impl Tell> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        for number in 0..size {
            self.run(receiver.clone(), recipe.make(number));
        }
        Some(sender)
    }

    fn answerer(&self) -> impl Answer {
        AskedThread(spawn_answering_thread())
    }

    fn ask_from_actor(&self, asks: u64) -> u64 {
        let answerer = self.answerer();
        let asker = thread::spawn(move || (0..asks).fold(0, |number, _| answerer.ask(number)));
        asker.join().expect("every ask is answered")
    }
}

#[derive(Clone)]
struct AskedThread(crossbeam_channel::Sender<ThreadQuestion>);

impl AskedThread {
    fn send(&self, number: u64) -> crossbeam_channel::Receiver<u64> {
        let (reply, answer) = crossbeam_channel::bounded(1);
        self.0.send((number, reply)).expect("the receiver lives");
        answer
    }
}

impl Answer for AskedThread {
    fn ask(&self, number: u64) -> u64 {
        self.send(number).recv().expect("it answers")
    }

    fn ask_all(&self, numbers: Range<u64>) -> u64 {
        let asks: Vec<_> = numbers.map(|number| self.send(number)).collect();
        asks.into_iter().map(|answer| answer.recv().expect("it answers")).sum()
    }
}
