//! Intervals for the number of yes-owners.

use super::combined::Estimator;
use super::observation::{Observation, Statistic};
use crate::error::Error;
use crate::numeric::normal;
use crate::numeric::two_binomials::TwoBinomials;

/// How sure an interval is to hold the truth: a probability strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// Beyond this the tails are smaller than what arithmetic in doubles can promise.
    pub const SMALLEST_MISS: f64 = 1e-12;

    /// The confidence `level`, such as 0.95.
    pub fn new(level: f64) -> Result<Self, Error> {
        Self::of_miss(1.0 - level).map_err(|_| {
            Error::request(format!("a confidence of {level} is not between 0 and 1 - 1e-12"))
                .with_hint("write 0.95 or 95%")
        })
    }

    /// The confidence 1 − `miss`.
    pub fn of_miss(miss: f64) -> Result<Self, Error> {
        if !(Self::SMALLEST_MISS..1.0).contains(&miss) {
            return Err(Error::request(format!("an interval cannot miss with probability {miss}")));
        }
        Ok(Self(miss))
    }

    /// The level.
    pub fn level(self) -> f64 {
        1.0 - self.0
    }

    /// α, the probability of missing.
    pub fn miss(self) -> f64 {
        self.0
    }

    /// How many standard deviations on either side of its mean a normal law keeps with this confidence.
    ///
    /// ```
    /// assert!((uptack::estimate::Confidence::new(0.95)?.z() - 1.959_963_984_540).abs() < 1e-12);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn z(self) -> f64 {
        normal::upper_quantile(self.0 / 2.0)
    }
}

/// How an interval is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// `Exact` where α < 0.01 or an informative count expects fewer than 50, else `Score`.
    Auto,
    /// All numbers of yes-owners under which the most informative count is in neither tail of probability α/2. It never misses more often
    /// than it says.
    Exact,
    /// As `Exact`, but the count itself weighs half: closer to the stated confidence on average, sometimes below.
    MidP,
    /// All numbers of yes-owners whose standardized residual is within the normal quantile.
    Score,
}

/// The numbers of yes-owners that the tallies do not contradict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// At least this many.
    pub low: f64,
    /// At most this many.
    pub high: f64,
    /// How it was made; never `Auto`.
    pub kind: IntervalKind,
}

/// Below this α the score interval's tails are wrong by more than a few per cent.
const SMALL_MISS: f64 = 0.01;
/// An informative count that expects fewer is too discrete for the score interval.
const FEW: f64 = 50.0;

impl Estimator {
    /// An interval for the number of yes-owners, within 0 and the number of owners.
    pub fn interval(&self, observation: &Observation, confidence: Confidence, kind: IntervalKind) -> Interval {
        let owners = observation.owners();
        if self.is_counted() {
            let (counted, _) = self.solve(observation);
            return Interval { low: counted, high: counted, kind: IntervalKind::Exact };
        }
        let (estimate, _) = self.solve(observation);
        let kind = self.settle(kind, confidence, owners, estimate);
        let (low, high) = match kind {
            IntervalKind::Score => self.score_interval(observation, confidence, estimate),
            _ => self.exact_interval(observation, confidence, kind, estimate),
        };
        Interval { low, high, kind }
    }

    /// Whether the interval holds `yes`: the same test that [`Estimator::interval`] inverts, done once.
    pub fn covers(&self, observation: &Observation, confidence: Confidence, kind: IntervalKind, yes: u64) -> bool {
        let (estimate, _) = self.solve(observation);
        if self.is_counted() {
            return estimate == yes as f64;
        }
        let owners = observation.owners();
        match self.settle(kind, confidence, owners, estimate) {
            IntervalKind::Score => {
                let z = confidence.z();
                self.score(observation, &self.excess(observation), inside(owners, yes as f64)).abs() <= z
            }
            kind => {
                let (statistic, count) = self.most_informative(observation, estimate);
                let tail = Tail { statistic, count, owners, mid: kind == IntervalKind::MidP };
                let half = confidence.miss() / 2.0;
                tail.at_least(yes) > half && tail.at_most(yes) > half
            }
        }
    }

    /// What `Auto` stands for here.
    fn settle(&self, kind: IntervalKind, confidence: Confidence, owners: u64, estimate: f64) -> IntervalKind {
        if kind != IntervalKind::Auto {
            return kind;
        }
        let yes = estimate.clamp(0.0, owners as f64);
        let expects = |s: &Statistic| yes * s.p() + (owners as f64 - yes) * s.q();
        let few = self.informative().any(|statistic| expects(statistic) < FEW);
        if confidence.miss() < SMALL_MISS || few { IntervalKind::Exact } else { IntervalKind::Score }
    }

    /// The counts whose law depends on the truth: of the classes where they show, and else of the bins.
    fn informative(&self) -> impl Iterator<Item = &Statistic> {
        let statistics = if self.reader.classes_visible { &self.reader.classes } else { &self.reader.bins };
        statistics.iter().filter(|statistic| statistic.yes != statistic.no)
    }

    /// The single count from which alone the estimate would be best, with its value.
    fn most_informative(&self, observation: &Observation, estimate: f64) -> (&Statistic, u64) {
        let owners = observation.owners() as f64;
        let yes = estimate.clamp(0.5f64.min(owners / 2.0), (owners - 0.5).max(owners / 2.0));
        let classes = self.reader.classes.iter().zip(&observation.classes);
        let bins = self.reader.bins.iter().zip(&observation.bins);
        let candidates = classes.chain(bins).filter(|(statistic, _)| statistic.yes != statistic.no);
        let best = candidates.min_by(|(a, _), (b, _)| a.variance(owners, yes).total_cmp(&b.variance(owners, yes)));
        best.map(|(statistic, &count)| (statistic, count)).expect("an estimator has an informative count")
    }

    fn exact_interval(
        &self,
        observation: &Observation,
        confidence: Confidence,
        kind: IntervalKind,
        estimate: f64,
    ) -> (f64, f64) {
        let owners = observation.owners();
        let (statistic, count) = self.most_informative(observation, estimate);
        let tail = Tail { statistic, count, owners, mid: kind == IntervalKind::MidP };
        let half = confidence.miss() / 2.0;
        // "So much or more" grows with yes where yes-owners are counted more often, and the other way round.
        let (rising, falling): (&dyn Fn(u64) -> f64, &dyn Fn(u64) -> f64) = if statistic.yes > statistic.no {
            (&|yes| tail.at_least(yes), &|yes| tail.at_most(yes))
        } else {
            (&|yes| tail.at_most(yes), &|yes| tail.at_least(yes))
        };
        let guess = (statistic.excess(count, owners) / statistic.difference()).clamp(0.0, owners as f64) as u64;
        let spread = statistic.variance(owners as f64, (guess as f64).max(0.5)).sqrt().max(1.0);
        let low = first_true(owners, guess, spread, |yes| rising(yes) > half);
        let high = last_true(owners, guess, spread, |yes| falling(yes) > half);
        (low as f64, high as f64)
    }

    fn score_interval(&self, observation: &Observation, confidence: Confidence, estimate: f64) -> (f64, f64) {
        let owners = observation.owners();
        let z = confidence.z();
        let excess = self.excess(observation);
        let score = |yes: f64| self.score(observation, &excess, inside(owners, yes));
        let (n, middle) = (owners as f64, estimate.clamp(0.0, owners as f64));
        let low = if score(0.0) <= z { 0.0 } else { crossing(0.0, middle, |yes| score(yes) > z) };
        let high = if score(n) >= -z { n } else { crossing(n, middle, |yes| score(yes) < -z) };
        (low, high.max(low))
    }
}

/// A hypothesis at the very end is tested as the limit, where a one-sided class still has a variance.
fn inside(owners: u64, yes: f64) -> f64 {
    let n = owners as f64;
    let edge = 1e-18 * n.min(1.0);
    yes.clamp(edge, n - edge)
}

/// Where `excluded` turns false between an excluded end and a middle that is not.
fn crossing(mut out: f64, mut within: f64, excluded: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let half = 0.5 * (out + within);
        if half == out || half == within {
            break;
        }
        if excluded(half) { out = half } else { within = half }
    }
    within
}

/// The smallest number in 0..=most for which the monotone `holds` is true; `most` if none is.
fn first_true(most: u64, guess: u64, spread: f64, holds: impl Fn(u64) -> bool) -> u64 {
    // Gallop from the guess until `low` fails and `high` holds, so that a search costs the same in any crowd.
    let (mut low, mut high, mut step) = (guess, guess, spread);
    while holds(low) {
        if low == 0 {
            return 0;
        }
        high = low;
        low = (low as f64 - step).max(0.0) as u64;
        step *= 2.0;
    }
    while !holds(high) {
        if high == most {
            return most;
        }
        low = high;
        high = ((high as f64 + step) as u64).clamp(high + 1, most);
        step *= 2.0;
    }
    while high - low > 1 {
        let half = low + (high - low) / 2;
        if holds(half) { high = half } else { low = half }
    }
    high
}

/// The largest number in 0..=most for which the monotone `holds` is true; 0 if none is.
fn last_true(most: u64, guess: u64, spread: f64, holds: impl Fn(u64) -> bool) -> u64 {
    most - first_true(most, most - guess, spread, |mirrored| holds(most - mirrored))
}

/// The exact tails of one count under a hypothesis.
struct Tail<'a> {
    statistic: &'a Statistic,
    count: u64,
    owners: u64,
    mid: bool,
}

impl Tail<'_> {
    /// The probability of this count or a larger one, if `yes` owners hold *yes*.
    fn at_least(&self, yes: u64) -> f64 {
        let tails = self.law(yes).tails(self.count);
        tails.upper - if self.mid { tails.point / 2.0 } else { 0.0 }
    }

    /// The probability of this count or a smaller one.
    fn at_most(&self, yes: u64) -> f64 {
        let tails = self.law(yes).tails(self.count);
        tails.lower - if self.mid { tails.point / 2.0 } else { 0.0 }
    }

    fn law(&self, yes: u64) -> TwoBinomials {
        TwoBinomials { yes, p: self.statistic.p(), no: self.owners - yes, q: self.statistic.q() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::numeric::binomial;
    use proptest::prelude::*;

    fn estimator(text: &str) -> Estimator {
        Estimator::new(&text.parse::<Mechanism>().unwrap().channel()).unwrap()
    }

    #[test]
    fn searches_find_the_first_and_the_last() {
        for most in [0u64, 1, 2, 7, 1000] {
            for edge in 0..=most.min(50) {
                for guess in [0, edge, most / 2, most] {
                    assert_eq!(first_true(most, guess, 1.0, |x| x >= edge), edge, "{most} {guess}");
                    assert_eq!(last_true(most, guess, 1.0, |x| x <= edge), edge, "{most} {guess}");
                }
            }
        }
    }

    #[test]
    fn confidence_is_checked() {
        for level in [0.0, 1.0, -1.0, f64::NAN, 2.0, 1.0 - 1e-14] {
            assert!(Confidence::new(level).is_err(), "{level}");
        }
        assert_eq!(Confidence::new(0.95).unwrap().level(), 0.95);
    }

    /// For small crowds every outcome is summed: the exact interval misses at most as often as it says, and the
    /// others near it.
    #[test]
    fn misses_by_summing_all_outcomes() {
        let confidence = Confidence::new(0.95).unwrap();
        for text in ["randomized-response(0.8)", "noisy-sampling(0.5,0.1)"] {
            let estimator = estimator(text);
            let (p, q) = (estimator.reader.bins[0].p(), estimator.reader.bins[0].q());
            for (owners, yes) in [(30u64, 0u64), (30, 5), (30, 15), (30, 30)] {
                let miss = |kind: IntervalKind| -> f64 {
                    let mut miss = 0.0;
                    for a in 0..=yes {
                        for b in 0..=owners - yes {
                            let mut cells = vec![0; estimator.reader.read_cells(&[]).bins.len().max(2)];
                            cells[0] = a + b;
                            *cells.last_mut().unwrap() = owners - a - b;
                            let observation = estimator.observe_cells(&cells);
                            if !estimator.covers(&observation, confidence, kind, yes) {
                                miss += binomial::probability(a as f64, yes as f64, p)
                                    * binomial::probability(b as f64, (owners - yes) as f64, q);
                            }
                        }
                    }
                    miss
                };
                assert!(miss(IntervalKind::Exact) <= 0.05, "{text} {yes}");
                assert!(miss(IntervalKind::MidP) <= 0.08, "{text} {yes} {}", miss(IntervalKind::MidP));
                assert!(miss(IntervalKind::Exact) <= miss(IntervalKind::MidP));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// `covers` and `interval` are one test.
        #[test]
        fn covering_is_being_inside(ones in 0u64..400, zeros in 0u64..400, bottoms in 1u64..400, kind in 0usize..3, level in 0.5f64..0.9999) {
            let kind = [IntervalKind::Exact, IntervalKind::MidP, IntervalKind::Score][kind];
            let estimator = estimator("deniable-sampling(0.5,0.2,0.5,0.3)");
            let confidence = Confidence::new(level).unwrap();
            let observation = estimator.observe_cells(&[ones, zeros, bottoms]);
            let owners = ones + zeros + bottoms;
            let interval = estimator.interval(&observation, confidence, kind);
            prop_assert!(0.0 <= interval.low && interval.low <= interval.high && interval.high <= owners as f64);
            for yes in [0, owners / 3, interval.low as u64, interval.low as u64 + 1, interval.high as u64, owners] {
                let yes = yes.min(owners);
                let within = interval.low <= yes as f64 && yes as f64 <= interval.high;
                // An interval that the data push beyond its end keeps that end, though every hypothesis is rejected.
                let degenerate = interval.low == interval.high;
                prop_assert!(degenerate || estimator.covers(&observation, confidence, kind, yes) == within, "{yes} {interval:?}");
            }
        }
    }
}
