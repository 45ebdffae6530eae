//! What a bound on the linked ε costs if the aggregators add noise: the only reason left for a local channel.

use super::least_sd;
use super::request::{Noise, Request, Trust};
use crate::error::Error;

/// The least error at a bound of the linked ε.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tradeoff {
    /// The bound; none where there is none.
    pub linked: Option<f64>,
    /// The standard deviation of the estimate.
    pub sd: f64,
}

/// The bounds that are looked at if one honest aggregator is enough.
const BOUNDS: [f64; 11] = [14.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0];
/// The same where each takes a search with certificates.
const FEWER_BOUNDS: [f64; 4] = [12.0, 9.0, 7.0, 5.0];

/// The least error of a request without a bound on the linked ε, and at smaller and smaller ones; where there is no plan,
/// there is no entry.
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
pub fn tradeoff(request: &Request) -> Result<Vec<Tradeoff>, Error> {
    request.check()?;
    let bounds: &[f64] = if request.trust == Trust::OneAggregator { &BOUNDS } else { &FEWER_BOUNDS };
    let at = |linked: Option<f64>| {
        let sd = least_sd(&Request { linked_epsilon: linked, ..request.clone() }).ok()?;
        Some(Tradeoff { linked, sd })
    };
    Ok(std::iter::once(None).chain(bounds.iter().copied().map(Some)).filter_map(at).collect())
}

/// The same with what was planned among it; empty without noise, where nothing forces a local channel apart from the release.
pub(super) fn around(request: &Request, sd: f64) -> Vec<Tradeoff> {
    if request.noise == Noise::None {
        return Vec::new();
    }
    let planned = Tradeoff { linked: request.linked_epsilon, sd };
    let mut all = tradeoff(request).unwrap_or_default();
    all.retain(|other| other.linked != planned.linked);
    all.push(planned);
    let looseness = |one: &Tradeoff| one.linked.unwrap_or(f64::INFINITY);
    all.sort_by(|a, b| looseness(b).total_cmp(&looseness(a)));
    all
}
