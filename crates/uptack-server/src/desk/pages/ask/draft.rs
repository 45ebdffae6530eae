//! The question with its plan: what becomes a card.

use uptack::{
    Progress,
    card::{Card, plan_whole},
    quantity::{count, seconds},
};
use uptack_document::Solvable;
use uptack_owner::{question::Question, schedule::LEAST_WINDOW, typing::Declared};

use super::plan::{self, FieldFault, FieldResult};
use crate::desk::pages::guard::Fields;

/// A question that owners can answer, with what the planner is asked and when answers are taken.
pub(super) struct Draft {
    wanted: Solvable,
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

impl Window {
    /// The seconds of each window and their number, if there are many.
    fn series(self) -> Option<(u64, u64)> {
        match self {
            Self::Once(_) => None,
            Self::Series { every, times } => Some((every, times)),
        }
    }
}

impl Draft {
    pub(super) fn read(fields: &Fields) -> FieldResult<Self> {
        let wanted = plan::read(fields)?;
        let words = required(fields, "question", "say in words what people are asked")?.to_owned();
        let (question, window) = (question(fields)?, window(fields)?);
        let queries = counted_queries(&question, window)?;
        Ok(Self { wanted, question, words, window, queries })
    }

    /// The card as the desk is asked to open it, planned so that everything it asks together keeps within the request.
    pub(super) fn card(&self) -> Result<Card, uptack::Error> {
        let progress = Progress::default();
        // Both the error and what is solved for are about one question; as a whole the card then keeps within the request.
        let request = self.wanted.solved_request(&progress)?;
        let drafted = |card| self.question.on(card, &self.words, self.window.series());
        let card = plan_whole(&request, self.queries, drafted, &progress)?;
        // The desk fills in the series with its times.
        Ok(Card { series: None, ..card })
    }

    /// When answers are taken, as a request to open the card states it.
    pub(super) fn schedule(&self) -> Vec<(&'static str, u64)> {
        match self.window {
            Window::Once(seconds) => vec![("seconds", seconds)],
            Window::Series { every, times } => vec![("every", every), ("times", times)],
        }
    }
}

/// How many queries can differ for one owner.
fn counted_queries(question: &Question, window: Window) -> FieldResult<u64> {
    let times = window.series().map_or(1, |(_, times)| times);
    let counted = question.counted_queries(times).map_err(FieldFault::at("values"))?;
    counted.ok_or_else(|| FieldFault::of("times", "a series has at least one window, and an end"))
}

fn required<'a>(fields: &'a Fields, name: &'static str, words: &str) -> FieldResult<&'a str> {
    fields.given(name).ok_or_else(|| FieldFault::of(name, words))
}

fn question(fields: &Fields) -> FieldResult<Question> {
    match fields.get("who") {
        "" | "devices" => question_of_devices(fields),
        "people" => question_of_people(fields),
        _ => Err(FieldFault::of("who", "devices answer, or people do")),
    }
}

/// People answer the question in words; what only a device can evaluate would be ignored.
fn question_of_people(fields: &Fields) -> FieldResult<Question> {
    for name in ["predicate", "each", "values", "most_yes"] {
        if fields.given(name).is_some() {
            return Err(FieldFault::of(
                name,
                "people answer the question itself; leave this empty, or let devices answer",
            ));
        }
    }
    Ok(Question::of_people())
}

fn question_of_devices(fields: &Fields) -> FieldResult<Question> {
    if let Some(attribute) = fields.given("each") {
        return ballot(fields, attribute);
    }
    let words = "say what a yes is, as in station == \"7\", name an attribute for a ballot, or let people answer";
    let predicate = required(fields, "predicate", words)?;
    Question::single(predicate, &Declared::default()).map_err(FieldFault::at("predicate"))
}

/// One question for each value of an attribute.
fn ballot(fields: &Fields, attribute: &str) -> FieldResult<Question> {
    let values = values(fields)?;
    let most_yes = match fields.given("most_yes") {
        Some(text) => count(text).map_err(FieldFault::at("most_yes"))?,
        None => 1,
    };
    Question::each(attribute, values, fields.given("predicate"), most_yes, &Declared::default())
        .map_err(FieldFault::at("values"))
}

fn values(fields: &Fields) -> FieldResult<Vec<String>> {
    let written = fields.get("values").split([',', '\n']).map(str::trim);
    let values: Vec<String> = written.filter(|value| !value.is_empty()).map(str::to_owned).collect();
    if values.is_empty() {
        return Err(FieldFault::of("values", "a ballot needs values, one per line or with commas between them"));
    }
    Ok(values)
}

fn window(fields: &Fields) -> FieldResult<Window> {
    match fields.given("times") {
        Some(times) if times != "1" => {
            let times = count(times).map_err(FieldFault::at("times"))?;
            Ok(Window::Series { every: window_seconds(fields)?, times })
        }
        _ => Ok(Window::Once(window_seconds(fields)?)),
    }
}

fn window_seconds(fields: &Fields) -> FieldResult<u64> {
    let text = required(fields, "closes", "say how long, as in 10m")?;
    let span = seconds(text).map_err(FieldFault::at("closes"))?;
    if span < LEAST_WINDOW {
        let words = format!("within {span} s nobody could answer; the shortest is {LEAST_WINDOW} s");
        return Err(FieldFault::of("closes", words));
    }
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "owners=500&yes=50&epsilon=1";

    fn read(rest: &str) -> FieldResult<Draft> {
        let fields = Fields::parse(format!("{PLAN}&{rest}").as_bytes());
        Draft::read(&fields)
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
