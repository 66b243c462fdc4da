#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rocworker_fuzz::hip_v1::check(data));
