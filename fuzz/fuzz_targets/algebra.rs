//! Any text is refused with an error or compiles; what compiles prints, compiles again to the same channel and solves.
//!
//! `cargo +nightly fuzz run algebra -- -max_total_time=60`; the library's ordinary tests replay the corpus.
#![no_main]

use libfuzzer_sys::fuzz_target;
use uptack::algebra::{Program, to_text};

fuzz_target!(|text: &str| {
    let Ok(program) = Program::parse(text) else { return };
    let printed = to_text(program.channel());
    let again = Program::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.channel(), program.channel(), "{printed}");
    assert_eq!(program.mechanism().channel().cells(), program.channel().cells());
    let _ = program.solve();
});
