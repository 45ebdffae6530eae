//! The best mechanism of every family for which one honest aggregator is enough.

use super::boxes::{self, Best};
use super::region::{Goal, Region};
use super::written;
use crate::mechanism::Mechanism;
use crate::plan::family::Family;
use crate::plan::request::Request;
use crate::privacy::Guarantee;

/// A mechanism with noise that keeps the request.
#[derive(Clone, Debug)]
pub(in crate::plan) struct Planned {
    pub(in crate::plan) family: Family,
    pub(in crate::plan) mechanism: Mechanism,
    pub(in crate::plan) sd: f64,
    /// What the release gives away, if owners are counted on as well.
    pub(in crate::plan) release: Option<Guarantee>,
}

/// The best of each family, and a lower bound on the error of every mechanism of one answer.
pub(in crate::plan) fn with_one_aggregator(request: &Request, families: &[Family]) -> (Vec<Planned>, f64) {
    let Some((epsilon, _)) = request.release else { return (Vec::new(), 0.0) };
    let goal = Goal::new(request, epsilon.value());
    let planned = families.iter().filter_map(|&family| best_of_family(request, &goal, family)).collect();
    // Every bit is one of this family.
    let all_bits = search(request, &goal, Family::NoisySampling);
    let least = all_bits.iter().map(|(_, best)| best.least).fold(f64::INFINITY, f64::min);
    (planned, if least.is_finite() { least } else { 0.0 })
}

fn best_of_family(request: &Request, goal: &Goal, family: Family) -> Option<Planned> {
    let found = search(request, goal, family).into_iter();
    let (region, best) = found.min_by(|(_, one), (_, other)| one.error.total_cmp(&other.error))?;
    written(request, family, &region, &best)
}

/// The best bit of each region of a family.
fn search(request: &Request, goal: &Goal, family: Family) -> Vec<(Region, Best)> {
    let regions = Region::all(request, family).into_iter();
    regions.filter_map(|region| Some((region, boxes::search(goal, &region)?))).collect()
}

fn written(request: &Request, family: Family, region: &Region, best: &Best) -> Option<Planned> {
    let (epsilon, _) = request.release?;
    let local = written::local(request, family, region, &best.bit)?;
    let scale = written::least_scale(&local.channel(), epsilon.value())?;
    let mechanism = written::noisy(local, scale).ok()?;
    let sd = written::sd(request, &mechanism.channel())?;
    Some(Planned { family, mechanism, sd, release: None })
}
