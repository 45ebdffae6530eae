//! Whoever answers for a station: a channel, a channel with noise, or a curator.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uptack::SeededCoins;
use uptack::estimate::Confidence;

use super::MANY;
use super::count_law::{Confidences, CountLaw, Coverage};
use super::noisy_sum::{NoisySum, SumCoverage};
use crate::error::Error;
use crate::method::Curator;

/// One estimate and what its intervals are worth.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) estimate: f64,
    pub(super) holds: bool,
    pub(super) holds_together: bool,
}

/// Something that answers for a station.
pub(super) trait Counter {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error>;
    fn predicted(&self, station: usize) -> f64;
    fn many(&self, station: usize) -> bool;
}

/// Every owner answers by a channel.
pub(super) struct Questions {
    law: CountLaw,
    /// One for each distinct number of vehicles.
    coverages: Vec<Coverage>,
    /// Which of them is a station's.
    index: Vec<usize>,
    many: Vec<bool>,
}

impl Questions {
    pub(super) fn new(law: CountLaw, vehicles: &[u64], confidences: &Confidences) -> Result<Self, Error> {
        let (coverages, index) = for_each_number(vehicles, |yes| Coverage::new(&law, yes, confidences))?;
        let many = vehicles.iter().map(|&yes| law.smallest_expected(yes as f64) >= MANY).collect();
        Ok(Self { law, coverages, index, many })
    }
}

impl Counter for Questions {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error> {
        let counts = self.law.draw(yes, coins)?;
        let estimate = self.law.estimate(&counts);
        let coverage = &self.coverages[self.index[station]];
        let (holds, holds_together) = (coverage.each(&counts), coverage.all(&counts));
        Ok(Seen { estimate, holds, holds_together })
    }

    fn predicted(&self, station: usize) -> f64 {
        self.coverages[self.index[station]].sd()
    }

    fn many(&self, station: usize) -> bool {
        self.many[station]
    }
}

/// A curator adds noise.
pub(super) struct Noise<'a> {
    curator: &'a Curator,
    each: u64,
    all: u64,
}

impl<'a> Noise<'a> {
    pub(super) fn new(curator: &'a Curator, confidences: &Confidences) -> Self {
        let width = |confidence: Confidence| curator.law().half_width(confidence.miss());
        Self { curator, each: width(confidences.each), all: width(confidences.all) }
    }
}

impl Counter for Noise<'_> {
    fn ask(&mut self, _: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error> {
        let noise = self.curator.law().draw(coins)?;
        let size = noise.unsigned_abs();
        Ok(Seen { estimate: yes as f64 + noise as f64, holds: size <= self.each, holds_together: size <= self.all })
    }

    fn predicted(&self, _: usize) -> f64 {
        self.curator.law().sd()
    }

    fn many(&self, _: usize) -> bool {
        false
    }
}

/// Every owner answers by a channel, and the aggregators add noise to the number of answers 1.
pub(super) struct NoisyQuestions {
    law: NoisySum,
    coverages: Vec<SumCoverage>,
    index: Vec<usize>,
}

impl NoisyQuestions {
    pub(super) fn new(law: NoisySum, vehicles: &[u64], confidences: &Confidences) -> Result<Self, Error> {
        let (coverages, index) = for_each_number(vehicles, |yes| law.coverage(yes, confidences))?;
        Ok(Self { law, coverages, index })
    }
}

impl Counter for NoisyQuestions {
    fn ask(&mut self, station: usize, yes: u64, coins: &mut SeededCoins) -> Result<Seen, Error> {
        let sum = self.law.draw(yes, coins)?;
        let coverage = &self.coverages[self.index[station]];
        let (holds, holds_together) = (coverage.each.holds_sum(sum), coverage.all.holds_sum(sum));
        Ok(Seen { estimate: self.law.estimate(sum), holds, holds_together })
    }

    fn predicted(&self, station: usize) -> f64 {
        self.coverages[self.index[station]].sd
    }

    fn many(&self, _: usize) -> bool {
        false
    }
}

/// Makes something for each distinct number of vehicles, and says which of them is a station's.
fn for_each_number<T>(vehicles: &[u64], make: impl Fn(u64) -> Result<T, Error>) -> Result<(Vec<T>, Vec<usize>), Error> {
    let (mut made, mut known) = (Vec::new(), HashMap::new());
    let mut index = Vec::with_capacity(vehicles.len());
    for &yes in vehicles {
        if let Entry::Vacant(entry) = known.entry(yes) {
            entry.insert(made.len());
            made.push(make(yes)?);
        }
        index.push(known[&yes]);
    }
    Ok((made, index))
}
