//! The tallies under which one number of yes-owners is accepted, found once for many trials.

use super::combined::{Estimator, check_yes};
use super::interval::{Confidence, IntervalKind, Rule};
use crate::error::Error;

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
    /// What each cell adds to the statistic, how a published sum counts, and between which values that is accepted.
    Range { values: Vec<i64>, weight: i64, low: i128, high: i128 },
    /// Anything else is tested anew each time.
    Anew { estimator: Box<Estimator>, owners: u64, confidence: Confidence, kind: IntervalKind, yes: u64 },
}

impl Acceptance {
    /// Whether `yes` is accepted if the cells, in the channel's order, were written so often.
    pub fn holds(&self, cells: &[u64]) -> bool {
        match &self.test {
            Test::Range { values, low, high, .. } => {
                let add = |(&value, &count): (&i64, &u64)| i128::from(value) * i128::from(count);
                (*low..=*high).contains(&values.iter().zip(cells).map(add).sum())
            }
            Test::Anew { estimator, confidence, kind, yes, .. } => {
                estimator.covers(&estimator.observe_cells(cells), *confidence, *kind, *yes)
            }
        }
    }

    /// Whether `yes` is accepted if this sum was published; for channels with noise.
    pub fn holds_sum(&self, sum: i64) -> bool {
        match &self.test {
            Test::Range { weight, low, high, .. } => (*low..=*high).contains(&(i128::from(*weight) * i128::from(sum))),
            Test::Anew { estimator, owners, confidence, kind, yes } => {
                let observation = estimator.observe_sum(*owners, sum);
                observation.is_ok_and(|observation| estimator.covers(&observation, *confidence, *kind, *yes))
            }
        }
    }
}

impl Estimator {
    /// Prepares the test of `yes` yes-owners among `owners`.
    pub fn acceptance(
        &self,
        owners: u64,
        yes: u64,
        confidence: Confidence,
        kind: IntervalKind,
    ) -> Result<Acceptance, Error> {
        check_yes(owners, yes as f64)?;
        let test = match Rule::of(kind).filter(|_| !self.is_counted()) {
            Some(rule) => self.accepted_range(owners, yes, confidence, rule),
            None => Test::Anew { estimator: Box::new(self.clone()), owners, confidence, kind, yes },
        };
        Ok(Acceptance { test })
    }

    /// The smaller tail falls away from its greatest on either side, and p with it: what is accepted is a range.
    fn accepted_range(&self, owners: u64, yes: u64, confidence: Confidence, rule: Rule) -> Test {
        let zone = self.zone_of(owners, yes);
        let hypothesis = zone.hypothesis(yes, confidence.miss());
        let accepts = |statistic: i128| rule.accepts(&hypothesis.verdict(statistic), confidence.miss());
        let (middle, sd) = (hypothesis.middle(), hypothesis.sd());
        // At the ends of all hypotheses nothing speaks against them on one side.
        let edge = |direction: i128| {
            let open = if direction < 0 { yes == 0 } else { yes == owners };
            if open { direction * i128::MAX } else { last_accepted(middle, direction, sd, &accepts) }
        };
        Test::Range { values: self.cell_values(&zone), weight: zone.first_weight(), low: edge(-1), high: edge(1) }
    }
}

/// The last accepted value from `middle` on in one direction.
fn last_accepted(middle: i128, direction: i128, sd: f64, accepts: &impl Fn(i128) -> bool) -> i128 {
    let (mut inside, mut step) = (middle, (sd as i128).max(1));
    let mut outside = loop {
        let next = inside + direction * step;
        if !accepts(next) {
            break next;
        }
        inside = next;
        step *= 2;
    };
    while (outside - inside).abs() > 1 {
        let half = inside + (outside - inside) / 2;
        if accepts(half) { inside = half } else { outside = half }
    }
    inside
}
