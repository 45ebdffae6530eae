//! See `decoders::stored`.

#![no_main]

#[path = "../decoders.rs"]
#[allow(dead_code)]
mod decoders;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoders::stored(data));
