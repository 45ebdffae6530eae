//! The tallies under which one number of yes-owners is accepted, found once for many trials.

use super::combined::{Estimator, check_yes};
use super::interval::{Confidence, IntervalKind, Rule};
use super::observation::Observation;
use crate::error::Result;

/// Whether intervals accept one known number of yes-owners: [`Estimator::covers`], prepared for many tallies.
///
/// ```
/// use uptack::{Mechanism, estimate::{Confidence, Estimator, IntervalKind}};
/// let channel = "normal-form(f=0.5, r=1e-4)".parse::<Mechanism>()?.channel();
/// let estimator = Estimator::new(&channel)?;
/// let (confidence, kind) = (Confidence::new(0.95)?, IntervalKind::Auto);
/// let acceptance = estimator.acceptance(50_000, 500, confidence, kind)?;
/// for cells in [[260, 24_740, 25_000], [360, 24_640, 25_000]] {
///     let observation = estimator.observe_cells(&cells);
///     assert_eq!(acceptance.holds(&cells), estimator.covers(&observation, confidence, kind, 500));
/// }
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Acceptance {
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Range(AcceptedRange),
    /// Anything else is tested again for each tally.
    Anew(Box<NewTest>),
}

/// What a statistic is made of, and between which values it is accepted.
#[derive(Clone, Debug)]
struct AcceptedRange {
    /// What an owner who writes each of the cells adds.
    values: Vec<i64>,
    /// What each unit of a published sum adds.
    weight: i64,
    low: i128,
    high: i128,
}

#[derive(Clone, Debug)]
struct NewTest {
    estimator: Estimator,
    owners: u64,
    confidence: Confidence,
    kind: IntervalKind,
    yes: u64,
}

impl Acceptance {
    /// Whether `yes` is accepted if these are the counts of the cells, in the channel's order.
    pub fn holds(&self, cells: &[u64]) -> bool {
        match &self.test {
            Test::Range(range) => range.accepts_cells(cells),
            Test::Anew(test) => test.accepts(&test.estimator.observe_cells(cells)),
        }
    }

    /// Whether `yes` is accepted if this sum was published; for channels with noise.
    pub fn holds_sum(&self, sum: i64) -> bool {
        match &self.test {
            Test::Range(range) => range.accepts(i128::from(range.weight) * i128::from(sum)),
            Test::Anew(test) => {
                test.estimator.observe_sum(test.owners, sum).is_ok_and(|observation| test.accepts(&observation))
            }
        }
    }
}

impl AcceptedRange {
    fn accepts_cells(&self, cells: &[u64]) -> bool {
        let add = |(&value, &count): (&i64, &u64)| i128::from(value) * i128::from(count);
        self.accepts(self.values.iter().zip(cells).map(add).sum())
    }

    fn accepts(&self, statistic: i128) -> bool {
        (self.low..=self.high).contains(&statistic)
    }
}

impl NewTest {
    fn accepts(&self, observation: &Observation) -> bool {
        self.estimator.covers(observation, self.confidence, self.kind, self.yes)
    }
}

impl Estimator {
    /// Prepares the test of `yes` yes-owners among `owners`.
    pub fn acceptance(&self, owners: u64, yes: u64, confidence: Confidence, kind: IntervalKind) -> Result<Acceptance> {
        check_yes(owners, yes as f64)?;
        let test = match Rule::of(kind).filter(|_| !self.is_counted()) {
            Some(rule) => Test::Range(self.accepted_range(owners, yes, confidence, rule)),
            None => Test::Anew(Box::new(NewTest { estimator: self.clone(), owners, confidence, kind, yes })),
        };
        Ok(Acceptance { test })
    }

    /// The smaller tail decreases on either side of its maximum, and p with it: the accepted statistics form a range.
    fn accepted_range(&self, owners: u64, yes: u64, confidence: Confidence, rule: Rule) -> AcceptedRange {
        let zone = self.zone_of(owners, yes);
        let hypothesis = zone.hypothesis(yes, confidence.miss());
        let accepts = |statistic: i128| rule.accepts(&hypothesis.verdict(statistic), confidence.miss());
        let edge = |direction: i128| last_accepted(hypothesis.middle(), direction, hypothesis.sd(), &accepts);
        AcceptedRange {
            values: self.cell_values(&zone),
            weight: zone.first_weight(),
            // At the ends of all hypotheses nothing speaks against them on one side.
            low: if yes == 0 { -i128::MAX } else { edge(-1) },
            high: if yes == owners { i128::MAX } else { edge(1) },
        }
    }
}

/// The last accepted value from `middle` on in one direction.
fn last_accepted(middle: i128, direction: i128, sd: f64, accepts: &impl Fn(i128) -> bool) -> i128 {
    let (mut inside, mut outside) = gallop(middle, direction * (sd as i128).max(1), accepts);
    while (outside - inside).abs() > 1 {
        let half = inside + (outside - inside) / 2;
        if accepts(half) { inside = half } else { outside = half }
    }
    inside
}

/// An accepted value and one beyond it that is not, by steps that double.
fn gallop(mut inside: i128, mut step: i128, accepts: &impl Fn(i128) -> bool) -> (i128, i128) {
    while accepts(inside + step) {
        inside += step;
        step *= 2;
    }
    (inside, inside + step)
}
