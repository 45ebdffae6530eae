//! See `uptack_dap::protocol::fuzzing::messages`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_dap::protocol::fuzzing::messages(data));
