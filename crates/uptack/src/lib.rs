//! Count a crowd without learning anyone's answer.

mod channel;
mod coins;
mod error;
pub mod estimate;
mod fraction;
mod linear;
pub mod mechanism;
mod numeric;
mod packed;
mod probability;
mod rows;
mod sampler;
pub mod simulate;
mod tally;

pub use channel::{Bin, Cell, Channel, Class, MOST_ANSWERS, MOST_CELLS, Output, answer_name};
pub use coins::{Coins, DeviceCoins, OsCoins, SeededCoins, Unpredictable};
pub use error::Error;
pub use fraction::Fraction;
pub use mechanism::Mechanism;
pub use packed::{PackedCells, Truths};
pub use probability::Probability;
pub use rows::{RowFormat, RowReader};
pub use sampler::{Sampler, Truth};
pub use tally::{LARGEST_COUNT, Tally};
