//! Three classes in a crowd of both truths, exactly (`docs/accounting.md`, "Three classes").
//!
//! The law of the histogram consists of a polynomial's coefficients, and the polynomial is known in closed form: its values on
//! two circles give the coefficients back by a Fourier sum ([`generating_function`]). The circles' radii [`tilt`] the law
//! towards the histograms at which the evidence turns, where nearly all of the divergence is, so that absolute errors are
//! small against it. A tilted law is close to a Gaussian, and so is its transform: some hundred values are enough. In each row
//! (a row is a count of one of the classes) the terms change sign once, and the sum beyond the change is another Fourier sum
//! ([`rows`]). What is beyond the rows is bounded ([`tail_bound`]), from the sign of single terms ([`term_sign`]).

mod generating_function;
mod nodes;
mod rows;
mod tail_bound;
mod term_sign;
mod tilt;

use super::question::Question;
use crate::certified::enclosure::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{CrowdLaws, Weight};
use rows::{Rows, Turn};
use tail_bound::{RowSide, Stair, TailBound};
use tilt::Tilt;

/// Which class is which: one that speaks for the event, one that speaks against it, and the one whose count numbers the rows.
/// Whether exchanging an owner's class for another moves the evidence up or down must be known for all pairs: the row
/// class is between the other two by ratio, or the target is never in it.
#[derive(Clone, Copy, Debug)]
struct Roles {
    high: usize,
    row: usize,
    low: usize,
}

impl Roles {
    /// The roles where this class numbers the rows; none where no class certainly speaks for the event and another against it.
    fn new(weights: &[Weight; 3], row: usize) -> Option<Self> {
        let (one, other) = ((row + 1) % 3, (row + 2) % 3);
        let (high, low) = if weights[one].value() >= weights[other].value() { (one, other) } else { (other, one) };
        let decided = |class: usize| weights[class].value().abs() > 64.0 * ROUNDOFF * weights[class].magnitude();
        let opposed = weights[high].value() > 0.0 && weights[low].value() < 0.0;
        (opposed && decided(high) && decided(low)).then_some(Self { high, row, low })
    }

    /// The roles for the opposite event.
    fn exchanged(self) -> Self {
        Self { high: self.low, low: self.high, ..self }
    }

    /// Values by class in the order high, row, low.
    fn ordered<T: Copy>(self, values: [T; 3]) -> [T; 3] {
        [values[self.high], values[self.row], values[self.low]]
    }
}

/// Σ over histograms of (first − second)₊ for a target with these weights in a crowd with these laws.
pub(crate) fn three_classes(
    weights: [Weight; 3],
    row: usize,
    crowd: CrowdLaws<3>,
    question: Question,
    work: &Work,
) -> Enclosure {
    let Some(roles) = Roles::new(&weights, row) else { return one_sign(&weights) };
    let surplus: f64 = weights.iter().map(Weight::value).sum();
    if surplus <= 0.0 {
        return Divergence::new(weights, roles, crowd, question).sum(work);
    }
    // The positive part is the sum of all weights and the negative part, which is the smaller one here.
    let against = weights.map(Weight::exchanged);
    let rest = Divergence::new(against, roles.exchanged(), crowd, question).sum(work);
    let magnitude: f64 = weights.iter().map(Weight::magnitude).sum();
    Enclosure::around(surplus, 16.0 * ROUNDOFF * magnitude, 0.0).plus(rest)
}

/// All weights of one sign, but for rounding: the histogram tells nothing that changes the sum.
fn one_sign(weights: &[Weight; 3]) -> Enclosure {
    let magnitude: f64 = weights.iter().map(Weight::magnitude).sum();
    let value: f64 = weights.iter().map(Weight::value).sum();
    let upper = Weight::positive_parts(weights).upper();
    let lower = (value - 200.0 * ROUNDOFF * magnitude).clamp(0.0, upper);
    Enclosure::of_probability(lower, upper + 200.0 * ROUNDOFF * magnitude)
}

/// One direction in one crowd, the classes in the order high, row, low.
struct Divergence {
    crowd: CrowdLaws<3>,
    weights: [Weight; 3],
    question: Question,
}

impl Divergence {
    fn new(weights: [Weight; 3], roles: Roles, crowd: CrowdLaws<3>, question: Question) -> Self {
        let crowd = CrowdLaws { laws: crowd.laws.map(|law| roles.ordered(law)), ..crowd };
        Self { crowd, weights: roles.ordered(weights), question }
    }

    fn sum(&self, work: &Work) -> Enclosure {
        let whole = self.weights.iter().map(|weight| weight.first).sum::<f64>() * (1.0 + 8.0 * ROUNDOFF);
        let tilt = self.crowd.turning_tilt(self.weights.map(|weight| weight.value()));
        if let Some(negligible) = self.negligible(tilt, work) {
            return Enclosure::of_probability(0.0, negligible);
        }
        let unknown = Enclosure::of_probability(0.0, whole);
        let Some(mut rows) = Rows::new(&self.crowd, &self.weights, tilt, self.question.precision) else {
            return unknown;
        };
        let Some(start) = rows.add(rows.center().row, rows.center().high) else { return unknown };
        let mut beyond = 0.0;
        for side in [RowSide::Fewer, RowSide::More] {
            beyond += self.walk(&mut rows, start, side, work);
        }
        work.spend(rows.steps());
        rows.enclosure(beyond, whole)
    }

    /// A bound at little cost, where it shows that the divergence does not matter.
    fn negligible(&self, tilt: Tilt, work: &Work) -> Option<f64> {
        let center = self.crowd.tilted(tilt).mean();
        let negligible = self.question.precision * self.question.goal;
        let likely = self.crowd.cumulant(tilt) - tilt.high * center.high - tilt.row * center.row < negligible.ln();
        if !likely {
            return None;
        }
        let row = center.row.round() as i64;
        let slope = (tilt.row / tilt.high).clamp(0.0, 1.0);
        let side = |side: RowSide, row: i64, slope: f64| {
            let tail = TailBound::new(&self.crowd, self.weights, tilt, side);
            let turn = tail.turn(row, center.high.round() as i64);
            tail.bound(Stair { row, turn, slope }, 0.1 * negligible, work)
        };
        let bound = side(RowSide::Fewer, row + 1, slope) + side(RowSide::More, row, -slope);
        (bound <= negligible).then_some(bound + f64::MIN_POSITIVE)
    }

    /// Adds the rows on one side of the first until the rest does not matter; returns a bound on the rest.
    fn walk(&self, rows: &mut Rows, start: Turn, side: RowSide, work: &Work) -> f64 {
        let tail = TailBound::new(&self.crowd, self.weights, rows.tilt(), side);
        let first = rows.center().row;
        let stair = |row: i64, turn: Turn| {
            // By how much the turn moves from row to row, on average since the first.
            let slope = (turn.count - start.count) as f64 / (row - first).abs().max(1) as f64;
            Stair { row, turn: turn.certain, slope }
        };
        let (mut row, mut turn, mut before) = (first, start, start);
        let mut next_look = 0;
        loop {
            let enough = self.question.tolerance(rows.value());
            let end = row == rows.last(side);
            next_look -= 1;
            if end || next_look < 0 && rows.last_added() * rows.deviation() <= enough {
                let rest = tail.bound(stair(row, turn), 0.2 * enough, work);
                if rest <= enough || end {
                    return rest;
                }
                next_look = rows.deviation() as i64 / 4;
            }
            let next = row + side.step();
            let Some(found) = rows.add(next, 2 * turn.count - before.count) else {
                return tail.bound(stair(row, turn), 0.2 * enough, work);
            };
            (before, turn, row) = (turn, found, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::effort::WorkLimit;
    use crate::privacy::likelihood::{Crowd, Direction};
    use crate::privacy::tests::channel;
    use crate::privacy::{Accountant, answer_with_release, release};
    use crate::truth::Truth;
    use proptest::prelude::*;

    /// Against the array of all histograms, to which owners are added one by one.
    fn agrees(accountant: &Accountant, yes: u64, no: u64, at: f64) -> Result<(), TestCaseError> {
        let view = accountant.reduced_view();
        let work = Work::within(WorkLimit::default(), yes + no + 1);
        let question = Question::new(at.exp(), -80.0, 0.0);
        let crowd = Crowd { yes, no };
        let (truth, found) = (view.enumerated(crowd, at.exp()), view.both_truths(crowd, question, &work));
        for (truth, found) in truth.iter().zip(found.iter()) {
            let enclosed = found.lower() <= truth.upper() + 1e-14 && found.upper() >= truth.lower() - 1e-14;
            prop_assert!(enclosed, "{found:?} does not enclose {truth:?}");
            let sharp = found.upper() - found.lower() <= 0.05 * truth.middle();
            // A small crowd may be far from a Gaussian; such are enumerated.
            prop_assert!(sharp || yes + no < 150 || truth.middle() < 1e-12, "{found:?} is not sharp: {truth:?}");
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn flips_and_sitting_out(
            f in 0.05_f64..1.0, share in 0.01_f64..0.49, yes in 1_u64..200, no in 1_u64..200, at in 0.0_f64..0.8,
        ) {
            let channel = channel(&format!("normal-form(f={f},r={})", f * share));
            agrees(&release(&channel, yes + no + 1).expect("owners"), yes, no, at)?;
        }

        #[test]
        fn lopsided_laws(
            sy in 0.05_f64..0.95, sn in 0.05_f64..0.95, p1 in 0.1_f64..0.9, p2 in 0.1_f64..0.9,
            yes in 1_u64..200, no in 1_u64..200, at in 0.0_f64..0.8,
        ) {
            let channel = channel(&format!("deniable-sampling(sy={sy},sn={sn},p1={p1},p2={p2})"));
            agrees(&release(&channel, yes + no + 1).expect("owners"), yes, no, at)?;
        }

        #[test]
        fn one_answer_too(
            b in 0.05_f64..0.5, share in 0.05_f64..1.0, other in 0.05_f64..1.0,
            yes in 1_u64..200, no in 1_u64..200, at in 0.0_f64..0.8,
        ) {
            let channel = channel(&format!("paired(b={b},sy={},sn={})", b * share, b * other));
            let accountant = answer_with_release(&channel, 0, yes + no + 1).expect("owners");
            prop_assert!(accountant.reduced_view().is_exact_in_every_crowd());
            agrees(&accountant, yes, no, at)?;
        }
    }

    /// Where crowds are too large for arrays: the crowd of one truth is known by another formula, and one owner of the other truth
    /// among many changes next to nothing.
    #[test]
    fn joins_the_crowds_of_one_truth() {
        let channel = channel("normal-form(f=0.4,r=0.1)");
        let accountant = release(&channel, 100_001).expect("owners");
        let view = accountant.reduced_view();
        let work = Work::within(WorkLimit::default(), 100_001);
        let question = Question { precision: 1e-6, ..Question::new(0.008_f64.exp(), -80.0, 0.0) };
        let [fewer, all] = [99_998, 100_000].map(|owners| view.one_truth(Truth::No, owners, question, &work));
        let mixed = view.both_truths(Crowd { yes: 1, no: 99_999 }, question, &work);
        for which in Direction::BOTH {
            assert!(mixed[which].upper() >= all[which].lower() * 0.999 && mixed[which].lower() <= fewer[which].upper());
            assert!(mixed[which].upper() <= mixed[which].lower() * (1.0 + 4e-6), "{:?}", mixed[which]);
            assert!(fewer[which].upper() <= all[which].upper() * 1.01 && mixed[which].lower() > 1e-9);
        }
    }
}
