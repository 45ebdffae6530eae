//! Plans and their charts and cards.

use std::sync::Arc;

use pyo3::prelude::*;
use serde_json::{Value, json};
use uptack::Fraction;
use uptack::card::Card;
use uptack::plan::{self, AnySolved, Asked, Form, Noise, Over, Solved, Trust, Unknown};
use uptack_chart::{Axis, Chart, Scale};
use uptack_document::{
    LinkedLimit, PlanError, Purpose, TrustWanted, Wanted, any_plan_json, plan_json, plan_sheet, sheet_points,
};

use crate::failure::{PyFailure, Result, internal, to_text};
use crate::long_work::{Listener, counted};

/// A plan with everything that its charts and card are made from.
#[pyclass(name = "Plan", module = "uptack._core", frozen)]
pub(crate) struct PyPlan {
    outcome: Outcome,
}

/// The plan of a yes/no question, or of options.
enum Outcome {
    YesNo(Arc<Solved>),
    Options(Box<AnySolved>),
}

impl From<PlanError> for PyFailure {
    fn from(error: PlanError) -> Self {
        const ERROR: &str = "error is the largest standard deviation of the estimate";
        match error {
            PlanError::TooLittle => Self::request("too little is known to plan")
                .with_hint("give two of owners, epsilon and error, or owners with a local epsilon"),
            PlanError::NoError => Self::request("error is needed to solve for the rest").with_hint(ERROR),
            PlanError::BadError => Self::request("error: it must be a positive number").with_hint(ERROR),
            PlanError::BatchWithoutOwners => Self::request("minimum_batch needs owners")
                .with_hint("where owners are solved for, the minimum batch is all of them"),
            PlanError::OutOfRange { error, .. } | PlanError::Refused(error) => error.into(),
        }
    }
}

const NOISES: &[(&str, Noise)] = &[("aggregators", Noise::Aggregators), ("none", Noise::None), ("any", Noise::Any)];
const TRUSTS: &[(&str, Trust)] = &[("one-aggregator", Trust::OneAggregator), ("owners", Trust::Owners)];
const UNKNOWNS: &[(&str, Unknown)] =
    &[("error", Unknown::Error), ("epsilon", Unknown::Epsilon), ("owners", Unknown::Owners)];
const FORMS: &[(&str, Form)] = &[("one", Form::One), ("several", Form::Several), ("any", Form::Any)];
const OVERS: &[(&str, Over)] = &[("worst", Over::Worst), ("mean", Over::Mean)];
/// Whether the objective is the paper's.
const OBJECTIVES: &[(&str, bool)] = &[("sd", false), ("paper", true)];

/// The value of a word.
pub(crate) fn word<T: Copy>(name: &str, said: &str, words: &[(&str, T)]) -> Result<T> {
    let known = words.iter().find(|(known, _)| *known == said).map(|(_, value)| *value);
    known.ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
        PyFailure::request(format!("{name}: `{}` is unknown", said.escape_debug()))
            .with_hint(format!("it is one of {}", all.join(", ")))
    })
}

fn optional_word<T: Copy>(name: &str, said: Option<&str>, words: &[(&str, T)]) -> Result<Option<T>> {
    said.map(|said| word(name, said, words)).transpose()
}

/// Plans; an argument that is `None` is left out.
#[pyfunction(name = "plan")]
#[pyo3(signature = (yes, *, options, counts, most_yes, owners, epsilon, delta, error, answer_epsilon, linked_epsilon, noise, trust, participation, honest, minimum_batch, solve, form, objective, over, family, progress))]
#[allow(clippy::too_many_arguments, reason = "they are keywords, and the package's own code names them again")]
pub(crate) fn make_plan(
    py: Python<'_>,
    yes: (u64, u64),
    options: Option<u64>,
    counts: Option<u64>,
    most_yes: Option<u64>,
    owners: Option<u64>,
    epsilon: Option<f64>,
    delta: f64,
    error: Option<f64>,
    answer_epsilon: Option<f64>,
    linked_epsilon: Option<&str>,
    noise: Option<&str>,
    trust: Option<&str>,
    participation: Option<&str>,
    honest: &str,
    minimum_batch: Option<u64>,
    solve: Option<&str>,
    form: Option<&str>,
    objective: &str,
    over: &str,
    family: Option<String>,
    progress: Listener<'_>,
) -> PyResult<PyPlan> {
    if family.is_some() && (options.is_some() || counts.is_some()) {
        return Err(PyFailure::request("family: it is for plans of yes/no questions").with_hint("leave it out").into());
    }
    let wanted = Wanted {
        asked: read_asked(options, counts, most_yes)?,
        owners,
        over: word("over", over, OVERS)?,
        epsilon,
        delta,
        answer_epsilon,
        trust: read_trust(noise, trust, linked_epsilon)?,
        participation: participation.map(|text| share("participation", text)).transpose()?,
        honest: share("honest", honest)?,
        minimum_batch,
        error,
        solve: optional_word("solve", solve, UNKNOWNS)?,
        form: optional_word("form", form, FORMS)?,
        paper_objective: word("objective", objective, OBJECTIVES)?,
        family,
        ..Wanted::new(Purpose::Comparing, yes)
    };
    let outcome = counted(py, progress, plan::PROGRESS, move |progress| match wanted.asked {
        Asked::YesNo => wanted.plan(progress).map(|solved| Outcome::YesNo(Arc::new(solved))),
        _ => wanted.plan_any(progress).map(|solved| Outcome::Options(Box::new(solved))),
    })?;
    Ok(PyPlan { outcome })
}

/// What is asked: a yes/no question, unless options or counts are given.
fn read_asked(options: Option<u64>, counts: Option<u64>, most_yes: Option<u64>) -> Result<Asked> {
    // Numbers that are too large are refused by the planner, like those that are too small.
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    match (options, counts, most_yes) {
        (Some(_), Some(_), _) => Err(PyFailure::request("give options or counts, and not both")),
        (_, None, Some(_)) => {
            Err(PyFailure::request("most_yes: it needs counts").with_hint("of options, every owner has exactly one"))
        }
        (Some(options), None, None) => Ok(Asked::Options(number(options))),
        (None, Some(counts), most) => Ok(Asked::Counts { counts: number(counts), most: number(most.unwrap_or(1)) }),
        (None, None, None) => Ok(Asked::YesNo),
    }
}

fn read_trust(noise: Option<&str>, trust: Option<&str>, linked_epsilon: Option<&str>) -> Result<TrustWanted> {
    let linked = linked_epsilon.map(|text| text.parse::<LinkedLimit>()).transpose();
    Ok(TrustWanted {
        noise: optional_word("noise", noise, NOISES)?,
        trust: optional_word("trust", trust, TRUSTS)?,
        linked: linked.map_err(|words| PyFailure::request(format!("linked_epsilon: {words}")))?,
    })
}

/// A share, between 0 and 1, from text.
pub(crate) fn share(name: &str, text: &str) -> Result<Fraction> {
    Ok(text.parse::<Fraction>().map_err(|error| error.at(name))?)
}

impl PyPlan {
    /// The plan of a yes/no question, which has cards and charts.
    fn yes_no(&self, what: &str) -> Result<&Arc<Solved>> {
        match &self.outcome {
            Outcome::YesNo(solved) => Ok(solved),
            Outcome::Options(_) => Err(PyFailure::request(format!("{what}: it is for plans of yes/no questions"))
                .with_hint("to_dict() has the whole plan")),
        }
    }

    fn card(&self) -> Result<Card> {
        let solved = self.yes_no("card")?;
        Ok(Card::new(&solved.request, &solved.plan))
    }
}

#[pymethods]
impl PyPlan {
    /// The output of `uptack plan --json`.
    fn document(&self) -> PyResult<String> {
        match &self.outcome {
            Outcome::YesNo(solved) => to_text(&plan_json(solved)),
            Outcome::Options(solved) => to_text(&any_plan_json(solved).map_err(PyFailure::from)?),
        }
    }

    /// The query card, as canonical JSON.
    fn card_json(&self) -> Result<String> {
        Ok(self.card()?.canonical())
    }

    /// The query card, as TOML.
    fn card_toml(&self) -> PyResult<String> {
        toml::to_string(&self.card()?).map_err(|error| internal(&error.to_string()))
    }

    /// The charts: as SVG, and their data as JSON.
    #[pyo3(signature = (progress=None))]
    fn chart(&self, py: Python<'_>, progress: Listener<'_>) -> PyResult<(String, String)> {
        let outcome = Arc::clone(self.yes_no("chart")?);
        let points = sheet_points(&outcome.request, &outcome.plan);
        let sheet = counted(py, progress, points, move |progress| {
            Ok::<_, PyFailure>(plan_sheet(&outcome.request, &outcome.plan, progress))
        })?;
        let data: Vec<Value> = sheet.charts.iter().map(chart_data).collect();
        Ok((sheet.to_svg(), to_text(&data)?))
    }
}

/// A chart's labels and the columns of its series; an error that no mechanism of a family reaches is null.
fn chart_data(chart: &Chart) -> Value {
    let axis = |axis: &Axis| json!({"label": axis.label, "logarithmic": axis.scale == Scale::Log});
    let series = chart.data().into_iter().map(|(name, points)| {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.x, point.y)).unzip();
        json!({"name": name, "x": x, "y": y})
    });
    json!({
        "title": chart.title,
        "subtitle": chart.subtitle,
        "x": axis(&chart.x),
        "y": axis(&chart.y),
        "series": series.collect::<Vec<_>>(),
    })
}
