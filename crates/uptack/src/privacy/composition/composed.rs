//! The guarantee of a list of queries that was fixed in advance, a ballot's among them (`docs/composition.md`, "What is claimed,
//! and when it holds" and "Ballots").

use super::convolution::{
    CellRange, HockeyStickBounds, RepeatedQuery, infinite_mass, log_moment, query_count, sum_over_queries,
    tilted_moments,
};
use super::{Accuracy, LossDistribution, at_least_one, not_negative, open_probability};
use crate::certified::root::{Middle, bisect};
use crate::certified::rounding::{Enclosure, ROUNDOFF, up};
use crate::{Error, Result};

/// The most queries in one composition.
const MOST_REPETITIONS: u64 = 1_000_000_000;
/// The longest transform; a sum that needs more is put on a coarser grid.
const LONGEST_TRANSFORM: usize = 1 << 21;
/// Halvings of an interval; more change nothing in a double.
const HALVINGS: usize = 64;
/// The part of δ that a lower bound gives up for the improbable case that many losses are rounded the same way.
const IMPROBABLE: f64 = 1e-3;

/// Queries whose channels, or profiles that dominate them, were fixed before the first coin was tossed, each answered
/// with fresh coins.
///
/// The list is closed when it is made: there is no way to add a query later. Queries that are chosen on the way need
/// a [`Filter`](super::Filter).
#[derive(Debug, Clone)]
pub struct FixedInAdvance {
    parts: Vec<RepeatedQuery>,
}

impl FixedInAdvance {
    /// The same query (or different queries that one profile dominates), `times` times.
    pub fn repeated(loss: LossDistribution, times: u64) -> Result<Self> {
        Self::new([(loss, times)])
    }

    /// Different queries, each with its number of repetitions.
    pub fn new(queries: impl IntoIterator<Item = (LossDistribution, u64)>) -> Result<Self> {
        let parts: Vec<RepeatedQuery> =
            queries.into_iter().map(|(loss, times)| RepeatedQuery { loss, times }).collect();
        at_least_one("the number of queries", parts.len() as u64)?;
        for part in &parts {
            at_least_one("the number of repetitions", part.times)?;
        }
        let total = parts.iter().map(|part| part.times).fold(0, u64::saturating_add);
        if total > MOST_REPETITIONS {
            return Err(Error::request(format!("{total} queries are more than the {MOST_REPETITIONS} supported")));
        }
        Ok(Self { parts })
    }
}

/// The composed guarantee of a [`FixedInAdvance`] list.
///
/// The upper end of an answer is the claim. The lower end bounds the composition of the pair of laws whose profile is *exactly*
/// the given one (or lies above it): the gap says what discretization and arithmetic cost at most. A query whose worst crowd or
/// direction changes with ε may be better than that pair, never worse: where the profile is a maximum over several pairs, the
/// lower end is not a lower bound for any one of them.
#[derive(Debug, Clone)]
pub struct Composition {
    parts: Vec<RepeatedQuery>,
    spacing: f64,
}

impl Composition {
    /// Puts all queries on one grid.
    pub fn new(queries: FixedInAdvance) -> Self {
        let mut parts = queries.parts;
        let mut spacing = common_spacing(&parts);
        coarsen(&mut parts, spacing);
        while CellRange::new(&parts, 0.0, spacing).length() > LONGEST_TRANSFORM {
            spacing *= 2.0;
            coarsen(&mut parts, spacing);
        }
        Self { parts, spacing }
    }

    /// Queries that are on one grid already, as they are.
    pub(super) fn on_grid(parts: Vec<RepeatedQuery>, spacing: f64) -> Self {
        Self { parts, spacing }
    }

    /// The distance of two knots of the grid.
    pub(super) fn spacing(&self) -> f64 {
        self.spacing
    }

    /// The tail of the composed measure, sharp around `epsilon`.
    pub(super) fn tail_at(&self, epsilon: f64) -> HockeyStickBounds {
        self.tail(self.order_for(epsilon), epsilon)
    }

    /// The mass at infinite loss: below this δ there is no guarantee (upper bound).
    pub fn floor(&self) -> f64 {
        infinite_mass(&self.parts).upper()
    }

    /// δ at `epsilon` ≥ 0.
    pub fn delta(&self, epsilon: f64) -> Result<Enclosure> {
        let epsilon = not_negative("epsilon", epsilon)?;
        if self.floor() >= 1.0 {
            return Ok(Enclosure::new(infinite_mass(&self.parts).lower(), 1.0));
        }
        let tail = self.tail_at(epsilon);
        let upper = self.single_delta(epsilon).unwrap_or(f64::INFINITY).min(tail.upper(epsilon));
        let improbable = (upper * IMPROBABLE).max(f64::MIN_POSITIVE);
        let lower = self.lower_delta(&tail, epsilon, improbable);
        Ok(Enclosure::new(lower.min(upper), upper))
    }

    /// The least ε that is certified at `delta`, or `None` if there is none: the mass at infinity is larger.
    pub fn epsilon(&self, delta: f64) -> Result<Option<Enclosure>> {
        let delta = open_probability(delta)?;
        let floor = self.floor();
        if delta <= floor {
            return Ok(None);
        }
        let (tail, found) = self.certified_epsilon(delta, floor);
        let best = found.into_iter().chain(self.single_epsilon(delta)).fold(f64::INFINITY, f64::min);
        if !best.is_finite() {
            return Ok(None);
        }
        let lower = self.lower_epsilon(&tail, delta).min(best);
        Ok(Some(Enclosure::new(lower, best)))
    }

    /// The least ε that a tail certifies, if one does, and the last tail made: the first is centred on Chernoff's guess, the
    /// second on the result of the first.
    fn certified_epsilon(&self, delta: f64, floor: f64) -> (HockeyStickBounds, Option<f64>) {
        let least = |tail: &HockeyStickBounds| least_epsilon(tail.top(), delta, |epsilon| tail.upper(epsilon));
        let first = self.tail_at(self.chernoff((delta - floor).max(delta * 1e-9)));
        let Some(found) = least(&first) else { return (first, None) };
        let second = self.tail_at(found);
        let best = least(&second).map_or(found, |finer| finer.min(found));
        (second, Some(best))
    }

    /// The least ε of a query that is asked once, without a convolution.
    fn single_epsilon(&self, delta: f64) -> Option<f64> {
        let loss = self.single()?;
        least_epsilon(loss.largest_finite_loss(), delta, |epsilon| loss.delta(epsilon).unwrap_or(1.0))
    }

    /// δ of a query that is asked once, without a convolution.
    fn single_delta(&self, epsilon: f64) -> Option<f64> {
        self.single()?.delta(epsilon).ok()
    }

    /// The loss of the only query, if it is asked once.
    fn single(&self) -> Option<&LossDistribution> {
        match &self.parts[..] {
            [RepeatedQuery { loss, times: 1 }] => Some(loss),
            _ => None,
        }
    }

    fn tail(&self, order: f64, focus: f64) -> HockeyStickBounds {
        HockeyStickBounds::new(&self.parts, CellRange::new(&self.parts, order, self.spacing), focus)
    }

    /// A tilt beyond one cell's worth gains nothing.
    fn largest_order(&self) -> f64 {
        1.0 / self.spacing
    }

    /// The tilt that puts the mean of the sum at `epsilon`.
    fn order_for(&self, epsilon: f64) -> f64 {
        let mean = |order: f64| tilted_moments(&self.parts, order).0;
        if mean(0.0) >= epsilon {
            return 0.0;
        }
        let (low, high) = (1e-9_f64.min(self.largest_order() / 2.0), self.largest_order());
        if mean(high) <= epsilon {
            return high;
        }
        let close = |low: f64, high: f64| high <= 1.02 * low;
        bisect((low, high), Middle::Geometric, usize::MAX, close, |order| mean(order) < epsilon).0
    }

    /// The ε that Chernoff's bound alone would certify, where the search starts.
    fn chernoff(&self, delta: f64) -> f64 {
        let value = |order: f64| (log_moment(&self.parts, order) - delta.ln()) / order;
        let (mut low, mut high) = ((1e-9 * self.largest_order()).ln(), self.largest_order().ln());
        for _ in 0..48 {
            let (left, right) = (low + (high - low) * 0.382, low + (high - low) * 0.618);
            if value(left.exp()) < value(right.exp()) {
                high = right;
            } else {
                low = left;
            }
        }
        value(low.exp()).clamp(0.0, 1e12)
    }

    /// How far rounding to knots may have raised the sum of losses, except with probability `improbable` (Hoeffding).
    fn shift(&self, improbable: f64) -> f64 {
        let (mut drift, mut squares, mut most) = (0.0, 0.0, 0.0);
        for part in &self.parts {
            let (count, spacing) = (part.count(), part.loss.spacing());
            drift += count * spacing * spacing / 8.0 * (1.0 + spacing);
            squares += count * spacing * spacing;
            most += count * spacing;
        }
        let likely = drift + (squares * -improbable.ln() / 2.0).sqrt();
        up(f64::min(most, likely), 64.0 * ROUNDOFF * self.parts.len() as f64)
    }

    /// A lower bound on δ: the probability `improbable` of being shifted further and the mass moved are subtracted.
    fn lower_delta(&self, tail: &HockeyStickBounds, epsilon: f64, improbable: f64) -> f64 {
        let log_inflation = sum_over_queries(&self.parts, |part| part.loss.inflation().ln());
        let moved = sum_over_queries(&self.parts, |part| part.loss.moved());
        let measured = tail.lower(epsilon + self.shift(improbable)) * (-log_inflation).exp() * (1.0 - 1e-12);
        (measured - (improbable + moved) * (1.0 + 1e-12)).max(0.0)
    }

    fn lower_epsilon(&self, tail: &HockeyStickBounds, delta: f64) -> f64 {
        let above = |epsilon: f64| self.lower_delta(tail, epsilon, delta * IMPROBABLE) > delta;
        if !above(0.0) {
            return 0.0;
        }
        bisect((0.0, tail.top().max(0.0)), Middle::Arithmetic, HALVINGS, |_, _| false, above).0
    }
}

/// The coarsest grid, a power of two times the finest of all parts, with enough cells for the usual deviation of one query.
fn common_spacing(parts: &[RepeatedQuery]) -> f64 {
    let wanted = usual_deviation(parts) / f64::from(Accuracy::CELLS_PER_DEVIATION);
    let mut spacing = parts.iter().map(|part| part.loss.spacing()).fold(f64::INFINITY, f64::min);
    while 2.0 * spacing <= wanted {
        spacing *= 2.0;
    }
    spacing
}

/// The root mean square of the deviations of all queries.
fn usual_deviation(parts: &[RepeatedQuery]) -> f64 {
    (sum_over_queries(parts, |part| part.loss.deviation().powi(2)) / query_count(parts)).sqrt()
}

/// Puts all parts on a grid of at least this spacing.
fn coarsen(parts: &mut [RepeatedQuery], spacing: f64) {
    for part in parts {
        while part.loss.spacing() < spacing {
            part.loss = part.loss.coarsened();
        }
    }
}

/// The least ε in [0, top] at which `curve` is certified to be at most `delta`.
fn least_epsilon(top: f64, delta: f64, curve: impl Fn(f64) -> f64) -> Option<f64> {
    let top = top.max(0.0);
    if curve(top) > delta {
        return None;
    }
    if curve(0.0) <= delta {
        return Some(0.0);
    }
    let holds = |epsilon: f64| curve(epsilon) <= delta;
    Some(bisect((0.0, top), Middle::Arithmetic, HALVINGS, |_, _| false, |epsilon| !holds(epsilon)).1)
}

/// K queries that everybody answers, with at most k *yes* per owner and independent coins for every query.
///
/// Replacing one owner's ballot by another moves at most k truths from yes to no and at most k from no to yes; the
/// answers to all other queries keep their law whatever the truth. So only min(2k, K) queries count. Needs that
/// **everybody answers all K**: an owner who answers only when the truth is yes reveals it.
///
/// ```
/// use uptack::privacy::composition::Ballot;
/// assert_eq!(Ballot::new(1000, 1)?.changing_queries(), 2);
/// assert_eq!(Ballot::new(5, 4)?.changing_queries(), 5);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ballot {
    queries: u64,
    most_yes: u64,
}

impl Ballot {
    /// A ballot of `queries` with at most `most_yes` *yes* per owner.
    pub fn new(queries: u64, most_yes: u64) -> Result<Self> {
        at_least_one("the number of queries of a ballot", queries)?;
        at_least_one("the number of yes a ballot allows", most_yes)?;
        if most_yes > queries {
            return Err(Error::request(format!(
                "at most {most_yes} yes per owner, but the ballot has only {queries} queries"
            )));
        }
        Ok(Self { queries, most_yes })
    }

    /// The largest number of queries in which two ballots of one owner differ.
    pub fn changing_queries(&self) -> u64 {
        self.most_yes.saturating_mul(2).min(self.queries)
    }

    /// The guarantee for one owner's whole ballot, if `loss` dominates each of its queries.
    pub fn guarantee(&self, loss: LossDistribution) -> Result<Composition> {
        Ok(Composition::new(FixedInAdvance::repeated(loss, self.changing_queries())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::composition::{Accuracy, LaplaceProfile};

    #[test]
    fn a_ballot_costs_its_changing_queries() {
        let profile = LaplaceProfile::new(0.5).unwrap();
        let loss = LossDistribution::from_profile(&profile, Accuracy::for_repetitions(6, 1e-6)).unwrap();
        let ballot = Ballot::new(40, 3).unwrap().guarantee(loss.clone()).unwrap();
        let direct = Composition::new(FixedInAdvance::repeated(loss, 6).unwrap());
        assert_eq!(ballot.epsilon(1e-6).unwrap(), direct.epsilon(1e-6).unwrap());
        // At most the pure sum, up to the one cell per query that reading the profile may cost.
        assert!(ballot.epsilon(1e-6).unwrap().unwrap().upper() <= 3.0 + 6.0 / 64.0);
    }

    #[test]
    fn bad_ballots_are_refused() {
        assert!(Ballot::new(0, 1).is_err() && Ballot::new(3, 0).is_err());
        let error = Ballot::new(3, 4).unwrap_err();
        assert!(error.to_string().contains("only 3 queries"));
    }
}
