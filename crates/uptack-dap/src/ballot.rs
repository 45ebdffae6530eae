//! Many queries in one report: two bits for each, one for the output `1` and one for `0`; `⊥` sets
//! neither.
//!
//! A ballot is summed by Prio3SumVec, which proves that every bit is zero or one, and nothing about
//! several bits together. An honest client sets at most one bit of a pair; **a dishonest one can set
//! both, and can set bits for every query**, however few it is supposed to answer. The worst that one
//! report can do, for each query by itself, is therefore to add one `1` *and* one `0`. A client that
//! lies within the one-hot proof of [`VdafKind::Histogram`] could add only one of the two. Ten
//! thousand votes in one report are impossible either way. With `m` dishonest reports each bin of
//! each query is off by at most `m`, and `ones + zeros > reports` shows that there were some.
//!
//! If the aggregators add noise, there is one bit for each query: whether the output is `1`.

use crate::error::{Error, Result};
#[cfg(feature = "protocol")]
use crate::protocol::{Measurement, VdafKind};

/// The sum for a ballot of this many queries.
#[cfg(feature = "protocol")]
pub fn kind(queries: usize) -> VdafKind {
    VdafKind::bits(2 * queries)
}

/// One owner's outputs as a measurement: `Some(true)` is `1`, `Some(false)` is `0`, `None` is `⊥`.
#[cfg(feature = "protocol")]
pub fn measurement(outputs: &[Option<bool>]) -> Measurement {
    Measurement::Bits(outputs.iter().flat_map(|&output| [output == Some(true), output == Some(false)]).collect())
}

/// The sum for a ballot of this many queries, if the aggregators add noise to their sums.
#[cfg(feature = "protocol")]
pub fn noisy_kind(queries: usize) -> VdafKind {
    VdafKind::bits(queries)
}

/// One owner's outputs as a measurement for [`noisy_kind`]: whether each is `1`.
#[cfg(feature = "protocol")]
pub fn noisy_measurement(outputs: &[Option<bool>]) -> Measurement {
    Measurement::Bits(outputs.iter().map(|output| *output == Some(true)).collect())
}

/// What a batch of ballots says about one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outputs {
    /// Owners who wrote `1`.
    pub ones: u64,
    /// Owners who wrote `0`.
    pub zeros: u64,
    /// Owners who wrote `⊥`; `None` if there are more outputs than reports, which only dishonest
    /// reports can cause.
    pub bottoms: Option<u64>,
}

impl Outputs {
    fn new(ones: u64, zeros: u64, reports: u64) -> Self {
        let bottoms = reports.checked_sub(ones).and_then(|others| others.checked_sub(zeros));
        Self { ones, zeros, bottoms }
    }
}

/// Reads a batch of ballots, query by query.
pub fn outputs(counts: &[u64], reports: u64) -> Result<Vec<Outputs>> {
    if !counts.len().is_multiple_of(2) {
        return Err(Error::input("a ballot has two counts for each query"));
    }
    Ok(counts.chunks_exact(2).map(|pair| Outputs::new(pair[0], pair[1], reports)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_back() {
        let ballots = [[Some(true), None, Some(false)], [Some(true), Some(false), None]];
        let mut counts = vec![0; 6];
        for ballot in &ballots {
            let Measurement::Bits(bits) = measurement(ballot) else { panic!("a ballot is made of bits") };
            for (count, bit) in counts.iter_mut().zip(bits) {
                *count += u64::from(bit);
            }
        }
        let read = outputs(&counts, 2).unwrap();
        let expected = [(2, 0, 0), (0, 1, 1), (0, 1, 1)].map(|(ones, zeros, bottoms)| Outputs {
            ones,
            zeros,
            bottoms: Some(bottoms),
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn with_noise_there_is_one_bit_for_each_query() {
        let Measurement::Bits(bits) = noisy_measurement(&[Some(true), None, Some(false)]) else { panic!("bits") };
        assert_eq!(bits, [true, false, false]);
        assert_eq!(noisy_kind(3).length(), 3);
    }

    #[test]
    fn more_outputs_than_reports_show() {
        assert_eq!(outputs(&[3, 3], 5).unwrap()[0].bottoms, None);
        assert!(outputs(&[1], 1).is_err());
    }
}
