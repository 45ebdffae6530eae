//! What a bound on the linked ε costs if the aggregators add noise: then it is the only reason for a local channel.

use std::iter;

use super::least_sd;
use super::request::{Noise, Request, Trust};
use crate::error::Result;

/// The least error at a bound of the linked ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tradeoff {
    /// The bound, if there is one.
    pub linked: Option<f64>,
    /// The standard deviation of the estimate.
    pub sd: f64,
}

/// The bounds that are tried if one honest aggregator is enough.
const BOUNDS: [f64; 11] = [14.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0];
/// The bounds that are tried if each takes a search with certificates.
const FEWER_BOUNDS: [f64; 4] = [12.0, 9.0, 7.0, 5.0];

/// The least error of a request without a bound on the linked ε, and at smaller and smaller bounds. A bound under which there
/// is no plan has no entry.
///
/// ```
/// use uptack::plan::{Prior, Request, tradeoff};
/// use uptack::privacy::Epsilon;
/// let request = Request::one_aggregator(50_000, Prior::at(500), Epsilon::new(1.0)?)?;
/// let tradeoff = tradeoff(&request)?;
/// assert_eq!(tradeoff[0].linked, None);
/// assert!(tradeoff.windows(2).all(|pair| pair[0].sd <= pair[1].sd));
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn tradeoff(request: &Request) -> Result<Vec<Tradeoff>> {
    request.check()?;
    let bounds: &[f64] = if request.trust == Trust::OneAggregator { &BOUNDS } else { &FEWER_BOUNDS };
    let linked = iter::once(None).chain(bounds.iter().copied().map(Some));
    Ok(linked.filter_map(|linked| at(request, linked)).collect())
}

fn at(request: &Request, linked: Option<f64>) -> Option<Tradeoff> {
    let sd = least_sd(&Request { linked_epsilon: linked, ..request.clone() }).ok()?;
    Some(Tradeoff { linked, sd })
}

/// The same with the plan's own bound among the others; empty without noise, where the release itself needs a local channel.
pub(super) fn around(request: &Request, sd: f64) -> Vec<Tradeoff> {
    if request.noise == Noise::None {
        return Vec::new();
    }
    let mut all = tradeoff(request).unwrap_or_default();
    all.retain(|other| other.linked != request.linked_epsilon);
    all.push(Tradeoff { linked: request.linked_epsilon, sd });
    let looseness = |one: &Tradeoff| one.linked.unwrap_or(f64::INFINITY);
    all.sort_by(|one, other| looseness(other).total_cmp(&looseness(one)));
    all
}
