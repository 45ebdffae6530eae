//! The best mechanism of every family if one honest aggregator has to be enough.

use super::boxes::{self, Best};
use super::region::{Goal, Region};
use super::written;
use crate::mechanism::Mechanism;
use crate::plan::family::Family;
use crate::plan::request::Request;
use crate::privacy::Guarantee;

/// A mechanism that keeps the request, by the exact claim for one honest aggregator.
#[derive(Clone, Debug)]
pub(in crate::plan) struct Planned {
    pub(in crate::plan) family: Family,
    pub(in crate::plan) mechanism: Mechanism,
    pub(in crate::plan) sd: f64,
    /// What the release gives away, where that was asked for.
    pub(in crate::plan) release: Option<Guarantee>,
}

/// The best of each family, and an error that no mechanism of one answer is below.
pub(in crate::plan) fn with_one_aggregator(request: &Request, families: &[Family]) -> (Vec<Planned>, f64) {
    let Some((epsilon, _)) = request.release else { return (Vec::new(), 0.0) };
    let goal = Goal::new(request, epsilon.value());
    let search = |family: Family| -> Vec<(Region, Best)> {
        let regions = Region::all(request, family).into_iter();
        regions.filter_map(|region| Some((region, boxes::search(&goal, &region)?))).collect()
    };
    let best = |family: Family| {
        let found = search(family).into_iter().min_by(|a, b| a.1.error.total_cmp(&b.1.error));
        found.and_then(|(region, best)| written(request, family, &region, &best, epsilon.value()))
    };
    let planned = families.iter().filter_map(|&family| best(family)).collect();
    // Every bit is one of this family.
    let least = search(Family::NoisySampling).into_iter().map(|(_, best)| best.least).fold(f64::INFINITY, f64::min);
    (planned, if least.is_finite() { least } else { 0.0 })
}

fn written(request: &Request, family: Family, region: &Region, best: &Best, epsilon: f64) -> Option<Planned> {
    let local = written::local(request, family, region, &best.bit)?;
    let scale = written::least_scale(&local.channel(), epsilon)?;
    let mechanism = written::noisy(local, scale).ok()?;
    let sd = written::sd(request, &mechanism.channel())?;
    Some(Planned { family, mechanism, sd, release: None })
}
