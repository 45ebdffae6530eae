//! The estimator of the core for one channel and crowd, unrolled for millions of trials.
//!
//! Every channel that is compared has two or three classes of equal likelihood ratio, and its tallies show their counts. Then
//! the combined estimate and its interval depend on these counts alone, and for a known truth most of the work can
//! be done once. A test holds every number against the core's own [`Estimator`].

use std::cell::OnceCell;

use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack::simulate::draw_counts;
use uptack::{Channel, Fraction, Output, Probability, SeededCoins};

use crate::error::Error;
use crate::method::by_class;

/// A channel reduced to its classes, with a crowd.
pub(crate) struct CountLaw {
    channel: Channel,
    owners: u64,
    classes: Vec<Class>,
    /// The classes that are used; the likeliest follows from them.
    kept: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    p: f64,
    q: f64,
    difference: f64,
    no: Probability,
    informative: bool,
}

/// With a variance of a thousand a binomial's ends at one in 44 420 are within 0.1 standard deviations of the normal
/// ones, for its skewness (z²−1)/6 times 1/32; further out the difference grows with z², but nobody has so many stations.
const NEAR_THE_END: f64 = 0.4;
/// An informative count that expects fewer is too discrete for the score interval.
const FEW: f64 = 50.0;

impl CountLaw {
    pub(crate) fn new(channel: &Channel, owners: u64) -> Result<Self, Error> {
        let all = channel.classes();
        if all.len() > 3 || all.len() < 2 {
            return Err(Error::new(format!("{} classes of cells where two or three are supported", all.len())));
        }
        let reduced = by_class(channel)?;
        let one = Probability::ONE.numerator() as f64;
        let class = |class: &uptack::Class| {
            let difference = (class.yes.numerator() as i128 - class.no.numerator() as i128) as f64 / one;
            let (p, q) = (class.yes.to_f64(), class.no.to_f64());
            Class { p, q, difference, no: class.no, informative: class.yes != class.no }
        };
        let classes: Vec<Class> = all.iter().map(class).collect();
        let mut kept: Vec<usize> = (0..classes.len()).collect();
        kept.sort_by(|&a, &b| likely(&classes[a]).total_cmp(&likely(&classes[b])));
        kept.pop();
        Ok(Self { channel: reduced, owners, classes, kept })
    }

    /// Draws the counts of the classes.
    pub(crate) fn draw(&self, yes: u64, coins: &mut SeededCoins) -> Result<[u64; 3], Error> {
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

    fn excess(&self, counts: &[u64; 3]) -> [f64; 2] {
        let one = Probability::ONE.numerator() as f64;
        let of = |class: usize| {
            let counted = u128::from(counts[class]) << Probability::BITS;
            let expected = u128::from(self.owners) * self.classes[class].no.numerator();
            let size = counted.abs_diff(expected) as f64 / one;
            if counted >= expected { size } else { -size }
        };
        [of(self.kept[0]), self.kept.get(1).map_or(0.0, |&class| of(class))]
    }

    /// S⁻¹d and dᵀS⁻¹d at `yes`.
    fn weights(&self, yes: f64) -> Weights {
        let no = self.owners as f64 - yes;
        let variance = |c: &Class| yes * c.p * (1.0 - c.p) + no * c.q * (1.0 - c.q);
        let first = &self.classes[self.kept[0]];
        let (a, d1) = (variance(first), first.difference);
        let Some(&second) = self.kept.get(1) else {
            let weight = d1 / a;
            return Weights { weights: [weight, 0.0], information: weight * d1 };
        };
        let second = &self.classes[second];
        let (c, d2) = (variance(second), second.difference);
        let b = -(yes * first.p * second.p + no * first.q * second.q);
        let determinant = a * c - b * b;
        let weights = [(c * d1 - b * d2) / determinant, (a * d2 - b * d1) / determinant];
        Weights { weights, information: weights[0] * d1 + weights[1] * d2 }
    }

    /// The class from whose count alone the estimate would be best.
    fn most_informative(&self, estimate: f64) -> usize {
        let owners = self.owners as f64;
        let yes = estimate.clamp(0.5f64.min(owners / 2.0), (owners - 0.5).max(owners / 2.0));
        let variance = |class: usize| self.moments(class, yes).1 / self.classes[class].difference.powi(2);
        let informative = (0..self.classes.len()).filter(|&class| self.classes[class].informative);
        informative.min_by(|&a, &b| variance(a).total_cmp(&variance(b))).unwrap_or(0)
    }

    /// The mean and the variance of a class's count if `yes` owners hold *yes*.
    fn moments(&self, class: usize, yes: f64) -> (f64, f64) {
        let (c, no) = (&self.classes[class], self.owners as f64 - yes);
        (yes * c.p + no * c.q, yes * c.p * (1.0 - c.p) + no * c.q * (1.0 - c.q))
    }

    fn expects_few(&self, estimate: f64) -> bool {
        let yes = estimate.clamp(0.0, self.owners as f64);
        self.smallest_expected(yes) < FEW
    }

    /// What the rarest informative class expects if `yes` owners hold *yes*.
    pub(crate) fn smallest_expected(&self, yes: f64) -> f64 {
        let informative = (0..self.classes.len()).filter(|&class| self.classes[class].informative);
        informative.map(|class| self.moments(class, yes).0).fold(f64::INFINITY, f64::min)
    }
}

fn likely(class: &Class) -> f64 {
    class.p.max(class.q)
}

#[derive(Clone, Copy)]
struct Weights {
    weights: [f64; 2],
    information: f64,
}

impl Weights {
    fn of(&self, excess: &[f64; 2]) -> f64 {
        self.weights[0] * excess[0] + self.weights[1] * excess[1]
    }
}

/// Whether intervals hold one known truth, prepared.
pub(crate) struct Coverage {
    yes: u64,
    /// The weights of the score test at the truth.
    weights: Weights,
    at: f64,
    /// For each class the counts whose exact interval holds the truth; for each of the two confidences.
    exact: [[OnceCell<(u64, u64)>; 3]; 2],
}

/// The two confidences at which intervals are made: each alone, and all stations at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confidences {
    pub(crate) each: Confidence,
    pub(crate) all: Confidence,
    /// Their normal quantiles.
    z: [f64; 2],
}

impl Confidences {
    pub(crate) fn new(each: Confidence, all: Confidence) -> Self {
        Self { each, all, z: [each.z(), all.z()] }
    }
}

impl Coverage {
    pub(crate) fn new(law: &CountLaw, yes: u64) -> Self {
        let n = law.owners as f64;
        let edge = 1e-18 * n.min(1.0);
        let at = (yes as f64).clamp(edge, n - edge);
        Self { yes, weights: law.weights(at), at, exact: Default::default() }
    }

    /// The standard deviation of the estimate at the truth.
    pub(crate) fn sd(&self) -> f64 {
        (1.0 / self.weights.information).sqrt()
    }

    /// Whether the interval of these counts holds the truth.
    pub(crate) fn each(
        &self,
        law: &CountLaw,
        counts: &[u64; 3],
        estimate: f64,
        by: &Confidences,
    ) -> Result<bool, Error> {
        if law.expects_few(estimate) {
            return self.exactly(law, counts, estimate, 0, by.each);
        }
        Ok(self.score(law, counts).abs() <= by.z[0])
    }

    /// The standardized residual of the truth.
    fn score(&self, law: &CountLaw, counts: &[u64; 3]) -> f64 {
        let information = self.weights.information;
        (self.weights.of(&law.excess(counts)) - self.at * information) / information.sqrt()
    }

    /// Whether the simultaneous interval holds it: by exact tails always.
    pub(crate) fn all(
        &self,
        law: &CountLaw,
        counts: &[u64; 3],
        estimate: f64,
        by: &Confidences,
    ) -> Result<bool, Error> {
        let class = law.most_informative(estimate);
        let (mean, variance) = law.moments(class, self.yes as f64);
        let residual = (counts[class] as f64 - mean).abs() / variance.sqrt();
        // Where much is counted the tails are nearly normal: only near the ends does it take the exact ones.
        if variance >= 20.0 * FEW && (residual - by.z[1]).abs() > NEAR_THE_END {
            return Ok(residual < by.z[1]);
        }
        self.exactly(law, counts, estimate, 1, by.all)
    }

    fn exactly(
        &self,
        law: &CountLaw,
        counts: &[u64; 3],
        estimate: f64,
        which: usize,
        confidence: Confidence,
    ) -> Result<bool, Error> {
        let class = law.most_informative(estimate);
        let (low, high) = match self.exact[which][class].get() {
            Some(ends) => *ends,
            None => {
                let ends = accepted(law, class, self.yes, confidence)?;
                *self.exact[which][class].get_or_init(|| ends)
            }
        };
        Ok((low..=high).contains(&counts[class]))
    }
}

/// The counts of a class whose exact interval holds `yes`: found with the core's own test, which is monotone on either side.
fn accepted(law: &CountLaw, class: usize, yes: u64, confidence: Confidence) -> Result<(u64, u64), Error> {
    let cell = &law.channel.cells()[class];
    let (p, q) = (Fraction::from_probability(cell.yes()), Fraction::from_probability(cell.no()));
    let rest = (vec![Output::ZERO], p.complement(), q.complement());
    let estimator = Estimator::new(&Channel::from_fractions(vec![(vec![Output::ONE], p, q), rest])?)?;
    let owners = law.owners;
    let holds = |count: u64| {
        let observation = estimator.observe_cells(&[count, owners - count]);
        estimator.covers(&observation, confidence, IntervalKind::Exact, yes)
    };
    let (mean, variance) = law.moments(class, yes as f64);
    let middle = middle(mean.round() as u64, owners, &holds);
    let step = (variance.sqrt() * 1.5).max(1.0);
    let low = edge(middle, step, 0, &holds);
    let high = edge(middle, step, owners, &holds);
    Ok((low, high))
}

/// A count that is held: the mean, or next to it where rounding or discreteness exclude it.
fn middle(mean: u64, owners: u64, holds: &impl Fn(u64) -> bool) -> u64 {
    let near = [mean, mean + 1, mean.saturating_sub(1), mean + 2, mean.saturating_sub(2)];
    near.into_iter().map(|count| count.min(owners)).find(|&count| holds(count)).unwrap_or(mean.min(owners))
}

/// The last count towards `end` that is held.
fn edge(middle: u64, step: f64, end: u64, holds: &impl Fn(u64) -> bool) -> u64 {
    let away = |from: u64, step: f64| {
        let step = step as u64;
        if end > middle { from.saturating_add(step).min(end) } else { from.saturating_sub(step).max(end) }
    };
    let (mut inside, mut step) = (middle, step);
    let mut outside = loop {
        if inside == end {
            return end;
        }
        let next = away(inside, step);
        if !holds(next) {
            break next;
        }
        inside = next;
        step *= 1.5;
    };
    while inside.abs_diff(outside) > 1 {
        let half = inside.min(outside) + inside.abs_diff(outside) / 2;
        if holds(half) { inside = half } else { outside = half }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::Mechanism;

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
    /// the truth, and as many deviations from it as bring the counts about the ends of the intervals.
    #[test]
    fn unrolled_is_the_same_as_the_core() {
        let each = Confidence::new(0.95).unwrap();
        let all = Confidence::of_miss(0.05 / 2221.0).unwrap();
        let by = Confidences::new(each, all);
        for (text, owners) in FAMILY.into_iter().flat_map(|text| [(text, 50_186u64), (text, 5_018_600)]) {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let (law, estimator) = (CountLaw::new(&channel, owners).unwrap(), Estimator::new(&channel).unwrap());
            for yes in [0u64, 4, 60, 500] {
                let coverage = Coverage::new(&law, yes);
                assert!((coverage.sd() / estimator.sd(owners, yes as f64).unwrap() - 1.0).abs() < 1e-6, "{text} {yes}");
                for trial in 0..60 {
                    let away = [0.0, 0.0, 2.0, -2.0, 4.2, -4.2][trial as usize % 6] * coverage.sd();
                    let truth = (yes as f64 + away).clamp(0.0, owners as f64) as u64;
                    let counts = law.draw(truth, &mut SeededCoins::stream(11, trial)).unwrap();
                    let cells = cells(&channel, &counts);
                    let observation = estimator.observe_cells(&cells);
                    let reference = estimator.estimate_observed(&observation);
                    let estimate = law.estimate(&counts);
                    let difference = (estimate - reference.estimate).abs() / reference.sd.max(1.0);
                    assert!(difference < 1e-6, "{text} {owners} {yes}: {estimate} against {}", reference.estimate);
                    let one = coverage.each(&law, &counts, estimate, &by).unwrap();
                    assert_eq!(
                        one,
                        estimator.covers(&observation, each, IntervalKind::Auto, yes),
                        "{text} {owners} {yes}"
                    );
                    let many = coverage.all(&law, &counts, estimate, &by).unwrap();
                    assert_eq!(
                        many,
                        estimator.covers(&observation, all, IntervalKind::Auto, yes),
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
}
