//! The messages of the numbered stream that wait until their link is active. They know nothing of links, so that they are modelled
//! by loom.

use crate::sync::{EXPLORED, Mutex, lock};

/// The most messages that wait until a link is active.
pub(crate) const EARLY_MAX: usize = if EXPLORED { 2 } else { 10_000 };

/// A message that may have to wait until its link is active.
pub(crate) trait EarlyMessage: PartialEq {
    /// Whether several of it in a row are one.
    fn is_idempotent(&self) -> bool;

    /// The uid of the deployed actor that it is for, if it is for one.
    fn deployed_uid(&self) -> Option<u32>;
}

/// The fate of a message that may have to wait until its link is active.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Early<T> {
    Kept,
    /// The link is active: the message is to be sent.
    Active(T),
    /// Too many messages wait.
    Full,
}

/// The messages of the numbered stream that wait until the link is active; `None` once it is.
pub(crate) struct EarlyMessages<T>(Mutex<Option<Vec<T>>>);

impl<T: EarlyMessage> EarlyMessages<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// Keeps a message, unless the link is active.
    pub(crate) fn keep(&self, message: T) -> Early<T> {
        match &mut *lock(&self.0) {
            // Suspensions are counted.
            Some(kept) if message.is_idempotent() && kept.last() == Some(&message) => Early::Kept,
            Some(kept) if kept.len() >= EARLY_MAX => Early::Full,
            Some(kept) => {
                kept.push(message);
                Early::Kept
            }
            None => Early::Active(message),
        }
    }

    /// Forgets the messages for an actor. Returns false if the link is active: then the messages have gone out.
    pub(crate) fn forget(&self, uid: u32) -> bool {
        let mut kept = lock(&self.0);
        if let Some(kept) = &mut *kept {
            kept.retain(|message| message.deployed_uid() != Some(uid));
        }
        kept.is_some()
    }

    /// The link becomes active: `send` is called with each message, in order, before any later one can be sent.
    pub(crate) fn send_all(&self, send: impl FnMut(T)) {
        let mut kept = lock(&self.0);
        kept.take().into_iter().flatten().for_each(send);
    }
}

#[cfg(all(test, feature = "remote"))]
mod tests {
    use super::*;
    use crate::remote::control_message::NumberedMessage;
    use crate::remote::deploy_message::ParentVerdict;

    #[test]
    fn early_messages_are_bounded_kept_in_order_and_sent_once() {
        let early = EarlyMessages::new();
        let stop = |uid| NumberedMessage::Stop { path: "/a".to_owned(), uid };
        let suspend = || NumberedMessage::Verdict { uid: 1, verdict: ParentVerdict::Suspend };
        assert_eq!((early.keep(suspend()), early.keep(suspend())), (Early::Kept, Early::Kept));
        for uid in 2..EARLY_MAX as u32 {
            assert_eq!(early.keep(stop(uid)), Early::Kept);
            // The same again takes no room.
            assert_eq!(early.keep(stop(uid)), Early::Kept);
        }
        assert_eq!(early.keep(stop(0)), Early::Full);
        let mut sent = Vec::new();
        early.send_all(|message| sent.push(message));
        assert_eq!(sent[..2], [suspend(), suspend()]);
        assert!(sent.into_iter().skip(2).eq((2..EARLY_MAX as u32).map(stop)));
        assert_eq!(early.keep(stop(1)), Early::Active(stop(1)));
        early.send_all(|message| panic!("{message:?} is sent again"));
    }

    #[test]
    fn messages_for_one_actor_are_forgotten_until_the_link_is_active() {
        let early = EarlyMessages::new();
        let suspend = |uid| NumberedMessage::Verdict { uid, verdict: ParentVerdict::Suspend };
        for uid in [1, 2, 1] {
            assert_eq!(early.keep(suspend(uid)), Early::Kept);
        }
        assert!(early.forget(1));
        let mut sent = Vec::new();
        early.send_all(|message| sent.push(message));
        assert_eq!((sent, early.forget(2)), (vec![suspend(2)], false));
    }
}
