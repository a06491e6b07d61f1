#![no_main]

// The parsers name each other by `crate::`.
#[allow(dead_code)] // the target needs a part of it
#[path = "../../examples/logmill/calendar.rs"]
mod calendar;
#[allow(dead_code)] // the target needs a part of it
#[path = "../../examples/logmill/record.rs"]
mod record;
#[path = "../../examples/logmill/rfc3164.rs"]
mod rfc3164;
#[allow(dead_code)] // the target needs a part of it
#[path = "../../examples/logmill/rfc5424.rs"]
mod rfc5424;
#[path = "../targets/syslog.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
