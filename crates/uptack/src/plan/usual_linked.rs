//! The linked ε of a plan that is given none: coins that are nearly free.
//!
//! The error falls as the linked ε grows, and levels off: beyond some point, weaker coins gain almost nothing. A plan takes the
//! strongest coins that cost little, and never weaker ones than policies usually allow.

use super::least_sd;
use super::request::{Noise, Request, Trust, USUAL_LINKED_EPSILON};
use super::solve::Tradeoff;
use crate::display::{self, Rounding};

/// The share by which the owners' coins may raise the error, unless a linked ε is given.
pub const NEARLY_FREE: f64 = 0.1;
/// The linked ε is a multiple of one over this.
const STEPS: u32 = 10;

/// The linked ε of a plan with noise, unless one is given: the smallest with which the error is at most [`NEARLY_FREE`] above the
/// error without any coins, and at most `error` if that is given; or [`USUAL_LINKED_EPSILON`] if that is smaller. It has one
/// decimal.
///
/// ```
/// use uptack::plan::{Prior, Request, usual_linked_epsilon};
/// use uptack::privacy::Epsilon;
/// let request = |owners| Request::one_aggregator(owners, Prior::at(50), Epsilon::new(1.0)?);
/// // Few owners make few mistakes by chance, so strong coins cost little.
/// assert!(usual_linked_epsilon(&request(500)?, None) < 7.0);
/// assert_eq!(usual_linked_epsilon(&request(50_000)?, None), 8.0);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn usual_linked_epsilon(request: &Request, error: Option<f64>) -> f64 {
    let Ok(free) = least_sd(&bounded(request, None)) else { return USUAL_LINKED_EPSILON };
    let most = (free * (1.0 + NEARLY_FREE)).min(error.unwrap_or(f64::INFINITY));
    let linked = |step: u32| f64::from(step) / f64::from(STEPS);
    let is_enough = |step: u32| least_sd(&bounded(request, Some(linked(step)))).is_ok_and(|sd| sd <= most);
    let usual = (USUAL_LINKED_EPSILON * f64::from(STEPS)) as u32;
    linked(first_enough(usual, is_enough))
}

/// The request with another bound. Coins and noise together are not ordered by what they reveal, and slow to account for: one
/// honest aggregator decides.
fn bounded(request: &Request, linked_epsilon: Option<f64>) -> Request {
    let (noise, trust) = (Noise::Aggregators, Trust::OneAggregator);
    Request { linked_epsilon, linked_epsilon_for_noise_only: false, noise, trust, ..request.clone() }
}

/// The first number up to `last` that is enough, by halving; `last` if no smaller one is.
fn first_enough(last: u32, is_enough: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, last);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Which linked ε was chosen for a request and what its coins cost, given the error of its plan; `None` if it was given one.
pub fn linked_words(request: &Request, sd: f64) -> Option<String> {
    let free = least_sd(&bounded(request, None)).ok()?;
    words(request, &[Tradeoff { linked: None, sd: free }], sd)
}

/// The same with the errors of the plan's trade-off.
pub(super) fn words(request: &Request, tradeoff: &[Tradeoff], sd: f64) -> Option<String> {
    let linked = request.linked_epsilon.filter(|_| request.linked_epsilon_for_noise_only)?;
    let free = tradeoff.iter().find(|one| one.linked.is_none())?.sd;
    let cost = (sd / free - 1.0).max(0.0);
    let why = if cost > NEARLY_FREE { "is the most that policies usually allow; it has" } else { "was chosen:" };
    Some(format!(
        "Linked ε {} {why} coins that cost {} of the error.",
        display::nearest(linked),
        display::percent(cost, 0, Rounding::Nearest)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Asked, Prior};
    use crate::privacy::Epsilon;

    fn request(asked: Asked, owners: u64) -> Request {
        let request = Request::one_aggregator(owners, Prior::at(20), Epsilon::new(1.0).unwrap()).unwrap();
        Request { asked, ..request }
    }

    /// One step less would cost more than a tenth, and the step itself does not.
    #[test]
    fn the_strongest_coins_that_are_nearly_free_are_chosen() {
        let series = Asked::Counts { counts: 12, most: 1 };
        for (asked, owners) in [(Asked::YesNo, 100), (Asked::YesNo, 1000), (Asked::Options(12), 100), (series, 200)] {
            let request = request(asked, owners);
            let at = |linked| least_sd(&Request { linked_epsilon: linked, ..request.clone() }).unwrap();
            let (linked, free) = (usual_linked_epsilon(&request, None), at(None));
            assert!(linked < 8.0 && at(Some(linked)) <= 1.1 * free, "{asked:?} {owners}: {linked}");
            assert!(at(Some(linked - 0.1)) > 1.1 * free, "{asked:?} {owners}: {linked}");
            let wanted = 1.05 * free;
            let larger = usual_linked_epsilon(&request, Some(wanted));
            assert!(larger > linked && at(Some(larger)) <= wanted, "{asked:?} {owners}: {larger}");
        }
    }

    #[test]
    fn it_is_never_more_than_policies_usually_allow() {
        for asked in [Asked::YesNo, Asked::Options(12), Asked::Counts { counts: 288, most: 2 }] {
            assert_eq!(usual_linked_epsilon(&request(asked, 50_000), None), USUAL_LINKED_EPSILON);
            // Nothing is enough for an error that cannot be attained.
            assert_eq!(usual_linked_epsilon(&request(asked, 50_000), Some(0.01)), USUAL_LINKED_EPSILON);
        }
    }

    #[test]
    fn sentences_say_what_was_chosen_and_what_it_costs() {
        let mut request = request(Asked::YesNo, 100);
        let tradeoff = [Tradeoff { linked: None, sd: 2.0 }];
        assert_eq!(words(&request, &tradeoff, 2.1), None);
        (request.linked_epsilon, request.linked_epsilon_for_noise_only) = (Some(5.2), true);
        assert_eq!(
            words(&request, &tradeoff, 2.08).unwrap(),
            "Linked ε 5.2 was chosen: coins that cost 4 % of the error."
        );
        request.linked_epsilon = Some(8.0);
        assert_eq!(
            words(&request, &tradeoff, 4.0).unwrap(),
            "Linked ε 8 is the most that policies usually allow; it has coins that cost 100 % of the error."
        );
    }
}
