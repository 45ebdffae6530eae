//! What an evaluation is asked for.

use crate::compare::Levels;

/// What to evaluate.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By how much the population grows; vehicles are added elsewhere.
    pub factors: Vec<u64>,
    /// How often every question is asked.
    pub trials: u64,
    /// Where the coins come from.
    pub seed: u64,
    /// At which guarantees to compare.
    pub levels: Levels,
    /// How many threads to use.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { factors: vec![1, 10, 100, 1000], trials: 200, seed: 1, levels: Levels::default(), threads }
    }
}
