//! The question with its plan, from which the card is made.

use uptack::{
    Progress,
    card::{Card, plan_whole},
    quantity::{count, seconds},
};
use uptack_dap::desk_client::Schedule;
use uptack_document::Solvable;
use uptack_owner::{question::Question, schedule::LEAST_WINDOW, typing::Declared};

use super::plan::{self, FieldFault, FieldResult};
use crate::desk::pages::guard::FormFields;

/// A question that owners can answer, the request to the planner, and when answers are taken.
pub(super) struct Draft {
    wanted: Solvable,
    question: Question,
    pub(super) words: String,
    pub(super) schedule: Schedule,
    /// How many queries can differ for one owner.
    queries: u64,
}

impl Draft {
    pub(super) fn read(fields: &FormFields) -> FieldResult<Self> {
        let wanted = plan::read(fields)?;
        let words = required(fields, "question", "say in words what people are asked")?.to_owned();
        let (question, schedule) = (question(fields)?, schedule(fields)?);
        let queries = counted_queries(&question, schedule)?;
        Ok(Self { wanted, question, words, schedule, queries })
    }

    /// The card as the desk is asked to open it, planned so that everything it asks together keeps within the request.
    pub(super) fn card(&self) -> Result<Card, uptack::Error> {
        let progress = Progress::default();
        // Both the error and what is solved for are about one question; as a whole the card then keeps within the request.
        let request = self.wanted.solved_request(&progress)?;
        let drafted = |card| self.question.on(card, &self.words, series(self.schedule));
        let card = plan_whole(&request, self.queries, drafted, &progress)?;
        // The desk fills in the series with its times.
        Ok(Card { series: None, ..card })
    }
}

/// The length of each window of a series, in seconds, and their number.
fn series(schedule: Schedule) -> Option<(u64, u64)> {
    match schedule {
        Schedule::Once { .. } => None,
        Schedule::Series { every, times } => Some((every, times)),
    }
}

/// How many queries can differ for one owner.
fn counted_queries(question: &Question, schedule: Schedule) -> FieldResult<u64> {
    let times = series(schedule).map_or(1, |(_, times)| times);
    let counted = question.counted_queries(times).map_err(FieldFault::at("values"))?;
    counted.ok_or_else(|| FieldFault::of("times", "a series has at least one window, and an end"))
}

fn required<'a>(fields: &'a FormFields, name: &'static str, words: &str) -> FieldResult<&'a str> {
    fields.given(name).ok_or_else(|| FieldFault::of(name, words))
}

fn question(fields: &FormFields) -> FieldResult<Question> {
    match fields.get("who") {
        "" | "devices" => question_of_devices(fields),
        "people" => question_of_people(fields),
        _ => Err(FieldFault::of("who", "devices answer, or people do")),
    }
}

/// People answer the question in words. Fields that only a device can evaluate are refused, because they would be ignored.
fn question_of_people(fields: &FormFields) -> FieldResult<Question> {
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

fn question_of_devices(fields: &FormFields) -> FieldResult<Question> {
    if let Some(attribute) = fields.given("each") {
        return ballot(fields, attribute);
    }
    let words = "say what a yes is, as in station == \"7\", name an attribute for a ballot, or let people answer";
    let predicate = required(fields, "predicate", words)?;
    Question::single(predicate, &Declared::default()).map_err(FieldFault::at("predicate"))
}

/// One question for each value of an attribute.
fn ballot(fields: &FormFields, attribute: &str) -> FieldResult<Question> {
    let values = values(fields)?;
    let most_yes = match fields.given("most_yes") {
        Some(text) => count(text).map_err(FieldFault::at("most_yes"))?,
        None => 1,
    };
    Question::each(attribute, values, fields.given("predicate"), most_yes, &Declared::default())
        .map_err(FieldFault::at("values"))
}

fn values(fields: &FormFields) -> FieldResult<Vec<String>> {
    let written = fields.get("values").split([',', '\n']).map(str::trim);
    let values: Vec<String> = written.filter(|value| !value.is_empty()).map(str::to_owned).collect();
    if values.is_empty() {
        return Err(FieldFault::of("values", "a ballot needs values, one per line or with commas between them"));
    }
    Ok(values)
}

fn schedule(fields: &FormFields) -> FieldResult<Schedule> {
    match fields.given("times") {
        Some(times) if times != "1" => {
            let times = count(times).map_err(FieldFault::at("times"))?;
            Ok(Schedule::Series { every: window_seconds(fields)?, times })
        }
        _ => Ok(Schedule::Once { seconds: window_seconds(fields)? }),
    }
}

fn window_seconds(fields: &FormFields) -> FieldResult<u64> {
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
        let fields = FormFields::parse(format!("{PLAN}&{rest}").as_bytes());
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
        assert_eq!(draft.schedule, Schedule::Series { every: 600, times: 4 });
        let card = draft.card().unwrap();
        assert_eq!(card.ballot.as_ref().unwrap().queries[1].predicate, "road == \"A2\"");
        assert!(card.series.is_none() && card.claims.whole_one_aggregator().unwrap() <= 1.0);
    }
}
