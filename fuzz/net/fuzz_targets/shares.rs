//! See `uptack_server::fuzzing::shares`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_server::fuzzing::shares(data));
