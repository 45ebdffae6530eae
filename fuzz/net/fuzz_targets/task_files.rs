//! See `decoders::task_files`.

#![no_main]

#[path = "../decoders.rs"]
#[allow(dead_code)]
mod decoders;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoders::task_files(data));
