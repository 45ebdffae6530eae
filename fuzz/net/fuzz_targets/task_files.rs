//! See `uptack_server::fuzzing::task_files`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| uptack_server::fuzzing::task_files(data));
