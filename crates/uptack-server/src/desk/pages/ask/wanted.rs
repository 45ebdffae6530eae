//! What the planner is asked, from the fields of the form.

use uptack::{
    Fraction,
    plan::{Noise, Over, Prior, Request, Solved, Trust, USUAL_LINKED_EPSILON, Unknown, solve},
    privacy::{Delta, Epsilon},
    quantity::{count, range},
    simulate::Progress,
};

use crate::desk::pages::guard::Fields;

/// A request to the planner, and what it leaves open.
pub(super) struct Wanted {
    pub(super) request: Request,
    pub(super) unknown: Unknown,
    /// The largest standard deviation that is accepted.
    pub(super) error: Option<f64>,
}

/// What is wrong with a field.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) field: &'static str,
    pub(super) words: String,
}

/// What reading a field gives back.
pub(super) type FieldResult<T> = Result<T, Fault>;

impl Fault {
    pub(super) fn of(field: &'static str, words: impl Into<String>) -> Self {
        Self { field, words: words.into() }
    }

    /// Turns errors into faults of a field.
    pub(super) fn at<E: ToString>(field: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::of(field, error.to_string())
    }
}

impl Wanted {
    pub(super) fn read(fields: &Fields) -> FieldResult<Self> {
        let owners = number(fields, "owners", count)?;
        let (epsilon, error) = (positive(fields, "epsilon")?, positive(fields, "error")?);
        let unknown = unknown(owners, epsilon, error)?;
        let yes = prior(fields)?;
        let minimum_batch = minimum_batch(fields, owners)?;
        let owners = owners.unwrap_or(yes.high.max(2));
        let (noise, trust) = trusted(fields.get("trust"))?;
        let request = Request {
            release: Some(release(epsilon.unwrap_or(1.0), fields)?),
            answer_epsilon: positive(fields, "answer_epsilon")?,
            linked_epsilon: linked(fields, noise)?,
            noise,
            trust,
            honest: honest(fields)?,
            minimum_batch: minimum_batch.unwrap_or(owners),
            ..Request::new(owners, yes)
        };
        Ok(Self { request, unknown, error })
    }

    /// The plan, with what was left open. An error that is given and cannot be had is refused, for the panel, the preview
    /// and the opening alike.
    pub(super) fn solve(&self, progress: &Progress) -> Result<Solved, uptack::Error> {
        solve(&self.request, self.unknown, self.error, progress)
    }

    /// Whether nothing is left open and no error is to be kept.
    pub(super) fn is_solved(&self) -> bool {
        self.unknown == Unknown::Error && self.error.is_none()
    }

    /// A text that identifies the request.
    pub(super) fn key(&self) -> String {
        format!("{:?} {:?} {:?}", self.request, self.unknown, self.error)
    }
}

fn prior(fields: &Fields) -> FieldResult<Prior> {
    let (low, high) = number(fields, "yes", range)?
        .ok_or_else(|| Fault::of("yes", "give roughly how many would say yes, as in 500 or 0..500"))?;
    Ok(Prior { low, high, over: Over::Worst })
}

fn minimum_batch(fields: &Fields, owners: Option<u64>) -> FieldResult<Option<u64>> {
    let given = number(fields, "minimum_batch", count)?;
    if owners.is_none() && given.is_some() {
        return Err(Fault::of("minimum_batch", "where owners are solved for, the minimum batch is all of them"));
    }
    Ok(given)
}

/// The share of the owners that is honest; all of them by default.
fn honest(fields: &Fields) -> FieldResult<Fraction> {
    Ok(number(fields, "honest", str::parse)?.unwrap_or_else(Fraction::one))
}

fn release(epsilon: f64, fields: &Fields) -> FieldResult<(Epsilon, Delta)> {
    let delta = positive(fields, "delta")?.unwrap_or(uptack::plan::USUAL_DELTA);
    let epsilon = Epsilon::new(epsilon).map_err(Fault::at("epsilon"))?;
    Ok((epsilon, Delta::new(delta).map_err(Fault::at("delta"))?))
}

/// What was left out; if all three are given, the plan is checked against the error.
fn unknown(owners: Option<u64>, epsilon: Option<f64>, error: Option<f64>) -> FieldResult<Unknown> {
    match (owners, epsilon, error) {
        (Some(_), Some(_), _) => Ok(Unknown::Error),
        (Some(_), None, Some(_)) => Ok(Unknown::Epsilon),
        (None, Some(_), Some(_)) => Ok(Unknown::Owners),
        _ => Err(Fault::of("owners", "give two of owners, ε and error; the third is solved for")),
    }
}

fn trusted(text: &str) -> FieldResult<(Noise, Trust)> {
    match text {
        "" | "one-aggregator" => Ok((Noise::Aggregators, Trust::OneAggregator)),
        "owners" => Ok((Noise::None, Trust::Owners)),
        "owners-and-noise" => Ok((Noise::Aggregators, Trust::Owners)),
        _ => Err(Fault::of("trust", "this is none of the choices")),
    }
}

/// The bound on the linked ε: with noise the usual one by default, and none if the field says so.
fn linked(fields: &Fields, noise: Noise) -> FieldResult<Option<f64>> {
    match fields.get("linked_epsilon") {
        "" => Ok((noise != Noise::None).then_some(USUAL_LINKED_EPSILON)),
        "none" => Ok(None),
        _ => positive(fields, "linked_epsilon"),
    }
}

fn number<T, E: ToString>(
    fields: &Fields,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> FieldResult<Option<T>> {
    let text = without_separators(fields.get(name));
    if text.is_empty() {
        return Ok(None);
    }
    parse(&text).map(Some).map_err(Fault::at(name))
}

/// People separate thousands by a space or a comma.
fn without_separators(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace() && *sign != ',').collect()
}

fn positive(fields: &Fields, name: &'static str) -> FieldResult<Option<f64>> {
    number(fields, name, parse_positive)
}

fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if f64::is_finite(value) && value > 0.0 => Ok(value),
        _ => Err(format!("`{text}` is not a positive number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Wanted, Fault> {
        Wanted::read(&Fields::parse(query.as_bytes()))
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
}
