//! Pools and groups.

use crate::cast::{WORKERS, join, stage};
use crate::explore::scenario;
use pointsman::routing::RoundRobin;

#[test]
fn senders_race_the_resize_of_a_pool() {
    scenario("senders_race_the_resize_of_a_pool", || {
        let stage = stage(WORKERS);
        let router =
            stage.system.router("pool").pool(2, stage.clerks()).logic(RoundRobin::new()).spawn().expect("sound");
        let to = router.to_ref();
        let senders = [stage.tells(0, 3, &to), stage.tells(1, 3, &to)];
        assert_eq!(router.resize_to(1).expect("it runs"), 1);
        assert_eq!(router.resize_to(3).expect("it runs"), 3);
        join(senders);
        drop(to);
        let ledger = stage.end(2);
        assert_eq!((ledger.sent, ledger.dead_lettered), (8, 0), "{ledger}");
    });
}
