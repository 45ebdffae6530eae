//! See `uptack_server::fuzzing::messages`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_server::fuzzing::messages(data));
