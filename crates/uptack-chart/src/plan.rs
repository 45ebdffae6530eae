//! The charts of a plan: the error of each family against ε, against the number of owners, and against the linked ε.

use std::collections::BTreeSet;

use uptack::display::{claim, grouped, nearest};
use uptack::plan::{Plan, Request, Trust};
use uptack::privacy::{Epsilon, MOST_OWNERS};

use crate::scale::extent;
use crate::{Axis, Chart, Look, Scale, Series};

/// From a quarter of the planned ε to four times it.
const EPSILON_REACH: f64 = 4.0;
const EPSILON_POINTS: i32 = 11;
/// From a sixteenth of the planned number of owners to sixteen times it.
const OWNERS_REACH: f64 = 16.0;
const OWNERS_POINTS: i32 = 9;

/// The least error of each family by its name at one point of a chart, as
/// [`errors_by_family`](uptack::plan::errors_by_family) returns it; empty if no family keeps the constraints.
pub type Errors = Vec<(&'static str, f64)>;

/// The charts around a plan, without the errors at their points, each of which takes a search.
///
/// ```
/// use uptack::plan::{Prior, Request, errors_by_family, plan};
/// use uptack::privacy::Epsilon;
/// use uptack_chart::PlanCharts;
/// let request = Request::one_aggregator(500, Prior::at(20), Epsilon::new(1.0)?)?;
/// let plan = plan(&request)?;
/// let charts = PlanCharts::around(&request, &plan);
/// let errors: Vec<_> = charts.requests().iter().map(|at| errors_by_family(at).unwrap_or_default()).collect();
/// assert_eq!(charts.draw(&errors).len(), 3);
/// # Ok::<(), uptack::Error>(())
/// ```
pub struct PlanCharts<'a> {
    request: &'a Request,
    plan: &'a Plan,
    by_epsilon: Varied,
    by_owners: Varied,
}

impl<'a> PlanCharts<'a> {
    /// The charts around the plan.
    pub fn around(request: &'a Request, plan: &'a Plan) -> Self {
        Self { request, plan, by_epsilon: by_epsilon(request), by_owners: by_owners(request) }
    }

    /// The requests to search, in the order in which [`PlanCharts::draw`] takes their errors.
    pub fn requests(&self) -> Vec<&Request> {
        self.by_epsilon.points.iter().chain(&self.by_owners.points).map(|(_, request)| request).collect()
    }

    /// The charts: against ε, against the number of owners and, if the aggregators add noise, against the linked ε.
    pub fn draw(&self, errors: &[Errors]) -> Vec<Chart> {
        let (first, second) = errors.split_at(self.by_epsilon.points.len().min(errors.len()));
        let mut charts = vec![
            self.by_epsilon.chart(self.request, first, self.plan),
            self.by_owners.chart(self.request, second, self.plan),
        ];
        charts.extend(tradeoff_chart(self.request, self.plan));
        charts
    }
}

/// A request with one of its numbers varied.
struct Varied {
    varies: Varies,
    title: &'static str,
    label: String,
    /// The number in the plan.
    chosen: f64,
    points: Vec<(f64, Request)>,
}

/// What differs between the points of a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Varies {
    Epsilon(Bound),
    Owners,
}

/// One of the bounds on ε in a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    Release,
    Answer,
    Linked,
}

impl Bound {
    /// The bound on the release or, without one, the local bound that there is.
    fn of(request: &Request) -> Self {
        if request.release.is_some() {
            Self::Release
        } else if request.answer_epsilon.is_some() {
            Self::Answer
        } else {
            Self::Linked
        }
    }

    fn value(self, request: &Request) -> Option<f64> {
        match self {
            Self::Release => request.release_epsilon(),
            Self::Answer => request.answer_epsilon,
            Self::Linked => request.linked_epsilon,
        }
    }

    /// The same request with another value of this bound.
    fn replaced(self, request: &Request, value: f64) -> Option<Request> {
        let mut request = request.clone();
        match self {
            Self::Release => request.release = Some((Epsilon::new(value).ok()?, request.release?.1)),
            Self::Answer => request.answer_epsilon = Some(value),
            Self::Linked => request.linked_epsilon = Some(value),
        }
        Some(request)
    }

    fn label(self, request: &Request) -> String {
        match (self, request.release) {
            (Self::Release, Some((_, delta))) if request.trust == Trust::Owners => {
                format!("ε of the published counts, δ = {:e}", delta.value())
            }
            (Self::Release, _) => "ε of the published count with one honest aggregator".to_owned(),
            (Self::Answer, _) => "ε of a single answer".to_owned(),
            (Self::Linked, _) => "ε of all answers of an owner".to_owned(),
        }
    }
}

fn by_epsilon(request: &Request) -> Varied {
    let bound = Bound::of(request);
    let chosen = bound.value(request).unwrap_or(1.0);
    let values = around(chosen, EPSILON_REACH, EPSILON_POINTS);
    Varied {
        varies: Varies::Epsilon(bound),
        title: "Error against ε",
        label: bound.label(request),
        chosen,
        points: values.filter_map(|value| Some((value, bound.replaced(request, value)?))).collect(),
    }
}

fn by_owners(request: &Request) -> Varied {
    let chosen = request.owners as f64;
    // If nearly everybody would say *yes*, an estimate rests on that knowledge instead of on the answers.
    let fewest = (2 * request.yes.high).max(2) as f64;
    let possible = |value: &f64| *value <= MOST_OWNERS as f64 && (*value >= fewest || *value == chosen);
    let values = around(chosen, OWNERS_REACH, OWNERS_POINTS).filter(possible);
    let requests = values.map(|value| request.with_owners(value));
    Varied {
        varies: Varies::Owners,
        title: "Error against the number of owners",
        label: "owners".to_owned(),
        chosen,
        points: requests.map(|request| (request.owners as f64, request)).collect(),
    }
}

/// Values in equal ratios around the chosen one, which is in their middle.
fn around(chosen: f64, reach: f64, points: i32) -> impl Iterator<Item = f64> {
    let half = points / 2;
    (-half..=half)
        .map(move |step| if step == 0 { chosen } else { chosen * reach.powf(f64::from(step) / f64::from(half)) })
}

impl Varied {
    fn chart(&self, request: &Request, errors: &[Errors], plan: &Plan) -> Chart {
        let sd = plan.best.sd;
        let x = Axis::new(&self.label, Scale::Log);
        let y = error_axis(errors.iter().flatten().map(|(_, sd)| *sd).chain([sd]));
        let mut chart = Chart::new(self.title, x, y).subtitled(conditions(request, self.varies));
        chart.series = self.series_of_families(errors, plan.best.mechanism.name());
        chart.with(the_plan([(self.chosen, sd)]))
    }

    /// A line and markers for each family; one of each for all families whose lines could not be told apart. Where the plan is, only
    /// the line of its own family has a marker, so that the ring is around no other.
    fn series_of_families(&self, errors: &[Errors], planned: &str) -> Vec<Series> {
        let mut curves: Vec<Curve> = Vec::new();
        for (number, family) in families(errors).into_iter().enumerate() {
            let points = self.points_of(family, errors);
            match curves.iter_mut().find(|curve| coincide(&curve.points, &points)) {
                Some(curve) => curve.names.push(family),
                None => curves.push(Curve { names: vec![family], points, look: Look::numbered(number) }),
            }
        }
        curves.into_iter().flat_map(|curve| curve.series(self.chosen, planned)).collect()
    }

    /// The errors of one family; NaN if it does not keep the constraints.
    fn points_of(&self, family: &str, errors: &[Errors]) -> Vec<(f64, f64)> {
        let error = |errors: &Errors| errors.iter().find(|(name, _)| *name == family).map_or(f64::NAN, |(_, sd)| *sd);
        self.points.iter().zip(errors).map(|((value, _), errors)| (*value, error(errors))).collect()
    }
}

/// The errors of families that do equally well everywhere.
struct Curve {
    names: Vec<&'static str>,
    points: Vec<(f64, f64)>,
    look: Look,
}

impl Curve {
    /// The line, and the markers on it.
    fn series(self, chosen: f64, planned: &str) -> [Series; 2] {
        let is_planned = self.names.contains(&planned);
        let marked: Vec<(f64, f64)> = self.points.iter().copied().filter(|(x, _)| is_planned || *x != chosen).collect();
        let both = [Series::line("", self.points), Series::points(self.names.join(", "), marked)];
        both.map(|series| series.looking(self.look))
    }
}

/// Curves that differ by less than this share at every point look like one: on these axes it is about a pixel.
const INDISTINGUISHABLE: f64 = 0.003;

fn coincide(one: &[(f64, f64)], other: &[(f64, f64)]) -> bool {
    one.iter()
        .zip(other)
        .all(|(&(_, one), &(_, other))| one.is_nan() && other.is_nan() || (one / other - 1.0).abs() < INDISTINGUISHABLE)
}

/// The error against the bound on the linked ε, if there is noise; the error without any bound is a level line.
fn tradeoff_chart(request: &Request, plan: &Plan) -> Option<Chart> {
    let bounded: Vec<(f64, f64)> = plan.tradeoff.iter().filter_map(|entry| Some((entry.linked?, entry.sd))).collect();
    let ends = [bounded.last()?.0, bounded.first()?.0];
    let unbounded = plan.tradeoff.iter().find(|entry| entry.linked.is_none());
    let level = unbounded.map(|entry| Series::line("without any", ends.map(|linked| (linked, entry.sd))));
    let mut chart = tradeoff_axes(plan).subtitled(conditions(request, Varies::Epsilon(Bound::Linked)));
    chart.series.push(Series::line("with that bound", bounded).looking(Look::numbered(0)));
    chart.series.extend(level.map(|level| level.looking(Look::numbered(1))));
    chart.series.push(the_plan(request.linked_epsilon.map(|linked| (linked, plan.best.sd))));
    Some(chart)
}

fn tradeoff_axes(plan: &Plan) -> Chart {
    let x = Axis::new("largest linked ε, which holds if nobody is honest", Scale::Linear);
    let y = error_axis(plan.tradeoff.iter().map(|entry| entry.sd));
    Chart::new("Error against the linked ε", x, y)
}

fn the_plan(point: impl IntoIterator<Item = (f64, f64)>) -> Series {
    Series::points("the plan", point).looking(Look::chosen())
}

/// Errors that differ by less than the search's own accuracy must not look like mountains.
fn error_axis(errors: impl Iterator<Item = f64>) -> Axis {
    let axis = Axis::new("standard deviation", Scale::Log);
    let (low, high) = extent(errors);
    if high < 1.5 * low { axis.within(low / 1.5, high * 1.5) } else { axis }
}

/// The families in the order of their names, so that they look the same in both charts if both have all of them.
fn families(errors: &[Errors]) -> BTreeSet<&'static str> {
    errors.iter().flatten().map(|(name, _)| *name).collect()
}

/// The conditions that are the same at all points.
fn conditions(request: &Request, varies: Varies) -> String {
    let mut conditions = vec![crowd_condition(request, varies)];
    if varies != Varies::Epsilon(Bound::Release) {
        conditions.extend(release_condition(request));
    }
    for (bound, name) in [(Bound::Answer, "one answer"), (Bound::Linked, "linked answers")] {
        if let Some(epsilon) = bound.value(request).filter(|_| varies != Varies::Epsilon(bound)) {
            conditions.push(format!("{name} ε ≤ {}", claim(epsilon)));
        }
    }
    conditions.extend(request.participation.map(|share| format!("at most {} % take part", nearest(100.0 * share))));
    conditions.join("; ")
}

fn crowd_condition(request: &Request, varies: Varies) -> String {
    let yes = match (request.yes.low, request.yes.high) {
        (low, high) if low == high => grouped(low),
        (low, high) => format!("{} to {}", grouped(low), grouped(high)),
    };
    match varies {
        Varies::Owners => format!("{yes} owners would say yes"),
        Varies::Epsilon(_) => format!("{yes} of {} owners would say yes", grouped(request.owners)),
    }
}

fn release_condition(request: &Request) -> Option<String> {
    let (epsilon, delta) = request.release?;
    let (epsilon, delta) = (claim(epsilon.value()), claim(delta.value()));
    Some(match request.trust {
        Trust::OneAggregator => format!("one honest aggregator ε ≤ {epsilon}"),
        Trust::Owners => format!("published counts ε ≤ {epsilon}, δ = {delta}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::plan::{Prior, plan};

    /// The markers at the chosen number of each chart but the last are those of the plan's family and the ring.
    #[test]
    fn the_ring_is_around_no_other_familys_marker() {
        let request = Request::one_aggregator(500, Prior::at(20), Epsilon::new(1.0).unwrap()).unwrap();
        let plan = plan(&request).unwrap();
        let charts = PlanCharts::around(&request, &plan);
        // All families do equally well everywhere, so each could be under the ring.
        let families = ["noisy-sampling", "normal-form", "randomized-response", "tuned"];
        let planned = plan.best.mechanism.name();
        assert!(families.contains(&planned), "{planned}");
        let errors: Vec<Errors> =
            charts.requests().iter().map(|_| families.map(|family| (family, plan.best.sd)).to_vec()).collect();
        for (chart, chosen) in charts.draw(&errors).iter().zip([1.0, 500.0]) {
            let is_there =
                |series: &&Series| series.draw.has_markers() && series.points.iter().any(|point| point.x == chosen);
            let names: Vec<&str> = chart.series.iter().filter(is_there).map(|series| series.name.as_str()).collect();
            assert!(names[0].split(", ").any(|name| name == planned), "{names:?}");
            assert_eq!(names[1..], ["the plan"], "{}", chart.title);
        }
    }

    #[test]
    fn families_that_do_equally_well_share_a_curve() {
        let request = Request::one_aggregator(500, Prior::at(20), Epsilon::new(1.0).unwrap()).unwrap();
        let varied = by_epsilon(&request);
        let errors: Vec<Errors> = (1..=varied.points.len())
            .map(|number| {
                let sd = 100.0 / number as f64;
                vec![("first", sd), ("same", sd * 1.001), ("other", sd * 1.2), ("last", sd)]
            })
            .collect();
        let series = varied.series_of_families(&errors, "other");
        let names: Vec<&str> =
            series.iter().map(|series| series.name.as_str()).filter(|name| !name.is_empty()).collect();
        assert_eq!(names, ["first, last, same", "other"]);
        let svg = varied.chart(&request, &errors, &plan(&request).unwrap()).to_svg();
        assert_eq!(svg.matches("<polyline").count(), 4, "two curves, each once more in the legend");
    }
}
