//! See `uptack_server::fuzzing::stored`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_server::fuzzing::stored(data));
