//! The estimator of the core for one channel and crowd, unrolled for millions of trials: with the counts of classes, or
//! with a published sum that has the aggregators' noise. Tests compare every number with the core's own [`Estimator`].
//!
//! Every channel that is compared has two or three classes of equal likelihood ratio, and its tallies show their counts.
//! The combined estimate and its interval depend on these counts alone, and for a known truth the core says once which
//! counts are accepted. The sum of both aggregators' draws is sampled from a table of its law: the core's own sampler is
//! exact in rationals, and too slow for an evaluation, which needs no secret noise.

use uptack::estimate::many::{Sharing, simultaneous, simultaneous_kind};
use uptack::estimate::{Acceptance, Confidence, Estimator, IntervalKind};
use uptack::simulate::draw_counts;
use uptack::{Bin, Channel, Output, Probability, SeededCoins};

use super::LEVEL;
use crate::error::{Error, Result};
use crate::method::{IntegerNoise, by_class};

/// The two confidences at which intervals are made: each alone, and all stations at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confidences {
    pub(crate) each: Confidence,
    pub(crate) all: Confidence,
}

impl Confidences {
    pub(super) fn of_stations(stations: usize) -> Result<Self> {
        let each = Confidence::new(LEVEL)?;
        Ok(Self { each, all: simultaneous(each, stations, Sharing::Bonferroni)? })
    }
}

/// The results whose intervals hold one known truth, worked out in advance.
pub(crate) struct Coverage {
    /// By the station's own interval.
    pub(crate) each: Acceptance,
    /// By its simultaneous interval.
    pub(crate) all: Acceptance,
}

impl Coverage {
    pub(super) fn new(estimator: &Estimator, owners: u64, yes: u64, by: &Confidences) -> Result<Self> {
        let acceptance = |confidence, kind| estimator.acceptance(owners, yes, confidence, kind);
        let kind = IntervalKind::Auto;
        Ok(Self { each: acceptance(by.each, kind)?, all: acceptance(by.all, simultaneous_kind(kind))? })
    }
}

/// A channel reduced to its classes, with a crowd.
pub(crate) struct CountLaw {
    channel: Channel,
    owners: u64,
    classes: Vec<ClassProbabilities>,
    /// The classes that are used; the count of the likeliest one follows from theirs.
    kept: Vec<usize>,
    /// Whether the first cell, which is 1 in a channel of two cells, is in the first class.
    ones_first: bool,
}

/// A class of cells with its probabilities if the truth is *yes* (p) and *no* (q), and p − q.
#[derive(Clone, Copy, Debug)]
struct ClassProbabilities {
    p: f64,
    q: f64,
    difference: f64,
    no: Probability,
    informative: bool,
}

impl CountLaw {
    pub(crate) fn new(channel: &Channel, owners: u64) -> Result<Self> {
        let classes: Vec<ClassProbabilities> = channel.classes().iter().map(ClassProbabilities::from).collect();
        if classes.len() > 3 || classes.len() < 2 {
            return Err(Error::new(format!("{} classes of cells where two or three are supported", classes.len())));
        }
        let kept = all_but_likeliest(&classes);
        let ones_first = channel.classes().first().is_some_and(|class| class.cells.contains(&0));
        Ok(Self { channel: by_class(channel)?, owners, classes, kept, ones_first })
    }

    /// The counts of the classes if so many owners answer 1, of a channel that shows nothing else.
    pub(crate) fn counts_of_ones(&self, ones: u64) -> [u64; 3] {
        let zeros = self.owners - ones;
        if self.ones_first { [ones, zeros, 0] } else { [zeros, ones, 0] }
    }

    /// Draws the counts of the classes.
    pub(crate) fn draw(&self, yes: u64, coins: &mut SeededCoins) -> Result<[u64; 3]> {
        let counts = draw_counts(&self.channel, self.owners, yes, coins)?;
        let mut all = [0; 3];
        all[..counts.len()].copy_from_slice(&counts);
        Ok(all)
    }

    /// The combined estimate.
    pub(crate) fn estimate(&self, counts: &[u64; 3]) -> f64 {
        let owners = self.owners as f64;
        let (low, high) = (0.5f64.min(owners / 2.0), (owners - 0.5).max(owners / 2.0));
        let excess = self.excess(counts);
        let mut at = owners / 2.0;
        let mut estimate = at;
        for round in 0..200 {
            let weights = self.weights(at);
            estimate = weights.of(&excess) / weights.information;
            let next = estimate.clamp(low, high);
            if (next - at).abs() <= 1e-10 * (1.0 / weights.information).sqrt().max(1e-6) {
                break;
            }
            at = if round < 50 { next } else { 0.5 * (at + next) };
        }
        estimate
    }

    /// The excess of each kept class.
    fn excess(&self, counts: &[u64; 3]) -> [f64; 2] {
        let of = |class: usize| self.classes[class].excess(counts[class], self.owners);
        [of(self.kept[0]), self.kept.get(1).map_or(0.0, |&class| of(class))]
    }

    /// S⁻¹d and dᵀS⁻¹d at `yes`.
    fn weights(&self, yes: f64) -> KeptWeights {
        let no = self.owners as f64 - yes;
        let first = &self.classes[self.kept[0]];
        let (a, d1) = (first.variance(yes, no), first.difference);
        let Some(&second) = self.kept.get(1) else {
            let weight = d1 / a;
            return KeptWeights { weights: [weight, 0.0], information: weight * d1 };
        };
        let second = &self.classes[second];
        let (c, d2) = (second.variance(yes, no), second.difference);
        let b = -(yes * first.p * second.p + no * first.q * second.q);
        let determinant = a * c - b * b;
        let weights = [(c * d1 - b * d2) / determinant, (a * d2 - b * d1) / determinant];
        KeptWeights { weights, information: weights[0] * d1 + weights[1] * d2 }
    }

    /// The coverage if `yes` owners would say *yes*.
    pub(crate) fn coverage(&self, yes: u64, by: &Confidences) -> Result<Coverage> {
        Coverage::new(&Estimator::new(&self.channel)?, self.owners, yes, by)
    }

    /// The standard deviation of the estimate if `yes` owners would say *yes*.
    pub(crate) fn sd(&self, yes: f64) -> f64 {
        let owners = self.owners as f64;
        let edge = 1e-18 * owners.min(1.0);
        self.weights(yes.clamp(edge, owners - edge)).information.recip().sqrt()
    }

    /// The expected count of the rarest informative class if `yes` owners would say *yes*.
    pub(crate) fn smallest_expected(&self, yes: f64) -> f64 {
        let no = self.owners as f64 - yes;
        let informative = self.classes.iter().filter(|class| class.informative);
        informative.map(|class| yes * class.p + no * class.q).fold(f64::INFINITY, f64::min)
    }
}

/// The classes in order of their probability, without the likeliest.
fn all_but_likeliest(classes: &[ClassProbabilities]) -> Vec<usize> {
    let mut kept = Vec::from_iter(0..classes.len());
    kept.sort_by(|&a, &b| classes[a].likelier().total_cmp(&classes[b].likelier()));
    kept.pop();
    kept
}

impl From<&uptack::Class> for ClassProbabilities {
    fn from(class: &uptack::Class) -> Self {
        let difference = class.probability.yes.numerator() as i128 - class.probability.no.numerator() as i128;
        Self {
            p: class.probability.yes.to_f64(),
            q: class.probability.no.to_f64(),
            difference: difference as f64 / Probability::ONE.numerator() as f64,
            no: class.probability.no,
            informative: class.probability.yes != class.probability.no,
        }
    }
}

impl ClassProbabilities {
    fn likelier(&self) -> f64 {
        self.p.max(self.q)
    }

    /// The count minus its expectation if nobody would say *yes*: the difference is exact, and rounded once.
    fn excess(&self, count: u64, owners: u64) -> f64 {
        let counted = u128::from(count) << Probability::BITS;
        let expected = u128::from(owners) * self.no.numerator();
        let size = counted.abs_diff(expected) as f64 / Probability::ONE.numerator() as f64;
        if counted >= expected { size } else { -size }
    }

    /// The variance of the count.
    #[inline]
    fn variance(&self, yes: f64, no: f64) -> f64 {
        yes * self.p * (1.0 - self.p) + no * self.q * (1.0 - self.q)
    }
}

/// The weights of the kept classes in the combined estimate, and its information.
#[derive(Clone, Copy)]
struct KeptWeights {
    weights: [f64; 2],
    information: f64,
}

impl KeptWeights {
    fn of(&self, excess: &[f64; 2]) -> f64 {
        self.weights[0] * excess[0] + self.weights[1] * excess[1]
    }
}

/// The number of ones among a crowd's answers plus the noise of both aggregators.
pub(crate) struct NoisySum {
    channel: Channel,
    estimator: Estimator,
    owners: u64,
    /// The cells whose answer is 1.
    ones: Vec<usize>,
    noise: IntegerNoise,
    /// How much a *yes* raises the expected sum (p − q), and the expected sum without any (nq).
    difference: f64,
    none: f64,
}

impl NoisySum {
    /// None if the channel has no noise.
    pub(crate) fn new(channel: &Channel, owners: u64) -> Result<Option<Self>> {
        let (Some(noise), Some(bit)) = (channel.noise(), channel.summed_bit()) else { return Ok(None) };
        let no = bit.no.numerator() as f64 / Probability::ONE.numerator() as f64;
        Ok(Some(Self {
            estimator: Estimator::new(channel)?,
            owners,
            ones: channel.cells_in(Bin { answer: 0, output: Output::ONE }),
            noise: IntegerNoise::new(noise.plausible_reach(), |value| noise.sum_probability(value)),
            difference: bit.difference(),
            none: owners as f64 * no,
            channel: channel.clone().without_noise(),
        }))
    }

    /// Draws a published sum.
    pub(crate) fn draw(&self, yes: u64, coins: &mut SeededCoins) -> Result<i64> {
        let counts = draw_counts(&self.channel, self.owners, yes, coins)?;
        let ones: u64 = self.ones.iter().map(|&cell| counts[cell]).sum();
        Ok(ones as i64 + self.draw_noise(coins)?)
    }

    /// Draws the noise of both aggregators.
    pub(crate) fn draw_noise(&self, coins: &mut SeededCoins) -> Result<i64> {
        self.noise.draw(coins)
    }

    /// (S − nq)/(p − q).
    pub(crate) fn estimate(&self, sum: i64) -> f64 {
        (sum as f64 - self.none) / self.difference
    }

    /// The coverage if `yes` owners would say *yes*.
    pub(crate) fn coverage(&self, yes: u64, by: &Confidences) -> Result<Coverage> {
        Coverage::new(&self.estimator, self.owners, yes, by)
    }

    /// The standard deviation of the estimate if `yes` owners would say *yes*.
    pub(crate) fn sd(&self, yes: f64) -> Result<f64> {
        Ok(self.estimator.sd(self.owners, yes)?)
    }
}

#[cfg(test)]
mod tests {
    use uptack::Mechanism;
    use uptack::estimate::{Confidence, IntervalKind};

    use super::*;

    const FAMILY: [&str; 13] = [
        "randomized-response(t=0.8)",
        "sampling(sy=0.05,sn=0.05)",
        "noisy-sampling(sy=0.05,sn=0.01)",
        "deniable-sampling(sy=0.05,sn=0.05,p1=0.85,p2=0.3)",
        "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)",
        "paired(b=0.5,sy=0.05,sn=0.01)",
        "paired(b=0.4,sy=0.05,sn=0.01)",
        "cancelling(b1=0.3,b2=0.3,b3=0.35,s=0.05)",
        "blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=1e-4,rn=1e-4)",
        "normal-form(f=0.626,r=1.2e-4)",
        "normal-form(f=1,r=1e-3)",
        "normal-form(f=0.5,r=0.125)",
        "spread(pairs=2,f=1,r=1e-3)",
    ];

    /// Every estimate, and every verdict on a 95 % and on a simultaneous interval, is the core's, for the whole family: at
    /// the truth, and so many deviations from it that the counts are near the ends of the intervals.
    #[test]
    fn unrolled_counts_are_the_same_as_the_core() {
        let each = Confidence::new(0.95).unwrap();
        let all = Confidence::of_miss(0.05 / 2221.0).unwrap();
        let by = Confidences { each, all };
        for (text, owners) in FAMILY.into_iter().flat_map(|text| [(text, 50_186u64), (text, 5_018_600)]) {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let (law, estimator) = (CountLaw::new(&channel, owners).unwrap(), Estimator::new(&channel).unwrap());
            for yes in [0u64, 4, 60, 500] {
                let coverage = law.coverage(yes, &by).unwrap();
                let sd = law.sd(yes as f64);
                assert!((sd / estimator.sd(owners, yes as f64).unwrap() - 1.0).abs() < 1e-6, "{text} {yes}");
                for trial in 0..60 {
                    let away = [0.0, 0.0, 2.0, -2.0, 4.2, -4.2][trial as usize % 6] * sd;
                    let truth = (yes as f64 + away).clamp(0.0, owners as f64) as u64;
                    let counts = law.draw(truth, &mut SeededCoins::stream(11, trial)).unwrap();
                    let cells = cells(&channel, &counts);
                    let observation = estimator.observe_cells(&cells);
                    let reference = estimator.estimate_observed(&observation);
                    let estimate = law.estimate(&counts);
                    let difference = (estimate - reference.estimate).abs() / reference.sd.max(1.0);
                    assert!(difference < 1e-6, "{text} {owners} {yes}: {estimate} against {}", reference.estimate);
                    let one = coverage.each.holds(&counts);
                    assert_eq!(
                        one,
                        estimator.covers(&observation, each, IntervalKind::Auto, yes),
                        "{text} {owners} {yes}"
                    );
                    let many = coverage.all.holds(&counts);
                    assert_eq!(
                        many,
                        estimator.covers(&observation, all, IntervalKind::Exact, yes),
                        "{text} {owners} {yes}"
                    );
                }
            }
        }
    }

    /// Cell counts with these class counts: each class's on its first cell.
    fn cells(channel: &Channel, counts: &[u64; 3]) -> Vec<u64> {
        let mut cells = vec![0; channel.cells().len()];
        channel.classes().iter().zip(counts).for_each(|(class, &count)| cells[class.cells[0]] = count);
        cells
    }

    /// Every estimate and every verdict is the core's.
    #[test]
    fn unrolled_sums_are_the_same_as_the_core() {
        let by = Confidences { each: Confidence::new(0.95).unwrap(), all: Confidence::of_miss(0.05 / 2221.0).unwrap() };
        for text in
            ["randomized-response(t=1) + laplace(scale=1)", "randomized-response(t=0.9999) + laplace(scale=1.1)"]
        {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let law = NoisySum::new(&channel, 50_186).unwrap().unwrap();
            for (yes, trial) in [0u64, 4, 500].into_iter().flat_map(|yes| (0..40).map(move |trial| (yes, trial))) {
                let coverage = law.coverage(yes, &by).unwrap();
                let sum =
                    law.draw(yes, &mut SeededCoins::stream(5, trial)).unwrap() + [0, 4, -4, 11][trial as usize % 4];
                let observation = law.estimator.observe_sum(50_186, sum).unwrap();
                let reference = law.estimator.estimate_observed(&observation);
                assert!((law.estimate(sum) - reference.estimate).abs() < 1e-6 * reference.sd, "{text} {yes}");
                let intervals =
                    [(by.each, IntervalKind::Auto, &coverage.each), (by.all, IntervalKind::Exact, &coverage.all)];
                for (confidence, kind, acceptance) in intervals {
                    let held = law.estimator.covers(&observation, confidence, kind, yes);
                    assert_eq!(acceptance.holds_sum(sum), held, "{text} {yes} {sum}");
                }
            }
        }
    }

    #[test]
    fn a_channel_without_noise_has_no_such_sum() {
        let channel = "randomized-response(t=0.9)".parse::<Mechanism>().unwrap().channel();
        assert!(NoisySum::new(&channel, 100).unwrap().is_none());
    }
}
