//! Reading the form: its fields, what is wrong with one of them, and the request to the planner that they make.

use uptack::{
    plan::{Asked, Noise, Trust},
    quantity::{count, number, range},
};
use uptack_document::{LinkedLimit, PlanError, Purpose, Solvable, TrustWanted, Wanted};

use crate::desk::pages::guard::FormFields;

/// Every field: first those that determine the plan.
pub(super) const NAMES: [&str; 19] = [
    "owners",
    "yes",
    "epsilon",
    "error",
    "trust",
    "delta",
    "answer_epsilon",
    "linked_epsilon",
    "honest",
    "minimum_batch",
    "who",
    "each",
    "values",
    "most_yes",
    "times",
    "question",
    "predicate",
    "closes",
    "anyway",
];

/// The fields that determine a plan.
pub(super) const PLANNED_FROM: &[&str] = NAMES.split_at(15).0;

/// The id of the form, which stands for all of its fields where no single one is at fault.
pub(super) const ID: &str = "ask";

/// A field of the form that is at fault, and why.
#[derive(Debug, Clone)]
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
        let field = error.field().unwrap_or("owners");
        match error {
            PlanError::TooLittle => Self::of(field, "give two of owners, ε and error; the third is solved for"),
            PlanError::NoError | PlanError::BadError => {
                Self::of(field, "give the largest standard deviation, in people")
            }
            PlanError::BatchWithoutOwners => {
                Self::of(field, "where owners are solved for, the minimum batch is 80 % of them")
            }
            PlanError::OutOfRange { error, .. } => Self::of(field, error_words(error)),
            PlanError::Refused(error) => error.into(),
        }
    }
}

/// The planner names the field that has to change; if it is none of the form's, the form as a whole is at fault.
impl From<uptack::Error> for FieldFault {
    fn from(error: uptack::Error) -> Self {
        let known = error.field().and_then(|field| NAMES.into_iter().find(|name| *name == field));
        Self::of(known.unwrap_or(ID), error_words(error))
    }
}

/// Reads the request to the planner from the fields of the form; `asked` is how much is asked, and `queries` of it can differ for one
/// owner if they are independent.
pub(super) fn read(fields: &FormFields, asked: Asked, queries: u64) -> FieldResult<Solvable> {
    let mut wanted = Wanted {
        asked,
        queries,
        owners: parsed(fields, "owners", count)?,
        epsilon: parsed(fields, "epsilon", number)?,
        error: parsed(fields, "error", number)?,
        ..Wanted::new(Purpose::Asking, (0, 0))
    };
    // Before the other fields are read: they may still be empty while fewer than two of these are filled in.
    wanted.unknown()?;
    wanted.yes = yes(fields)?;
    wanted.minimum_batch = parsed(fields, "minimum_batch", count)?;
    wanted.trust = trust(fields)?;
    wanted.delta = parsed(fields, "delta", number)?.unwrap_or(wanted.delta);
    wanted.answer_epsilon = parsed(fields, "answer_epsilon", number)?;
    wanted.honest = parsed(fields, "honest", str::parse)?.unwrap_or(wanted.honest);
    let wanted = wanted.complete()?;
    // Before anything is planned, so that it is said at once.
    wanted.request.check()?;
    Ok(wanted)
}

fn yes(fields: &FormFields) -> FieldResult<(u64, u64)> {
    let words = "give roughly how many would say yes, as in 500 or 0..500";
    parsed(fields, "yes", range)?.ok_or_else(|| FieldFault::of("yes", words))
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
    parsed(fields, "linked_epsilon", str::parse)
}

/// The value of a field that was filled in, read by the function that reads the same option of a command.
pub(super) fn parsed<T, E: ToString>(
    fields: &FormFields,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> FieldResult<Option<T>> {
    fields.given(name).map(parse).transpose().map_err(FieldFault::at(name))
}

/// An error with its hint.
fn error_words(error: uptack::Error) -> String {
    error.hint().map_or(error.to_string(), |hint| format!("{error}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::Progress;
    use uptack::plan::{USUAL_LINKED_EPSILON, Unknown};
    use uptack::quantity;
    use uptack_document::plan_json;

    fn read(query: &str) -> FieldResult<Solvable> {
        super::read(&FormFields::parse(query.as_bytes()), Asked::YesNo, 1)
    }

    #[test]
    fn what_is_left_out_is_solved_for() {
        let unknown = |query: &str| read(query).map(|wanted| wanted.unknown).map_err(|fault| fault.field);
        assert_eq!(unknown("owners=50+000&yes=500&epsilon=1"), Ok(Unknown::Error));
        assert_eq!(unknown("owners=5e4&yes=0..500&epsilon=1&error=8"), Ok(Unknown::Error));
        assert_eq!(unknown("owners=50_000&yes=500&error=8"), Ok(Unknown::Epsilon));
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
            ("owners=0&yes=0&epsilon=1", "owners"),
            ("owners=50&yes=51&epsilon=1", "yes"),
            ("owners=50&yes=9..5&epsilon=1", "yes"),
            ("owners=50&yes=5&epsilon=1&minimum_batch=51", "minimum_batch"),
            ("owners=50&yes=5&epsilon=1&minimum_batch=0", "minimum_batch"),
            ("owners=50&yes=5&epsilon=1&error=0", "error"),
            ("owners=50&yes=5&epsilon=1&honest=0", "honest"),
            ("owners=50&yes=5&epsilon=1e-9", "epsilon"),
            ("owners=50&yes=5&epsilon=1&answer_epsilon=-1", "answer_epsilon"),
            ("owners=50&yes=5&epsilon=1&linked_epsilon=0", "linked_epsilon"),
        ] {
            assert_eq!(unknown(query), Err(field), "{query}");
        }
    }

    /// A text that identifies a request.
    fn key(Solvable { request, unknown, error }: &Solvable) -> String {
        format!("{request:?} {unknown:?} {error:?}")
    }

    /// A number as a form sends it.
    fn sent(name: &str, text: &str) -> String {
        url::form_urlencoded::Serializer::new(String::new()).append_pair(name, text).finish()
    }

    /// The commands read their options with these two functions. An ε of `0,5` that is read as 5 hides ten times less.
    #[test]
    fn the_form_reads_numbers_as_the_commands_do_and_refuses_a_decimal_comma() {
        let spellings = [
            "1e-6",
            "5%",
            "1/3",
            "0,5",
            "1,5",
            "1.000.000",
            "1,000",
            "1 000",
            " 7 ",
            "0.5",
            "1_000",
            "-1",
            "+2",
            "ten",
        ];
        for text in spellings {
            let epsilon = read(&format!("owners=500&yes=5&{}", sent("epsilon", text)));
            let linked = read(&format!("owners=500&yes=5&epsilon=1&{}", sent("linked_epsilon", text)));
            match quantity::number(text.trim()) {
                Ok(number) if number > 0.0 => {
                    assert_eq!(linked.unwrap().request.linked_epsilon, Some(number), "{text}");
                    // The planner refuses an ε of the release that is very small, whoever asks.
                    let read = epsilon.map(|wanted| wanted.request.release_epsilon()).map_err(|fault| fault.field);
                    assert_eq!(read, if number < 1e-4 { Err("epsilon") } else { Ok(Some(number)) }, "{text}");
                }
                Ok(_) => {
                    assert_eq!([epsilon, linked].map(|read| read.unwrap_err().field), ["epsilon", "linked_epsilon"]);
                }
                Err(words) => {
                    let fault = epsilon.unwrap_err();
                    assert_eq!((fault.field, fault.words.as_str()), ("epsilon", words.as_str()));
                    let fault = linked.unwrap_err();
                    assert!(fault.field == "linked_epsilon" && fault.words.starts_with(&words), "{fault:?}");
                }
            }
            let owners = read(&format!("yes=0&epsilon=1&{}", sent("owners", text)));
            match quantity::count(text.trim()) {
                Ok(count) => assert_eq!(owners.unwrap().request.owners, count, "{text}"),
                Err(words) => assert_eq!(owners.unwrap_err().words, words, "{text}"),
            }
            let honest = read(&format!("owners=500&yes=5&epsilon=1&{}", sent("honest", text)));
            // A share that leaves nobody of 500 owners is refused, too.
            let leaves_somebody = |share: uptack::Fraction| share.to_f64() >= 0.01;
            assert_eq!(honest.is_ok(), text.trim().parse().is_ok_and(leaves_somebody), "{text}");
        }
    }

    #[test]
    fn noise_brings_its_usual_bound() {
        let linked = |query: &str| read(&format!("owners=50&yes=5&epsilon=1&{query}")).unwrap().request.linked_epsilon;
        // Few owners: strong coins cost little.
        assert!(linked("").is_some_and(|linked| linked < USUAL_LINKED_EPSILON), "{:?}", linked(""));
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
            assert_eq!(key(&page), key(&asked), "{query}");
            // Whoever asks gets another default, and nothing else: a batch of 80 %.
            let Some(owners) = wanted.owners else { continue };
            let batch = wanted.minimum_batch.unwrap_or(Purpose::Asking.usual_batch(owners));
            let wanted = Wanted { minimum_batch: Some(batch), ..wanted };
            assert_eq!(key(&page), key(&wanted.complete().unwrap()), "{query}");
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
