//! What to evaluate.

use std::thread;

use crate::compare::Levels;

/// What to evaluate.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The factors by which the population grows, by vehicles elsewhere.
    pub factors: Vec<u64>,
    /// How often every question is asked.
    pub trials: u64,
    /// The seed of all coins.
    pub seed: u64,
    /// The guarantees at which methods are compared.
    pub levels: Levels,
    /// How many threads to use.
    pub threads: usize,
}

impl Settings {
    pub(crate) fn smallest_factor(&self) -> Option<u64> {
        self.factors.iter().copied().min()
    }

    pub(crate) fn largest_factor(&self) -> Option<u64> {
        self.factors.iter().copied().max()
    }
}

impl Default for Settings {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Self { factors: vec![1, 10, 100, 1000], trials: 200, seed: 1, levels: Levels::default(), threads }
    }
}
