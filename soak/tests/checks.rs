//! The storms find nothing, in little; and what they would have to find, they find.

use pointsman::prelude::*;
use soak::books::{Books, Count};
use soak::dice::Dice;
use soak::parcel::{AsTold, Parcel, Pen, Task};
use soak::profile::Profile;
use soak::round::Round;
use soak::scene::Scale;
use soak::storms::STORMS;
use soak::worker::Yard;
use std::time::Duration;

const SLOTS: usize = Scale::LITTLE.slots;

fn silence_what_is_told_to_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<AsTold>() {
            usual(info);
        }
    }));
}

#[test]
fn each_storm_is_weathered_alone_and_in_mixes() {
    silence_what_is_told_to_panic();
    let books = Books::open(SLOTS);
    for storm in STORMS {
        let round =
            Round { seed: 7, storms: vec![storm], bouts: 2, scale: Scale::LITTLE, odd_topology: false };
        round.run(books).expect("it begins");
        assert_eq!(books.faults(), None, "{}", storm.name);
    }
    for (number, profile) in [Profile::Mixed, Profile::Heavy, Profile::Topologies].into_iter().enumerate() {
        profile.round(7, number as u64, Scale::LITTLE).run(books).expect("it begins");
        assert_eq!(books.faults(), None);
    }
    assert!(books.total(Count::Handled) > 0 && books.under_way() == 0);
}

#[test]
fn rounds_are_the_same_for_the_same_seed() {
    let names = |seed, number| {
        let round = Profile::Mixed.round(seed, number, Scale::LITTLE);
        (round.seed, round.storms.iter().map(|storm| storm.name).collect::<Vec<_>>())
    };
    for number in 0..20 {
        assert_eq!(names(3, number), names(3, number));
        assert_ne!(names(3, number).0, names(4, number).0);
    }
    let mut dice = Dice::new(1);
    assert!((0..1000).all(|_| dice.roll(6) < 6));
}

/// The faults that `act` leaves in new books.
fn faults(act: impl FnOnce(&'static Books, &mut Pen)) -> String {
    let books = Books::open(SLOTS);
    let mut pen = Pen::new(books);
    act(books, &mut pen);
    books.close_bout();
    books.faults().unwrap_or_default()
}

fn write(pen: &mut Pen) -> Parcel {
    pen.write(Task::Nothing).expect("there are slots")
}

#[test]
fn messages_and_copies_that_come_to_one_end_are_no_fault() {
    let said = faults(|_, pen| {
        let parcel = write(pen);
        parcel.clone().end(Count::Dead);
        parcel.end(Count::Handled);
        write(pen).end(Count::Back);
    });
    assert_eq!(said, "");
}

#[test]
fn a_message_that_vanishes_is_told() {
    let said = faults(|_, pen| drop(write(pen)));
    assert!(said.contains("is in no account") && said.contains("0 ends beyond its copies"), "{said}");
    let said = faults(|books, pen| {
        std::mem::forget(write(pen));
        assert_eq!(books.under_way(), 1);
    });
    assert!(said.contains("0 ends beyond its copies"), "{said}");
}

#[test]
fn a_copy_that_vanishes_is_told() {
    let said = faults(|_, pen| {
        let parcel = write(pen);
        std::mem::forget(parcel.clone());
        parcel.end(Count::Handled);
    });
    assert!(said.contains("0 ends beyond its copies"), "{said}");
}

#[test]
fn what_is_handled_out_of_order_is_told() {
    let said = faults(|books, pen| {
        let system = System::builder("order").build().expect("sound");
        let yard = Yard::new(books, true);
        let actor = system.spawn(move || yard.worker_at(0)).expect("sound");
        let (first, second) = (write(pen), write(pen));
        actor.tell(second);
        actor.tell(first);
        while books.under_way() > 0 {
            std::thread::yield_now();
        }
        system.shutdown(Duration::from_secs(60)).expect("it ends");
    });
    assert!(said.contains("was handled after 2"), "{said}");
}

#[test]
fn a_turn_that_does_not_see_what_the_one_before_wrote_is_told() {
    let said = faults(|books, pen| {
        let system = System::builder("two").build().expect("sound");
        let yard = Yard::new(books, true);
        // Two actors that take themselves for the same one.
        let twin = || {
            let yard = yard.clone();
            system.spawn(move || yard.worker_at(0)).expect("sound")
        };
        let (one, other) = (twin(), twin());
        for actor in [&one, &other, &one] {
            actor.tell(write(pen));
            while books.under_way() > 0 {
                std::thread::yield_now();
            }
        }
        system.shutdown(Duration::from_secs(60)).expect("it ends");
    });
    assert!(said.contains("a turn saw"), "{said}");
}
