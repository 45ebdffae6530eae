//! The answers to many queries at once.

use super::interval::{Confidence, IntervalKind};
use crate::certified::root::{MOST_HALVINGS, Middle, bisect};
use crate::error::{Error, Result};

/// How the confidence of a whole family of intervals is shared among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// α/K each: holds however the queries depend on each other.
    Bonferroni,
    /// 1 − (1−α)^(1/K) each: a little narrower; holds for independent queries.
    Sidak,
}

/// The confidence that each of `queries` intervals needs, so that all of them hold at once with confidence `all`.
///
/// Use the kind that [`simultaneous_kind`] names.
///
/// ```
/// use uptack::estimate::{Confidence, many::{Sharing, simultaneous}};
/// let each = simultaneous(Confidence::new(0.95)?, 1000, Sharing::Bonferroni)?;
/// assert!((each.miss() - 5e-5).abs() < 1e-12);
/// assert!(simultaneous(Confidence::new(0.95)?, 1000, Sharing::Sidak)?.miss() > each.miss());
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn simultaneous(all: Confidence, queries: usize, sharing: Sharing) -> Result<Confidence> {
    if queries == 0 {
        return Err(Error::request("there are no queries"));
    }
    let count = queries as f64;
    Confidence::of_miss(match sharing {
        Sharing::Bonferroni => all.miss() / count,
        Sharing::Sidak => -((-all.miss()).ln_1p() / count).exp_m1(),
    })
}

/// The kind that intervals must have for all of them to hold at once with the confidence that was shared: `Exact` in place of `Auto`,
/// which may miss a tenth more often than it says. Any other kind is what was asked for; beware of the far tails of `Score`.
pub fn simultaneous_kind(asked: IntervalKind) -> IntervalKind {
    match asked {
        IntervalKind::Auto => IntervalKind::Exact,
        IntervalKind::Exact | IntervalKind::MidP | IntervalKind::Score => asked,
    }
}

/// One query's estimate made consistent with the others'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Consistent {
    /// The adjusted estimate.
    pub estimate: f64,
    /// Its standard deviation before the bound at 0 is enforced, which is at most what it was.
    pub sd: f64,
}

/// Makes estimates consistent if every owner is a yes-owner of exactly one query: non-negative, and summing to `owners`.
///
/// The result is the nearest such vector, each difference measured in its own variance: the excess of the sum is shared
/// out in proportion to the variances, and what would become negative is 0. Intervals are clipped, not projected.
///
/// ```
/// use uptack::estimate::many::consistent;
/// let adjusted = consistent(&[(50.0, 2.0), (30.0, 2.0), (-4.0, 4.0)], 80)?;
/// let sum: f64 = adjusted.iter().map(|query| query.estimate).sum();
/// assert!((sum - 80.0).abs() < 1e-9);
/// assert!(adjusted.iter().all(|query| query.estimate >= 0.0));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn consistent(estimates: &[(f64, f64)], owners: u64) -> Result<Vec<Consistent>> {
    check_estimates(estimates)?;
    let total_variance: f64 = estimates.iter().map(|(_, sd)| sd * sd).sum();
    if total_variance == 0.0 {
        return certain(estimates, owners);
    }
    let projection = Projection { price: price(estimates, owners as f64), total_variance };
    Ok(estimates.iter().map(|&(estimate, sd)| projection.of(estimate, sd)).collect())
}

/// Makes estimates consistent if every owner is a yes-owner of at most `most_yes` queries: each between 0 and `owners`, and summing to
/// at most `most_yes`·`owners`.
///
/// As in [`consistent`], the result is the nearest such vector, each difference measured in its own variance. Nothing but an excess
/// of the sum is shared out: owners may be yes-owners of no query.
///
/// ```
/// use uptack::estimate::many::consistent_at_most;
/// assert_eq!(consistent_at_most(&[(50.0, 2.0), (30.0, 2.0), (-4.0, 4.0)], 100, 1)?, [50.0, 30.0, 0.0]);
/// assert_eq!(consistent_at_most(&[(50.0, 2.0), (40.0, 2.0), (-4.0, 4.0)], 80, 1)?, [45.0, 35.0, 0.0]);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn consistent_at_most(estimates: &[(f64, f64)], owners: u64, most_yes: u64) -> Result<Vec<f64>> {
    check_estimates(estimates)?;
    let (each, most) = (owners as f64, most_yes as f64 * owners as f64);
    let at = |price: f64| estimates.iter().map(move |&(estimate, sd)| (estimate - price * sd * sd).clamp(0.0, each));
    let exceeds = |price: f64| at(price).sum::<f64>() > most;
    if !exceeds(0.0) {
        return Ok(at(0.0).collect());
    }
    // At this price nothing uncertain is left.
    let highest = by_falling_price(estimates).first().map_or(0.0, |(estimate, variance)| estimate / variance);
    let (_, price) = bisect((0.0, highest), Middle::Arithmetic, MOST_HALVINGS, |_, _| false, exceeds);
    Ok(at(price).collect())
}

/// The projection onto consistent estimates.
struct Projection {
    price: f64,
    total_variance: f64,
}

impl Projection {
    fn of(&self, estimate: f64, sd: f64) -> Consistent {
        let variance = sd * sd;
        Consistent {
            estimate: (estimate - self.price * variance).max(0.0),
            sd: (variance - variance * variance / self.total_variance).max(0.0).sqrt(),
        }
    }
}

fn check_estimates(estimates: &[(f64, f64)]) -> Result<()> {
    if estimates.is_empty() {
        return Err(Error::request("there are no estimates"));
    }
    let wrong = |&(estimate, sd): &(f64, f64)| !estimate.is_finite() || !sd.is_finite() || sd < 0.0;
    match estimates.iter().position(wrong) {
        Some(query) => Err(Error::request(format!("estimate {} is not a number with a standard deviation", query + 1))),
        None => Ok(()),
    }
}

/// The μ for which Σ max(0, estimate − μ·variance) = owners: the multiplier of the sum's constraint.
///
/// The sum is piecewise linear and falls in μ; each estimate drops out at estimate/variance. Certain estimates
/// (variance 0) do not move.
fn price(estimates: &[(f64, f64)], owners: f64) -> f64 {
    let (mut sum, mut variance) = (sum_of_certain(estimates) - owners, 0.0);
    let mut price = 0.0;
    let mut active = by_falling_price(estimates).into_iter().peekable();
    while let Some((estimate, own)) = active.next() {
        sum += estimate;
        variance += own;
        price = sum / variance;
        let next_drops_in = active.peek().map(|next| next.0 / next.1);
        if next_drops_in.is_none_or(|ratio| price >= ratio) {
            break;
        }
    }
    price
}

fn sum_of_certain(estimates: &[(f64, f64)]) -> f64 {
    estimates.iter().filter(|(_, sd)| *sd == 0.0).map(|(estimate, _)| estimate.max(0.0)).sum()
}

/// The uncertain estimates with their variances, those that reach 0 at the highest price first.
fn by_falling_price(estimates: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let with_variance = estimates.iter().map(|&(estimate, sd)| (estimate, sd * sd));
    let mut active: Vec<(f64, f64)> = with_variance.filter(|(_, variance)| *variance > 0.0).collect();
    active.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
    active
}

/// Estimates that are all certain are consistent, or cannot be made so.
fn certain(estimates: &[(f64, f64)], owners: u64) -> Result<Vec<Consistent>> {
    let sum: f64 = estimates.iter().map(|(estimate, _)| estimate).sum();
    if sum != owners as f64 {
        return Err(Error::request(format!("certain estimates sum to {sum}, not to the {owners} owners")));
    }
    Ok(estimates.iter().map(|&(estimate, sd)| Consistent { estimate, sd }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_a_negative_one_the_excess_is_shared_by_variance() {
        let adjusted = consistent(&[(50.0, 1.0), (40.0, 2.0)], 100).unwrap();
        assert!((adjusted[0].estimate - 52.0).abs() < 1e-12);
        assert!((adjusted[1].estimate - 48.0).abs() < 1e-12);
        assert!((adjusted[0].sd - (1.0f64 - 1.0 / 5.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn intervals_that_hold_at_once_are_exact() {
        assert_eq!(simultaneous_kind(IntervalKind::Auto), IntervalKind::Exact);
        assert_eq!(simultaneous_kind(IntervalKind::MidP), IntervalKind::MidP);
    }

    #[test]
    fn bad_estimates_are_refused() {
        assert!(consistent(&[], 10).is_err());
        assert!(consistent(&[(f64::NAN, 1.0)], 10).is_err());
        assert!(consistent(&[(1.0, -1.0)], 10).is_err());
        assert!(consistent(&[(1.0, 0.0)], 10).is_err());
        assert!(simultaneous(Confidence::new(0.9).unwrap(), 0, Sharing::Sidak).is_err());
    }

    proptest! {
        /// Where the sum is reached and nobody exceeds the owners, both projections are one.
        #[test]
        fn at_most_is_exactly_where_the_sum_is_too_large(estimates in prop::collection::vec((-50.0f64..200.0, 0.1f64..30.0), 1..40), owners in 200u64..5000, most_yes in 1u64..3) {
            let adjusted = consistent_at_most(&estimates, owners, most_yes).unwrap();
            let most = (owners * most_yes) as f64;
            prop_assert!(adjusted.iter().all(|estimate| (0.0..=owners as f64).contains(estimate)));
            prop_assert!(adjusted.iter().sum::<f64>() <= most * (1.0 + 1e-12));
            let clipped: Vec<f64> = estimates.iter().map(|(estimate, _)| estimate.max(0.0)).collect();
            if clipped.iter().sum::<f64>() <= most {
                prop_assert_eq!(adjusted, clipped);
            } else if most_yes == 1 {
                let exactly = consistent(&estimates, owners).unwrap();
                prop_assert!(adjusted.iter().zip(exactly).all(|(one, other)| (one - other.estimate).abs() < 1e-6));
            }
        }

        #[test]
        fn sums_and_stays_non_negative(estimates in prop::collection::vec((-50.0f64..200.0, 0.1f64..30.0), 1..40), owners in 1u64..5000) {
            let adjusted = consistent(&estimates, owners).unwrap();
            let sum: f64 = adjusted.iter().map(|query| query.estimate).sum();
            prop_assert!((sum - owners as f64).abs() < 1e-6 * owners as f64, "{sum} {owners}");
            prop_assert!(adjusted.iter().all(|query| query.estimate >= 0.0));
            // Optimality: all that are above 0 moved by the same multiple of their variance, the others by less.
            let price = |i: usize| (estimates[i].0 - adjusted[i].estimate) / (estimates[i].1 * estimates[i].1);
            let inside: Vec<usize> = (0..estimates.len()).filter(|&i| adjusted[i].estimate > 1e-9).collect();
            if let Some(&first) = inside.first() {
                for i in 0..estimates.len() {
                    let same = (price(i) - price(first)).abs() < 1e-6 * price(first).abs().max(1.0);
                    let lower = !inside.contains(&i) && price(i) <= price(first);
                    prop_assert!(same || lower);
                }
            }
        }
    }
}
