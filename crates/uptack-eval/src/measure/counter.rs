//! Ways to count the vehicles of a station: by a channel, by a channel with noise, or by a curator.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use uptack::SeededCoins;
use uptack::contribution::Contributions;
use uptack::estimate::{Confidence, IntervalKind};
use uptack::simulate::{ContributionSimulation, CrowdDraw, CrowdSampling};

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
    /// Draws what all stations share in a trial, before any is asked; nothing if they are drawn independently of each other.
    fn begin(&mut self, _: &mut SeededCoins) -> Result<()> {
        Ok(())
    }

    /// Everything that was published in the trial, if it is drawn together.
    fn published(&self) -> Option<&[i64]> {
        None
    }

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

/// Every owner has one of the stations, or is elsewhere, and all counts are drawn together.
pub(super) struct ChoiceCounts {
    crowd: CrowdDraw,
    law: PublishedLaw,
    coverages: ByStation<Coverage>,
    published: Vec<i64>,
}

/// What is published about one option.
enum PublishedLaw {
    Noisy(Box<NoisySum>),
    Exact(CountLaw),
}

impl PublishedLaw {
    fn new(asked: &Contributions, owners: u64) -> Result<Self> {
        let channel = asked.count_channel();
        Ok(match NoisySum::new(&channel, owners)? {
            Some(law) => Self::Noisy(Box::new(law)),
            None => Self::Exact(CountLaw::new(&channel, owners)?),
        })
    }

    fn coverage(&self, yes: u64, confidences: &Confidences) -> Result<Coverage> {
        match self {
            Self::Noisy(law) => law.coverage(yes, confidences),
            Self::Exact(law) => law.coverage(yes, confidences),
        }
    }
}

impl ChoiceCounts {
    /// None if the options are not the stations and, if there are more owners than vehicles, elsewhere.
    pub(super) fn new(
        asked: &Contributions,
        vehicles: &[u64],
        owners: u64,
        confidences: &Confidences,
    ) -> Result<Option<Self>> {
        let elsewhere = owners.saturating_sub(vehicles.iter().sum());
        let options = vehicles.len() + usize::from(elsewhere > 0);
        if !asked.is_choice() || asked.options() != options || asked.counts() != options {
            return Ok(None);
        }
        let law = PublishedLaw::new(asked, owners)?;
        let coverages = ByStation::new(vehicles, |yes| law.coverage(yes, confidences))?;
        let counts = vehicles.iter().copied().chain((elsewhere > 0).then_some(elsewhere)).collect();
        let crowd = one_trial(owners, counts, confidences.each).crowd_draw(asked)?;
        Ok(Some(Self { crowd, law, coverages, published: Vec::new() }))
    }
}

/// One trial of a crowd.
fn one_trial(owners: u64, counts: Vec<u64>, confidence: Confidence) -> ContributionSimulation {
    let (interval, crowd) = (IntervalKind::Auto, CrowdSampling::Aggregated);
    ContributionSimulation { owners, counts, trials: 1, seed: 0, confidence, interval, crowd }
}

impl StationCounter for ChoiceCounts {
    fn begin(&mut self, coins: &mut SeededCoins) -> Result<()> {
        self.published = self.crowd.draw(coins).into_iter().map(|count| count as i64).collect();
        if let PublishedLaw::Noisy(law) = &self.law {
            for sum in &mut self.published {
                *sum += law.draw_noise(coins)?;
            }
        }
        Ok(())
    }

    fn published(&self) -> Option<&[i64]> {
        Some(&self.published)
    }

    fn ask(&mut self, station: usize, _: u64, _: &mut SeededCoins) -> Result<StationEstimate> {
        let (coverage, published) = (self.coverages.at(station), self.published[station]);
        Ok(match &self.law {
            PublishedLaw::Noisy(law) => StationEstimate {
                estimate: law.estimate(published),
                holds: coverage.each.holds_sum(published),
                holds_together: coverage.all.holds_sum(published),
            },
            PublishedLaw::Exact(law) => {
                let counts = law.counts_of_ones(published.unsigned_abs());
                StationEstimate {
                    estimate: law.estimate(&counts),
                    holds: coverage.each.holds(&counts),
                    holds_together: coverage.all.holds(&counts),
                }
            }
        })
    }

    fn predicted(&self, yes: u64) -> Result<f64> {
        match &self.law {
            PublishedLaw::Noisy(law) => law.sd(yes as f64),
            PublishedLaw::Exact(law) => Ok(law.sd(yes as f64)),
        }
    }

    fn many(&self, yes: u64) -> bool {
        matches!(&self.law, PublishedLaw::Exact(law) if law.smallest_expected(yes as f64) >= MANY)
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
