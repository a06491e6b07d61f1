//! Old tables of routees are not kept without end, and each router has its own bound. In a process of its own: a reader
//! keeps the tables of all systems.

use pointsman::prelude::*;
use pointsman::routing::{ManageError, Pick, RouteContext, Routees, RoutingLogic};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

struct Sink;

impl Actor for Sink {
    type Message = u64;
    fn receive(&mut self, _: u64, _: &mut Context<u64>) -> Done {
        Ok(())
    }
}

/// Stays in the table that it reads for message 1 until it is told to go on.
struct Lingers {
    reading: mpsc::Sender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl RoutingLogic<u64> for Lingers {
    fn select(&self, message: &u64, _: &Routees<u64>, _: &RouteContext<'_>) -> Pick {
        if *message == 1 {
            let _ = self.reading.send(());
            let _ = self.go_on.lock().unwrap().recv();
        }
        Pick::One(0)
    }
}

#[test]
fn changes_are_refused_while_too_many_old_tables_wait_for_one_reader() {
    let system = System::builder("tables").build().unwrap();
    let (reading, is_reading) = mpsc::channel();
    let (tell, go_on) = mpsc::channel();
    let logic = Lingers { reading, go_on: Mutex::new(go_on) };
    let router = system.router("pool").pool(2, |_| Sink).logic(logic).spawn().unwrap();
    let reference = router.to_ref();
    let sender = std::thread::spawn(move || reference.tell(1u64));
    is_reading.recv().unwrap();
    // Each change leaves one table, and there is the one in use.
    let mut changes = (0..5000).map(|n| router.resize_to(3 - n % 2)).enumerate();
    let (changed, refused) = changes.find(|(_, change)| change.is_err()).unwrap();
    assert!(matches!(refused, Err(ManageError::OldTables { waiting: 1024, .. })), "{refused:?}");
    assert_eq!(changed, 1023);
    // Another router is none the worse for it, in whatever system.
    let other = System::builder("other").build().unwrap();
    for system in [&system, &other] {
        let neighbour = system.router("neighbour").pool(2, |_| Sink).spawn().unwrap();
        (0..100).for_each(|n| assert!(neighbour.resize_to(2 + n % 2).is_ok()));
    }
    assert!(router.resize_to(3).is_err());
    // Routing goes on meanwhile.
    router.to_ref().tell(2u64);
    tell.send(()).unwrap();
    sender.join().unwrap();
    router.resize_to(5).unwrap();
    assert_eq!(router.routees().unwrap().len(), 5);
    assert_eq!(system.shutdown(Duration::from_secs(30)).unwrap().balance(), 0);
    assert_eq!(other.shutdown(Duration::from_secs(30)).unwrap().balance(), 0);
}
