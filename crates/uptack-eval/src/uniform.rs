//! Uniform numbers from seeded coins.

use uptack::{Coins, SeededCoins};

use crate::error::Result;

/// A uniform number from 0 to 1, without 1: a multiple of 2⁻⁵³.
pub(crate) fn uniform(coins: &mut SeededCoins) -> Result<f64> {
    let mut bytes = [0; 8];
    coins.fill(&mut bytes)?;
    Ok((u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64)
}
