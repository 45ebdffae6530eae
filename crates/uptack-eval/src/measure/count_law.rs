//! The estimator of the core for one channel and crowd, unrolled for millions of trials.
//!
//! Every channel that is compared has two or three classes of equal likelihood ratio, and its tallies show their counts. Then
//! the combined estimate and its interval depend on these counts alone, and for a known truth the core tells once which
//! counts are accepted. A test holds every number against the core's own [`Estimator`].

use uptack::estimate::{Acceptance, Confidence, Estimator, IntervalKind};
use uptack::simulate::draw_counts;
use uptack::{Channel, Probability, SeededCoins};

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

impl CountLaw {
    pub(crate) fn new(channel: &Channel, owners: u64) -> Result<Self, Error> {
        let classes: Vec<Class> = channel.classes().iter().map(Class::from).collect();
        if classes.len() > 3 || classes.len() < 2 {
            return Err(Error::new(format!("{} classes of cells where two or three are supported", classes.len())));
        }
        let mut kept: Vec<usize> = (0..classes.len()).collect();
        kept.sort_by(|&a, &b| classes[a].likelier().total_cmp(&classes[b].likelier()));
        kept.pop();
        Ok(Self { channel: by_class(channel)?, owners, classes, kept })
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
        let first = &self.classes[self.kept[0]];
        let (a, d1) = (first.variance(yes, no), first.difference);
        let Some(&second) = self.kept.get(1) else {
            let weight = d1 / a;
            return Weights { weights: [weight, 0.0], information: weight * d1 };
        };
        let second = &self.classes[second];
        let (c, d2) = (second.variance(yes, no), second.difference);
        let b = -(yes * first.p * second.p + no * first.q * second.q);
        let determinant = a * c - b * b;
        let weights = [(c * d1 - b * d2) / determinant, (a * d2 - b * d1) / determinant];
        Weights { weights, information: weights[0] * d1 + weights[1] * d2 }
    }

    /// What the rarest informative class expects if `yes` owners hold *yes*.
    pub(crate) fn smallest_expected(&self, yes: f64) -> f64 {
        let informative = (0..self.classes.len()).filter(|&class| self.classes[class].informative);
        let expected = |class: usize| yes * self.classes[class].p + (self.owners as f64 - yes) * self.classes[class].q;
        informative.map(expected).fold(f64::INFINITY, f64::min)
    }
}

impl From<&uptack::Class> for Class {
    fn from(class: &uptack::Class) -> Self {
        let difference = class.yes.numerator() as i128 - class.no.numerator() as i128;
        Self {
            p: class.yes.to_f64(),
            q: class.no.to_f64(),
            difference: difference as f64 / Probability::ONE.numerator() as f64,
            no: class.no,
            informative: class.yes != class.no,
        }
    }
}

impl Class {
    fn likelier(&self) -> f64 {
        self.p.max(self.q)
    }

    /// The variance of the count.
    #[inline]
    fn variance(&self, yes: f64, no: f64) -> f64 {
        yes * self.p * (1.0 - self.p) + no * self.q * (1.0 - self.q)
    }
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
    sd: f64,
    /// The station's own interval, and the one that holds together with all others'.
    each: Acceptance,
    all: Acceptance,
}

/// The two confidences at which intervals are made: each alone, and all stations at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confidences {
    pub(crate) each: Confidence,
    pub(crate) all: Confidence,
}

impl Coverage {
    pub(crate) fn new(law: &CountLaw, yes: u64, by: &Confidences) -> Result<Self, Error> {
        let n = law.owners as f64;
        let edge = 1e-18 * n.min(1.0);
        let sd = (1.0 / law.weights((yes as f64).clamp(edge, n - edge)).information).sqrt();
        let estimator = Estimator::new(&law.channel)?;
        let acceptance = |confidence| estimator.acceptance(law.owners, yes, confidence, IntervalKind::Auto);
        Ok(Self { sd, each: acceptance(by.each)?, all: acceptance(by.all)? })
    }

    /// The standard deviation of the estimate at the truth.
    pub(crate) fn sd(&self) -> f64 {
        self.sd
    }

    /// Whether the interval of these counts holds the truth.
    pub(crate) fn each(&self, counts: &[u64; 3]) -> bool {
        self.each.holds(counts)
    }

    /// Whether the simultaneous interval holds it.
    pub(crate) fn all(&self, counts: &[u64; 3]) -> bool {
        self.all.holds(counts)
    }
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
        let by = Confidences { each, all };
        for (text, owners) in FAMILY.into_iter().flat_map(|text| [(text, 50_186u64), (text, 5_018_600)]) {
            let channel = text.parse::<Mechanism>().unwrap().channel();
            let (law, estimator) = (CountLaw::new(&channel, owners).unwrap(), Estimator::new(&channel).unwrap());
            for yes in [0u64, 4, 60, 500] {
                let coverage = Coverage::new(&law, yes, &by).unwrap();
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
                    let one = coverage.each(&counts);
                    assert_eq!(
                        one,
                        estimator.covers(&observation, each, IntervalKind::Auto, yes),
                        "{text} {owners} {yes}"
                    );
                    let many = coverage.all(&counts);
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
