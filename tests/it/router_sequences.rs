//! Random sequences of management against a plain model of the list.

use crate::router_support::*;
use pointsman::SendError;
use pointsman::prelude::*;
use pointsman::routing::ManageError;
use pointsman::testkit::{TestSystem, for_seeds};

/// A small generator of our own: the same numbers for the same seed, whatever else the system draws.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// What the list should be.
struct Model {
    list: Vec<ActorRef<u64>>,
    stays: bool,
    has_ended: bool,
}

impl Model {
    /// Some routee was removed or has ended.
    fn asked_whether_empty(&mut self) {
        self.has_ended |= !self.stays && self.list.is_empty();
    }

    fn without(&mut self, routee: &ActorRef<u64>) -> bool {
        let before = self.list.len();
        self.list.retain(|listed| listed != routee);
        self.asked_whether_empty();
        self.list.len() < before
    }
}

/// The list has grown by new routees at its end, or shrunk from there.
fn resized(model: &mut Model, router: &Router<u64>, size: usize) {
    let now = router.routees().unwrap();
    let kept = size.min(model.list.len());
    assert_eq!((now.len(), &now[..kept]), (size, &model.list[..kept]));
    assert!(now[kept..].iter().all(|new| !model.list.contains(new) && !new.is_closed()));
    model.list = now;
}

fn run_sequence(system: &TestSystem, seed: u64) {
    let mut numbers = Numbers(seed);
    let (make, _got) = workers();
    let stays = numbers.below(2) == 0;
    let plan = system.router("pool").pool(1 + numbers.below(3), make);
    let router = if stays { plan.stay_when_empty() } else { plan }.spawn().unwrap();
    let foreign = [0, 1, 2].map(|number| foreign(system, &format!("foreign-{number}"), number).0);
    let mut model = Model { list: router.routees().unwrap(), stays, has_ended: false };
    let mut sent = 0;
    for _ in 0..14 {
        if model.has_ended {
            break;
        }
        let before = model.list.len();
        let any = |numbers: &mut Numbers, model: &Model| match model.list.len() {
            0 => foreign[0].clone(),
            count => model.list[numbers.below(count)].clone(),
        };
        match numbers.below(9) {
            0 | 1 => {
                let routee = &foreign[numbers.below(foreign.len())];
                assert_eq!(router.add(routee.clone()).unwrap(), before + 1);
                model.list.push(routee.clone());
                if routee.is_closed() {
                    model.without(routee);
                }
            }
            2 => {
                let routee = any(&mut numbers, &model);
                let removed = router.remove(&routee).unwrap();
                assert_eq!(removed, model.without(&routee));
            }
            3 => {
                let size = numbers.below(5);
                match router.resize_to(size) {
                    Ok(was) => {
                        assert_eq!(was, before);
                        resized(&mut model, &router, size);
                    }
                    Err(ManageError::EmptyPool { .. }) => assert!(size == 0 && !stays),
                    Err(other) => panic!("{other}"),
                }
            }
            4 => {
                let delta = numbers.below(7) as isize - 3;
                let size = before.saturating_add_signed(delta);
                assert_eq!(router.adjust(delta).unwrap(), size);
                resized(&mut model, &router, size);
            }
            5 | 6 => {
                let routee = any(&mut numbers, &model);
                if numbers.below(2) == 0 {
                    routee.stop()
                } else {
                    routee.poison()
                }
                // One that is not listed is not watched.
                if model.list.contains(&routee) {
                    model.without(&routee);
                }
            }
            7 if numbers.below(4) == 0 => {
                assert_eq!(router.poison_routees(), before);
                if before > 0 {
                    model.list.clear();
                    model.asked_whether_empty();
                }
            }
            _ => {
                for number in 0..numbers.below(6) as u64 {
                    match router.try_tell(number) {
                        Ok(()) => sent += 1,
                        Err(SendError::NoRoutee(_)) => assert!(model.list.is_empty()),
                        Err(other) => panic!("{other}"),
                    }
                }
                // What is left now and then lies in the mailboxes of those that leave.
                if numbers.below(2) == 0 {
                    continue;
                }
            }
        }
        system.run_until_idle();
        match router.routees() {
            Ok(list) => assert_eq!((list, false), (model.list.clone(), model.has_ended)),
            Err(ManageError::Stopped { .. }) => assert!(model.has_ended),
            Err(other) => panic!("{other}"),
        }
    }
    let _ = (router.drain(), sent);
    foreign.iter().for_each(ActorRef::stop);
    system.run_until_idle();
    assert!(router.is_closed() && system.actor_at("/user/pool").is_err());
}

#[test]
fn any_sequence_of_management_leaves_the_list_of_the_model() {
    for_seeds(600, |system| run_sequence(system, system.seed()));
}
