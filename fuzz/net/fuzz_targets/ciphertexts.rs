//! See `uptack_server::fuzzing::ciphertexts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_server::fuzzing::ciphertexts(data));
