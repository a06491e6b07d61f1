//! A peer that sends whatever it likes, against a hub: each input at its limit, and beyond. Other peers fare as without it.

#[cfg(test)]
mod tests {
    use crate::actor::actor::{Actor, HandlerResult};
    use crate::actor::builder::ActorBuilder;
    use crate::actor::context::Context;
    use crate::ask::error::AskError;
    use crate::ask::reply::ReplyTo;
    use crate::core::actor_ref::ActorRef;
    use crate::core::dead_letter::DeadLetterReason;
    use crate::dispatch::dispatcher::Dispatcher;
    use crate::failure::Failure;
    use crate::prelude::System;
    use crate::remote::association::{Greeting, PROTOCOL};
    use crate::remote::batch::{Batch, BatchWriter, EnvelopeKind, Place, Token};
    use crate::remote::codec::decode;
    use crate::remote::control_message::{ControlMessage, Hello, LaneReceipt, NumberedMessage};
    use crate::remote::credit::Receipt;
    use crate::remote::deploy::Deploy;
    use crate::remote::deploy_message::{
        DeployRequest, FailureText, Parent, ParentVerdict, REQUEST_MAX, physical_path,
    };
    use crate::remote::encoder::WireRef;
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
    use crate::remote::resolving::{ANY_TYPE, Identity as Found};
    use crate::remote::wire::{Wire, wire_id};
    use crate::sync::atomic::{AtomicBool, Ordering};
    use crate::sync::{Mutex, lock};
    use crate::time::clock::ManualClock;
    use serde::{Deserialize, Serialize};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    /// Reached only by a test that fails.
    const LONG: Duration = Duration::from_secs(30);

    const WINDOW: u64 = 1 << 20;

    /// The threads on which actors and lanes run.
    const WORKERS: usize = 2;

    fn wait_until(mut seen: impl FnMut() -> bool) {
        let began = Instant::now();
        while !seen() {
            assert!(began.elapsed() < LONG, "it never comes");
            std::thread::yield_now();
        }
    }

    /// Asks for an actor.
    fn request(path: String, uid: u32) -> DeployRequest {
        DeployRequest {
            uid,
            name: "deployed".to_owned(),
            parent: Parent { path, uid: 1, type_id: 0 },
            factory: "test.Factory".to_owned(),
            args: Vec::new(),
            suspensions: 0,
            dispatcher: None,
            mailbox: None,
            stash_capacity: None,
            routee_index: 0,
            is_held: false,
        }
    }

    /// Frames, with the channels that they were sent to.
    type Frames = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

    /// Keeps what a node sends, unless all of it is to be dropped.
    #[derive(Clone, Default)]
    struct Kept(Frames, Arc<Mutex<Vec<PeerOutbox>>>, Arc<AtomicBool>);

    impl Engine for Kept {
        fn start(self: Box<Self>, _: &Identity, _: Arc<dyn Inbound>) -> Result<Arc<dyn Fabric>, EngineError> {
            Ok(Arc::new(*self))
        }
    }

    impl Fabric for Kept {
        fn publish(&self, to: Channel<'_>, frame: Vec<u8>) -> Result<(), NotNow> {
            match to {
                Channel::Control(node) if !self.drops() => lock(&self.0).push((node.to_owned(), frame)),
                _ => {}
            }
            Ok(())
        }
        fn wants_out(&self, outbox: &PeerOutbox) {
            if !self.drops() {
                lock(&self.1).push(outbox.clone());
            }
        }
        fn set_uid(&self, _: u64) {}
        fn stop(&self, _: Duration) {}
    }

    impl Kept {
        fn drops(&self) -> bool {
            self.2.load(Ordering::Relaxed)
        }
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
            Self::with(limits, |node| node)
        }

        fn with(limits: Limits, change: impl FnOnce(Node) -> Node) -> Self {
            let (kept, clock) = (Kept::default(), ManualClock::new());
            let node =
                Node::new("n1").engine(kept.clone()).message::<u64>().message::<Deep>().message::<Units>();
            let node = node.message::<References>().message::<Vec<u8>>();
            let node = node.policy(Policy::closed()).limits(limits).lanes(2.try_into().expect("not 0"));
            let dispatcher = Dispatcher::work_stealing().threads(WORKERS);
            let builder = System::builder("demo").clock(clock.clone()).dispatcher("default", dispatcher);
            let system = builder.node(change(node)).build().expect("a sound node");
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
            self.position.first += u64::from(self.position.counted(envelopes));
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

        /// A fragment in a batch of its own.
        fn fragment(
            &mut self,
            (kind, place, tokens): (EnvelopeKind, Place<'_>, &[Token]),
            offset: u32,
            size: u32,
            piece: &[u8],
        ) -> Vec<u8> {
            let body = [&[kind as u8][..], &offset.to_le_bytes(), &size.to_le_bytes(), piece].concat();
            self.position.is_part = u64::from(offset) + (piece.len() as u64) < u64::from(size);
            let frame = self.batch(EnvelopeKind::Fragment, place, tokens, &body);
            self.position.is_part = false;
            frame
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

    #[derive(Debug, Serialize, Deserialize)]
    struct References(Vec<ActorRef<u64>>);

    impl Wire for References {
        const NAME: &'static str = "test.References";
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
                    bytes[0] = 13;
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

    /// An actor that peers may make.
    struct Made;

    impl Actor for Made {
        type Message = u64;
        fn receive(&mut self, _: u64, _: &mut Context<u64>) -> HandlerResult {
            Ok(())
        }
    }

    impl Deploy for Made {
        const FACTORY: &'static str = "test.Factory";
        type Args = Vec<u8>;
        fn deploy(_: &Vec<u8>, _: &mut Context<u64>) -> Result<Self, Failure> {
            Ok(Self)
        }
    }

    /// A linked peer that makes actors.
    struct Deployer {
        peer: Peer,
        number: u64,
    }

    impl Deployer {
        fn new(victim: &Victim, name: &str, uid: u64) -> Self {
            Self { peer: Peer::linked(victim, name, uid), number: 0 }
        }

        fn send(&mut self, message: NumberedMessage) {
            self.number += 1;
            self.peer.numbered(self.number, message);
        }

        /// The answer to a request: whether the actor was made, or why not.
        fn deploy(&mut self, uid: u32, change: impl FnOnce(&mut DeployRequest)) -> Result<(), String> {
            let mut asked = request("/user/boss".to_owned(), uid);
            asked.name = format!("c{uid}");
            asked.args = vec![0];
            change(&mut asked);
            self.peer.answers();
            self.send(NumberedMessage::Deploy(Box::new(asked)));
            let answer = |message| match message {
                ControlMessage::Numbered { message: NumberedMessage::Deployed { .. }, .. } => Some(Ok(())),
                ControlMessage::Numbered { message: NumberedMessage::DeployRefused { why, .. }, .. } => {
                    Some(Err(why))
                }
                _ => None,
            };
            self.peer.answers().into_iter().find_map(answer).expect("it is answered at once")
        }

        fn verdict(&mut self, uid: u32, verdict: ParentVerdict) {
            self.send(NumberedMessage::Verdict { uid, verdict });
        }

        /// The ends that the peer was told of since the last call.
        fn ends(&self) -> Vec<u32> {
            let end = |message| match message {
                ControlMessage::Numbered { message: NumberedMessage::Ended { uid }, .. } => Some(uid),
                _ => None,
            };
            self.peer.answers().into_iter().filter_map(end).collect()
        }
    }

    fn lets_deploy(node: Node) -> Node {
        node.factory::<Made>().policy(Policy::closed().allow_factory(Made::FACTORY, ["n2", "n3"]))
    }

    /// A change of a request to what is allowed just so, and to what is one beyond.
    type AtLimit = (&'static str, fn(&mut DeployRequest), fn(&mut DeployRequest));

    #[test]
    fn requests_for_actors_are_taken_at_each_limit_and_refused_beyond() {
        let victim = Victim::with(Limits::new(), lets_deploy);
        let mut peer = Deployer::new(&victim, "n2", 7);
        // The rest of the path that the actor has here.
        fn name_to(request: &mut DeployRequest, bytes: usize) {
            let rest = physical_path("demo", "n2", &request.parent.path, "").len();
            request.name = "n".repeat(bytes - rest);
        }
        fn args_of(request: &mut DeployRequest, bytes: usize) {
            // A vector has its length before it, of three bytes.
            request.args = [&[0xfd, 0xdf, 0x03][..], &vec![0; bytes - 3]].concat();
        }
        let limits: [AtLimit; 8] = [
            ("the uid", |request| request.uid = u32::MAX, |request| request.uid = 0),
            ("the parent's uid", |request| request.parent.uid = u32::MAX, |request| request.parent.uid = 0),
            (
                "the parent's path",
                |request| request.parent.path = "/user/%20/a".to_owned(),
                |request| request.parent.path = "/user//a".to_owned(),
            ),
            ("the length of the path", |request| name_to(request, 1024), |request| name_to(request, 1025)),
            (
                "the letters of the name",
                |request| request.name = "a-b_c.d@e".to_owned(),
                |request| request.name = "a/b".to_owned(),
            ),
            (
                "the first letter",
                |request| request.name = "a$".to_owned(),
                |request| request.name = "$a".to_owned(),
            ),
            (
                "the suspensions",
                |request| request.suspensions = 1 << 20,
                |request| request.suspensions = (1 << 20) + 1,
            ),
            (
                "the arguments",
                |request| args_of(request, REQUEST_MAX),
                |request| args_of(request, REQUEST_MAX + 1),
            ),
        ];
        let mut refused = 0;
        for (uid, (what, fitting, beyond)) in (10..).step_by(10).zip(limits) {
            assert_eq!(peer.deploy(uid, fitting), Ok(()), "{what}");
            assert!(peer.deploy(uid + 1, beyond).is_err(), "{what}");
            refused += 1;
        }
        type Change = fn(&mut DeployRequest);
        let more: [(&str, Change); 5] = [
            ("cannot be read", |request| request.args = vec![1]),
            ("no factory", |request| request.factory = "test.Factory".to_owned() + "2"),
            ("nowhere", |request| request.dispatcher = Some("nowhere".to_owned())),
            ("none of these", |request| request.mailbox = Some("none of these".to_owned())),
            // Another actor has it.
            ("c900", |request| request.name = "c900".to_owned()),
        ];
        assert_eq!(peer.deploy(900, |_| {}), Ok(()));
        for (why, change) in more {
            let answer = peer.deploy(901, change).expect_err(why);
            assert!(answer.contains(why) || answer.contains("does not allow it"), "{why}: {answer}");
            refused += 1;
        }
        let report = victim.report(&peer.peer);
        assert_eq!((report.state, report.refused_control), (LinkState::Up, refused));
        // Nothing is left of what was refused.
        let boss = victim.system.actor_at("/remote/demo@n2/%2Fuser%2Fboss").expect("it has children");
        let parents = victim.system.actor_at("/remote/demo@n2").expect("it has children").children();
        assert_eq!((boss.children().len(), parents.len()), (8, 2));
    }

    #[test]
    fn an_actor_that_a_peer_has_made_is_its_own_alone_and_made_once() {
        let victim = Victim::with(Limits::new().deployed_per_peer(2), lets_deploy);
        let mut peers = ["n2", "n3", "n4"].map(|name| Deployer::new(&victim, name, 7));
        let [own, other, third] = &mut peers;
        assert!(third.deploy(1, |_| {}).expect_err("it is not listed").contains("does not allow it"));
        assert_eq!(own.deploy(1, |_| {}), Ok(()));
        let path = "/remote/demo@n2/%2Fuser%2Fboss/c1";
        let made = victim.system.actor_at(path).expect("it was made");
        // A repeated request finds its actor.
        assert_eq!(own.deploy(1, |request| request.name = "again".to_owned()), Ok(()));
        assert!(made.core().parent.as_ref().is_some_and(|parent| parent.children().len() == 1));
        // Another peer has no actor of this number.
        for verdict in [
            ParentVerdict::Suspend,
            ParentVerdict::Resume { judged: true },
            ParentVerdict::Restart { cause: "x".repeat(60_000) },
            ParentVerdict::Stop,
        ] {
            other.verdict(1, verdict);
        }
        assert_eq!((other.ends(), made.is_closed()), (vec![1], false));
        // More is not undone than was done.
        own.verdict(1, ParentVerdict::Suspend);
        for _ in 0..3 {
            own.verdict(1, ParentVerdict::Resume { judged: false });
        }
        assert_eq!(victim.report(&own.peer).refused_control, 2);
        // Answers that were not asked for.
        let failure = FailureText::of(&Failure::msg("y".repeat(60_000)));
        own.send(NumberedMessage::Deployed { uid: 5 });
        own.send(NumberedMessage::DeployRefused { uid: 5, why: "x".repeat(60_000) });
        own.send(NumberedMessage::Failed { uid: 5, failure });
        own.send(NumberedMessage::Ended { uid: 5 });
        // The limit counts those that live.
        assert_eq!(own.deploy(2, |_| {}), Ok(()));
        assert!(own.deploy(3, |_| {}).expect_err("it is one too many").contains("deployed-per-peer"));
        own.verdict(1, ParentVerdict::Stop);
        let mut ends = Vec::new();
        wait_until(|| {
            ends.extend(own.ends());
            !ends.is_empty()
        });
        assert!(ends == [1] && made.is_closed());
        assert_eq!(own.deploy(3, |_| {}), Ok(()));
        assert!(peers.iter().all(|peer| victim.report(&peer.peer).state == LinkState::Up));
    }

    #[test]
    fn by_default_a_peer_makes_1024_actors_and_no_more() {
        let victim = Victim::with(Limits::new(), lets_deploy);
        let mut peer = Deployer::new(&victim, "n2", 7);
        for uid in 1..=1024 {
            assert_eq!(peer.deploy(uid, |_| {}), Ok(()), "{uid}");
        }
        let refused = peer.deploy(1025, |_| {}).expect_err("it is one too many");
        assert!(refused.contains("has 1024 actors of this node already"), "{refused}");
        assert_eq!(Deployer::new(&victim, "n3", 8).deploy(1, |_| {}), Ok(()));
    }

    /// The last lane of a peer is taken, and the one behind it is not.
    #[test]
    fn the_last_lane_is_taken_and_one_beyond_is_malformed() {
        let victim = Victim::new(Limits::new());
        let mut peer = Peer::linked(&victim, "n2", 7);
        let body = postcard::to_allocvec(&5u64).expect("a number");
        for (lane, malformed) in [(1, 0), (2, 1)] {
            let mut frame = peer.batch(EnvelopeKind::Tell, taker(victim.uid), &[], &body);
            frame[4] = lane;
            // It is the first batch of each lane.
            peer.position = Position { sequence: 1, ..Position::default() };
            peer.deliver(frame);
            assert_eq!(victim.report(&peer).malformed, malformed);
        }
        assert_eq!(victim.taken.recv_timeout(LONG), Ok(5));
        peer.tell(&victim, 6);
        assert!(victim.taken.try_recv().is_err());
    }

    #[test]
    fn a_million_levels_are_refused_where_an_envelope_has_room_for_them() {
        let envelope = (1 << 20) - (8 << 10);
        let victim = Victim::new(Limits::new().envelope(envelope).large_message(envelope));
        let mut peer = Peer::linked(&victim, "n2", 7);
        let deep = victim.system.actor("deep").spawn(|| Ignores(Vec::<Deep>::new())).expect("free");
        let place = Place::Actor { path: "/user/deep", uid: deep.uid(), type_id: wire_id(Deep::NAME, 1) };
        let frame = peer.batch(EnvelopeKind::Tell, place, &[], &vec![1; 1_000_000]);
        peer.deliver(frame);
        peer.tell(&victim, 1);
        assert_eq!(victim.report(&peer).refused.of(DeadLetterReason::Undecodable), 1);
        // One byte more than an envelope may have.
        for (bytes, too_large) in [(envelope, 0), (envelope + 1, 1)] {
            let frame = peer.batch(EnvelopeKind::Tell, place, &[], &vec![1; bytes]);
            peer.deliver(frame);
            peer.tell(&victim, 2 + too_large);
            assert_eq!(victim.report(&peer).refused.of(DeadLetterReason::TooLarge), too_large, "{bytes}");
        }
        assert_eq!(victim.report(&peer).state, LinkState::Up);
    }

    /// A batch without envelopes costs no credit, so it has nothing else, and those that wait are one.
    #[test]
    fn batches_without_envelopes_have_no_bytes_and_do_not_pile_up() {
        let victim = Victim::new(Limits::new());
        let mut peer = Peer::linked(&victim, "n2", 7);
        for (bytes, malformed) in [(&[][..], 0), (&[0], 1)] {
            let frame = peer.raw(0, bytes);
            peer.deliver(frame);
            assert_eq!(victim.report(&peer).malformed, malformed);
        }
        for number in 0..100 {
            for _ in 0..100 {
                let frame = peer.raw(0, &[]);
                peer.deliver(frame);
            }
            peer.tell(&victim, number);
        }
        assert_eq!(victim.report(&peer).state, LinkState::Up);
    }

    /// References to starts of nodes that there are not: each link that they make goes when they do.
    #[test]
    fn references_to_starts_that_there_are_not_leave_no_link() {
        let victim = Victim::new(Limits::new());
        let links = |uids: std::ops::Range<u64>| -> Vec<ActorRef<u64>> {
            let far = |uid| victim.hub.link("n9", uid).expect("a link").far("/user/a", 1).expect("one type");
            uids.map(far).collect()
        };
        let of_n9 = || victim.hub.links().iter().filter(|link| link.node == "n9").count();
        let kept = links(1..100);
        assert_eq!(of_n9(), 8, "those beyond are closed from the beginning");
        assert!(kept[7].try_tell(1u64).is_ok() && kept[8].try_tell(1u64).is_err());
        drop(kept);
        // A message waits on one of them.
        wait_until(|| {
            victim.second();
            of_n9() <= 1
        });
    }

    /// D19: each kind of input, from each source, to each sort of actor. By default a peer that is linked tells actors of which it
    /// knows the uid, and watches them; nothing else has an effect.
    #[test]
    fn by_default_nothing_comes_in_that_is_not_listed() {
        #[derive(Debug, Clone, Copy, PartialEq)]
        enum Source {
            Linked,
            NotGreeted,
            OtherUid,
            ToOtherUid,
        }
        let victim = Victim::new(Limits::new());
        let system = &victim.system;
        let (sender, told) = channel();
        let private = ActorBuilder::new(system.core().system_guardian(), None)
            .internal()
            .spawn(move || Taker(sender.clone()))
            .expect("it lives");
        let private_path = private.any_local().path().as_str().to_owned();
        assert!(private_path.starts_with("/system/"), "{private_path}");
        let mut linked = Peer::linked(&victim, "n2", 7);
        let linked_uid = linked.uid;
        let (mut number, mut numbered) = (0, 0);
        let uids = [("/user/taker", victim.uid), (private_path.as_str(), private.uid())];
        let type_id = wire_id(u64::NAME, u64::VERSION);
        for source in [Source::Linked, Source::NotGreeted, Source::OtherUid, Source::ToOtherUid] {
            let mut stranger = match source {
                Source::NotGreeted => Peer::new(&victim, "n5", 50),
                _ => Peer::new(&victim, "n2", 70),
            };
            for (path, uid) in uids {
                for with_uid in [uid, uid + 1000] {
                    for kind in EnvelopeKind::ALL {
                        number += 1;
                        let body = postcard::to_allocvec(&number).expect("a number");
                        let wildcard = path.rsplit_once('/').expect("it has a name").0.to_owned() + "/*";
                        let places = [
                            Place::Actor { path, uid: with_uid, type_id },
                            Place::Selection { text: path, type_id },
                            Place::Selection { text: &wildcard, type_id: ANY_TYPE },
                            Place::Port,
                        ];
                        for place in places {
                            let peer = if source == Source::Linked { &mut linked } else { &mut stranger };
                            let mut frame = peer.batch(kind, place, &[[9; 16]], &body);
                            if source == Source::ToOtherUid {
                                frame[8..16].copy_from_slice(&linked_uid.to_le_bytes());
                                frame[16..24].copy_from_slice(&(victim.hub.uid() ^ 1).to_le_bytes());
                            }
                            victim.hub.frame(&peer.name, ChannelKind::Batch, frame);
                        }
                        let is_let_in = source == Source::Linked
                            && matches!(kind, EnvelopeKind::Tell | EnvelopeKind::AskEach)
                            && (path, with_uid) == ("/user/taker", victim.uid);
                        if is_let_in {
                            assert_eq!(victim.taken.recv_timeout(LONG), Ok(number));
                        }
                        // The lane has handled all that came before, and the actor has got nothing else.
                        linked.tell(&victim, u64::MAX - number);
                        assert!(victim.taken.try_recv().is_err(), "{source:?} {kind:?} {path}");
                        assert!(told.try_recv().is_err(), "{source:?} {kind:?} {path}");
                        assert!(system.actor_at("/user/taker").is_ok(), "{source:?} {kind:?}");
                        assert!(system.actor_at(&private_path).is_ok(), "{source:?} {kind:?}");
                    }
                    type Make = fn(String, u32) -> NumberedMessage;
                    let makes: [(Make, bool); 9] = [
                        (|path, uid| NumberedMessage::Stop { path, uid }, false),
                        (|path, uid| NumberedMessage::Watch { path, uid }, true),
                        (|path, uid| NumberedMessage::Unwatch { path, uid }, false),
                        (|path, uid| NumberedMessage::Terminated { path, uid, existed: true }, false),
                        (|path, uid| NumberedMessage::Pill { path, uid, is_kill: true }, false),
                        (|_, uid| NumberedMessage::Verdict { uid, verdict: ParentVerdict::Stop }, false),
                        (
                            |_, uid| {
                                let verdict = ParentVerdict::Restart { cause: String::new() };
                                NumberedMessage::Verdict { uid, verdict }
                            },
                            false,
                        ),
                        (|_, uid| NumberedMessage::Ended { uid }, false),
                        (|path, uid| NumberedMessage::Deploy(Box::new(request(path, uid))), false),
                    ];
                    for (make, is_watch) in makes {
                        let message = make(path.to_owned(), with_uid);
                        linked.answers();
                        if source == Source::Linked {
                            numbered += 1;
                            linked.numbered(numbered, message);
                        } else {
                            let (from, to) = match source {
                                Source::ToOtherUid => (linked.uid, victim.hub.uid() ^ 1),
                                _ => (stranger.uid, victim.hub.uid()),
                            };
                            let frame =
                                ControlMessage::Numbered { number: numbered + 1, message }.frame(from, to);
                            victim.hub.frame(&stranger.name, ChannelKind::Control, frame);
                        }
                        let is_refused = |answer: &ControlMessage| {
                            matches!(
                                answer,
                                ControlMessage::Numbered {
                                    message: NumberedMessage::Terminated { .. }
                                        | NumberedMessage::WatchRefused { .. },
                                    ..
                                }
                            )
                        };
                        let refused = linked.answers().iter().any(is_refused);
                        let is_known = (path, with_uid) == ("/user/taker", victim.uid);
                        let expected = source == Source::Linked && is_watch && !is_known;
                        assert_eq!(refused, expected, "{source:?} {path} {with_uid}");
                        linked.tell(&victim, u64::MAX - number);
                        assert!(system.actor_at("/user/taker").is_ok(), "{source:?}");
                        assert!(system.actor_at(&private_path).is_ok(), "{source:?}");
                    }
                }
            }
        }
        // All that was answered tells of no actor.
        let outboxes = std::mem::take(&mut *lock(&victim.kept.1));
        let mut answers = 0;
        for outbox in outboxes.iter().filter(|outbox| outbox.peer() == "n2") {
            while let Some(frame) = outbox.next(1 << 20) {
                let batch = Batch::read(&frame, 2, 1000).expect("it was written here");
                for envelope in batch.envelopes().filter(|envelope| envelope.kind == EnvelopeKind::Identity) {
                    answers += 1;
                    let identity = decode::<Found>(envelope.body).expect("it was written here");
                    assert_eq!(identity, Found::NotAllowed);
                }
            }
        }
        assert!(answers > 0, "requests for references are answered");
    }

    #[test]
    fn fragments_of_any_form_are_one_message_or_none() {
        const MAX: u32 = 20_000;
        let limits = Limits::new().envelope(1024).large_message(MAX as usize);
        let victim = Victim::new(limits);
        let (mut peer, mut other) = (Peer::linked(&victim, "n2", 7), Peer::linked(&victim, "n3", 8));
        let (sender, taken) = channel();
        let bytes = victim.system.actor("bytes").spawn(move || Bytes(sender.clone())).expect("it is free");
        let place =
            Place::Actor { path: "/user/bytes", uid: bytes.uid(), type_id: wire_id(<Vec<u8>>::NAME, 1) };
        let to = (EnvelopeKind::Tell, place, &[][..]);
        let body = |bytes: u32| {
            let rest = if bytes > 16_385 { 3 } else { 2 };
            postcard::to_allocvec(&vec![7u8; bytes as usize - rest]).expect("it can be written")
        };
        let (mut number, mut received, mut sums) = (0, 0, (0, 0, 0));
        // The pieces that come, as offsets and ends; the size that they tell; then what was taken, refused and given up.
        for (what, size, pieces, told, was_taken, refused, given_up) in [
            ("a whole message", 3000, &[(0, 1000), (1000, 2000), (2000, 3000)][..], 3000, true, None, 0),
            ("one that is never finished", 3000, &[(0, 1000), (1000, 2999)], 3000, false, None, 1),
            ("one that begins twice", 3000, &[(0, 1000), (0, 1000), (1000, 3000)], 3000, true, None, 1),
            (
                "a piece that comes twice",
                3000,
                &[(0, 1000), (1000, 2000), (1000, 2000), (2000, 3000)],
                3000,
                false,
                Some(DeadLetterReason::Incomplete),
                1,
            ),
            (
                "pieces out of order",
                3000,
                &[(1000, 2000), (0, 1000), (2000, 3000)],
                3000,
                false,
                Some(DeadLetterReason::Incomplete),
                1,
            ),
            (
                "the last piece alone",
                3000,
                &[(2000, 3000)],
                3000,
                false,
                Some(DeadLetterReason::Incomplete),
                0,
            ),
            ("the greatest size", MAX, &[(0, 10_000), (10_000, MAX)], MAX, true, None, 0),
            (
                "a byte more",
                MAX + 1,
                &[(0, 10_000), (10_000, MAX + 1)],
                MAX + 1,
                false,
                Some(DeadLetterReason::TooLarge),
                0,
            ),
            ("2^32 - 1 bytes that begin", 3000, &[(0, 1000), (1000, 2000)], u32::MAX, false, None, 0),
        ] {
            let whole = body(size);
            for (from, end) in pieces.iter().copied() {
                let frame = peer.fragment(to, from, told, &whole[from as usize..end as usize]);
                received += u64::from(end == told);
                peer.deliver(frame);
            }
            for peer in [&mut peer, &mut other] {
                number += 1;
                peer.tell(&victim, number);
            }
            received += 1;
            if was_taken {
                assert_eq!(taken.recv_timeout(LONG), Ok(whole.len()), "{what}");
            }
            assert!(taken.try_recv().is_err(), "{what}");
            sums.0 += u64::from(refused == Some(DeadLetterReason::Incomplete));
            sums.1 += u64::from(refused == Some(DeadLetterReason::TooLarge));
            sums.2 += given_up;
            let report = victim.report(&peer);
            let refused = |reason| report.refused.of(reason);
            let counts = (refused(DeadLetterReason::Incomplete), refused(DeadLetterReason::TooLarge));
            assert_eq!((counts.0, counts.1, report.incomplete), sums, "{what}");
            assert_eq!(
                (report.received, report.malformed, report.state),
                (received, 0, LinkState::Up),
                "{what}"
            );
        }
        // A batch between two pieces is lost.
        let incomplete = |peer: &Peer| victim.report(peer).refused.of(DeadLetterReason::Incomplete);
        let whole = body(3000);
        let lost = |peer: &mut Peer| drop(peer.fragment(to, 1000, 3000, &whole[1000..2000]));
        let first = peer.fragment(to, 0, 3000, &whole[..1000]);
        peer.deliver(first);
        lost(&mut peer);
        let last = peer.fragment(to, 2000, 3000, &whole[2000..]);
        peer.deliver(last);
        peer.tell(&victim, 100);
        assert_eq!((incomplete(&peer), victim.report(&peer).incomplete), (sums.0 + 1, sums.2 + 1));
        // The next piece comes too late.
        let first = peer.fragment(to, 0, 3000, &whole[..1000]);
        let link = victim.hub.link("n2", 7).expect("it is up");
        let limit = || link.last_receipts(Duration::ZERO)[0].receipt().limit;
        let handled = limit() + first.len() as u64;
        peer.deliver(first);
        wait_until(|| limit() == handled);
        for _ in 0..10 {
            assert_eq!(victim.report(&peer).incomplete, sums.2 + 1);
            peer.control(&ControlMessage::Ack { upto: 0 });
            victim.second();
        }
        wait_until(|| victim.report(&peer).incomplete == sums.2 + 2);
        let last = peer.fragment(to, 1000, 3000, &whole[1000..]);
        peer.deliver(last);
        peer.tell(&victim, 101);
        assert_eq!(incomplete(&peer), sums.0 + 2);
        // Batches that say one thing and are another.
        let mut malformed = 0;
        let mut frames = Vec::new();
        let pill = (EnvelopeKind::Pill, place, &[][..]);
        let port = (EnvelopeKind::Tell, Place::Port, &[][..]);
        let with_tokens = (EnvelopeKind::Tell, place, &[[7; 16]][..]);
        for (to, offset, size, bytes) in [
            (pill, 0, 3000, 1000),
            (port, 0, 3000, 1000),
            (with_tokens, 0, 3000, 1000),
            (to, 0, 3000, 0),
            (to, 2000, 3000, 1001),
            (to, 0, 1000, 1000),
            (to, u32::MAX, 3000, 1),
        ] {
            frames.push(peer.fragment(to, offset, size, &whole[..bytes]));
        }
        let (goes_on, ends) = ([0, 0, 0, 0, 0, 9, 0, 0, 0, 1], [0, 8, 0, 0, 0, 9, 0, 0, 0, 1]);
        for (is_part, kind, body) in [
            (true, EnvelopeKind::Fragment, &ends[..]),
            (false, EnvelopeKind::Fragment, &goes_on),
            (true, EnvelopeKind::Tell, &whole),
            (false, EnvelopeKind::Tell, &whole),
        ] {
            peer.position.is_part = is_part;
            frames.push(peer.batch(kind, place, &[], body));
        }
        peer.position.is_part = false;
        // The last one is a message as any other.
        let sound = frames.pop().expect("it was put there");
        for frame in frames {
            peer.deliver(frame);
            malformed += 1;
            wait_until(|| victim.report(&peer).malformed == malformed);
        }
        peer.deliver(sound);
        assert_eq!(taken.recv_timeout(LONG), Ok(3000));
        number += 1000;
        for peer in [&mut peer, &mut other] {
            number += 1;
            peer.tell(&victim, number);
        }
        assert_eq!(victim.report(&peer).state, LinkState::Up);
        wait_until(|| victim.system.ledger().queued == 0);
        assert_eq!(victim.system.ledger().balance(), 0);
    }

    #[test]
    fn chokes_of_any_actor_hold_back_the_senders_to_that_one_of_that_peer_alone() {
        let victim = Victim::new(Limits::new());
        let (peer, mut other) = (Peer::linked(&victim, "n2", 7), Peer::linked(&victim, "n3", 8));
        let far = |name: &str, uid: u64, path: &str, actor: u32| {
            let link = victim.hub.link(name, uid).expect("it is up");
            link.far::<u64>(path, actor).expect("one type")
        };
        let meant = far("n2", 7, "/user/a", 5);
        let others = [far("n2", 7, "/user/b", 5), far("n2", 7, "/user/a", 6), far("n3", 8, "/user/a", 5)];
        let choke = |path: &str, uid: u32, is_choked: bool| {
            peer.control(&ControlMessage::Choke { path: path.to_owned(), uid, is_choked });
        };
        let is_choked = |far: &ActorRef<u64>| far.try_tell(1u64).is_err();
        choke("/user/a", 5, true);
        assert!(is_choked(&meant) && !others.iter().any(is_choked));
        choke("/user/a", 5, false);
        assert!(!is_choked(&meant));
        // Actors that there are not, one byte at the limit and one beyond.
        for number in 0..20_000 {
            choke("/user/a", number + 10, number % 2 == 0);
            choke(&format!("/user/{number}"), 5, true);
        }
        choke(&path_of(1024, 3), 0, true);
        assert_eq!(victim.report(&peer).malformed, 0);
        choke(&path_of(1025, 3), 5, true);
        assert_eq!((victim.report(&peer).malformed, victim.report(&peer).state), (1, LinkState::Up));
        // No reference was made for any of them.
        let link = victim.hub.link("n2", 7).expect("it is up");
        assert_eq!(link.fars.len(), 3);
        assert!(![&meant].into_iter().chain(&others).any(is_choked));
        // A choke lapses, and one of an actor that has ended does not open it again.
        choke("/user/a", 5, true);
        for _ in 0..3 {
            assert!(is_choked(&meant));
            peer.control(&ControlMessage::Ack { upto: 0 });
            victim.second();
        }
        assert!(!is_choked(&meant));
        other.tell(&victim, 1);
    }

    /// Takes bytes, and tells how many there are with their length.
    struct Bytes(Sender<usize>);

    impl Actor for Bytes {
        type Message = Vec<u8>;
        fn receive(&mut self, bytes: Vec<u8>, _: &mut Context<Vec<u8>>) -> HandlerResult {
            let rest = if bytes.len() > 16_383 { 3 } else { 2 };
            Ok(self.0.send(bytes.len() + rest)?)
        }
    }

    /// Everything that a peer sends which keeps to no rule, many times.
    #[cfg(target_os = "linux")]
    struct Hostile<'a> {
        victim: &'a Victim,
        peer: Peer,
        /// The number of the next message of the numbered stream.
        number: u64,
        /// The bytes that may be under way in a lane.
        window: u64,
        /// Whether all workers of the victim are blocked.
        is_blocked: bool,
    }

    #[cfg(target_os = "linux")]
    impl<'a> Hostile<'a> {
        fn new(victim: &'a Victim, uid: u64, is_blocked: bool) -> Self {
            let peer = Peer::linked(victim, "n2", uid);
            let mut hostile = Self { victim, peer, number: 1, window: 0, is_blocked };
            hostile.window = hostile.limit().expect("it is up");
            hostile
        }

        fn limit(&self) -> Option<u64> {
            let link = self.victim.hub.active_link("n2").filter(|link| link.uid() == self.peer.uid)?;
            Some(link.last_receipts(Duration::ZERO).first()?.receipt().limit)
        }

        /// Comes back as another one, if the victim has closed the link.
        fn link_again(&mut self) {
            if self.victim.hub.active_link("n2").is_none_or(|link| link.uid() != self.peer.uid) {
                *self = Self::new(self.victim, self.peer.uid + 1, self.is_blocked);
            }
        }

        /// Sends a batch. While workers run, it waits until its bytes are consumed, or the link is closed.
        fn deliver(&mut self, frame: Vec<u8>) {
            self.peer.deliver(frame);
            if !self.is_blocked {
                let end = self.window + self.peer.position.offset;
                wait_until(|| self.limit().is_none_or(|limit| limit == end));
            }
            self.link_again();
        }

        fn batch(&mut self, envelopes: u16, bytes: &[u8]) {
            let frame = self.peer.raw(envelopes, bytes);
            self.deliver(frame);
        }

        fn envelope(&mut self, kind: EnvelopeKind, place: Place<'_>, tokens: &[Token], body: &[u8]) {
            let frame = self.peer.batch(kind, place, tokens, body);
            self.deliver(frame);
        }

        fn control(&mut self, message: &ControlMessage) {
            self.peer.control(message);
            self.link_again();
        }

        fn numbered(&mut self, message: NumberedMessage) {
            self.peer.numbered(self.number, message);
            self.number += 1;
            self.link_again();
        }

        fn forms(&mut self, times: usize) {
            let mut good = self.peer.raw(0, &[]);
            self.peer.position.sequence -= 1;
            good.push(0);
            for at in 0..times {
                let mut frame = good.clone();
                match at % 4 {
                    0 => frame.truncate([0, 23, 24, 71][at / 4 % 4]),
                    1 => frame[at / 4 % 6] ^= 0x55,
                    2 => frame[4] = 2 + (at % 250) as u8,
                    _ => frame[24 + at % 48] ^= 0xff,
                }
                for kind in [ChannelKind::Batch, ChannelKind::Control, ChannelKind::Heartbeat] {
                    self.victim.hub.frame("n2", kind, frame.clone());
                }
                self.link_again();
            }
        }

        fn counts(&mut self, times: usize) {
            let large = vec![0; crate::remote::limits::FRAME_MAX - HEADER_LEN];
            for _ in 0..times {
                self.batch(u16::MAX, &[]);
                self.batch(2, &envelope("/user/none", 9, &[1], &[5]));
                self.batch(0, &large);
            }
        }

        fn empty_batches(&mut self, times: usize) {
            for _ in 0..times {
                let frame = self.peer.raw(0, &[]);
                self.peer.deliver(frame);
            }
            self.link_again();
        }

        fn places(&mut self, times: usize) {
            let (long, deep) = (path_of(1025, 3), path_of(66, 33));
            for path in [&long, &deep, "", "/user//a", "/user/../a", "/user/%4", "/user/none"]
                .iter()
                .cycle()
                .take(times)
            {
                self.batch(1, &envelope(path, 0, &[1], &[5]));
                self.batch(1, &envelope(path, 9, &[255, 255, 255, 255, 15], &[5]));
                let mut bytes = envelope(path, 9, &[1], &[5]);
                bytes[1] = 1;
                self.batch(1, &bytes);
            }
        }

        fn bodies(&mut self, times: usize) {
            let uid =
                |name: &str| self.victim.system.actor_at(&format!("/user/{name}")).expect("it lives").uid();
            let (deep, units) = (uid("deep"), uid("units"));
            let million = vec![1; 250_000];
            for at in 0..times {
                let place = Place::Actor { path: "/user/deep", uid: deep, type_id: wire_id(Deep::NAME, 1) };
                let body = if at % 10 == 0 { &million[..] } else { &million[..64] };
                self.envelope(EnvelopeKind::Tell, place, &[], body);
                let place =
                    Place::Actor { path: "/user/units", uid: units, type_id: wire_id(Units::NAME, 1) };
                let endless = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
                self.envelope(EnvelopeKind::Tell, place, &[], &endless);
                self.envelope(EnvelopeKind::Tell, place, &[], &[1, 0]);
            }
        }

        /// Large messages that are never finished.
        fn fragments(&mut self, times: usize) {
            const PIECE: usize = 200 << 10;
            let place = Place::Actor { path: "/user/none", uid: 9, type_id: wire_id(<Vec<u8>>::NAME, 1) };
            let (piece, max) = (vec![7; PIECE], Limits::new().large_message as u32);
            for at in 0..times {
                // The second message is larger than any may be.
                let size = if at / 40 % 2 == 0 { max } else { u32::MAX };
                let offset = (at % 40 * PIECE) as u32;
                let frame = self.peer.fragment((EnvelopeKind::Tell, place, &[]), offset, size, &piece);
                self.deliver(frame);
                self.peer.position.is_part = false;
            }
        }

        fn tokens(&mut self, times: usize) {
            for at in 0..times {
                let token = |number: usize| {
                    let mut token = [0; 16];
                    token[..8].copy_from_slice(&(at * 256 + number).to_le_bytes());
                    token
                };
                for kind in [EnvelopeKind::Reply, EnvelopeKind::RefusedReply, EnvelopeKind::Identity] {
                    self.envelope(kind, Place::Port, &[token(0)], &[9]);
                }
                // Each of these is answered, and the peer takes no answer.
                let many: Vec<Token> = (0..255).map(token).collect();
                let place = Place::Actor { path: "/user/none", uid: 9, type_id: wire_id(u64::NAME, 1) };
                self.envelope(EnvelopeKind::Tell, place, &many, &[5]);
                let place = Place::Selection { text: "/user/*", type_id: wire_id(u64::NAME, 1) };
                self.envelope(EnvelopeKind::Identify, place, &[token(0)], &[]);
            }
        }

        fn types(&mut self, times: usize) {
            for at in 0..times as u64 {
                let place = Place::Actor { path: "/user/none", uid: 9, type_id: at << 8 | 7 };
                self.envelope(EnvelopeKind::Tell, place, &[], &[5]);
                let place = Place::Selection { text: "/user/*", type_id: at << 8 | 7 };
                self.envelope(EnvelopeKind::Select, place, &[], &[5]);
            }
        }

        /// References to actors of other nodes that there are not, each at a start of its own.
        fn references(&mut self, times: usize) {
            let actor = self.victim.system.actor_at("/user/references").expect("it lives");
            let type_id = wire_id(References::NAME, 1);
            for at in 0..times {
                let reference = |number: usize| WireRef {
                    node: Some(format!("m{}", at % 4).into()),
                    path: "/user/a".into(),
                    uid: 1,
                    system: (at * 10_000 + number + 1) as u64,
                    type_id: wire_id(u64::NAME, 1),
                };
                let references: Vec<WireRef<'_>> = (0..4000).map(reference).collect();
                let body = postcard::to_allocvec(&references).expect("it can be written");
                let place = Place::Actor { path: "/user/references", uid: actor.uid(), type_id };
                self.envelope(EnvelopeKind::Tell, place, &[], &body);
                // Messages in a mailbox are as large as their type is. Each is handled before the next comes.
                wait_until(|| self.is_blocked || self.victim.system.ledger().queued == 0);
            }
        }

        fn sequences(&mut self, times: usize) {
            for at in 0..times {
                let next = self.peer.position;
                self.peer.position.sequence = [1, u64::MAX, next.sequence.wrapping_add(1 << 63)][at % 3];
                let frame = self.peer.raw(0, &[]);
                self.peer.deliver(frame);
                self.peer.position = next;
                self.link_again();
                self.peer.position.offset = u64::MAX;
                self.empty_batches(1);
            }
        }

        fn sums(&mut self, times: usize) {
            for at in 0..times as u64 {
                let receipt = |lane: u8, limit: u64| {
                    let receipt = Receipt { limit, ..Receipt::default() };
                    LaneReceipt::new(lane, &receipt)
                };
                self.control(&ControlMessage::Credit(vec![receipt(0, WINDOW - at % WINDOW)]));
                self.control(&ControlMessage::Credit((0..1000).map(|_| receipt(255, u64::MAX)).collect()));
                self.control(&ControlMessage::Unwanted(vec![[7; 16]; 3000]));
                self.control(&ControlMessage::Credit(vec![receipt(0, WINDOW + 1)]));
                self.control(&ControlMessage::Ack { upto: u64::MAX });
            }
        }

        fn numbers(&mut self, times: usize) {
            for at in 0..times as u64 {
                let path = path_of(1024, 3);
                for number in [self.number + 1 + at, u64::MAX, 0] {
                    let path = path.clone();
                    self.peer.numbered(number, NumberedMessage::Terminated { path, uid: 3, existed: true });
                }
            }
            self.link_again();
        }

        /// Ends that wait for data which never comes.
        fn ends(&mut self, times: usize) {
            for _ in 0..times {
                self.numbered(NumberedMessage::Terminated { path: path_of(1024, 3), uid: 3, existed: true });
            }
        }

        fn watches(&mut self, times: usize) {
            for _ in 0..times {
                // Each is answered by a message that the peer never acknowledges.
                self.numbered(NumberedMessage::Watch { path: path_of(1024, 3), uid: 3 });
                self.numbered(NumberedMessage::Watch { path: path_of(60_000, 3), uid: 3 });
                self.number -= 1;
            }
            for _ in 0..times {
                let (path, uid) = (|| "/user/taker".to_owned(), self.victim.uid);
                self.numbered(NumberedMessage::Watch { path: path(), uid });
                self.numbered(NumberedMessage::Unwatch { path: path(), uid });
            }
        }

        /// Requests for actors, and what is told of actors that were never asked for.
        fn deployments(&mut self, times: usize) {
            for at in 0..times as u32 {
                let mut asked = request(path_of(300, 3), at);
                asked.args = vec![7; 1000];
                self.numbered(NumberedMessage::Deploy(Box::new(asked)));
                self.numbered(NumberedMessage::Deployed { uid: at });
                self.numbered(NumberedMessage::DeployRefused { uid: at, why: "x".repeat(1000) });
                let failure = FailureText::of(&Failure::msg("x".repeat(1000)));
                self.numbered(NumberedMessage::Failed { uid: at, failure });
                self.numbered(NumberedMessage::Ended { uid: at });
                for verdict in [ParentVerdict::Suspend, ParentVerdict::Stop] {
                    self.numbered(NumberedMessage::Verdict { uid: at, verdict });
                }
            }
            self.link_again();
        }

        /// Another one of its own name.
        fn namesakes(&mut self, times: usize) {
            for at in 0..times as u64 {
                let same = Peer::new(self.victim, "n2", 1 << 40 | at);
                same.control(&ControlMessage::Hello(same.hello(0)));
                same.control(&ControlMessage::Hello(same.hello(self.victim.hub.uid())));
            }
            self.link_again();
        }

        fn greetings(&mut self, times: usize) {
            for at in 0..times as u64 {
                let peer = Peer::new(self.victim, &format!("p{at}"), 1000 + at);
                for roles in [vec!["r".repeat(64); 128], vec![String::new(); 60_000]] {
                    let mut hello = peer.hello(0);
                    hello.roles = roles;
                    peer.control(&ControlMessage::Hello(hello));
                }
                let heartbeat = ControlMessage::Heartbeat { number: 1 }.frame(peer.uid, 0);
                self.victim.hub.frame(&peer.name, ChannelKind::Heartbeat, heartbeat);
            }
            self.link_again();
        }
    }

    /// A sort of hostile input, and how often it comes while workers are blocked, and while they run.
    #[cfg(target_os = "linux")]
    type Flood = (&'static str, fn(&mut Hostile<'_>, usize), usize, usize);

    #[cfg(target_os = "linux")]
    const FLOODS: &[Flood] = &[
        ("forms of frames", |hostile, times| hostile.forms(times), 5000, 5000),
        ("counts", |hostile, times| hostile.counts(times), 300, 100),
        ("batches without envelopes", |hostile, times| hostile.empty_batches(times), 900_000, 1000),
        ("places", |hostile, times| hostile.places(times), 2000, 2000),
        ("bodies", |hostile, times| hostile.bodies(times), 500, 500),
        ("fragments", |hostile, times| hostile.fragments(times), 300, 300),
        ("tokens", |hostile, times| hostile.tokens(times), 300, 300),
        ("types and selections", |hostile, times| hostile.types(times), 2000, 2000),
        ("references", |hostile, times| hostile.references(times), 20, 40),
        ("sequences", |hostile, times| hostile.sequences(times), 500, 500),
        ("sums", |hostile, times| hostile.sums(times), 50, 50),
        ("numbers", |hostile, times| hostile.numbers(times), 2000, 2000),
        ("ends of actors", |hostile, times| hostile.ends(times), 80_000, 1000),
        ("watches", |hostile, times| hostile.watches(times), 21_000, 1000),
        ("deployments", |hostile, times| hostile.deployments(times), 4000, 500),
        ("namesakes", |hostile, times| hostile.namesakes(times), 5000, 5000),
        ("greetings", |hostile, times| hostile.greetings(times), 1100, 100),
    ];

    /// The peak of the resident memory so far, in bytes.
    #[cfg(target_os = "linux")]
    fn peak_memory() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux has it");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }

    /// In a process of its own, whose memory has nothing of other tests: each sort of hostile input comes many times, first
    /// while all workers are blocked, then while they run. The resident memory stays below the bound, and the messages of
    /// another peer come in order.
    #[cfg(target_os = "linux")]
    #[test]
    fn memory_stays_bounded_whatever_a_peer_sends() {
        const CHILD: &str = "POINTSMAN_HOSTILE_MEMORY";
        const DONE: &str = "hostile input: all of it came";
        if std::env::var_os(CHILD).is_none() {
            let name = "remote::hostile_peer::tests::memory_stays_bounded_whatever_a_peer_sends";
            let mut command = std::process::Command::new(std::env::current_exe().expect("it has a name"));
            let output =
                command.args([name, "--exact", "--nocapture"]).env(CHILD, "1").output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.contains(DONE), "{said}");
            return;
        }
        let limits = Limits::new();
        let victim = Victim::new(limits);
        let ignores = |name: &str| victim.system.actor(name);
        ignores("deep").spawn(|| Ignores(Vec::<Deep>::new())).expect("the name is free");
        ignores("units").spawn(|| Ignores(Vec::<Units>::new())).expect("the name is free");
        ignores("references").spawn(|| Ignores(Vec::<References>::new())).expect("the name is free");
        victim.kept.2.store(true, Ordering::Relaxed);
        let mut other = Peer::linked(&victim, "other", 1);
        let mut hostile = Hostile::new(&victim, 1 << 20, false);
        let mut number = 0;
        let mut send = |other: &mut Peer, victim: &Victim| {
            number += 1;
            let frame = {
                let body = postcard::to_allocvec(&number).expect("a number");
                other.batch(EnvelopeKind::Tell, taker(victim.uid), &[], &body)
            };
            other.deliver(frame);
            number
        };
        // All that is made once exists before the memory is measured.
        for (_, flood, ..) in FLOODS {
            flood(&mut hostile, 8);
        }
        assert_eq!(Ok(send(&mut other, &victim)), victim.taken.recv_timeout(LONG));
        let before = peak_memory();
        // So much may lie in the lanes of both links.
        let bound = before + (64 << 20) + 2 * limits.receive_window as u64;
        for is_blocked in [true, false] {
            let mut released = Vec::new();
            if is_blocked {
                let (entered, blocked) = channel();
                for _ in 0..WORKERS {
                    let (release, until) = channel::<()>();
                    released.push(release);
                    let (entered, until) = (entered.clone(), Arc::new(Mutex::new(until)));
                    let blocker = victim.system.spawn(move || Blocker(entered.clone(), until.clone()));
                    blocker.expect("it lives").tell(());
                }
                (0..WORKERS).for_each(|_| blocked.recv_timeout(LONG).expect("it blocks a worker"));
            }
            hostile.is_blocked = is_blocked;
            let mut sent = Vec::new();
            for (what, flood, while_blocked, while_running) in FLOODS {
                sent.push(send(&mut other, &victim));
                flood(&mut hostile, if is_blocked { *while_blocked } else { *while_running });
                sent.push(send(&mut other, &victim));
                victim.second();
                let peak = peak_memory();
                let above = (peak - before) >> 20;
                assert!(
                    peak < bound,
                    "{what}, workers blocked: {is_blocked}: {above} MiB above the beginning"
                );
            }
            drop(released);
            for number in sent {
                assert_eq!(victim.taken.recv_timeout(LONG), Ok(number));
            }
        }
        let report = victim.report(&other);
        assert_eq!((report.state, report.malformed, report.refused.total()), (LinkState::Up, 0, 0));
        assert_eq!(report.received, number);
        wait_until(|| victim.system.ledger().queued == 0);
        assert_eq!(victim.system.ledger().balance(), 0);
        println!("{DONE}, {} MiB above the beginning", (peak_memory() - before) >> 20);
    }

    /// Tells that it has begun, and blocks its worker until the other channel is closed.
    #[cfg(target_os = "linux")]
    struct Blocker(Sender<()>, Arc<Mutex<Receiver<()>>>);

    #[cfg(target_os = "linux")]
    impl Actor for Blocker {
        type Message = ();
        fn receive(&mut self, _: (), _: &mut Context<()>) -> HandlerResult {
            self.0.send(())?;
            let _ = lock(&self.1).recv();
            Ok(())
        }
    }
}
