#![no_main]

#[allow(dead_code)]
#[path = "../../examples/logmill/framing.rs"]
mod framing;
#[path = "../targets/framing.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
