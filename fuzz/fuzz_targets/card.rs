//! Any text is refused as a card, or has one canonical form and is verified or refused.
//!
//! `cargo +nightly fuzz run card -- -max_total_time=60`; the ordinary tests replay the corpus.
#![no_main]

#[path = "../card_check.rs"]
mod card_check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| card_check::check(text));
