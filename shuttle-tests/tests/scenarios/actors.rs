//! Single actors: their ends, their mailboxes, and what they put aside.
//!
//! Planted in the engine, each by itself, and caught: a mailbox drained at its end that takes a claimed place for the end
//! (`an_actor_that_stops_itself_leaves_each_letter_in_one_place`); watchers not told that came when the actor had ended
//! (`a_watch_that_races_the_end_brings_one_notice`); a sender that draws its ticket after its look for room
//! (`senders_wait_for_room_in_a_mailbox_of_one`); a mailbox that closes without waking who waits for room
//! (`senders_who_wait_for_room_are_let_go_by_the_end`).

use crate::cast::{Clerk, Job, Letter, WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::Terminated;
use pointsman::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn a_poison_pill_races_a_restart() {
    scenario("a_poison_pill_races_a_restart", || {
        let stage = stage(WORKERS);
        let to = stage.system.spawn(stage.clerk(1)).expect("there is room");
        to.tell(Job::Fail(stage.letter(2, 1)));
        let senders = [stage.tells(0, 2, &to), stage.tells(1, 2, &to)];
        to.tell(Job::Fail(stage.letter(2, 2)));
        to.poison();
        join(senders);
        // What was sent before the pill, by whoever sent the pill, is handled.
        to.when_ended().wait().expect("it ends by the pill");
        assert_eq!((stage.tally.times(2, 1), stage.tally.times(2, 2)), (1, 1));
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (6, 0), "{ledger}");
    });
}

#[test]
fn an_actor_that_stops_itself_leaves_each_letter_in_one_place() {
    scenario("an_actor_that_stops_itself_leaves_each_letter_in_one_place", || {
        let stage = stage(WORKERS);
        let to = stage.system.spawn(stage.clerk(1)).expect("there is room");
        let senders = [stage.tries(0, 3, &to), stage.tries(1, 3, &to)];
        to.tell(Job::Stop(stage.letter(2, 1)));
        let back: usize = join(senders).iter().sum();
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (7, back as u64), "{ledger}");
    });
}

enum Watch {
    Begin(AnyActorRef),
    Count,
}

struct Watcher(Arc<AtomicUsize>);

impl Actor for Watcher {
    type Message = Watch;
    fn receive(&mut self, message: Watch, ctx: &mut Context<Watch>) -> HandlerResult {
        match message {
            Watch::Begin(actor) => ctx.watch(&actor)?,
            Watch::Count => {}
        }
        Ok(())
    }
    fn terminated(&mut self, _: Terminated, ctx: &mut Context<Watch>) -> HandlerResult {
        self.0.fetch_add(1, SeqCst);
        ctx.stop();
        Ok(())
    }
}

#[test]
fn a_watch_that_races_the_end_brings_one_notice() {
    scenario("a_watch_that_races_the_end_brings_one_notice", || {
        let stage = stage(WORKERS);
        let to = stage.system.spawn(stage.clerk(1)).expect("there is room");
        let notices = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
        let watchers = [0, 1].map(|at: usize| {
            let notice = notices[at].clone();
            stage.system.spawn(move || Watcher(notice.clone())).expect("there is room")
        });
        let senders = [stage.tells(0, 2, &to)];
        for watcher in &watchers {
            watcher.tell(Watch::Begin(to.untyped().expect("an actor")));
            watcher.tell(Watch::Count);
        }
        to.stop();
        join(senders);
        // Each stops by its notice: without one it never ends.
        for watcher in &watchers {
            watcher.when_ended().wait().expect("it ends");
        }
        assert_eq!(notices.map(|notice| notice.load(SeqCst)), [1, 1]);
        let ledger = stage.system.ledger();
        let others = ledger.handled as usize - stage.tally.handled();
        stage.end(others);
    });
}

/// Puts all letters aside until one tells it to go on.
struct Waiter {
    is_open: bool,
}

enum Post {
    Letter(Letter),
    Open,
    Fail,
}

impl Actor for Waiter {
    type Message = Post;
    fn receive(&mut self, message: Post, ctx: &mut Context<Post>) -> HandlerResult {
        match message {
            Post::Letter(letter) if self.is_open => letter.read(1),
            Post::Letter(letter) => ctx.stash(Post::Letter(letter))?,
            Post::Open => {
                self.is_open = true;
                ctx.unstash_all();
            }
            Post::Fail => return Err(Failure::msg("as told")),
        }
        Ok(())
    }
}

#[test]
fn what_is_put_aside_outlives_a_restart() {
    scenario("what_is_put_aside_outlives_a_restart", || {
        let stage = stage(WORKERS);
        let waiter = || Waiter { is_open: false };
        let to = stage.system.actor("waiter").stash_capacity(10).spawn(waiter).expect("the name is free");
        let senders = [0, 1].map(|sender| {
            let to = to.clone();
            let letters: Vec<Letter> = (1..=2).map(|number| stage.letter(sender, number)).collect();
            shuttle::thread::spawn(move || {
                letters.into_iter().for_each(|letter| to.tell(Post::Letter(letter)))
            })
        });
        to.tell(Post::Fail);
        to.tell(Post::Open);
        stage.tally.wait_for(4);
        join(senders);
        let ledger = stage.system.ledger();
        let others = ledger.handled as usize - 4;
        assert_eq!(ledger.dead_lettered, 0, "{ledger}");
        stage.end(others);
    });
}

#[test]
fn senders_wait_for_room_in_a_mailbox_of_one() {
    scenario("senders_wait_for_room_in_a_mailbox_of_one", || {
        let stage = stage(WORKERS);
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX));
        let to = stage.system.actor("narrow").mailbox(mailbox).spawn(stage.clerk(1)).expect("sound");
        let senders = [0, 1, 2].map(|sender| stage.tells(sender, 2, &to));
        stage.tally.wait_for(6);
        join(senders);
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handled), (6, 6), "{ledger}");
    });
}

#[test]
fn senders_who_wait_for_room_are_let_go_by_the_end() {
    scenario("senders_who_wait_for_room_are_let_go_by_the_end", || {
        let stage = stage(WORKERS);
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(Duration::MAX));
        let to = stage.system.actor("narrow").mailbox(mailbox).spawn(stage.clerk(1)).expect("sound");
        let senders = [0, 1, 2].map(|sender| stage.tries(sender, 2, &to));
        to.stop();
        let back: usize = join(senders).iter().sum();
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (6, back as u64), "{ledger}");
    });
}

#[test]
fn a_mailbox_of_one_refuses_the_rest() {
    scenario("a_mailbox_of_one_refuses_the_rest", || {
        let stage = stage(WORKERS);
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Reject);
        let to = stage.system.actor("narrow").mailbox(mailbox).spawn(stage.clerk(1)).expect("sound");
        let senders = [0, 1, 2].map(|sender| stage.tries(sender, 2, &to));
        let back: usize = join(senders).iter().sum();
        stage.tally.wait_for(6 - back);
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handed_back), (6, back as u64), "{ledger}");
    });
}

#[test]
fn a_mailbox_of_one_keeps_the_newest() {
    scenario("a_mailbox_of_one_keeps_the_newest", || {
        let stage = stage(WORKERS);
        let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::DropOldest);
        let to = stage.system.actor("narrow").mailbox(mailbox).spawn(stage.clerk(1)).expect("sound");
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        join(senders);
        to.tell(stage.read(2, 1));
        to.poison();
        to.when_ended().wait().expect("it ends by the pill");
        let ledger = stage.end(0);
        assert_eq!((ledger.sent, ledger.handled + ledger.dropped), (7, 7), "{ledger}");
    });
}

/// Has a child of the name that it is given, and stops it, for each letter.
struct Parent {
    tally: Arc<crate::cast::Tally>,
}

impl Actor for Parent {
    type Message = Job;
    fn receive(&mut self, job: Job, ctx: &mut Context<Job>) -> HandlerResult {
        let tally = self.tally.clone();
        let child = ctx.actor(&format!("child{}", job.sender())).spawn(move || Clerk::new(3, &tally));
        match child {
            Ok(child) => child.tell(job),
            Err(SpawnError::NameTaken { .. }) => {
                ctx.child(&format!("child{}", job.sender())).expect("it is there").typed::<Job>()?.tell(job);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[test]
fn the_end_of_a_parent_races_letters_to_its_children() {
    scenario("the_end_of_a_parent_races_letters_to_its_children", || {
        let stage = stage(WORKERS);
        let tally = stage.tally.clone();
        let to = stage.system.spawn(move || Parent { tally: tally.clone() }).expect("there is room");
        let senders = [stage.tries(0, 2, &to)];
        to.stop();
        let back: usize = join(senders).iter().sum();
        to.when_ended().wait().expect("it ends");
        let ledger = stage.system.ledger();
        assert_eq!(ledger.handed_back, back as u64, "{ledger}");
        let others = ledger.handled as usize - stage.tally.handled();
        stage.end(others);
    });
}
