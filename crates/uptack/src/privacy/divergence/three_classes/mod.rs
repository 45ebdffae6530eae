//! Three classes in a crowd of both truths, exactly.
//!
//! The law of the histogram is a polynomial's coefficients, and the polynomial is known in closed form: its values on two
//! circles give the coefficients back by Fourier's sum. The circles' radii tilt the law towards the histograms at which the
//! evidence turns, where nearly all of the divergence is, so that absolute errors are small against it. A tilted law is close
//! to a Gaussian, and so is its transform: some hundred values are enough. Row by row (a row is a count of one of
//! the classes) the terms change sign once, and the sum beyond the change is another Fourier sum (`docs/accounting.md`, "Crowds of
//! both truths").

mod generating_function;
mod tail_bound;
mod term_sign;
mod tilt;

use std::f64::consts::TAU;

use crate::certified::binomial::{Binomial, Coin, ROUNDOFF, window};
use crate::certified::enclosure::Bracket;
use crate::privacy::divergence::Question;
use crate::privacy::divergence::two_classes::Group;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::Weight;
use generating_function::{Nodes, Row, Signed, Transform};
use tail_bound::{Beyond, Side};
use tilt::{Crowd, Tilt};

/// Rows whose tilted mass beyond them is below e^this are not looked at: their sign would be lost in the noise.
const FARTHEST_ROW: f64 = -20.0;
/// What is left out of the transform and what it folds back, relative to how much the terms change from one to the next where
/// they turn, as a logarithm.
const NOISE: f64 = -18.0;
/// A sum beyond a turn takes up what is folded back from below it, damped by e^−this.
const DAMPED: f64 = 26.0;
/// So many terms may be undecided around a change of sign; more mean that the row is lost in the noise.
const UNDECIDED: u32 = 64;

/// Which class is which: one that speaks for the event, one that speaks against it, and the one whose count numbers the rows.
/// Whether exchanging an owner's class for another moves the evidence up or down must be known for all pairs: the row
/// class is between the other two by ratio, or the target is never in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roles {
    pub(crate) high: usize,
    pub(crate) row: usize,
    pub(crate) low: usize,
}

/// Σ over histograms of (first − second)₊ for a target with these weights in a crowd of these groups.
pub(crate) fn three_classes(
    target: [Weight; 3],
    row: usize,
    groups: [Group<'_>; 2],
    question: Question,
    work: &Work,
) -> Bracket {
    let (one, other) = ((row + 1) % 3, (row + 2) % 3);
    let (high, low) = if target[one].value() >= target[other].value() { (one, other) } else { (other, one) };
    let decided = |class: usize| target[class].value().abs() > 64.0 * ROUNDOFF * target[class].magnitude();
    if target[high].value() <= 0.0 || target[low].value() >= 0.0 || !decided(high) || !decided(low) {
        return one_sign(&target);
    }
    let surplus: f64 = target.iter().map(Weight::value).sum();
    if surplus <= 0.0 {
        let roles = Roles { high, row, low };
        return Divergence::new(&target, roles, groups, question).sum(work);
    }
    // The positive part is what there is in all and the negative part, which is the smaller one here.
    let against = target.map(|weight| Weight { first: weight.second, second: weight.first });
    let rest = Divergence::new(&against, Roles { high: low, row, low: high }, groups, question).sum(work);
    let magnitude: f64 = target.iter().map(Weight::magnitude).sum();
    Bracket::around(surplus, 16.0 * ROUNDOFF * magnitude, 0.0).plus(rest)
}

/// All weights of one sign, but for rounding: the histogram tells nothing that changes the sum.
fn one_sign(target: &[Weight; 3]) -> Bracket {
    let magnitude: f64 = target.iter().map(Weight::magnitude).sum();
    let value: f64 = target.iter().map(Weight::value).sum();
    let upper = target.iter().map(Weight::positive_part).fold(Bracket::ZERO, Bracket::plus).upper();
    let lower = (value - 200.0 * ROUNDOFF * magnitude).clamp(0.0, upper);
    Bracket::new(lower, upper + 200.0 * ROUNDOFF * magnitude)
}

/// One direction in one crowd.
struct Divergence {
    crowd: Crowd,
    weights: [Weight; 3],
    question: Question,
}

/// Where the terms of a row turn positive: computed, and a count below which they certainly do not.
#[derive(Clone, Copy)]
struct Turn {
    count: i64,
    certain: i64,
}

impl Divergence {
    fn new(target: &[Weight; 3], roles: Roles, groups: [Group<'_>; 2], question: Question) -> Self {
        let order = |law: &[f64]| [law[roles.high], law[roles.row], law[roles.low]];
        let crowd = Crowd { owners: groups.map(|group| group.owners), laws: groups.map(|group| order(group.law)) };
        Self { crowd, weights: [target[roles.high], target[roles.row], target[roles.low]], question }
    }

    fn sum(&self, work: &Work) -> Bracket {
        let whole = self.weights.iter().map(|weight| weight.first).sum::<f64>() * (1.0 + 8.0 * ROUNDOFF);
        let tilt = self.crowd.turning_tilt(self.weights.map(|weight| weight.value()));
        if let Some(little) = self.little(tilt, work) {
            return Bracket::new(0.0, little);
        }
        let mut rows = Rows::new(&self.crowd, &self.weights, tilt, self.question.precision);
        let Some(start) = rows.add(rows.center[1], rows.center[0]) else {
            return Bracket::new(0.0, whole);
        };
        let mut beyond = 0.0;
        for side in [Side::Fewer, Side::More] {
            beyond += self.walk(&mut rows, start, side, work);
        }
        work.spend(rows.steps);
        let error = (rows.error + rows.folded * rows.heaviest) * (1.0 + rows.relative_error)
            + rows.value.abs() * rows.relative_error;
        // Numbers that are too small for a double are not nothing.
        let upper = ((rows.value + error + beyond) * (1.0 + 1e-12)).max(0.0) + f64::MIN_POSITIVE;
        let lower = (rows.value - error) * (1.0 - 1e-12);
        if upper.is_finite() {
            Bracket::new(lower.clamp(0.0, upper), upper.min(whole.max(lower)))
        } else {
            Bracket::new(0.0, whole)
        }
    }

    /// A bound at little cost, where it shows that the divergence does not matter.
    fn little(&self, tilt: Tilt, work: &Work) -> Option<f64> {
        let center = self.crowd.tilted(tilt).mean();
        let negligible = self.question.precision * self.question.goal;
        let likely = self.crowd.cumulant(tilt) - tilt.high * center[0] - tilt.row * center[1] < negligible.ln();
        if !likely {
            return None;
        }
        let row = center[1].round() as i64;
        let slope = (tilt.row / tilt.high).clamp(0.0, 1.0);
        let sides = [(Side::Fewer, row + 1, slope), (Side::More, row, -slope)];
        let bound: f64 = sides
            .into_iter()
            .map(|(side, row, slope)| {
                let beyond = Beyond::new(&self.crowd, self.weights, tilt, side);
                beyond.bound(row, beyond.turn(row, center[0].round() as i64), slope, 0.1 * negligible, work)
            })
            .sum();
        (bound <= negligible).then_some(bound + f64::MIN_POSITIVE)
    }

    /// Adds the rows on one side of the first until the rest does not matter; returns a bound on the rest.
    fn walk(&self, rows: &mut Rows, start: Turn, side: Side, work: &Work) -> f64 {
        let beyond = Beyond::new(&self.crowd, self.weights, rows.tilt, side);
        let (mut count, mut turn) = (rows.center[1], start);
        let mut before = start;
        let mut next_look = 0;
        loop {
            let enough = self.question.precision * rows.value.max(self.question.goal);
            let end = count == side.end(rows);
            next_look -= 1;
            if end || next_look < 0 && rows.last * rows.deviation <= enough {
                let rest = beyond.bound(count, turn.certain, start_slope(rows, start, count, turn), 0.2 * enough, work);
                if rest <= enough || end {
                    return rest;
                }
                next_look = rows.deviation as i64 / 4;
            }
            let next = count + side.step();
            let Some(found) = rows.add(next, 2 * turn.count - before.count) else {
                return beyond.bound(count, turn.certain, start_slope(rows, start, count, turn), 0.2 * enough, work);
            };
            (before, turn, count) = (turn, found, next);
        }
    }
}

/// By how much the turn moves from row to row, on average since the first.
fn start_slope(rows: &Rows, start: Turn, count: i64, turn: Turn) -> f64 {
    (turn.count - start.count) as f64 / (count - rows.center[1]).abs().max(1) as f64
}

impl Side {
    fn end(self, rows: &Rows) -> i64 {
        if self == Self::Fewer { rows.range.0 } else { rows.range.1 }
    }
}

/// Adds up rows.
struct Rows {
    transform: Transform,
    row: Row,
    tilt: Tilt,
    /// The logarithm of the tilt's factor at the center.
    level: f64,
    /// The tilted means of the counts high and row.
    center: [i64; 2],
    /// The rows that can be told from noise, and the high counts that the transform keeps apart.
    range: (i64, i64),
    counts: (i64, i64),
    /// All owners with the target.
    owners: i64,
    /// The row count's standard deviation.
    deviation: f64,
    /// How far a term may be off.
    slack: f64,
    value: f64,
    error: f64,
    /// What the last row added.
    last: f64,
    /// The largest factor of all rows, and the tilted mass that the transform folds back into them.
    heaviest: f64,
    folded: f64,
    relative_error: f64,
    steps: u64,
}

impl Rows {
    fn new(crowd: &Crowd, weights: &[Weight; 3], tilt: Tilt, precision: f64) -> Self {
        // Everything below is made for a precision of a per mille.
        let deeper = (1e-3 / precision).ln();
        let tilted = crowd.tilted(tilt);
        let mean = tilted.mean();
        let center = mean.map(|mean| mean.round() as i64);
        let parts = |class: usize| {
            [0, 1].map(|group: usize| {
                let law = tilted.laws[group];
                let success = law[class];
                let coin = Coin { success, failure: law[(class + 1) % 3] + law[(class + 2) % 3] };
                Binomial::new(tilted.owners[group], coin)
            })
        };
        let within = |class: usize, cut: f64| {
            let (low, high) = window(&parts(class), cut);
            // With the target.
            (low as i64, high as i64 + 1)
        };
        let factors = [tilt.high.exp(), tilt.row.exp(), 1.0];
        let scaled = [0, 1, 2].map(|class: usize| weights[class].value() * factors[class]);
        let magnitude = (0..3).map(|class| weights[class].magnitude() * factors[class]).sum();
        let signed = Signed { sum: scaled.iter().sum(), high: scaled[0], row: scaled[1], magnitude };
        let [high, row, both] = tilted.covariance();
        let density = 1.0 / (TAU * (high * row - both * both).max(1.0).sqrt());
        let noise = (scaled[0] * density / high.max(1.0) / (8.0 * magnitude)).ln()
            + NOISE
            + (3.0 * (high.sqrt() / 16.0).ln_1p()).min(11.0)
            - deeper;
        let (counts, all_rows, range) = (within(0, noise), within(1, noise), within(1, FARTHEST_ROW - deeper));
        let damped = DAMPED + deeper;
        let damping = (damped / tilt.high).ceil() as i64;
        let turns = within(0, FARTHEST_ROW - deeper);
        let nodes = Nodes {
            high: odd((turns.1 - counts.0 + damping).max(counts.1 - turns.0) + 4),
            row: odd((range.1 - all_rows.0).max(all_rows.1 - range.0) + 4),
        };
        let transform = Transform::new(&tilted, signed, center, nodes, tilt.high, noise);
        let level = crowd.cumulant(tilt) - tilt.high * center[0] as f64 - tilt.row * center[1] as f64;
        let folded = 8.0 * magnitude * noise.exp();
        let deviation = row.sqrt();
        Self {
            row: transform.new_row(),
            slack: transform.term_error() + folded,
            steps: (transform.size() * 8) as u64,
            transform,
            tilt,
            level,
            center,
            range,
            counts: turns,
            owners: crowd.size() as i64 + 1,
            deviation,
            last: 0.0,
            value: 0.0,
            error: 0.0,
            heaviest: 0.0,
            // In the sums beyond turns, over all rows.
            folded: folded + 4.0 * magnitude * (-damped).exp(),
            relative_error: 64.0 * ROUNDOFF * (crowd.size() as f64 * (tilt.high.abs() + tilt.row.abs()) + 16.0),
        }
    }

    /// Adds the row of one count, where the terms turn positive at about `guess`. None where the row is lost in the noise.
    fn add(&mut self, count: i64, guess: i64) -> Option<Turn> {
        self.transform.fill_row(count, &mut self.row);
        self.steps += (self.transform.size() / 8) as u64 + 16;
        // Beyond the last count that there is in this row nothing is positive.
        let end = self.owners - count + 1;
        let turn = self.turn(guess, end)?;
        let factor = |high: i64| {
            let exponent =
                self.tilt.high * (high - self.center[0]) as f64 + self.tilt.row * (count - self.center[1]) as f64;
            (self.level - exponent).exp()
        };
        let here = factor(turn);
        let (mut hidden, mut certain) = (0.0, turn - 1);
        let mut undecided = 0;
        while certain >= 0 {
            let term = self.transform.term(&self.row, certain);
            if term < -self.slack {
                break;
            }
            hidden += (term + self.slack) * factor(certain);
            certain -= 1;
            undecided += 1;
            if undecided > UNDECIDED || certain >= 0 && certain < self.counts.0 {
                return None;
            }
        }
        let mut above = turn;
        while above < end {
            let term = self.transform.term(&self.row, above);
            if term > self.slack {
                break;
            }
            hidden += (self.slack - term) * factor(above);
            above += 1;
            undecided += 1;
            if undecided > UNDECIDED || above < end && above > self.counts.1 {
                return None;
            }
        }
        self.last = 0.0;
        if turn < end {
            self.last = here * self.transform.beyond(&self.row, turn);
            self.value += self.last;
            self.error += here * self.transform.beyond_error();
            self.heaviest = self.heaviest.max(here);
        }
        self.error += hidden;
        Some(Turn { count: turn, certain: certain + 1 })
    }

    /// The first count of the present row with a term that is not certainly negative, `end` if there is none.
    fn turn(&self, guess: i64, end: i64) -> Option<i64> {
        let (bottom, top) = (self.counts.0.max(0), end.min(self.counts.1 + 1));
        if bottom >= top {
            return None;
        }
        let positive = |count: i64| self.transform.term(&self.row, count) >= -self.slack;
        let start = guess.clamp(bottom, top - 1);
        let mut step = 1;
        let (mut below, mut above);
        if positive(start) {
            above = start;
            loop {
                below = above - step;
                if below < bottom {
                    below = bottom - 1;
                    break;
                }
                if !positive(below) {
                    break;
                }
                above = below;
                step *= 2;
            }
        } else {
            below = start;
            loop {
                above = below + step;
                if above >= top {
                    above = top;
                    break;
                }
                if positive(above) {
                    break;
                }
                below = above;
                step *= 2;
            }
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if positive(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        // At an edge that is not one of the row itself the transform does not tell.
        let lost = above == top && top < end || below == bottom - 1 && bottom > 0;
        (!lost).then_some(above)
    }
}

/// The next odd number.
fn odd(number: i64) -> i64 {
    number | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::effort::WorkLimit;
    use crate::privacy::tests::channel;
    use crate::privacy::{Accountant, answer_with_release, release};
    use proptest::prelude::*;

    /// Against the array of all histograms, to which owners are added one by one.
    fn agrees(accountant: &Accountant, yes: u64, no: u64, at: f64) -> Result<(), TestCaseError> {
        let view = &accountant.observation;
        let work = Work::within(WorkLimit::default(), yes + no + 1);
        let question = Question::new(at.exp(), -80.0, 0.0);
        let (truth, found) = (view.enumerated(yes, no, at.exp()), view.both_truths(yes, no, question, &work));
        for (truth, found) in truth.iter().zip(&found) {
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
            prop_assert!(accountant.observation.is_exact_in_every_crowd());
            agrees(&accountant, yes, no, at)?;
        }
    }

    /// Where crowds are too large for arrays: the crowd of one truth is known by another formula, and one owner of the other truth
    /// among many changes next to nothing.
    #[test]
    fn joins_the_crowds_of_one_truth() {
        let channel = channel("normal-form(f=0.4,r=0.1)");
        let view = &release(&channel, 100_001).expect("owners").observation;
        let work = Work::within(WorkLimit::default(), 100_001);
        let question = Question { precision: 1e-6, ..Question::new(0.008_f64.exp(), -80.0, 0.0) };
        let [fewer, all] = [99_998, 100_000].map(|owners| view.one_truth(false, owners, question, &work));
        let mixed = view.both_truths(1, 99_999, question, &work);
        for which in 0..2 {
            assert!(mixed[which].upper() >= all[which].lower() * 0.999 && mixed[which].lower() <= fewer[which].upper());
            assert!(mixed[which].upper() <= mixed[which].lower() * (1.0 + 4e-6), "{:?}", mixed[which]);
            assert!(fewer[which].upper() <= all[which].upper() * 1.01 && mixed[which].lower() > 1e-9);
        }
    }
}
