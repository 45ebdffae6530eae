//! Ways to count the vehicles of a station: by a channel, by a channel with noise, or by a curator.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uptack::SeededCoins;
use uptack::estimate::Confidence;

use super::MANY;
use super::unrolled::{Confidences, CountLaw, Coverage, NoisySum};
use crate::error::Result;
use crate::method::Curator;

/// One estimate, and whether its intervals hold the truth.
#[derive(Clone, Copy)]
pub(super) struct StationEstimate {
    pub(super) estimate: f64,
    /// Whether the station's own interval holds the truth.
    pub(super) holds: bool,
    /// Whether its simultaneous interval does.
    pub(super) holds_together: bool,
}

/// Estimates the vehicles of a station.
pub(super) trait StationCounter {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<StationEstimate>;
    /// The standard deviation of the estimate if `yes` owners would say *yes*, by theory.
    fn predicted(&self, yes: u64) -> Result<f64>;
    /// Whether the rarest informative count then expects at least [`MANY`].
    fn many(&self, yes: u64) -> bool;
}

/// Every owner answers by a channel.
pub(super) struct Questions {
    law: CountLaw,
    coverages: ByStation<Coverage>,
}

impl Questions {
    pub(super) fn new(law: CountLaw, vehicles: &[u64], confidences: &Confidences) -> Result<Self> {
        let coverages = ByStation::new(vehicles, |yes| law.coverage(yes, confidences))?;
        Ok(Self { law, coverages })
    }
}

impl StationCounter for Questions {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<StationEstimate> {
        let counts = self.law.draw(yes, coins)?;
        let coverage = self.coverages.at(station);
        Ok(StationEstimate {
            estimate: self.law.estimate(&counts),
            holds: coverage.each.holds(&counts),
            holds_together: coverage.all.holds(&counts),
        })
    }

    fn predicted(&self, yes: u64) -> Result<f64> {
        Ok(self.law.sd(yes as f64))
    }

    fn many(&self, yes: u64) -> bool {
        self.law.smallest_expected(yes as f64) >= MANY
    }
}

/// A curator adds noise to the truth.
pub(super) struct CuratedCount<'a> {
    curator: &'a Curator,
    each: u64,
    all: u64,
}

impl<'a> CuratedCount<'a> {
    pub(super) fn new(curator: &'a Curator, confidences: &Confidences) -> Self {
        let width = |confidence: Confidence| curator.law().half_width(confidence.miss());
        Self { curator, each: width(confidences.each), all: width(confidences.all) }
    }
}

impl StationCounter for CuratedCount<'_> {
    fn ask(&mut self, _: usize, yes: u64, coins: &mut SeededCoins) -> Result<StationEstimate> {
        let noise = self.curator.law().draw(coins)?;
        let size = noise.unsigned_abs();
        Ok(StationEstimate {
            estimate: yes as f64 + noise as f64,
            holds: size <= self.each,
            holds_together: size <= self.all,
        })
    }

    fn predicted(&self, _: u64) -> Result<f64> {
        Ok(self.curator.law().sd())
    }

    fn many(&self, _: u64) -> bool {
        false
    }
}

/// Every owner answers by a channel, and the aggregators add noise to the number of ones.
pub(super) struct NoisyQuestions {
    law: NoisySum,
    coverages: ByStation<Coverage>,
}

impl NoisyQuestions {
    pub(super) fn new(law: NoisySum, vehicles: &[u64], confidences: &Confidences) -> Result<Self> {
        let coverages = ByStation::new(vehicles, |yes| law.coverage(yes, confidences))?;
        Ok(Self { law, coverages })
    }
}

impl StationCounter for NoisyQuestions {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<StationEstimate> {
        let sum = self.law.draw(yes, coins)?;
        let coverage = self.coverages.at(station);
        Ok(StationEstimate {
            estimate: self.law.estimate(sum),
            holds: coverage.each.holds_sum(sum),
            holds_together: coverage.all.holds_sum(sum),
        })
    }

    fn predicted(&self, yes: u64) -> Result<f64> {
        self.law.sd(yes as f64)
    }

    fn many(&self, _: u64) -> bool {
        false
    }
}

/// An item for every station, which stations with the same number of vehicles share.
struct ByStation<T> {
    items: Vec<T>,
    /// The item of each station.
    index: Vec<usize>,
}

impl<T> ByStation<T> {
    fn new(vehicles: &[u64], make: impl Fn(u64) -> Result<T>) -> Result<Self> {
        let (mut items, mut known) = (Vec::new(), HashMap::new());
        let mut index = Vec::with_capacity(vehicles.len());
        for &yes in vehicles {
            if let Entry::Vacant(entry) = known.entry(yes) {
                entry.insert(items.len());
                items.push(make(yes)?);
            }
            index.push(known[&yes]);
        }
        Ok(Self { items, index })
    }

    fn at(&self, station: usize) -> &T {
        &self.items[self.index[station]]
    }
}
