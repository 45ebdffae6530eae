//! The charts of a plan: the error of each family against ε, against the number of owners, and against the linked ε.

use uptack::display::{claim, grouped, nearest};
use uptack::plan::{Plan, Request, Trust};
use uptack::privacy::{Epsilon, MOST_OWNERS};

use crate::{Axis, Chart, Look, Scale, Series};

/// From a fourth of the planned ε to four times it.
const EPSILON_REACH: f64 = 4.0;
const EPSILON_POINTS: i32 = 11;
/// From a sixteenth of the planned owners to sixteen times them.
const OWNERS_REACH: f64 = 16.0;
const OWNERS_POINTS: i32 = 9;

/// The least error of each family at one point of a chart, by its name, as
/// [`errors_by_family`](uptack::plan::errors_by_family) gives it; empty where no family keeps the constraints.
pub type Errors = Vec<(&'static str, f64)>;

/// The charts around a plan, without the errors at their points, which take a search each.
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
    /// The charts around what was planned.
    pub fn around(request: &'a Request, plan: &'a Plan) -> Self {
        Self { request, plan, by_epsilon: by_epsilon(request), by_owners: by_owners(request) }
    }

    /// What has to be searched for them, in the order in which [`PlanCharts::draw`] takes the errors.
    pub fn requests(&self) -> Vec<&Request> {
        self.by_epsilon.points.iter().chain(&self.by_owners.points).map(|(_, request)| request).collect()
    }

    /// The charts: against ε, against the owners and, where the aggregators add noise, against the linked ε.
    pub fn draw(&self, errors: &[Errors]) -> Vec<Chart> {
        let sd = self.plan.best.sd;
        let (first, second) = errors.split_at(self.by_epsilon.points.len().min(errors.len()));
        let mut charts =
            vec![self.by_epsilon.chart(self.request, first, sd), self.by_owners.chart(self.request, second, sd)];
        charts.extend(tradeoff_chart(self.request, self.plan));
        charts
    }
}

/// The error against the bound on the linked ε, if there is noise; what is had without any bound is a level line.
fn tradeoff_chart(request: &Request, plan: &Plan) -> Option<Chart> {
    let bounded: Vec<(f64, f64)> = plan.tradeoff.iter().filter_map(|entry| Some((entry.linked?, entry.sd))).collect();
    let (first, last) = (bounded.first()?.0, bounded.last()?.0);
    let x = Axis::new("largest linked ε, which holds if nobody is honest", Scale::Linear);
    let y = error_axis(plan.tradeoff.iter().map(|entry| entry.sd));
    let free = plan.tradeoff.iter().find(|entry| entry.linked.is_none());
    let mut chart = Chart::new("Error against the linked ε", x, y).subtitled(conditions(request, Varies::Linked));
    chart = chart.with(Series::line("with that bound", bounded).looking(Look::numbered(0)));
    if let Some(free) = free {
        let level = [(last, free.sd), (first, free.sd)];
        chart = chart.with(Series::line("without any", level).looking(Look::numbered(1)));
    }
    let chosen = request.linked_epsilon.map(|linked| (linked, plan.best.sd));
    Some(chart.with(Series::points("the plan", chosen).looking(Look::chosen())))
}

/// A request with one of its numbers varied.
struct Varied {
    varies: Varies,
    title: &'static str,
    label: String,
    /// Its value in the plan.
    chosen: f64,
    points: Vec<(f64, Request)>,
}

/// Varies ε of the release; where that is not bounded, the local ε which is.
fn by_epsilon(request: &Request) -> Varied {
    type With = fn(&Request, f64) -> Option<Request>;
    let (label, chosen, with): (String, f64, With) = match (request.release, request.answer_epsilon) {
        (Some((epsilon, _)), _) if request.trust == Trust::OneAggregator => {
            ("ε of the published count with one honest aggregator".to_owned(), epsilon.value(), with_release)
        }
        (Some((epsilon, delta)), _) => {
            (format!("ε of the published counts, δ = {:e}", delta.value()), epsilon.value(), with_release)
        }
        (None, Some(epsilon)) => ("ε of a single answer".to_owned(), epsilon, |request, value| {
            Some(Request { answer_epsilon: Some(value), ..request.clone() })
        }),
        (None, None) => {
            let chosen = request.linked_epsilon.unwrap_or(1.0);
            ("ε of all answers of an owner".to_owned(), chosen, |request, value| {
                Some(Request { linked_epsilon: Some(value), ..request.clone() })
            })
        }
    };
    let values = around(chosen, EPSILON_REACH, EPSILON_POINTS);
    let points = values.filter_map(|value| Some((value, with(request, value)?))).collect();
    Varied { varies: Varies::Epsilon, title: "Error against ε", label, chosen, points }
}

fn with_release(request: &Request, value: f64) -> Option<Request> {
    let (_, delta) = request.release?;
    Some(Request { release: Some((Epsilon::new(value).ok()?, delta)), ..request.clone() })
}

/// Varies the owners; the same number holds yes, and the minimum batch keeps its share.
fn by_owners(request: &Request) -> Varied {
    let share = request.minimum_batch as f64 / request.owners as f64;
    let chosen = request.owners as f64;
    // With nearly everybody holding yes, an estimate lives on that knowledge instead of on the answers.
    let fewest = (2 * request.yes.high).max(2) as f64;
    let possible = |value: &f64| *value <= MOST_OWNERS as f64 && (*value >= fewest || *value == chosen);
    let with = |value: f64| {
        let owners = value.round() as u64;
        let minimum_batch = ((value * share).ceil() as u64).clamp(1, owners);
        (owners as f64, Request { owners, minimum_batch, ..request.clone() })
    };
    let points = around(chosen, OWNERS_REACH, OWNERS_POINTS).filter(possible).map(with).collect();
    let title = "Error against the number of owners";
    Varied { varies: Varies::Owners, title, label: "owners".to_owned(), chosen, points }
}

/// Values in equal ratios around one, which is the middle of them.
fn around(chosen: f64, reach: f64, points: i32) -> impl Iterator<Item = f64> {
    let half = points / 2;
    (-half..=half)
        .map(move |step| if step == 0 { chosen } else { chosen * reach.powf(f64::from(step) / f64::from(half)) })
}

impl Varied {
    fn chart(&self, request: &Request, errors: &[Errors], sd: f64) -> Chart {
        let x = Axis::new(&self.label, Scale::Log);
        let y = error_axis(errors.iter().flatten().map(|(_, sd)| *sd).chain([sd]));
        let mut chart = Chart::new(self.title, x, y).subtitled(conditions(request, self.varies));
        let families = families(errors);
        for (number, family) in families.iter().enumerate() {
            let look = Look::numbered(number);
            let at = |errors: &Errors| errors.iter().find(|(name, _)| name == family).map_or(f64::NAN, |(_, sd)| *sd);
            let points: Vec<(f64, f64)> =
                self.points.iter().zip(errors).map(|((value, _), errors)| (*value, at(errors))).collect();
            // Families often do equally well: each has its markers at other points, so that none hides another's.
            let marked = points.iter().skip(number).step_by(families.len()).copied().collect::<Vec<_>>();
            chart =
                chart.with(Series::line("", points).looking(look)).with(Series::points(*family, marked).looking(look));
        }
        chart.with(Series::points("the plan", [(self.chosen, sd)]).looking(Look::chosen()))
    }
}

/// What differs by less than the search's own accuracy must not look like mountains.
fn error_axis(errors: impl Iterator<Item = f64>) -> Axis {
    let axis = Axis::new("standard deviation", Scale::Log);
    let (low, high) = errors.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), sd| (low.min(sd), high.max(sd)));
    if high < 1.5 * low { axis.within(low / 1.5, high * 1.5) } else { axis }
}

/// By their names, so that both charts agree as far as they can.
fn families(errors: &[Errors]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = errors.iter().flatten().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What differs between the points of a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Varies {
    Epsilon,
    Owners,
    Linked,
}

/// What is the same at all points.
fn conditions(request: &Request, varies: Varies) -> String {
    let yes = match (request.yes.low, request.yes.high) {
        (low, high) if low == high => grouped(low),
        (low, high) => format!("{} to {}", grouped(low), grouped(high)),
    };
    let mut text = match varies {
        Varies::Owners => format!("{yes} owners hold yes"),
        _ => format!("{yes} of {} owners hold yes", grouped(request.owners)),
    };
    if let Some((epsilon, delta)) = request.release.filter(|_| varies != Varies::Epsilon) {
        let (epsilon, delta) = (claim(epsilon.value()), claim(delta.value()));
        text += &match request.trust {
            Trust::OneAggregator => format!("; one honest aggregator ε ≤ {epsilon}"),
            Trust::Owners => format!("; published counts ε ≤ {epsilon}, δ = {delta}"),
        };
    }
    for (name, epsilon) in local_conditions(request, varies) {
        text += &format!("; {name} ε ≤ {}", claim(epsilon));
    }
    if let Some(share) = request.participation {
        text += &format!("; at most {} % take part", nearest(100.0 * share));
    }
    text
}

/// The local bounds, without the one that varies: it is on the axis.
fn local_conditions(request: &Request, varies: Varies) -> Vec<(&'static str, f64)> {
    let locally = varies == Varies::Epsilon && request.release.is_none();
    let answer = request.answer_epsilon.filter(|_| !locally).map(|epsilon| ("one answer", epsilon));
    let on_axis = varies == Varies::Linked || (locally && request.answer_epsilon.is_none());
    let linked = request.linked_epsilon.filter(|_| !on_axis).map(|epsilon| ("linked answers", epsilon));
    answer.into_iter().chain(linked).collect()
}
