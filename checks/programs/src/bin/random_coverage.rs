//! Holds intervals to their promises under random channels, by exact summation.
//!
//! `cargo run --release -p uptack-checks --bin random_coverage -- 5000`

#![allow(clippy::print_stdout)]

#[path = "../../../../crates/uptack/tests/core/exact_coverage.rs"]
mod exact_coverage;
#[path = "../../../../crates/uptack/tests/core/random_channels.rs"]
mod random_channels;

use std::process::ExitCode;

use random_channels::Attack;
use uptack::SeededCoins;

fn main() -> ExitCode {
    let channels = std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(5000);
    let mut coins = SeededCoins::new(21);
    let (mut tested, mut failed, mut least) = (0, 0, [f64::INFINITY; 2]);
    for attack in (0..channels).filter_map(|_| Attack::draw(&mut coins)) {
        tested += 1;
        for (least, (kind, spare)) in least.iter_mut().zip(attack.spare_coverage()) {
            *least = least.min(spare);
            if spare < 0.0 {
                failed += 1;
                println!("{attack}, {kind:?}: {} below the promise", -spare);
            }
        }
    }
    println!(
        "{tested} channels, {failed} promises broken; closest: auto {:.1e}, exact {:.1e} above",
        least[0], least[1]
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
