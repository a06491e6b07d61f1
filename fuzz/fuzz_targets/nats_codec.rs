#![no_main]

#[allow(dead_code)] // the target needs a part of it
#[path = "../../pointsman-nats/src/codec.rs"]
mod codec;
#[path = "../targets/nats_codec.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
