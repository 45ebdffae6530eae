//! The question with its plan: what becomes a card.

use uptack::{
    card::{Card, plan_whole},
    plan,
    quantity::{count, seconds},
    simulate::Progress,
};
use uptack_owner::{question::Question, schedule::LEAST_WINDOW, typing::Declared};

use super::wanted::{Fault, Wanted};
use crate::desk::pages::fields::Fields;

/// A question that owners can answer, with what the planner is asked and when answers are taken.
pub(super) struct Draft {
    wanted: Wanted,
    question: Question,
    pub(super) words: String,
    window: Window,
    /// How many queries can differ for one owner.
    queries: u64,
}

/// When answers are taken, in seconds.
#[derive(Clone, Copy)]
enum Window {
    Once(u64),
    Series { every: u64, times: u64 },
}

impl Draft {
    pub(super) fn read(fields: &Fields, wanted: Wanted) -> Result<Self, Fault> {
        let words =
            fields.given("question").ok_or_else(|| Fault::of("question", "say in words what people are asked"))?;
        let (question, window) = (question(fields)?, window(fields)?);
        let times = match window {
            Window::Once(_) => 1,
            Window::Series { times, .. } => times,
        };
        let counted = question.counted_queries(times).map_err(|error| Fault::of("values", error.to_string()))?;
        let queries = counted.ok_or_else(|| Fault::of("times", "a series has at least one window, and an end"))?;
        Ok(Self { wanted, question, words: words.to_owned(), window, queries })
    }

    /// The card as the desk is asked to open it: planned such that all that it asks keeps the request.
    pub(super) fn card(&self) -> Result<Card, uptack::Error> {
        let Wanted { request, unknown, error } = &self.wanted;
        let progress = Progress::default();
        // What was left open is solved for one question; as a whole the card then keeps within what was found.
        let request = match unknown {
            plan::Unknown::Error => request.clone(),
            _ => plan::solve(request, *unknown, *error, &progress)?.request,
        };
        let series = match self.window {
            Window::Once(_) => None,
            Window::Series { every, times } => Some((every, times)),
        };
        let drafted = |card| self.question.on(card, &self.words, series);
        let card = plan_whole(&request, self.queries, drafted, &progress)?;
        // The desk fills in the series with its times.
        Ok(Card { series: None, ..card })
    }

    /// When answers are taken, as a request to open it says it.
    pub(super) fn schedule(&self) -> Vec<(&'static str, u64)> {
        match self.window {
            Window::Once(seconds) => vec![("seconds", seconds)],
            Window::Series { every, times } => vec![("every", every), ("times", times)],
        }
    }
}

fn question(fields: &Fields) -> Result<Question, Fault> {
    match fields.get("who") {
        "" | "devices" => question_of_devices(fields),
        "people" => question_of_people(fields),
        _ => Err(Fault::of("who", "devices answer, or people do")),
    }
}

/// People answer in their own words; what only a device could evaluate would never be looked at.
fn question_of_people(fields: &Fields) -> Result<Question, Fault> {
    for name in ["predicate", "each", "values", "most_yes"] {
        if fields.given(name).is_some() {
            return Err(Fault::of(name, "people answer the question itself; leave this empty, or let devices answer"));
        }
    }
    Ok(Question::of_people())
}

fn question_of_devices(fields: &Fields) -> Result<Question, Fault> {
    let declared = Declared::default();
    let Some(attribute) = fields.given("each") else {
        let predicate = fields.given("predicate").ok_or_else(|| {
            let words =
                "say what a yes is, as in station == \"7\", name an attribute for a ballot, or let people answer";
            Fault::of("predicate", words)
        })?;
        return Question::single(predicate, &declared).map_err(|error| Fault::of("predicate", error.to_string()));
    };
    let values: Vec<String> = fields
        .get("values")
        .split([',', '\n'])
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect();
    if values.is_empty() {
        return Err(Fault::of("values", "a ballot needs values, one per line or with commas between them"));
    }
    let most_yes = match fields.given("most_yes") {
        Some(text) => count(text).map_err(|words| Fault::of("most_yes", words))?,
        None => 1,
    };
    Question::each(attribute, values, fields.given("predicate"), most_yes, &declared)
        .map_err(|error| Fault::of("values", error.to_string()))
}

fn window(fields: &Fields) -> Result<Window, Fault> {
    let span = |name: &'static str| {
        let text = fields.given(name).ok_or_else(|| Fault::of(name, "say how long, as in 10m"))?;
        let span = seconds(text).map_err(|words| Fault::of(name, words))?;
        if span < LEAST_WINDOW {
            return Err(Fault::of(
                name,
                format!("within {span} s nobody could answer; the shortest is {LEAST_WINDOW} s"),
            ));
        }
        Ok(span)
    };
    match fields.given("times") {
        Some(times) if times != "1" => {
            let times = count(times).map_err(|words| Fault::of("times", words))?;
            Ok(Window::Series { every: span("closes")?, times })
        }
        _ => Ok(Window::Once(span("closes")?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "owners=500&yes=50&epsilon=1";

    fn read(rest: &str) -> Result<Draft, Fault> {
        let fields = Fields::parse(format!("{PLAN}&{rest}").as_bytes());
        Draft::read(&fields, Wanted::read(&fields).unwrap())
    }

    #[test]
    fn what_owners_would_refuse_is_not_asked() {
        let field = |rest: &str| read(rest).err().map(|fault| fault.field);
        assert_eq!(field("question=Q&predicate=a+%3D%3D+%22b%22&closes=10m"), None);
        assert_eq!(field("predicate=a+%3D%3D+%22b%22&closes=10m"), Some("question"));
        assert_eq!(field("question=Q&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&predicate=a+%3D%3D&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&predicate=true&closes=2s"), Some("closes"));
        assert_eq!(field("question=Q&predicate=true"), Some("closes"));
        assert_eq!(field("question=Q&who=people&closes=10m"), None);
        assert_eq!(field("question=Q&who=people&predicate=true&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&who=people&each=road&closes=10m"), Some("each"));
        assert_eq!(field("question=Q&who=nobody&closes=10m"), Some("who"));
        assert_eq!(field("question=Q&each=road&closes=10m"), Some("values"));
        assert_eq!(field("question=Q&each=road&values=a,b&closes=10m&times=0"), Some("times"));
    }

    #[test]
    fn a_question_for_people_has_nothing_for_a_device() {
        let card = read("question=Did+you+vote%3F&who=people&closes=10m").unwrap().card().unwrap();
        assert!(card.asks_person(), "{card:?}");
    }

    #[test]
    fn the_whole_of_a_ballot_and_a_series_keeps_what_was_asked_for() {
        let draft = read("question=Q&each=road&values=A1%0AA2,A3&closes=10m&times=4").unwrap();
        assert_eq!(draft.schedule(), [("every", 600), ("times", 4)]);
        let card = draft.card().unwrap();
        assert_eq!(card.ballot.as_ref().unwrap().queries[1].predicate, "road == \"A2\"");
        assert!(card.series.is_none() && card.claims.whole_one_aggregator().unwrap() <= 1.0);
    }
}
