//! What a test on threads can show: one order of many.
#![cfg(not(pointsman_loom))]

use loom_user::{Written, spawn};
use pointsman::prelude::*;
use std::time::Duration;

#[test]
fn readings_are_written() {
    let system = System::builder("meter").build().expect("the settings are sound");
    let (meter, writer) = spawn(&system, "writer").expect("the name is free");
    meter.record(1);
    assert_eq!(writer.ask(Written).wait(), Ok(vec![1]));
    system.shutdown(Duration::from_secs(60)).expect("it ends");
}
