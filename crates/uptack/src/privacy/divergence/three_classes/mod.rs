//! Three classes in a crowd of both truths, exactly (`docs/accounting.md`, "Three classes").
//!
//! The law of the histogram consists of a polynomial's coefficients, and the polynomial is known in closed form: its values on
//! two circles give the coefficients back by a Fourier sum ([`generating_function`]). The circles' radii [`tilt`] the law
//! towards the histograms at which the evidence turns, where nearly all of the divergence is, so that absolute errors are
//! small against it. A tilted law is close to a Gaussian, and so is its transform: some hundred values are enough. In each row
//! (a row is a count of one of the classes) the terms change sign once, and the sum beyond the change is another Fourier sum
//! ([`rows`]). The remaining rows is bounded ([`tail_bound`]), from the sign of single terms ([`term_sign`]).

mod generating_function;
mod rows;
mod tail_bound;
mod tilt;

use super::{DivergenceRequest, WantedEnds};
use crate::certified::rounding::Enclosure;
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{CrowdLaws, Weight};
use crate::privacy::work::WorkBudget;
use rows::{RowSums, Turn};
use tail_bound::{RowSide, Stair, TailBound};
use tilt::{ClassTilt, HighRow};

/// The roles of the classes: one is evidence for the event, one is evidence against it, and the count of the third numbers the
/// rows. Whether exchanging an owner's class for another moves the evidence up or down must be known for all pairs: the row
/// class is between the other two by ratio, or the target is never in it.
#[derive(Clone, Copy, Debug)]
struct Roles {
    high: usize,
    row: usize,
    low: usize,
}

impl Roles {
    /// The roles where this class numbers the rows; `None` if no class is certainly evidence for the event and another against
    /// it.
    fn new(weights: &[Weight; 3], row: usize) -> Option<Self> {
        let (one, other) = ((row + 1) % 3, (row + 2) % 3);
        let (high, low) = if weights[one].value() >= weights[other].value() { (one, other) } else { (other, one) };
        let slack = |class: usize| 64.0 * ROUNDOFF * weights[class].magnitude();
        let opposed = weights[high].value() > slack(high) && weights[low].value() < -slack(low);
        opposed.then_some(Self { high, row, low })
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
    request: DivergenceRequest,
    work: &WorkBudget,
) -> Enclosure {
    let Some(roles) = Roles::new(&weights, row) else { return one_sign(&weights) };
    let surplus = Weight::sum_of_values(&weights);
    if surplus <= 0.0 {
        return Divergence::new(weights, roles, crowd, request).sum(work);
    }
    // The positive part is the sum of all weights and the negative part, which is the smaller one here.
    let against = weights.map(Weight::exchanged);
    let rest = Divergence::new(against, roles.exchanged(), crowd, request).sum(work);
    let rounding = 16.0 * ROUNDOFF * Weight::sum_of_magnitudes(&weights);
    Enclosure::around(surplus, rounding, 0.0).plus(rest)
}

/// All weights have one sign, but for rounding: the sum is the same whatever the histogram shows.
fn one_sign(weights: &[Weight; 3]) -> Enclosure {
    let rounding = 200.0 * ROUNDOFF * Weight::sum_of_magnitudes(weights);
    let upper = Weight::positive_parts(weights).upper();
    let lower = (Weight::sum_of_values(weights) - rounding).clamp(0.0, upper);
    Enclosure::of_probability(lower, upper + rounding)
}

/// One direction in one crowd, the classes in the order high, row, low.
struct Divergence {
    crowd: CrowdLaws<3>,
    weights: [Weight; 3],
    request: DivergenceRequest,
}

impl Divergence {
    fn new(weights: [Weight; 3], roles: Roles, crowd: CrowdLaws<3>, request: DivergenceRequest) -> Self {
        let crowd = CrowdLaws { laws: crowd.laws.map(|law| roles.ordered(law)), ..crowd };
        Self { crowd, weights: roles.ordered(weights), request }
    }

    fn sum(&self, work: &WorkBudget) -> Enclosure {
        let whole = self.weights.iter().map(|weight| weight.first).sum::<f64>() * (1.0 + 8.0 * ROUNDOFF);
        let tilt = self.crowd.turning_tilt(self.weights.map(|weight| weight.value()));
        if let Some(negligible) = self.negligible(tilt, work) {
            return Enclosure::of_probability(0.0, negligible);
        }
        self.by_rows(tilt, whole, work).unwrap_or_else(|| Enclosure::of_probability(0.0, whole))
    }

    /// The sum over the rows, which is at most `whole`. `None` if the first row is lost in the noise or there is too much to
    /// compute.
    fn by_rows(&self, tilt: ClassTilt, whole: f64, work: &WorkBudget) -> Option<Enclosure> {
        let mut rows = RowSums::new(&self.crowd, &self.weights, tilt, self.request.precision)?;
        let start = rows.add(rows.center().row, rows.center().high)?;
        let beyond = RowSide::BOTH.map(|side| match self.request.ends {
            WantedEnds::Lower => self.walk_unbounded(&mut rows, start, side, whole),
            _ => self.walk(&mut rows, start, side, work),
        });
        work.spend(rows.steps());
        Some(rows.enclosure(beyond.iter().sum(), whole))
    }

    /// Adds the rows on one side of the first while they matter. The rest is only known to be part of the whole: a bound on it
    /// costs more than the rows.
    fn walk_unbounded(&self, rows: &mut RowSums, start: Turn, side: RowSide, whole: f64) -> f64 {
        let mut walk = RowWalk::new(rows.center().row, start);
        let reach = rows.deviation().max(1.0);
        while walk.row != rows.last(side) {
            let next = walk.row + side.step();
            let Some(turn) = rows.add(next, walk.next_turn()) else { break };
            walk.advance(next, turn);
            if rows.last_added() * reach <= self.request.tolerance(rows.value()) {
                break;
            }
        }
        whole
    }

    /// A bound at little cost, where it shows that the divergence does not matter.
    fn negligible(&self, tilt: ClassTilt, work: &WorkBudget) -> Option<f64> {
        let center = self.crowd.tilted(tilt).mean();
        let negligible = self.request.precision * self.request.goal;
        let likely = self.crowd.cumulant(tilt) - tilt.high * center.high - tilt.row * center.row < negligible.ln();
        if !likely {
            return None;
        }
        let bound = self.bound_without_rows(tilt, center.map(|mean| mean.round() as i64), 0.1 * negligible, work);
        (bound <= negligible).then_some(bound + f64::MIN_POSITIVE)
    }

    /// A bound on all positive terms, from the tails on both sides of the tilted mean.
    fn bound_without_rows(
        &self,
        tilt: ClassTilt,
        HighRow { high, row }: HighRow<i64>,
        negligible: f64,
        work: &WorkBudget,
    ) -> f64 {
        let slope = (tilt.row / tilt.high).clamp(0.0, 1.0);
        let bound = |side: RowSide, row: i64, slope: f64| {
            let tail = TailBound::new(&self.crowd, self.weights, tilt, side);
            let turn = tail.turn(row, high);
            tail.bound(Stair { row, turn, slope }, negligible, work)
        };
        bound(RowSide::Fewer, row + 1, slope) + bound(RowSide::More, row, -slope)
    }

    /// Adds the rows on one side of the first until the rest does not matter; returns a bound on the rest.
    fn walk(&self, rows: &mut RowSums, start: Turn, side: RowSide, work: &WorkBudget) -> f64 {
        let tail = TailBound::new(&self.crowd, self.weights, rows.tilt(), side);
        let mut walk = RowWalk::new(rows.center().row, start);
        let mut rows_to_next_look = 0;
        loop {
            let enough = self.request.tolerance(rows.value());
            let end = walk.row == rows.last(side);
            rows_to_next_look -= 1;
            if end || rows_to_next_look < 0 && rows.last_added() * rows.deviation() <= enough {
                let rest = tail.bound(walk.stair(), 0.2 * enough, work);
                if rest <= enough || end {
                    return rest;
                }
                rows_to_next_look = rows.deviation() as i64 / 4;
            }
            let next = walk.row + side.step();
            let Some(turn) = rows.add(next, walk.next_turn()) else {
                return tail.bound(walk.stair(), 0.2 * enough, work);
            };
            walk.advance(next, turn);
        }
    }
}

/// A walk from row to row: the row and the turn that it started with, and those that it has reached.
struct RowWalk {
    first: i64,
    start: Turn,
    row: i64,
    turn: Turn,
    /// The turn of the row before.
    before: Turn,
}

impl RowWalk {
    fn new(row: i64, turn: Turn) -> Self {
        Self { first: row, start: turn, row, turn, before: turn }
    }

    fn advance(&mut self, row: i64, turn: Turn) {
        (self.before, self.turn, self.row) = (self.turn, turn, row);
    }

    /// Where the terms of the next row probably turn: as far from the last turn as that is from the one before.
    fn next_turn(&self) -> i64 {
        2 * self.turn.count - self.before.count
    }

    /// The present row, and by how much the turn moved from row to row, on average since the first.
    fn stair(&self) -> Stair {
        let rows = (self.row - self.first).abs().max(1);
        let slope = (self.turn.count - self.start.count) as f64 / rows as f64;
        Stair { row: self.row, turn: self.turn.certain, slope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::likelihood::{Crowd, Direction, OneTruth};
    use crate::privacy::tests::channel;
    use crate::privacy::work::WorkLimit;
    use crate::privacy::{Accountant, answer_with_release, release};
    use crate::truth::Truth;
    use proptest::prelude::*;

    /// Against the array of all histograms, to which owners are added one by one.
    fn agrees(accountant: &Accountant, yes: u64, no: u64, at: f64) -> Result<(), TestCaseError> {
        let view = accountant.reduced_view();
        let work = WorkBudget::within(WorkLimit::default(), yes + no + 1);
        let request = DivergenceRequest::new(at, -80.0, 0.0);
        let crowd = Crowd { yes, no };
        let (truth, found) = (view.enumerated(crowd, at.exp()), view.both_truths(crowd, request, &work));
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

    /// Where crowds are too large for arrays: the crowd of one truth is known by another formula, and one owner of the other
    /// truth among many changes next to nothing.
    #[test]
    fn joins_the_crowds_of_one_truth() {
        let channel = channel("normal-form(f=0.4,r=0.1)");
        let accountant = release(&channel, 100_001).expect("owners");
        let view = accountant.reduced_view();
        let work = WorkBudget::within(WorkLimit::default(), 100_001);
        let request = DivergenceRequest { precision: 1e-6, ..DivergenceRequest::new(0.008, -80.0, 0.0) };
        let of_no = |owners: u64| view.one_truth(OneTruth { truth: Truth::No, owners }, request, &work);
        let [fewer, all] = [99_998, 100_000].map(of_no);
        let mixed = view.both_truths(Crowd { yes: 1, no: 99_999 }, request, &work);
        for which in Direction::BOTH {
            assert!(mixed[which].upper() >= all[which].lower() * 0.999 && mixed[which].lower() <= fewer[which].upper());
            assert!(mixed[which].upper() <= mixed[which].lower() * (1.0 + 4e-6), "{:?}", mixed[which]);
            assert!(fewer[which].upper() <= all[which].upper() * 1.01 && mixed[which].lower() > 1e-9);
        }
    }
}
