//! See `uptack_net::fuzzing::messages`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_net::fuzzing::messages(data));
