#![no_main]

#[allow(dead_code)] // the target needs a part of it
#[path = "../../src/console/request.rs"]
mod request;
#[path = "../targets/request.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
