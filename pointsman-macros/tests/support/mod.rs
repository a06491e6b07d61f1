//! As much of pointsman as the derive's output names. The real crate depends on the derive, so a dependency
//! back would be a circle; its own tests show the derive on the real types.
#![allow(dead_code)] // each test compiles this for itself and uses a part of it

use std::marker::PhantomData;

/// Stands for the attempt that a copy of a message belongs to.
pub struct Attempt(pub u32);

pub trait Answerable {
    fn fork(&mut self, attempt: &Attempt) -> bool;
}

pub trait Request {
    type Reply;
}

/// A port that remembers the attempt that it was forked for.
#[derive(Debug, PartialEq)]
pub struct ReplyTo<R> {
    pub attempt: u32,
    reply: PhantomData<R>,
}

#[derive(Debug, PartialEq)]
pub struct Call<Q: Request> {
    pub request: Q,
    pub reply_to: ReplyTo<Q::Reply>,
}

impl<R> ReplyTo<R> {
    pub fn new() -> Self {
        Self { attempt: 0, reply: PhantomData }
    }
}

impl<Q: Request> Call<Q> {
    pub fn new(request: Q) -> Self {
        Self { request, reply_to: ReplyTo::new() }
    }
}

impl<R> Answerable for ReplyTo<R> {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        self.attempt = attempt.0;
        true
    }
}

impl<Q: Request> Answerable for Call<Q> {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        self.reply_to.fork(attempt)
    }
}

/// A message with a deadline, which says by the attempt whether it is wanted.
#[derive(Debug, PartialEq)]
pub struct Expiring<T>(pub T);

impl<T> Answerable for Expiring<T> {
    fn fork(&mut self, attempt: &Attempt) -> bool {
        attempt.0 == 1
    }
}

pub mod ask {
    #[allow(unused_imports)] // the tests of `Wire` use neither
    pub use super::{Answerable, Attempt};
}

pub mod topology {
    pub trait Wraps<M>: From<M> + Sized {
        fn give_back(self) -> Result<M, Self>;
    }

    impl<M> Wraps<M> for M {
        fn give_back(self) -> Result<M, Self> {
            Ok(self)
        }
    }
}

pub mod remote {
    pub trait Wire {
        const NAME: &'static str;
        const VERSION: u16 = 1;
    }
}
