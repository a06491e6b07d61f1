//! What a topology makes of refusals beside waiting, of panics in its users' code, and of calls that meet.

use crate::keyed_support::{Do, Note, books, noted, plan, to};
use crate::support::{LONG, Soon, Stage, panic_of, run_turns, while_time_passes};
#[cfg(feature = "config")]
use pointsman::group::GroupConfig;
use pointsman::group::{Group, KeyRoute};
use pointsman::prelude::*;
use pointsman::topology::Topology;
use pointsman::topology::{DeclaredGroup, GroupMember, SendMode, Wraps};
use pointsman::{AnyActorRef, Mailbox, OverflowPolicy, SendError};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(2);

/// Tells that it is in its handler, and stays there until it is released.
struct Held {
    inside: Sender<()>,
    gate: Arc<Mutex<Receiver<()>>>,
}

impl Held {
    fn hold<M: Send + 'static>(&mut self, ctx: &mut Context<M>) -> HandlerResult {
        self.inside.send(())?;
        let _ = ctx.blocking(|| self.gate.lock().expect("not poisoned").recv());
        Ok(())
    }
}

impl Actor for Held {
    type Message = Note;
    fn receive(&mut self, _: Note, ctx: &mut Context<Note>) -> HandlerResult {
        self.hold(ctx)
    }
}

/// A group whose actor of key 1 has a full mailbox at which senders wait for a moment; released by a drop.
fn full_group(stage: &Stage) -> (Group<Note, u32>, Sender<()>) {
    let (release, gate) = channel();
    let (inside, is_inside) = channel();
    let gate = Arc::new(Mutex::new(gate));
    let recipe = move |_: &mut Context<Note>, _: &u32| Held { inside: inside.clone(), gate: gate.clone() };
    let group = stage
        .system
        .group("full")
        .keyed(|note: &Note| note.to.clone(), recipe)
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(MOMENT)))
        .spawn()
        .expect("sound");
    group.tell(to(1, "in the handler"));
    is_inside.soon().expect("it runs");
    group.tell(to(1, "in the mailbox"));
    (group, release)
}

/// Whatever offers nobody a copy.
fn to_nobody() -> [KeyRoute<u32>; 5] {
    [
        KeyRoute::Discard,
        KeyRoute::Default,
        KeyRoute::Multicast(Vec::new()),
        KeyRoute::GentleUnicast(9),
        KeyRoute::Broadcast,
    ]
}

#[test]
fn what_waits_in_vain_beside_a_group_that_offers_nobody_a_copy_is_in_the_books_once() {
    for nobody in to_nobody() {
        let stage = Stage::threads("beside");
        let (full, release) = full_group(&stage);
        let empty = plan(&stage).spawn().expect("sound");
        let topology = stage.system.topology();
        let source = topology.local::<Note>("source").expect("free");
        let first = topology.local::<Note>("first").expect("free");
        let second = topology.local::<Note>("second").expect("free");
        source.route_all_to::<Note, _>(&first).route_all_to::<Note, _>(&second);
        first.mount(&full.key(1));
        second.mount(&empty);
        let outlet = source.outlet::<Note>();
        source.mount(&empty);
        let note = || Note::new(nobody.clone(), "refused");
        while_time_passes(&stage.clock, || {
            assert!(matches!(outlet.send_within(note(), MOMENT), Err(SendError::Full(_))), "{nobody:?}");
            let (report, sent) = outlet.send_by(note(), SendMode::Wait);
            assert!(report.full == 1 && sent.is_err(), "{report}");
        });
        let ledger = stage.system.ledger();
        assert_eq!((ledger.handed_back, ledger.dead_lettered), (2, 2), "each time the copy that has waited");
        drop(release);
        books(stage);
    }
}

/// Carries a note, and never gives it back.
struct Keeps(#[expect(dead_code, reason = "it is never given back")] Note);

impl From<Note> for Keeps {
    fn from(note: Note) -> Self {
        Self(note)
    }
}

impl Wraps<Note> for Keeps {
    fn give_back(self) -> Result<Note, Self> {
        Err(self)
    }
}

/// As [`Held`], for what carries its messages.
struct HeldCarrier(Held);

impl Actor for HeldCarrier {
    type Message = Keeps;
    fn receive(&mut self, _: Keeps, ctx: &mut Context<Keeps>) -> HandlerResult {
        self.0.hold(ctx)
    }
}

#[test]
fn what_waits_in_vain_and_is_not_given_back_is_in_the_books_once() {
    let stage = Stage::threads("keeps");
    let (release, gate) = channel();
    let (inside, is_inside) = channel();
    let gate = Arc::new(Mutex::new(gate));
    let recipe = move || HeldCarrier(Held { inside: inside.clone(), gate: gate.clone() });
    let mailbox = Mailbox::bounded(1).on_full(OverflowPolicy::Wait(MOMENT));
    let full = stage.system.actor("full").mailbox(mailbox).spawn(recipe).expect("the name is free");
    full.tell(to(1, "in the handler"));
    is_inside.soon().expect("it runs");
    full.tell(to(1, "in the mailbox"));
    let topology = stage.system.topology();
    let source = topology.local::<Note>("source").expect("free");
    let target = topology.local::<Keeps>("target").expect("free");
    source.route_all_to::<Note, _>(&target);
    target.mount(&full);
    let outlet = source.outlet::<Note>();
    source.mount(&ActorRef::from_fn(|_: Note| {}));
    for mode in [SendMode::Try, SendMode::Wait] {
        let text =
            while_time_passes(&stage.clock, || panic_of(|| drop(outlet.send_by(to(1, "refused"), mode))));
        assert!(text.contains("mend its `Wraps::give_back`"), "{text}");
    }
    assert_eq!(stage.system.ledger().dead_lettered, 2);
    drop(release);
    books(stage);
}

#[test]
fn what_waits_in_vain_beside_a_key_that_is_not_created_is_in_the_books_once() {
    let stage = Stage::threads("absent");
    let (group, release) = full_group(&stage);
    group.stop_spawning();
    let both = || Note::new(KeyRoute::Multicast(vec![1, 2]), "refused");
    while_time_passes(&stage.clock, || {
        group.tell(both());
        assert!(group.try_tell(both()).is_err());
        assert!(group.send_within(both(), MOMENT).is_err());
    });
    let ledger = stage.system.ledger();
    assert_eq!((ledger.handed_back, ledger.dead_lettered), (2, 4));
    drop(release);
    books(stage);
}

#[test]
fn a_request_that_waits_in_vain_beside_a_group_that_offers_nobody_a_copy_is_in_the_books_once() {
    #[derive(Clone)]
    struct Question;
    impl Request for Question {
        type Reply = u32;
    }
    type Asked = Call<Question>;
    struct Mute(Sender<()>, Arc<Mutex<Receiver<()>>>);
    impl Actor for Mute {
        type Message = Asked;
        fn receive(&mut self, _: Asked, ctx: &mut Context<Asked>) -> HandlerResult {
            self.0.send(())?;
            let _ = ctx.blocking(|| self.1.lock().expect("not poisoned").recv());
            Ok(())
        }
    }
    struct Never;
    impl Actor for Never {
        type Message = Asked;
        fn receive(&mut self, _: Asked, _: &mut Context<Asked>) -> HandlerResult {
            Ok(())
        }
    }
    let stage = Stage::threads("request");
    let (release, gate) = channel();
    let (inside, is_inside) = channel();
    let gate = Arc::new(Mutex::new(gate));
    let full = stage
        .system
        .actor("full")
        .mailbox(Mailbox::bounded(1).on_full(OverflowPolicy::Wait(MOMENT)))
        .spawn(move || Mute(inside.clone(), gate.clone()))
        .expect("free");
    let empty = stage
        .system
        .group("empty")
        .keyed(|_: &Asked| KeyRoute::<u32>::Discard, |_: &mut Context<Asked>, _: &u32| Never)
        .spawn()
        .expect("sound");
    let topology = stage.system.topology();
    let source = topology.local::<u32>("source").expect("free");
    let first = topology.local::<Asked>("first").expect("free");
    let second = topology.local::<Asked>("second").expect("free");
    source.route_all_to::<Asked, _>(&first).route_all_to::<Asked, _>(&second);
    first.mount(&full);
    second.mount(&empty);
    let outlet = source.outlet::<Asked>();
    source.mount(&ActorRef::from_fn(|_: u32| {}));
    let kept = [full.request(Question).all(), full.request(Question).by(SendMode::Unbounded).all()];
    is_inside.soon().expect("it runs");
    let answers = while_time_passes(&stage.clock, || outlet.request(Question).all().wait());
    let answers = answers.expect("nobody is left to answer");
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(Result::is_err));
    drop((release, kept));
    let ledger = stage.system.shutdown(LONG).expect("nothing is stuck");
    assert_eq!((ledger.balance(), ledger.queued), (0, 0), "{ledger}");
}

// ---- configuration

#[cfg(feature = "config")]
mod configuration {
    use super::*;

    /// A group that panics at its next configurations as often as told, and counts what it reads.
    struct Shaky {
        group: Group<Note, u32>,
        panics: Arc<AtomicUsize>,
        reads: Arc<AtomicUsize>,
        applied: Arc<Mutex<Vec<String>>>,
    }

    fn shaky(stage: &Stage, topology: &Topology) -> Shaky {
        let (panics, reads) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let applied = Arc::<Mutex<Vec<String>>>::default();
        let (left, read, goes) = (panics.clone(), reads.clone(), applied.clone());
        let decode = move |config: &GroupConfig| {
            read.fetch_add(1, Ordering::SeqCst);
            Ok(config.table().to_string().trim().to_owned())
        };
        let apply = move |_: &Group<Note, u32>, text: String| {
            let is_told = |left: usize| left.checked_sub(1);
            assert!(left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_told).is_err(), "planted");
            goes.lock().expect("not poisoned").push(text);
        };
        let group = plan(stage).config(decode, apply).spawn().expect("sound");
        topology.local("shaky").expect("free").mount(&group);
        Shaky { group, panics, reads, applied }
    }

    #[test]
    fn a_group_that_panics_at_its_configuration_is_not_named_and_gets_the_next_in_any_case() {
        let stage = Stage::turns();
        let topology = stage.system.topology();
        let shaky = shaky(&stage, &topology);
        topology.start().expect("sound");
        let text = "[topology.shaky]\nsize = 1\n";
        shaky.panics.store(1, Ordering::SeqCst);
        assert_eq!(topology.reconfigure(text, false), Ok(Vec::new()), "it does not go by it");
        assert_eq!(topology.reconfigure(text, false), Ok(vec!["shaky".to_owned()]), "tried again");
        assert_eq!(topology.reconfigure(text, false), Ok(Vec::new()), "unchanged");
        // Back to what it went by before: nobody knows how far it had come.
        shaky.panics.store(1, Ordering::SeqCst);
        assert_eq!(topology.reconfigure("", false), Ok(Vec::new()));
        assert_eq!(topology.reconfigure(text, false), Ok(vec!["shaky".to_owned()]));
        assert_eq!(*shaky.applied.lock().expect("not poisoned"), ["", "size = 1", "size = 1"]);
        assert_eq!(shaky.reads.load(Ordering::SeqCst), 5, "what was read is what is applied");
        drop(shaky.group);
        books(stage);
    }

    #[test]
    fn a_configuration_that_another_group_rejects_starts_no_entrypoint_twice() {
        let stage = Stage::turns();
        let topology = stage.system.topology();
        let starts = Arc::new(AtomicUsize::new(0));
        let started = starts.clone();
        let first = plan(&stage)
            .config(|_| Ok(()), move |_, ()| _ = started.fetch_add(1, Ordering::SeqCst))
            .spawn()
            .expect("sound");
        topology.local("first").expect("free").entrypoint().mount(&first);
        let accepts = Arc::new(AtomicBool::new(false));
        let accepted = accepts.clone();
        let other = stage
            .system
            .group("other")
            .by_key(|_: &u32| 0, |_: &mut Context<u32>, _: &u32| Counts(channel().0))
            .config(
                move |_| if accepted.load(Ordering::SeqCst) { Ok(()) } else { Err("as told".to_owned()) },
                |_, ()| {},
            )
            .spawn()
            .expect("sound");
        topology.local("other").expect("free").mount(&other);
        topology.start().expect_err("rejected");
        accepts.store(true, Ordering::SeqCst);
        topology.start().expect("accepted");
        assert_eq!(starts.load(Ordering::SeqCst), 1);
        books(stage);
    }
}

/// Notes that it was made, and what it handles.
struct Counts(Sender<String>);

impl Actor for Counts {
    type Message = u32;
    fn receive(&mut self, number: u32, _: &mut Context<u32>) -> HandlerResult {
        let _ = self.0.send(format!("handled {number}"));
        Ok(())
    }
}

#[test]
fn the_actor_of_an_entrypoint_is_started_and_those_of_other_singletons_by_their_first_configuration() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let mut groups = Vec::new();
    for name in ["late", "entrypoint"] {
        let log = stage.log.clone();
        let recipe = move |ctx: &mut Context<u32>| {
            let _ = log.send(format!("{name} {:?}", ctx.spawn_cause().expect("of a group")));
            Counts(log.clone())
        };
        let group = stage.system.group(name).singleton(recipe).spawn().expect("sound");
        let local = topology.local(name).expect("free");
        let local = if name == "entrypoint" { local.entrypoint() } else { local };
        local.mount(&group);
        groups.push(group);
    }
    run_turns();
    assert!(stage.notes.try_iter().next().is_none(), "nobody before the start");
    topology.start().expect("all are mounted");
    let mut started = noted(&stage);
    started.sort();
    assert_eq!(started, ["entrypoint Mounted", "late Mounted"]);
    assert!(groups.iter().all(|group| group.len() == 1));
    groups[0].tell(7_u32);
    assert_eq!(noted(&stage), ["handled 7"]);
    books(stage);
}

// ---- the end

#[test]
fn a_panic_about_one_termination_message_ends_that_actor_politely_and_all_others_as_planned() {
    let stage = Stage::turns();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let make = move |_: &str| {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "planted");
        Note::new(KeyRoute::Discard, "terminate").act(Do::Stop)
    };
    let group = plan(&stage).terminate_by(make).spawn().expect("sound");
    let head = group.head().clone();
    for key in [1, 2, 3] {
        group.tell(to(key, "a"));
    }
    group.terminate("over");
    let notes = noted(&stage);
    assert_eq!(notes.iter().filter(|note| note.ends_with(" terminate")).count(), 2, "{notes:?}");
    assert_eq!(
        notes.iter().filter(|note| note.ends_with(" a")).count(),
        3,
        "what they have is handled: {notes:?}"
    );
    assert_eq!(notes.iter().filter(|note| note.ends_with(" stopped")).count(), 3, "{notes:?}");
    assert!(head.is_closed());
    assert_eq!(books(stage).dead_lettered, 0);
}

#[test]
fn a_stop_that_is_dropped_closes_no_mailbox_later() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let make = |_: &str| Note::new(KeyRoute::Discard, "terminate");
    let group = plan(&stage).terminate_by(make).spawn().expect("sound");
    topology.local("lodgers").expect("free").mount(&group);
    group.tell(to(1, "a"));
    noted(&stage);
    let second = Duration::from_secs(1);
    let mut stop = Box::pin(topology.stop("over", second));
    let mut polled = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(stop.as_mut().poll(&mut polled).is_pending());
    assert_eq!(noted(&stage), ["1 terminate"]);
    drop(stop);
    stage.clock.advance(second * 10);
    group.tell(to(1, "b"));
    assert_eq!(noted(&stage), ["1 b"], "nobody has told it again");
    group.terminate("now");
    run_turns();
    assert!(group.is_empty());
    books(stage);
}

/// Panics at whatever it is asked about its end.
#[derive(Clone)]
struct Endless;

impl GroupMember for Endless {
    fn terminate(&self, _: &str) {
        panic!("as told")
    }
    fn watched(&self) -> Option<AnyActorRef> {
        panic!("as told")
    }
    fn actors(&self) -> Vec<AnyActorRef> {
        Vec::new()
    }
}

impl From<Endless> for ActorRef<Note> {
    fn from(_: Endless) -> Self {
        Self::from_fn(|_| {})
    }
}

#[test]
fn a_group_that_panics_when_it_is_asked_about_its_end_keeps_no_other_from_ending() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    topology.local("endless").expect("free").mount(&Endless);
    let group = plan(&stage).spawn().expect("sound");
    topology.local("behind").expect("free").stop_order(1).mount(&group);
    group.tell(to(1, "a"));
    let mut stop = Box::pin(topology.stop("over", Duration::ZERO));
    let mut polled = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(stop.as_mut().poll(&mut polled).is_pending(), "the second is told, and has not ended yet");
    assert_eq!(noted(&stage), ["1 OnMessage", "1 a", "1 stopped"]);
    assert!(stop.as_mut().poll(&mut polled).is_ready());
    assert_eq!(books(stage).dead_lettered, 0);
}

#[test]
fn groups_by_key_end_in_their_order_also_those_who_wait_to_be_restarted() {
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let second = Duration::from_secs(1);
    let policy = pointsman::group::RestartPolicy::on_failure(second * 60, second * 60);
    let early = plan(&stage).restart(policy).spawn().expect("sound");
    let log = stage.log.clone();
    let late = stage
        .system
        .group("late")
        .singleton(move |_: &mut Context<u32>| Counts(log.clone()))
        .spawn()
        .expect("sound");
    topology.local("late").expect("free").stop_order(1).mount(&late);
    topology.local("early").expect("free").mount(&early);
    late.tell(1_u32);
    early.tell(to(1, "a").act(Do::Fail));
    early.tell(to(1, "waits for the restart"));
    early.tell(to(2, "b"));
    noted(&stage);
    let mut stop = Box::pin(topology.stop("over", second));
    let mut polled = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(stop.as_mut().poll(&mut polled).is_pending());
    assert!(early.is_closed() && !late.is_closed(), "the later one goes on");
    late.tell(2_u32);
    assert_eq!(noted(&stage), ["1 stopped", "2 stopped", "handled 2"]);
    assert!(early.head().is_closed());
    assert!(stop.as_mut().poll(&mut polled).is_pending());
    run_turns();
    assert!(stop.as_mut().poll(&mut polled).is_ready(), "nobody was waited for longer than need be");
    assert!(late.head().is_closed());
    stage.clock.advance(second * 100);
    assert!(noted(&stage).is_empty());
    assert_eq!(books(stage).dead_lettered, 1, "the queue of the one that waited");
}

// ---- names

/// All print alike.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Twin(u32);

impl std::fmt::Display for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("twin")
    }
}

#[test]
fn thousands_of_keys_that_print_alike_have_names_of_their_own() {
    const COUNT: u32 = 5_000;
    let stage = Stage::turns();
    let log = stage.log.clone();
    let group = stage
        .system
        .group("twins")
        .by_key(|number: &u32| Twin(*number), move |_: &mut Context<u32>, _: &Twin| Counts(log.clone()))
        .spawn()
        .expect("sound");
    (0..COUNT).for_each(|number| group.mount(Twin(number)).unwrap());
    assert_eq!(group.len(), COUNT as usize);
    let last = format!("/user/twins/twin~{COUNT}");
    assert!(stage.system.actor_at(&last).is_ok(), "no number is left out, so none was tried twice");
    group.stop();
    run_turns();
    books(stage);
}

#[test]
fn a_condition_that_is_refused_is_dropped_without_a_lock() {
    struct Unique;
    /// Looks at its group when it is dropped.
    struct Looks(Arc<DeclaredGroup<u32>>, Sender<()>);
    impl Drop for Looks {
        fn drop(&mut self) {
            let _ = self.0.outlet::<u8>();
            let _ = self.1.send(());
        }
    }
    let stage = Stage::turns();
    let topology = stage.system.topology();
    let from = Arc::new(topology.local::<u32>("from").expect("a free name"));
    let [one, two] = ["one", "two"].map(|name| topology.local::<Unique>(name).expect("a free name"));
    from.route_only_to(&one, |_: &Unique| true).expect("the first one");
    let (sender, dropped) = channel();
    let looks = Looks(from.clone(), sender);
    let second = from.route_only_to(&two, move |_: &Unique| {
        let _ = &looks;
        true
    });
    assert!(second.is_err(), "it cannot be cloned");
    assert_eq!(dropped.try_recv(), Ok(()));
    books(stage);
}
