#![no_main]

#[allow(dead_code)] // the target needs a part of it
#[path = "../../examples/shardcache/resp.rs"]
mod resp;
#[path = "../targets/resp.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
