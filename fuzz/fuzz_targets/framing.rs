#![no_main]

#[allow(dead_code)] // the target needs a part of it
#[path = "../../examples/logmill/framing.rs"]
mod framing;
#[path = "../targets/framing.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
