//! See `uptack_dap::protocol::fuzzing::ciphertexts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_dap::protocol::fuzzing::ciphertexts(data));
