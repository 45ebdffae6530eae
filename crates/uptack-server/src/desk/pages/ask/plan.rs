//! From the fields of the form to a plan and its charts, each computed once however many ask for it.

use std::time::Duration;
use uptack::{
    Progress,
    plan::{Noise, Solved, Trust},
    privacy,
    quantity::{count, range},
};
use uptack_chart::Chart;
use uptack_document::{LinkedLimit, PlanError, Purpose, Solvable, TrustWanted, Wanted, plan_charts};

use crate::desk::pages::{
    Pages,
    guard::FormFields,
    work::{Computations, Computed},
};

/// A field of the form that is at fault, and why.
#[derive(Debug)]
pub(super) struct FieldFault {
    pub(super) field: &'static str,
    pub(super) words: String,
}

/// The value of a field, or its fault.
pub(super) type FieldResult<T> = Result<T, FieldFault>;

impl FieldFault {
    pub(super) fn of(field: &'static str, words: impl Into<String>) -> Self {
        Self { field, words: words.into() }
    }

    /// Turns errors into faults of a field.
    pub(super) fn at<E: ToString>(field: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::of(field, error.to_string())
    }
}

impl From<PlanError> for FieldFault {
    fn from(error: PlanError) -> Self {
        let words = match &error {
            PlanError::TooLittle => "give two of owners, ε and error; the third is solved for".to_owned(),
            PlanError::NoError | PlanError::BadError => "give the largest standard deviation, in people".to_owned(),
            PlanError::BatchWithoutOwners => "where owners are solved for, the minimum batch is all of them".to_owned(),
            PlanError::OutOfRange { error, .. } | PlanError::Refused(error) => error.to_string(),
        };
        Self::of(error.field().unwrap_or("owners"), words)
    }
}

/// Reads the request to the planner from the fields of the form.
pub(super) fn read(fields: &FormFields) -> FieldResult<Solvable> {
    let mut wanted = Wanted {
        owners: number(fields, "owners", count)?,
        epsilon: positive(fields, "epsilon")?,
        error: positive(fields, "error")?,
        ..Wanted::new(Purpose::Asking, (0, 0))
    };
    // Before the other fields are read: they may still be empty while fewer than two of these are filled in.
    wanted.unknown()?;
    wanted.yes = yes(fields)?;
    wanted.minimum_batch = number(fields, "minimum_batch", count)?;
    wanted.trust = trust(fields)?;
    wanted.delta = positive(fields, "delta")?.unwrap_or(wanted.delta);
    wanted.answer_epsilon = positive(fields, "answer_epsilon")?;
    wanted.honest = number(fields, "honest", str::parse)?.unwrap_or(wanted.honest);
    Ok(wanted.complete()?)
}

fn yes(fields: &FormFields) -> FieldResult<(u64, u64)> {
    let words = "give roughly how many would say yes, as in 500 or 0..500";
    number(fields, "yes", range)?.ok_or_else(|| FieldFault::of("yes", words))
}

fn trust(fields: &FormFields) -> FieldResult<TrustWanted> {
    let (noise, trust) = match fields.get("trust") {
        "" => (None, None),
        "one-aggregator" => (Some(Noise::Aggregators), Some(Trust::OneAggregator)),
        "owners" => (Some(Noise::None), Some(Trust::Owners)),
        "owners-and-noise" => (Some(Noise::Aggregators), Some(Trust::Owners)),
        _ => return Err(FieldFault::of("trust", "this is none of the choices")),
    };
    Ok(TrustWanted { noise, trust, linked: linked_limit(fields)? })
}

fn linked_limit(fields: &FormFields) -> FieldResult<Option<LinkedLimit>> {
    match fields.get("linked_epsilon") {
        "none" => Ok(Some(LinkedLimit::None)),
        _ => Ok(positive(fields, "linked_epsilon")?.map(LinkedLimit::AtMost)),
    }
}

fn number<T, E: ToString>(
    fields: &FormFields,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> FieldResult<Option<T>> {
    let text = without_separators(fields.get(name));
    if text.is_empty() {
        return Ok(None);
    }
    parse(&text).map(Some).map_err(FieldFault::at(name))
}

/// People separate thousands by a space or a comma.
fn without_separators(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace() && *sign != ',').collect()
}

fn positive(fields: &FormFields, name: &'static str) -> FieldResult<Option<f64>> {
    number(fields, name, parse_positive)
}

fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if f64::is_finite(value) && value > 0.0 => Ok(value),
        _ => Err(format!("`{text}` is not a positive number")),
    }
}

/// The latest plans and their charts.
#[derive(Default)]
pub(in crate::desk::pages) struct Plans {
    plans: Computations<PlanOutcome>,
    charts: Computations<Vec<String>>,
}

/// The outcome of planning.
pub(super) enum PlanOutcome {
    Plan {
        solved: Box<Solved>,
        /// Its guarantees, in sentences.
        statement: String,
    },
    /// Why there is no plan, and which request would have one.
    Impossible(String),
}

impl Pages {
    pub(super) async fn plan(&self, wanted: Solvable, patience: Duration) -> Computed<PlanOutcome> {
        let key = key(&wanted);
        self.work.find(&self.plans.plans, &key, patience, move || PlanOutcome::of(&wanted)).await
    }

    /// The plan's charts as SVG: against ε, against the owners and, with noise, against the linked ε.
    pub(super) async fn charts(&self, wanted: Solvable, patience: Duration) -> Computed<Vec<String>> {
        let key = key(&wanted);
        let planned = match self.plan(wanted, patience).await {
            Computed::Done(planned) => planned,
            Computed::Later => return Computed::Later,
            Computed::Busy => return Computed::Busy,
        };
        self.work.find(&self.plans.charts, &key, patience, move || planned.charts()).await
    }
}

impl PlanOutcome {
    fn of(wanted: &Solvable) -> Self {
        Self::solve(wanted).unwrap_or_else(|error| Self::Impossible(super::error_words(error)))
    }

    fn solve(wanted: &Solvable) -> Result<Self, uptack::Error> {
        let solved = wanted.solve(&Progress::default())?;
        let best = &solved.plan.best;
        let accountant = privacy::release(&best.channel, best.views.release.owners())?;
        let statement = privacy::statement(&best.channel, &best.views, &accountant, None);
        Ok(Self::Plan { solved: Box::new(solved), statement })
    }

    fn charts(&self) -> Vec<String> {
        match self {
            Self::Plan { solved, .. } => charts(solved),
            Self::Impossible(_) => Vec::new(),
        }
    }
}

fn charts(solved: &Solved) -> Vec<String> {
    // One thread: the desk has other work to do.
    let charts = plan_charts(&solved.request, &solved.plan, 1, &Progress::default());
    charts.iter().map(Chart::to_svg).collect()
}

/// A text that identifies a request.
fn key(Solvable { request, unknown, error }: &Solvable) -> String {
    format!("{request:?} {unknown:?} {error:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::plan::{USUAL_LINKED_EPSILON, Unknown};
    use uptack_document::plan_json;

    fn read(query: &str) -> FieldResult<Solvable> {
        super::read(&FormFields::parse(query.as_bytes()))
    }

    #[test]
    fn what_is_left_out_is_solved_for() {
        let unknown = |query: &str| read(query).map(|wanted| wanted.unknown).map_err(|fault| fault.field);
        assert_eq!(unknown("owners=50+000&yes=500&epsilon=1"), Ok(Unknown::Error));
        assert_eq!(unknown("owners=5e4&yes=0..500&epsilon=1&error=8"), Ok(Unknown::Error));
        assert_eq!(unknown("owners=50,000&yes=500&error=8"), Ok(Unknown::Epsilon));
        assert_eq!(unknown("yes=500&epsilon=1&error=8"), Ok(Unknown::Owners));
        assert_eq!(unknown("owners=50000&yes=500"), Err("owners"));
        for (query, field) in [
            ("owners=x&yes=5&epsilon=1", "owners"),
            ("owners=50&yes=5&epsilon=-1", "epsilon"),
            ("owners=50&epsilon=1", "yes"),
            ("owners=50&yes=5&epsilon=1&honest=2", "honest"),
            ("owners=50&yes=5&epsilon=1&delta=2", "delta"),
            ("owners=50&yes=5&epsilon=1&trust=me", "trust"),
            ("yes=5&epsilon=1&error=3&minimum_batch=4", "minimum_batch"),
        ] {
            assert_eq!(unknown(query), Err(field), "{query}");
        }
    }

    #[test]
    fn noise_brings_its_usual_bound() {
        let linked = |query: &str| read(&format!("owners=50&yes=5&epsilon=1&{query}")).unwrap().request.linked_epsilon;
        assert_eq!(linked(""), Some(USUAL_LINKED_EPSILON));
        assert_eq!(linked("trust=owners"), None);
        assert_eq!(linked("linked_epsilon=none"), None);
        assert_eq!(linked("linked_epsilon=3&trust=owners"), Some(3.0));
    }

    /// A request of `uptack plan` or of Python, with noise and trust as the pages have them by default.
    fn compared(owners: Option<u64>, epsilon: Option<f64>, error: Option<f64>) -> Wanted {
        let (noise, trust) = (Some(Noise::Aggregators), Some(Trust::OneAggregator));
        let trust = TrustWanted { noise, trust, linked: None };
        Wanted { owners, epsilon, error, trust, ..Wanted::new(Purpose::Comparing, (0, 50)) }
    }

    /// The same request on the page, of `uptack plan` or Python, and of `uptack ask`.
    #[test]
    fn the_page_and_the_commands_plan_the_same() {
        let owners_alone = TrustWanted { noise: Some(Noise::None), trust: Some(Trust::Owners), linked: None };
        let owners_and_noise = TrustWanted { noise: Some(Noise::Aggregators), ..owners_alone };
        let at_most_three = TrustWanted { linked: Some(LinkedLimit::AtMost(3.0)), ..owners_and_noise };
        let half = "0.5".parse().unwrap();
        let usual = compared(Some(500), Some(1.0), None);
        for (query, wanted) in [
            ("owners=500&epsilon=1", usual.clone()),
            ("owners=500&epsilon=1&error=9", compared(Some(500), Some(1.0), Some(9.0))),
            ("owners=500&error=9", compared(Some(500), None, Some(9.0))),
            ("epsilon=1&error=9", compared(None, Some(1.0), Some(9.0))),
            ("owners=500&epsilon=1&trust=owners", Wanted { trust: owners_alone, ..usual.clone() }),
            (
                "owners=500&epsilon=1&trust=owners-and-noise&linked_epsilon=3",
                Wanted { trust: at_most_three, ..usual.clone() },
            ),
            (
                "owners=500&epsilon=1&minimum_batch=400&honest=0.5&delta=1e-6&trust=owners-and-noise",
                Wanted { minimum_batch: Some(400), honest: half, delta: 1e-6, trust: owners_and_noise, ..usual },
            ),
        ] {
            let page = read(&format!("yes=0..50&{query}")).unwrap();
            let asked = Wanted { purpose: Purpose::Asking, ..wanted.clone() }.complete().unwrap();
            assert_eq!([key(&page), key(&asked)], [(); 2].map(|()| key(&wanted.complete().unwrap())), "{query}");
            let progress = Progress::default();
            let [planned, compared] = [page.solve(&progress).unwrap(), wanted.plan(&progress).unwrap()];
            assert_eq!(plan_json(&planned), plan_json(&compared), "{query}");
        }
    }

    #[test]
    fn the_page_and_the_commands_refuse_the_same() {
        for (query, wanted) in [
            ("owners=500", compared(Some(500), None, None)),
            ("epsilon=1", compared(None, Some(1.0), None)),
            ("owners=500&epsilon=1&delta=2", Wanted { delta: 2.0, ..compared(Some(500), Some(1.0), None) }),
            (
                "epsilon=1&error=9&minimum_batch=40",
                Wanted { minimum_batch: Some(40), ..compared(None, Some(1.0), Some(9.0)) },
            ),
        ] {
            let page = read(&format!("yes=0..50&{query}")).unwrap_err();
            assert_eq!(Some(page.field), wanted.complete().unwrap_err().field(), "{query}");
        }
    }
}
