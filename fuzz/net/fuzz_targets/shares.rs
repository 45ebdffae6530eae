//! See `uptack_dap::protocol::fuzzing::shares`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_dap::protocol::fuzzing::shares(data));
