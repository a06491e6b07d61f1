//! A peer that sends whatever it likes, against a hub: each input at its limit, and beyond. Other peers fare as without it.

#[cfg(test)]
mod tests {
    use crate::actor::actor::{Actor, HandlerResult};
    use crate::actor::context::Context;
    use crate::ask::error::AskError;
    use crate::ask::reply::ReplyTo;
    use crate::core::actor_ref::ActorRef;
    use crate::core::dead_letter::DeadLetterReason;
    use crate::prelude::System;
    use crate::remote::association::{Greeting, PROTOCOL};
    use crate::remote::batch::{Batch, BatchWriter, EnvelopeKind, Place, Token};
    use crate::remote::control_message::{ControlMessage, Hello, LaneReceipt, NumberedMessage};
    use crate::remote::credit::Receipt;
    use crate::remote::engine::{
        Channel, ChannelKind, Engine, EngineError, Fabric, Identity, Inbound, NotNow,
    };
    use crate::remote::frame::{FrameKind, HEADER_LEN, Position, Prefix};
    use crate::remote::hub::Hub;
    use crate::remote::limits::Limits;
    use crate::remote::link_report::{LinkReport, LinkState};
    use crate::remote::node::Node;
    use crate::remote::peer_outbox::PeerOutbox;
    use crate::remote::policy::Policy;
    use crate::remote::wire::{Wire, wire_id};
    use crate::sync::{Mutex, lock};
    use crate::time::clock::ManualClock;
    use serde::{Deserialize, Serialize};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    /// Reached only by a test that fails.
    const LONG: Duration = Duration::from_secs(30);

    const WINDOW: u64 = 1 << 20;

    fn wait_until(mut seen: impl FnMut() -> bool) {
        let began = Instant::now();
        while !seen() {
            assert!(began.elapsed() < LONG, "it never comes");
            std::thread::yield_now();
        }
    }

    /// Frames, with the channels that they were sent to.
    type Frames = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

    /// Keeps what a node sends.
    #[derive(Clone, Default)]
    struct Kept(Frames, Arc<Mutex<Vec<PeerOutbox>>>);

    impl Engine for Kept {
        fn start(self: Box<Self>, _: &Identity, _: Arc<dyn Inbound>) -> Result<Arc<dyn Fabric>, EngineError> {
            Ok(Arc::new(*self))
        }
    }

    impl Fabric for Kept {
        fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
            if let Channel::Control(node) = to {
                lock(&self.0).push((node.to_owned(), frame));
            }
            Ok(())
        }
        fn wants_out(&self, outbox: &PeerOutbox) {
            lock(&self.1).push(outbox.clone());
        }
        fn set_uid(&self, _: u64) {}
        fn stop(&self, _: Duration) {}
    }

    /// The node that is attacked.
    struct Victim {
        system: System,
        hub: Arc<Hub>,
        kept: Kept,
        clock: ManualClock,
        taken: Receiver<u64>,
        /// The uid of the actor that takes numbers.
        uid: u32,
    }

    /// Takes numbers.
    struct Taker(Sender<u64>);

    impl Actor for Taker {
        type Message = u64;
        fn receive(&mut self, number: u64, _: &mut Context<u64>) -> HandlerResult {
            Ok(self.0.send(number)?)
        }
    }

    impl Victim {
        fn new(limits: Limits) -> Self {
            let (kept, clock) = (Kept::default(), ManualClock::new());
            let node =
                Node::new("n1").engine(kept.clone()).message::<u64>().message::<Deep>().message::<Units>();
            let node = node.policy(Policy::closed()).limits(limits).lanes(2.try_into().expect("not 0"));
            let system =
                System::builder("demo").clock(clock.clone()).node(node).build().expect("a sound node");
            let hub = system.core().hub().expect("it is a node").clone();
            let (sender, taken) = channel();
            let taker = system.actor("taker").spawn(move || Taker(sender.clone())).expect("the name is free");
            Self { hub, kept, clock, taken, uid: taker.uid(), system }
        }

        fn report(&self, peer: &Peer) -> LinkReport {
            let of_peer = |link: &LinkReport| link.node == peer.name && link.uid == peer.uid;
            self.hub.links().into_iter().find(of_peer).expect("it has a link")
        }

        fn second(&self) {
            self.clock.advance(Duration::from_secs(1));
        }
    }

    /// A peer: its frames may have any form.
    struct Peer {
        name: String,
        uid: u64,
        hub: Arc<Hub>,
        kept: Kept,
        position: Position,
    }

    impl Peer {
        fn new(victim: &Victim, name: &str, uid: u64) -> Self {
            let (hub, kept) = (victim.hub.clone(), victim.kept.clone());
            let position = Position { sequence: 1, ..Position::default() };
            Self { name: name.to_owned(), uid, hub, kept, position }
        }

        /// A peer that is linked.
        fn linked(victim: &Victim, name: &str, uid: u64) -> Self {
            let peer = Self::new(victim, name, uid);
            peer.control(&ControlMessage::Welcome(peer.hello(victim.hub.uid())));
            peer.control(&ControlMessage::Hello(peer.hello(victim.hub.uid())));
            assert_eq!(victim.report(&peer).state, LinkState::Up);
            peer.answers();
            peer
        }

        fn hello(&self, to: u64) -> Hello {
            let greeting = Greeting {
                protocol: PROTOCOL,
                cluster: "pointsman".to_owned(),
                system: "demo".to_owned(),
                node: self.name.clone(),
                uid: self.uid,
                lanes: 2,
                window: WINDOW,
                to,
            };
            Hello::new(&greeting, &[])
        }

        fn control(&self, message: &ControlMessage) {
            let frame = message.frame(self.uid, self.hub.uid());
            self.hub.frame(&self.name, ChannelKind::Control, frame);
        }

        fn numbered(&self, number: u64, message: NumberedMessage) {
            self.control(&ControlMessage::Numbered { number, message });
        }

        fn deliver(&self, frame: Vec<u8>) {
            self.hub.frame(&self.name, ChannelKind::Batch, frame);
        }

        /// The control messages for this peer since the last call.
        fn answers(&self) -> Vec<ControlMessage> {
            let mut kept = lock(&self.kept.0);
            let (own, others) = std::mem::take(&mut *kept).into_iter().partition(|(to, _)| *to == self.name);
            *kept = others;
            let own: Vec<(String, Vec<u8>)> = own;
            own.iter().map(|(_, frame)| ControlMessage::read(frame).expect("it was written here")).collect()
        }

        /// A batch of lane 0 that says to have so many envelopes, and has these bytes.
        fn raw(&mut self, envelopes: u16, bytes: &[u8]) -> Vec<u8> {
            let mut frame = vec![0; HEADER_LEN];
            let prefix =
                Prefix { kind: FrameKind::Batch, lane: 0, envelopes, from: self.uid, to: self.hub.uid() };
            prefix.write(&mut frame);
            self.position.write(&mut frame);
            frame.extend_from_slice(bytes);
            self.position.sequence = self.position.sequence.wrapping_add(1);
            self.position.first += u64::from(envelopes);
            self.position.offset += if envelopes == 0 { 0 } else { frame.len() as u64 };
            frame
        }

        /// A batch of one envelope.
        fn batch(&mut self, kind: EnvelopeKind, place: Place<'_>, tokens: &[Token], body: &[u8]) -> Vec<u8> {
            let mut writer = BatchWriter::new();
            writer.push(kind, &crate::remote::batch::Entry::New(place), tokens, body);
            let bytes = writer.into_frame().split_off(HEADER_LEN);
            self.raw(1, &bytes)
        }

        /// Tells the taker a number, as peers do that keep to the rules.
        fn tell(&mut self, victim: &Victim, number: u64) {
            let place = taker(victim.uid);
            let body = postcard::to_allocvec(&number).expect("a number");
            let frame = self.batch(EnvelopeKind::Tell, place, &[], &body);
            self.deliver(frame);
            assert_eq!(victim.taken.recv_timeout(LONG), Ok(number));
        }
    }

    fn taker(uid: u32) -> Place<'static> {
        Place::Actor { path: "/user/taker", uid, type_id: wire_id(u64::NAME, u64::VERSION) }
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Deep(Option<Box<Deep>>);

    impl Wire for Deep {
        const NAME: &'static str = "test.Deep";
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Units(Vec<()>);

    impl Wire for Units {
        const NAME: &'static str = "test.Units";
    }

    /// An envelope for the actor of this path, by hand.
    fn envelope(path: &str, uid: u32, length: &[u8], body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0];
        bytes.extend(postcard::to_allocvec(&(path.len() as u32)).expect("a number"));
        bytes.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&uid.to_le_bytes());
        bytes.extend_from_slice(&wire_id(u64::NAME, u64::VERSION).to_le_bytes());
        bytes.extend_from_slice(length);
        bytes.extend_from_slice(body);
        bytes
    }

    /// A path of so many bytes, and of so many names.
    fn path_of(bytes: usize, names: usize) -> String {
        let mut path = "/a".repeat(names);
        path.push_str(&"b".repeat(bytes - path.len()));
        path
    }

    #[test]
    fn frames_of_any_form_are_counted_and_change_nothing() {
        let victim = Victim::new(Limits::new());
        let (mut peer, mut other) = (Peer::linked(&victim, "n2", 7), Peer::linked(&victim, "n3", 8));
        let good = Peer::linked(&victim, "n4", 9).raw(0, &[]);
        let (mut malformed, mut number) = (0, 0);
        let mut check = |victim: &Victim, peer: &mut Peer, what: &str, more: u64| {
            malformed += more;
            wait_until(|| victim.report(peer).malformed == malformed);
            for peer in [&mut *peer, &mut other] {
                number += 1;
                peer.tell(victim, number);
            }
            assert_eq!(victim.report(peer).state, LinkState::Up, "{what}");
        };
        // Frames without a place in the lane.
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[at] = byte;
            frame
        };
        for (what, frame) in [
            ("no bytes", vec![]),
            ("a byte less than a prefix", good[..23].to_vec()),
            ("magic", with(0, b'Q')),
            ("version", with(2, 9)),
            ("flags", with(3, 1)),
            ("kind", with(5, 2)),
            ("control on the channel of batches", ControlMessage::Ack { upto: 0 }.frame(7, victim.hub.uid())),
            ("a lane that there is not", {
                let mut frame = peer.raw(0, &[]);
                peer.position.sequence -= 1;
                frame[4] = 2;
                frame
            }),
            ("a byte less than a header", {
                let frame = peer.raw(0, &[])[..71].to_vec();
                peer.position.sequence -= 1;
                frame
            }),
        ] {
            peer.deliver(frame);
            check(&victim, &mut peer, what, 1);
        }
        for (what, frame) in [
            ("no control", vec![]),
            ("no message", good[..24].to_vec()),
            ("an unknown message", {
                let mut frame = ControlMessage::Ack { upto: 0 }.frame(7, victim.hub.uid());
                frame[24] = 200;
                frame
            }),
        ] {
            victim.hub.frame("n2", ChannelKind::Control, frame);
            check(&victim, &mut peer, what, 1);
        }
        // Batches that have a place in the lane, at the limit and beyond.
        let body = [5];
        let of = |path: &str, uid: u32| envelope(path, uid, &[1], &body);
        let (one, mut refused) = (of("/user/none", 9), 0);
        for (what, envelopes, bytes, is_malformed) in [
            ("one", 1, one.clone(), false),
            ("more than there are", 2, one.clone(), true),
            ("65,535 that are none", u16::MAX, vec![], true),
            ("none that is one", 0, one.clone(), true),
            ("the longest path", 1, of(&path_of(1024, 3), 9), false),
            ("a longer path", 1, of(&path_of(1025, 3), 9), true),
            ("the deepest path", 1, of(&path_of(64, 32), 9), false),
            ("a deeper path", 1, of(&path_of(66, 33), 9), true),
            ("no path", 1, of("", 9), true),
            ("an empty name", 1, of("/user//a", 9), true),
            ("the parent", 1, of("/user/../a", 9), true),
            ("percent", 1, of("/user/%4", 9), true),
            (
                "no UTF-8",
                1,
                {
                    let mut bytes = one.clone();
                    bytes[5] = 0xff;
                    bytes
                },
                true,
            ),
            ("uid 0", 1, of("/user/none", 0), true),
            (
                "an entry that there is not",
                1,
                {
                    let mut bytes = one.clone();
                    bytes[1] = 1;
                    bytes
                },
                true,
            ),
            (
                "a place of no kind",
                1,
                {
                    let mut bytes = one.clone();
                    bytes[2] = 3;
                    bytes
                },
                true,
            ),
            (
                "an envelope of no kind",
                1,
                {
                    let mut bytes = one.clone();
                    bytes[0] = 10;
                    bytes
                },
                true,
            ),
            (
                "flags of none",
                1,
                {
                    let mut bytes = one.clone();
                    bytes[0] = 0x20;
                    bytes
                },
                true,
            ),
            ("a byte more than there is", 1, envelope("/user/none", 9, &[2], &body), true),
            ("2^32 - 1 bytes", 1, envelope("/user/none", 9, &[255, 255, 255, 255, 15], &body), true),
            ("a length of too many bytes", 1, envelope("/user/none", 9, &[255; 9], &body), true),
            ("a body left over", 1, envelope("/user/none", 9, &[0], &body), true),
        ] {
            let frame = peer.raw(envelopes, &bytes);
            // The sum of the envelopes is true, so that the next batch goes on behind it.
            peer.deliver(frame);
            refused += u64::from(envelopes);
            check(&victim, &mut peer, what, u64::from(is_malformed));
            assert_eq!(victim.report(&peer).refused.total(), refused, "{what}");
        }
        let ledger = victim.system.ledger();
        assert_eq!((ledger.received, ledger.dead_lettered, ledger.balance()), (number + 3, 3, 0));
    }

    #[test]
    fn bodies_are_refused_one_by_one() {
        let victim = Victim::new(Limits::new());
        let mut peer = Peer::linked(&victim, "n2", 7);
        let deep: ActorRef<Deep> =
            victim.system.actor("deep").spawn(|| Ignores(Vec::<Deep>::new())).expect("free");
        let units: ActorRef<Units> =
            victim.system.actor("units").spawn(|| Ignores(Vec::<Units>::new())).expect("free");
        let levels = |pairs: usize| [vec![1; pairs], vec![0]].concat();
        let mut refused = 0;
        for (number, (uid, path, type_id, body, is_refused)) in (1..).zip([
            (deep.uid(), "/user/deep", wire_id(Deep::NAME, 1), levels(31), false),
            (deep.uid(), "/user/deep", wire_id(Deep::NAME, 1), levels(32), true),
            (deep.uid(), "/user/deep", wire_id(Deep::NAME, 1), levels(250_000), true),
            (units.uid(), "/user/units", wire_id(Units::NAME, 1), vec![65], false),
            (units.uid(), "/user/units", wire_id(Units::NAME, 1), vec![66], true),
            (
                units.uid(),
                "/user/units",
                wire_id(Units::NAME, 1),
                vec![255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
                true,
            ),
            // Bytes behind the value, and none.
            (units.uid(), "/user/units", wire_id(Units::NAME, 1), vec![1, 0], true),
            (units.uid(), "/user/units", wire_id(Units::NAME, 1), vec![], true),
            // Another type than the actor's.
            (units.uid(), "/user/units", wire_id(Deep::NAME, 1), vec![0], false),
        ]) {
            let frame = peer.batch(EnvelopeKind::Tell, Place::Actor { path, uid, type_id }, &[], &body);
            peer.deliver(frame);
            peer.tell(&victim, number);
            refused += u64::from(is_refused);
            assert_eq!(victim.report(&peer).refused.of(DeadLetterReason::Undecodable), refused, "{number}");
        }
        let report = victim.report(&peer);
        assert_eq!((report.refused.total(), report.malformed, report.state), (refused + 1, 0, LinkState::Up));
        wait_until(|| victim.system.ledger().queued == 0);
        let ledger = victim.system.ledger();
        assert_eq!((ledger.dead_lettered, ledger.balance()), (refused + 1, 0));
    }

    /// Handles whatever comes.
    struct Ignores<M>(Vec<M>);

    impl<M: Send + 'static> Actor for Ignores<M> {
        type Message = M;
        fn receive(&mut self, _: M, _: &mut Context<M>) -> HandlerResult {
            self.0.clear();
            Ok(())
        }
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Question(ReplyTo<u32>);

    impl Wire for Question {
        const NAME: &'static str = "test.Question";
    }

    #[test]
    fn a_token_answers_its_own_ask_once_and_no_other() {
        let victim = Victim::new(Limits::new().pending_asks(2));
        let (mut peer, mut other) = (Peer::linked(&victim, "n2", 7), Peer::linked(&victim, "n3", 8));
        let link = victim.hub.link("n2", 7).expect("it is up");
        let far = link.far::<Question>("/user/far", 5).expect("a name of its own");
        let asks = [far.ask_with(Question), far.ask_with(Question)];
        let full = far.ask_with(Question).wait().unwrap_err();
        assert!(full.is_full() || matches!(full, AskError::Undeliverable { .. }), "{full}");
        let outbox = lock(&victim.kept.1).pop().expect("it has something");
        let mut tokens: Vec<Token> = Vec::new();
        while let Some(frame) = outbox.next(1 << 20) {
            let batch = Batch::read(&frame, 2, 1000).expect("it was written here");
            tokens.extend(batch.envelopes().flat_map(|envelope| envelope.tokens.iter().collect::<Vec<_>>()));
        }
        assert_eq!(tokens.len(), 2);
        let answer = |peer: &mut Peer, token: Token| {
            let frame = peer.batch(EnvelopeKind::Reply, Place::Port, &[token], &[9]);
            peer.deliver(frame);
        };
        let counted = |peer: &Peer, reason| victim.report(peer).refused.of(reason);
        // Another slot, another generation, another hash.
        for (bit, count) in [(0, 1), (24, 2), (63, 3), (64, 4), (127, 5)] {
            let mut forged = tokens[0];
            forged[bit / 8] ^= 1 << (bit % 8);
            answer(&mut peer, forged);
            wait_until(|| counted(&peer, DeadLetterReason::NotAllowed) == count);
        }
        // The token of another peer.
        answer(&mut other, tokens[0]);
        wait_until(|| counted(&other, DeadLetterReason::NotAllowed) == 1);
        let [first, second] = asks;
        answer(&mut peer, tokens[1]);
        assert_eq!(second.wait(), Ok(9));
        answer(&mut peer, tokens[1]);
        wait_until(|| counted(&peer, DeadLetterReason::LateReply) == 1);
        answer(&mut peer, tokens[0]);
        assert_eq!(first.wait(), Ok(9));
        assert_eq!(victim.report(&peer).state, LinkState::Up);
    }

    #[test]
    fn sums_and_numbers_that_cannot_be_end_the_link_of_their_peer_alone() {
        let victim = Victim::new(Limits::new());
        let mut other = Peer::linked(&victim, "other", 1);
        let receipt = |limit, received| {
            let receipt = Receipt { limit, received, ..Receipt::default() };
            ControlMessage::Credit(vec![LaneReceipt::new(0, &receipt)])
        };
        type Act<'a> = Box<dyn Fn(&mut Peer) + 'a>;
        let at = |sequence: u64| -> Act<'_> {
            Box::new(move |peer| {
                peer.position.sequence = sequence;
                let frame = peer.raw(0, &[]);
                peer.deliver(frame);
            })
        };
        let cases: Vec<(&str, Act<'_>, bool)> = vec![
            ("the farthest batch", at(1 + (1 << 32)), true),
            ("a farther one", at(2 + (1 << 32)), false),
            ("2^63 batches", at(1 << 63), false),
            ("the last batch of all", at(u64::MAX), false),
            ("all credit that can be", Box::new(|peer| peer.control(&receipt(WINDOW, 0))), true),
            ("less than before", Box::new(|peer| peer.control(&receipt(WINDOW - 1, 0))), true),
            ("a byte more than can be", Box::new(|peer| peer.control(&receipt(WINDOW + 1, 0))), false),
            ("an envelope that was not sent", Box::new(|peer| peer.control(&receipt(WINDOW, 1))), false),
            (
                "all numbers that were sent",
                Box::new(|peer| peer.control(&ControlMessage::Ack { upto: 0 })),
                true,
            ),
            ("a number more", Box::new(|peer| peer.control(&ControlMessage::Ack { upto: 1 })), false),
            (
                "a batch beyond the credit",
                Box::new(|peer| {
                    peer.position.offset = u64::MAX;
                    peer.position.sequence = 3;
                    let frame = peer.raw(0, &[]);
                    peer.deliver(frame);
                }),
                false,
            ),
        ];
        for ((number, uid), (what, act, is_kept)) in (1..).zip(100..).zip(cases) {
            let mut peer = Peer::linked(&victim, &format!("n{uid}"), uid);
            act(&mut peer);
            let expected = if is_kept { LinkState::Up } else { LinkState::Ended };
            assert_eq!(victim.report(&peer).state, expected, "{what}");
            other.tell(&victim, number);
        }
        // A batch that comes again, or late, is dropped.
        let mut peer = Peer::linked(&victim, "n2", 7);
        peer.tell(&victim, 1000);
        let next = std::mem::replace(&mut peer.position, Position { sequence: 1, ..Position::default() });
        let again = peer.raw(0, &[]);
        peer.deliver(again);
        peer.position = next;
        peer.tell(&victim, 1001);
        assert_eq!(victim.report(&peer).state, LinkState::Up);
        // A gap in the numbers is not acknowledged; what was applied is, again.
        peer.answers();
        let unwatch = || NumberedMessage::Unwatch { path: "/user/none".to_owned(), uid: 3 };
        for (number, acks) in
            [(2, vec![]), (1, vec![1]), (1, vec![1]), (u64::MAX, vec![]), (2, vec![2]), (0, vec![2])]
        {
            peer.numbered(number, unwatch());
            let answers = peer.answers();
            let of = |message: &ControlMessage| {
                if let ControlMessage::Ack { upto } = message { Some(*upto) } else { None }
            };
            assert_eq!(answers.iter().filter_map(of).collect::<Vec<_>>(), acks, "number {number}");
        }
        // So many messages without an acknowledgement, and one more.
        let link = victim.hub.link("n2", 7).expect("it is up");
        for _ in 0..20_000 {
            victim.hub.send_numbered(&link, unwatch());
        }
        assert_eq!(victim.report(&peer).state, LinkState::Up);
        victim.hub.send_numbered(&link, unwatch());
        assert_eq!(victim.report(&peer).state, LinkState::Ended);
        other.tell(&victim, 1002);
    }

    #[test]
    fn names_that_greet_and_do_not_go_on_leave_room_in_time() {
        let victim = Victim::new(Limits::new().associations(4));
        let mut other = Peer::linked(&victim, "other", 1);
        let greets = |uid: u64| {
            let peer = Peer::new(&victim, &format!("n{uid}"), uid);
            for _ in 0..100 {
                peer.control(&ControlMessage::Hello(peer.hello(0)));
            }
            !peer.answers().is_empty()
        };
        // One of the four is linked.
        assert_eq!((10..16).map(greets).collect::<Vec<_>>(), [true, true, true, false, false, false]);
        for number in 0..30 {
            other.tell(&victim, number);
            victim.second();
        }
        wait_until(|| {
            victim.second();
            greets(20)
        });
        other.tell(&victim, 1000);
        assert_eq!(victim.report(&other).state, LinkState::Up);
    }

    #[test]
    fn a_watch_beyond_the_limit_is_refused_and_counted() {
        let victim = Victim::new(Limits::new().watches_per_peer(2));
        let (peer, other) = (Peer::linked(&victim, "n2", 7), Peer::linked(&victim, "n3", 8));
        let names = ["a", "b", "c"];
        let uids = names.map(|name| {
            let (sender, _) = channel();
            victim.system.actor(name).spawn(move || Taker(sender.clone())).expect("the name is free").uid()
        });
        let told = |peer: &Peer| {
            let terminated = |message: &ControlMessage| match message {
                ControlMessage::Numbered {
                    message: NumberedMessage::Terminated { path, existed, .. },
                    ..
                } => Some((path.clone(), Some(*existed))),
                ControlMessage::Numbered { message: NumberedMessage::WatchRefused { path, .. }, .. } => {
                    Some((path.clone(), None))
                }
                _ => None,
            };
            peer.answers().iter().filter_map(terminated).collect::<Vec<_>>()
        };
        for (number, (name, uid)) in (1..).zip(names.iter().zip(uids)) {
            let watch = || NumberedMessage::Watch { path: format!("/user/{name}"), uid };
            peer.numbered(number, watch());
            if *name == "c" {
                other.numbered(1, watch());
            }
        }
        let mut of_peer = Vec::new();
        wait_until(|| {
            of_peer.extend(told(&peer));
            !of_peer.is_empty()
        });
        assert_eq!(of_peer, [("/user/c".to_owned(), None)]);
        assert_eq!(victim.report(&peer).refused_control, 1);
        victim.system.actor_at("/user/c").expect("it lives").stop();
        let mut of_other = Vec::new();
        wait_until(|| {
            of_other.extend(told(&other));
            !of_other.is_empty()
        });
        assert_eq!(of_other, [("/user/c".to_owned(), Some(true))]);
    }
}
