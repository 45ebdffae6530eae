//! Intervals for the number of yes-owners.

use std::cell::OnceCell;

use super::combined::Estimator;
use super::hypothesis::{TestResult, Zone};
use super::observation::Observation;
use crate::error::{Error, Result};
use crate::numeric::normal;

/// How sure an interval is to hold the truth: a probability strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// Beyond this the tails are smaller than what arithmetic in doubles can promise.
    pub const SMALLEST_MISS: f64 = 1e-12;

    /// The level of intervals where nobody asks for another one: in every command, on every page, in every chart.
    pub const USUAL: f64 = 0.95;

    /// The confidence `level`, such as 0.95.
    pub fn new(level: f64) -> Result<Self> {
        Self::of_miss(1.0 - level).map_err(|_| {
            Error::request(format!("a confidence of {level} is not between 0 and 1 - 1e-12"))
                .with_hint("write 0.95 or 95%")
        })
    }

    /// The confidence 1 − `miss`.
    pub fn of_miss(miss: f64) -> Result<Self> {
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
///
/// All kinds but `Score` collect the numbers of yes-owners that a test does not reject; the law of the test's statistic
/// is known exactly, and what the test looks at does not depend on the tallies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalKind {
    /// `MidP` for every number of yes-owners under which that misses at most α + min(α/10, 0.005) of the time, and
    /// `Exact` for the others. So it misses at most that often, and about α of the time where outcomes are many.
    Auto,
    /// All numbers of yes-owners under which the observed outcome, or any as unacceptable, has a probability above α. It
    /// never misses more often than it says.
    Exact,
    /// As `Exact`, but the observed outcome counts half: as close to the stated confidence as outcomes allow, on either side.
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
    /// How it was made; `Exact` where yes-owners are simply counted.
    pub kind: IntervalKind,
}

impl Estimator {
    /// An interval for the number of yes-owners, within 0 and the number of owners.
    ///
    /// It is the smallest that has every number that is not rejected, and the estimate, moved to the nearer end if it is outside
    /// the range. At a higher confidence it is never narrower.
    pub fn interval(&self, observation: &Observation, confidence: Confidence, kind: IntervalKind) -> Interval {
        let (estimate, _) = self.solve(observation);
        if self.is_counted() {
            return Interval { low: estimate, high: estimate, kind: IntervalKind::Exact };
        }
        let estimate = estimate.clamp(0.0, observation.owners() as f64);
        let (low, high) = match Rule::of(kind) {
            Some(rule) => self.tested_interval(observation, confidence, rule).unwrap_or((estimate, estimate)),
            None => self.score_interval(observation, confidence, estimate),
        };
        Interval { low: low.min(estimate), high: high.max(estimate), kind }
    }

    /// Whether the test that [`Estimator::interval`] inverts accepts `yes`. Then the interval holds it; now and then an
    /// interval also holds a number that is rejected itself but lies between others that are not.
    pub fn covers(&self, observation: &Observation, confidence: Confidence, kind: IntervalKind, yes: u64) -> bool {
        if self.is_counted() {
            return self.solve(observation).0 == yes as f64;
        }
        match Rule::of(kind) {
            Some(rule) => self.test_accepts(observation, confidence, rule, yes),
            None => self.score_accepts(observation, confidence, yes),
        }
    }

    fn test_accepts(&self, observation: &Observation, confidence: Confidence, rule: Rule, yes: u64) -> bool {
        let zone = self.zone_of(observation.owners(), yes);
        let verdict = zone.test(yes, zone.statistic(self.counts(observation)), confidence.miss());
        rule.accepts(&verdict, confidence.miss())
    }

    fn score_accepts(&self, observation: &Observation, confidence: Confidence, yes: u64) -> bool {
        self.score(observation, &self.excess(observation), yes as f64).abs() <= confidence.z()
    }

    /// The first and the last number that a test accepts, if it accepts any.
    fn tested_interval(&self, observation: &Observation, confidence: Confidence, rule: Rule) -> Option<(f64, f64)> {
        let zones = self.zones(observation.owners());
        let search = |zone| Search::new(zone, self.counts(observation), rule, confidence.miss());
        let searches: Vec<Search<'_>> = zones.iter().map(search).collect();
        let low = searches.iter().find_map(Search::first)?;
        let high = searches.iter().rev().find_map(Search::last)?;
        Some((low as f64, high as f64))
    }

    /// The range of numbers around the estimate whose standardized residual is within the normal quantile.
    fn score_interval(&self, observation: &Observation, confidence: Confidence, estimate: f64) -> (f64, f64) {
        let z = confidence.z();
        let excess = self.excess(observation);
        let score = |yes: f64| self.score(observation, &excess, yes);
        let n = observation.owners() as f64;
        let low = if score(0.0) <= z { 0.0 } else { crossing(0.0, estimate, |yes| score(yes) > z) };
        let high = if score(n) >= -z { n } else { crossing(n, estimate, |yes| score(yes) < -z) };
        (low, high.max(low))
    }
}

/// When a tested hypothesis is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Auto,
    Exact,
    MidP,
}

impl Rule {
    pub(super) fn of(kind: IntervalKind) -> Option<Self> {
        match kind {
            IntervalKind::Auto => Some(Self::Auto),
            IntervalKind::Exact => Some(Self::Exact),
            IntervalKind::MidP => Some(Self::MidP),
            IntervalKind::Score => None,
        }
    }

    pub(super) fn accepts(self, verdict: &TestResult, miss: f64) -> bool {
        match self {
            Self::Exact => verdict.p > miss,
            Self::MidP => verdict.mid > miss,
            Self::Auto => verdict.mid > miss || verdict.p > miss + allowance(miss),
        }
    }
}

/// How much more often than α `Auto` may miss.
fn allowance(miss: f64) -> f64 {
    (miss / 10.0).min(0.005)
}

/// Looks for the first and the last hypothesis of a zone that is accepted.
struct Search<'a> {
    zone: &'a Zone,
    statistic: i128,
    rule: Rule,
    miss: f64,
    guess: u64,
    spread: f64,
    bracket: OnceCell<Option<(u64, u64)>>,
}

impl<'a> Search<'a> {
    fn new(zone: &'a Zone, counts: &[i128], rule: Rule, miss: f64) -> Self {
        let statistic = zone.statistic(counts);
        let (guess, spread) = zone.guess(statistic);
        let guess = (guess as u64).clamp(zone.first, zone.last);
        Self { zone, statistic, rule, miss, guess, spread: spread.max(1.0), bracket: OnceCell::new() }
    }

    fn verdict(&self, yes: u64) -> TestResult {
        self.zone.test(yes, self.statistic, self.miss)
    }

    fn accepts(&self, yes: u64) -> bool {
        self.rule.accepts(&self.verdict(yes), self.miss)
    }

    /// The first hypothesis that is accepted.
    fn first(&self) -> Option<u64> {
        if self.zone.first == 0 && self.accepts(0) {
            return Some(0);
        }
        let (from, to) = self.bracket()?;
        first_accepted(from, to, |yes| self.verdict(yes), |verdict| self.rule.accepts(verdict, self.miss))
    }

    /// The last one: the first of the mirrored hypotheses.
    fn last(&self) -> Option<u64> {
        if self.zone.ends_all() && self.accepts(self.zone.last) {
            return Some(self.zone.last);
        }
        let (from, to) = self.bracket()?;
        let mirrored = |yes: u64| to - (yes - from);
        let verdict = |yes| self.verdict(mirrored(yes));
        first_accepted(from, to, verdict, |verdict| self.rule.accepts(verdict, self.miss)).map(mirrored)
    }

    fn bracket(&self) -> Option<(u64, u64)> {
        *self.bracket.get_or_init(|| self.find_bracket())
    }

    /// The hypotheses neither of whose tails is as small as α/2. They include all that are accepted, except 0 and all
    /// owners, since p is at most twice the smaller tail.
    fn find_bracket(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.zone.first, self.zone.last);
        // The margin that p has over the tails is below four thousandths.
        let half = self.miss / 2.0 * 0.996;
        if self.verdict(last).upper <= half || self.verdict(first).lower <= half {
            return None;
        }
        let low = first_true((first, last), self.guess, self.spread, |yes| self.verdict(yes).upper > half);
        let high = last_true((first, last), self.guess, self.spread, |yes| self.verdict(yes).lower > half);
        (low <= high).then_some((low, high))
    }
}

/// The first number in `from..=to` whose verdict is accepted.
///
/// As long as the same tail is the smaller one and the opposite tail ends at the same value, p is one less the probability of what
/// lies between two fixed values, which first rises and then falls with the hypothesis: so p has no peak inside such a stretch, and
/// the accepted part of it reaches one of its ends. The stretches are walked one after the other; there are rarely more than three.
fn first_accepted(
    from: u64,
    to: u64,
    verdict: impl Fn(u64) -> TestResult,
    accepted: impl Fn(&TestResult) -> bool,
) -> Option<u64> {
    let mut start = from;
    loop {
        let at_start = verdict(start);
        if accepted(&at_start) {
            return Some(start);
        }
        let is_same_stretch = |yes: u64| verdict(yes).stretch() == at_start.stretch();
        let end = last_true((start, to), start, 1.0, is_same_stretch);
        if end > start && accepted(&verdict(end)) {
            return Some(first_true((start, end), end, 1.0, |yes| accepted(&verdict(yes))));
        }
        if end == to {
            return None;
        }
        start = end + 1;
    }
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

/// The smallest number in a range for which the monotone `holds` is true; the last if it is true for none.
fn first_true((first, last): (u64, u64), guess: u64, spread: f64, holds: impl Fn(u64) -> bool) -> u64 {
    // Gallop from the guess until `low` fails and `high` holds, so that a search costs the same in any crowd.
    let step = spread.max(1.0) as u64;
    let bracket = if holds(guess) {
        gallop_down(first, guess, step, &holds).ok_or(first)
    } else {
        gallop_up(last, guess, step, &holds).ok_or(last)
    };
    let (mut low, mut high) = match bracket {
        Ok(ends) => ends,
        Err(end) => return end,
    };
    while high - low > 1 {
        let half = low + (high - low) / 2;
        if holds(half) { high = half } else { low = half }
    }
    high
}

/// From a guess for which `holds` is true, a smaller number for which it is not, and one for which it is; none if it is true down
/// to `first`.
fn gallop_down(first: u64, guess: u64, mut step: u64, holds: &impl Fn(u64) -> bool) -> Option<(u64, u64)> {
    let mut high = guess;
    while high > first {
        let low = high.saturating_sub(step).max(first);
        if !holds(low) {
            return Some((low, high));
        }
        high = low;
        step = step.saturating_mul(2);
    }
    None
}

/// From a guess for which `holds` is not true, a number for which it is not, and a larger one for which it is; none if it is true
/// for none up to `last`.
fn gallop_up(last: u64, guess: u64, mut step: u64, holds: &impl Fn(u64) -> bool) -> Option<(u64, u64)> {
    let mut low = guess;
    while low < last {
        let high = low.saturating_add(step).min(last);
        if holds(high) {
            return Some((low, high));
        }
        low = high;
        step = step.saturating_mul(2);
    }
    None
}

/// The largest number in a range for which the monotone `holds` is true; the first if it is true for none.
fn last_true((first, last): (u64, u64), guess: u64, spread: f64, holds: impl Fn(u64) -> bool) -> u64 {
    let mirrored = |yes: u64| last - (yes - first);
    mirrored(first_true((first, last), mirrored(guess), spread, |yes| holds(mirrored(yes))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use proptest::prelude::*;

    fn estimator(text: &str) -> Estimator {
        Estimator::new(&text.parse::<Mechanism>().unwrap().channel()).unwrap()
    }

    #[test]
    fn searches_find_the_first_and_the_last() {
        for most in [0u64, 1, 2, 7, 1000] {
            for edge in 0..=most.min(50) {
                for guess in [0, edge, most / 2, most] {
                    assert_eq!(first_true((0, most), guess, 1.0, |x| x >= edge), edge, "{most} {guess}");
                    assert_eq!(last_true((0, most), guess, 1.0, |x| x <= edge), edge, "{most} {guess}");
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// `covers` and `interval` are one test.
        #[test]
        fn covering_is_being_inside(ones in 0u64..400, zeros in 0u64..400, bottoms in 1u64..400, kind in 0usize..4, level in 0.5f64..0.9999) {
            let kind = [IntervalKind::Auto, IntervalKind::Exact, IntervalKind::MidP, IntervalKind::Score][kind];
            let estimator = estimator("deniable-sampling(0.5,0.2,0.5,0.3)");
            let confidence = Confidence::new(level).unwrap();
            let observation = estimator.observe_cells(&[ones, zeros, bottoms]);
            let owners = ones + zeros + bottoms;
            let interval = estimator.interval(&observation, confidence, kind);
            prop_assert!(0.0 <= interval.low && interval.low <= interval.high && interval.high <= owners as f64);
            for yes in [0, owners / 3, interval.low as u64, interval.low as u64 + 1, interval.high as u64, owners] {
                let yes = yes.min(owners);
                let within = interval.low <= yes as f64 && yes as f64 <= interval.high;
                prop_assert!(within || !estimator.covers(&observation, confidence, kind, yes), "{yes} {interval:?}");
            }
        }
    }
}
