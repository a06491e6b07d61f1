//! Engines over real servers.

use crate::support::{TestNode, Told, bodies, numbers, numbers_at_the_end, outbox, server_or_skip};
use pointsman::remote::{Channel, ChannelKind};
use pointsman_nats::{DevServer, Nats};
use std::time::Duration;

#[test]
fn frames_of_each_kind_reach_the_nodes_that_they_are_for() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let start = |name, uid| TestNode::connected(Nats::servers([server.url()]), name, uid);
    let (n1, n2, n3) = (start("n1", 1), start("n2", 2), start("n3", 3));
    assert_eq!(n1.record.told()[0], Told::Up(1 << 20));

    n1.fabric.publish(Channel::Heartbeat, b"beat".to_vec()).unwrap();
    n1.fabric.publish(Channel::Registry, b"names".to_vec()).unwrap();
    n1.fabric.publish(Channel::Control("n2"), b"control".to_vec()).unwrap();
    n1.fabric.wants_out(&outbox("n2", &bodies(3, 100)));
    let one = |frame: &[u8]| vec![("n1".to_owned(), frame.to_vec())];
    for node in [&n2, &n3] {
        assert_eq!(node.record.wait_frames(ChannelKind::Heartbeat, 1), one(b"beat"));
        assert_eq!(node.record.wait_frames(ChannelKind::Registry, 1), one(b"names"));
    }
    assert_eq!(n2.record.wait_frames(ChannelKind::Control, 1), one(b"control"));
    assert_eq!(numbers(&n2.record.wait_frames(ChannelKind::Batch, 3)), [0, 1, 2]);

    // What comes later comes behind anything that should not have come.
    n2.fabric.publish(Channel::Control("n1"), b"last".to_vec()).unwrap();
    n2.fabric.publish(Channel::Control("n3"), b"last".to_vec()).unwrap();
    n1.record.wait_frames(ChannelKind::Control, 1);
    n3.record.wait_frames(ChannelKind::Control, 1);
    assert_eq!(n1.record.frames(ChannelKind::Heartbeat), [], "a node does not hear itself");
    assert_eq!(n3.record.frames(ChannelKind::Batch), []);
}

#[test]
fn a_question_for_a_start_that_is_over_is_answered_and_one_for_the_living_is_not() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let start = |name, uid| TestNode::connected(Nats::servers([server.url()]), name, uid);
    let (n1, n2) = (start("n1", 1), start("n2", 0xfeed));
    let ask = |node, uid| n1.fabric.publish(Channel::Probe { node, uid }, Vec::new()).unwrap();
    let answers = || -> Vec<(String, u64)> {
        let told = n1.record.told();
        let answer = |told: &Told| {
            if let Told::NoListener(node, uid) = told { Some((node.clone(), *uid)) } else { None }
        };
        told.iter().filter_map(answer).collect()
    };
    let wait = |count| {
        n1.record.wait("an answer", |told| {
            (told.iter().filter(|told| matches!(told, Told::NoListener(..))).count() >= count).then_some(())
        })
    };
    ask("n2", 0xfeed);
    ask("n2", 0xdead);
    ask("n9", 7);
    wait(2);
    assert_eq!(answers(), [("n2".to_owned(), 0xdead), ("n9".to_owned(), 7)]);

    // It has another UID now. Its control frame comes behind the change of its subscription.
    n2.fabric.set_uid(0xbeef);
    n2.fabric.publish(Channel::Control("n1"), b"changed".to_vec()).unwrap();
    n1.record.wait_frames(ChannelKind::Control, 1);
    ask("n2", 0xbeef);
    ask("n2", 0xfeed);
    wait(3);
    assert_eq!(answers()[2], ("n2".to_owned(), 0xfeed));
}

#[test]
fn a_server_that_is_killed_and_started_again_is_found_again_and_batches_keep_their_order() {
    let Some(mut server) = server_or_skip(DevServer::start) else { return };
    let n1 = TestNode::connected(Nats::servers([server.url()]), "n1", 1);
    let n2 = TestNode::connected(Nats::servers([server.url()]), "n2", 2);
    let all = outbox("n2", &bodies(10_000, 4096));
    n1.fabric.wants_out(&all);
    n2.record.wait_frames(ChannelKind::Batch, 100);
    server.kill().unwrap();
    for node in [&n1, &n2] {
        let why = node.record.wait_down(1);
        assert!(why.contains(&server.endpoint()), "{why}");
    }
    server.restart().unwrap();
    n1.record.wait_up(2);
    n2.record.wait_up(2);
    let found = numbers_at_the_end(n1, Nats::servers([server.url()]), &n2);
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "no batch twice, and none before an earlier one");
}

#[test]
fn nodes_go_to_the_other_server_when_theirs_is_gone() {
    let Some(mut first) = server_or_skip(DevServer::start) else { return };
    let second = DevServer::start().unwrap();
    let both = || Nats::servers([first.url(), second.url()]);
    let n1 = TestNode::connected(both(), "n1", 1);
    let n2 = TestNode::connected(both(), "n2", 2);
    first.kill().unwrap();
    n1.record.wait_up(2);
    n2.record.wait_up(2);
    n1.fabric.wants_out(&outbox("n2", &bodies(5, 100)));
    assert_eq!(numbers(&n2.record.wait_frames(ChannelKind::Batch, 5)), [0, 1, 2, 3, 4]);
}

#[test]
fn a_server_that_is_down_at_the_start_is_told_of_and_found_later() {
    let Some(mut server) = server_or_skip(DevServer::start) else { return };
    server.kill().unwrap();
    let n1 = TestNode::start(Nats::servers([server.url()]), "n1", 1);
    let why = n1.record.wait_down(1);
    assert!(why.contains("refused") && why.contains(&server.endpoint()), "{why}");
    assert!(n1.fabric.publish(Channel::Heartbeat, vec![1]).is_err());
    server.restart().unwrap();
    n1.record.wait_up(1);
}

/// The receiver's engine waits within a batch, so its socket is not read. The server cuts it off, or keeps what it holds;
/// a third node is served all the while, and in the end the receiver is connected again.
#[test]
fn a_receiver_that_takes_nothing_delays_no_other_node() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let start = |name, uid| TestNode::connected(Nats::servers([server.url()]), name, uid);
    let (n1, n2, n3) = (start("n1", 1), start("n2", 2), start("n3", 3));
    let gate = n2.record.gate.lock().unwrap();
    let slow = outbox("n2", &bodies(6_000, 16 * 1024));
    n1.fabric.wants_out(&slow);
    let quick = bodies(2000, 1000);
    n1.fabric.wants_out(&outbox("n3", &quick));
    let found = numbers(&n3.record.wait_frames(ChannelKind::Batch, quick.len()));
    assert!(found.iter().copied().eq(0..quick.len() as u64));
    drop(gate);
    // It reads again: from the connection that it has, or from the next one.
    n1.fabric.wants_out(&outbox("n2", &bodies(1, 8)));
    n2.record.wait_frames(ChannelKind::Batch, 2);
}

#[test]
fn what_was_published_before_the_end_is_with_the_server_when_stop_returns() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n2 = TestNode::connected(Nats::servers([server.url()]), "n2", 2);
    for round in 1..=20 {
        let n1 = TestNode::connected(Nats::servers([server.url()]), "n1", 1);
        n1.fabric.wants_out(&outbox("n2", &bodies(100, 1000)));
        n1.fabric.publish(Channel::Control("n2"), b"goodbye".to_vec()).unwrap();
        n1.fabric.stop(Duration::from_secs(30));
        n2.record.wait_frames(ChannelKind::Control, round);
        n2.record.wait_frames(ChannelKind::Batch, round * 100);
        assert!(n1.fabric.publish(Channel::Heartbeat, vec![1]).is_err());
        n1.fabric.stop(Duration::from_secs(30));
    }
}

#[test]
fn a_stop_without_a_server_does_not_wait() {
    let n1 = TestNode::start(Nats::servers(["nats://127.0.0.1:1"]), "n1", 1);
    n1.record.wait_down(1);
    n1.fabric.wants_out(&outbox("n2", &bodies(1, 8)));
    // The limit is an hour: a test that waited for it would not end.
    n1.fabric.stop(Duration::from_secs(3600));
}

#[test]
fn batches_that_were_not_begun_are_in_their_outbox_after_the_end() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n1 = TestNode::connected(Nats::servers([server.url()]), "n1", 1);
    let n2 = TestNode::connected(Nats::servers([server.url()]), "n2", 2);
    let all = bodies(3000, 16 * 1024);
    let outbox = outbox("n2", &all);
    n1.fabric.wants_out(&outbox);
    n2.record.wait_frames(ChannelKind::Batch, 1);
    n1.fabric.stop(Duration::ZERO);
    let left = std::iter::from_fn(|| outbox.next(1 << 20)).map(|frame| ("n1".to_owned(), frame));
    let left = numbers(&left.collect::<Vec<_>>());
    assert!(!left.is_empty() && left.last() == Some(&(all.len() as u64 - 1)));
    assert!(left.windows(2).all(|pair| pair[0] + 1 == pair[1]), "all that was not begun is there, in order");
    // What came is from before: nothing is in both.
    let came = numbers(&n2.record.frames(ChannelKind::Batch));
    assert!(came.iter().all(|number| *number < left[0]));
}

#[test]
fn a_frame_that_no_server_takes_is_refused() {
    let Some(server) = server_or_skip(DevServer::start) else { return };
    let n1 = TestNode::connected(Nats::servers([server.url()]), "n1", 1);
    assert!(n1.fabric.publish(Channel::Control("n2"), vec![0; (1 << 20) + 1]).is_err());
    assert!(n1.fabric.publish(Channel::Control("a b"), vec![0]).is_err());
    assert!(n1.fabric.publish(Channel::Control("n2"), vec![0; 1 << 20]).is_ok());
}
