//! Count a crowd without learning anyone's answer.
//!
//! Owners answer a yes/no query with outputs drawn by one coin from a [`Channel`]: for each truth a law over the
//! cells, in integers over 2⁶⁴. The [`Sampler`] draws exactly that law; a [`Tally`] counts outputs; an
//! [`Estimator`](estimate::Estimator) estimates for how many owners the truth is *yes*, with an interval.
//!
//! The family of *Anonymized Local Privacy* (Joy & Gerla, arXiv 1703.07949) is in [`mechanism`], one page for each mechanism. This
//! crate does no I/O, reads no clock, and consumes randomness only from [`Coins`] that are passed in.
//!
//! ```
//! use uptack::{Mechanism, OsCoins, Sampler, Tally, Truth, estimate::Estimator};
//!
//! let channel = "randomized-response(t=0.8)".parse::<Mechanism>()?.channel();
//! let sampler = Sampler::new(&channel);
//! let mut cells = [0; 2];
//! for owner in 0..1000 {
//!     cells[sampler.draw(Truth::from_bool(owner % 4 == 0), &mut OsCoins)?] += 1;
//! }
//! let estimate = Estimator::new(&channel)?.estimate(&Tally::from_cells(&channel, &cells)?)?;
//! assert!((estimate.estimate - 250.0).abs() < 8.0 * estimate.sd);
//! # Ok::<(), uptack::Error>(())
//! ```

pub mod algebra;
pub mod audit;
pub mod card;
mod certified;
mod channel;
mod coins;
pub mod contribution;
pub mod csv;
pub mod display;
mod error;
pub mod estimate;
mod fraction;
mod law;
mod linear;
pub mod mechanism;
mod noise;
mod numeric;
mod option_counts;
mod output;
mod packed;
pub mod parallel;
pub mod plan;
pub mod privacy;
mod probability;
mod progress;
pub mod quantity;
mod rows;
mod sampler;
pub mod simulate;
mod sums;
mod tally;
mod truth;

pub use channel::{Bin, Cell, Channel, Class, MOST_ANSWERS, MOST_CELLS, Output, SummedBit, answer_name};
pub use coins::{CoinKey, Coins, DerivedCoins, DeviceCoins, OsCoins, SeededCoins, Unpredictable};
pub use error::{Error, Result};
pub use fraction::Fraction;
pub use law::{Law, Thresholds};
pub use mechanism::Mechanism;
pub use noise::{DiscreteLaplace, NoiseLaw, Scale};
pub use option_counts::{OptionCounts, Published};
pub use packed::{PackedCells, Truths};
pub use probability::Probability;
pub use progress::Progress;
pub use rows::{RowFormat, RowReader};
pub use sampler::Sampler;
pub use sums::Sums;
pub use tally::{LARGEST_COUNT, Tally};
pub use truth::{PerTruth, Truth};

#[cfg(test)]
#[path = "../tests/core/settings.rs"]
mod settings_of_tests;

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
