//! The question with its plan, from which the card is made.

use uptack::{
    card::{Card, WholePlan},
    quantity::seconds,
};
use uptack_dap::desk_client::Schedule;
use uptack_owner::{
    question::{Question, check_attribute},
    schedule::LEAST_WINDOW,
    typing::Declared,
};

use super::{
    reading::{self, FieldFault, FieldResult},
    whole::{self, WholeWanted},
};
use crate::desk::{
    opening::{self, LONGEST_WINDOW},
    pages::guard::FormFields,
};

/// A question that owners can answer, the request to the planner, and when answers are taken.
pub(super) struct Draft {
    pub(super) wanted: WholeWanted,
    question: Question,
    pub(super) words: String,
    pub(super) schedule: Schedule,
}

impl Draft {
    pub(super) fn read(fields: &FormFields) -> FieldResult<Self> {
        let wanted = WholeWanted::read(fields)?;
        let words = required(fields, "question", "say in words what people are asked")?.to_owned();
        Ok(Self { wanted, question: question(fields)?, words, schedule: schedule(fields)? })
    }

    /// The card as the desk is asked to open it: the one that was planned, with the question on it.
    pub(super) fn card(&self, planned: &WholePlan) -> FieldResult<Card> {
        let card = self.question.on(planned.card.clone(), &self.words, None);
        let field = if card.ballot.is_some() { "values" } else { "predicate" };
        opening::check_asked(&card).map_err(FieldFault::at(field))?;
        Ok(card)
    }
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
    if fields.given("values").is_some() {
        return Err(FieldFault::of("values", "this belongs to a ballot; name its attribute, or leave this empty"));
    }
    if fields.given("most_yes").is_some() && whole::times(fields)?.is_none() {
        let words = "this belongs to a ballot or a series; name an attribute, ask more than once, or leave this empty";
        return Err(FieldFault::of("most_yes", words));
    }
    Question::single(predicate, &Declared::default()).map_err(FieldFault::at("predicate"))
}

/// One question for each value of an attribute.
fn ballot(fields: &FormFields, attribute: &str) -> FieldResult<Question> {
    check_attribute(attribute).map_err(FieldFault::at("each"))?;
    let (values, most_yes) = (whole::values(fields)?, whole::most_yes(fields)?);
    let restriction = fields.given("predicate");
    if let Some(restriction) = restriction {
        Question::single(restriction, &Declared::default()).map_err(FieldFault::at("predicate"))?;
    }
    Question::each(attribute, values, restriction, most_yes, &Declared::default()).map_err(FieldFault::at("values"))
}

fn schedule(fields: &FormFields) -> FieldResult<Schedule> {
    let every = window_seconds(fields)?;
    Ok(match whole::times(fields)? {
        Some(times) => Schedule::Series { every, times },
        None => Schedule::Once { seconds: every },
    })
}

fn window_seconds(fields: &FormFields) -> FieldResult<u64> {
    required(fields, "closes", "say how long, as in 10m")?;
    let span = reading::parsed(fields, "closes", seconds)?.unwrap_or_default();
    let words = match span {
        short if short < LEAST_WINDOW => {
            format!("within {short} s nobody could answer; the shortest is {LEAST_WINDOW} s")
        }
        long if long > LONGEST_WINDOW => "the longest is ten years, 3660d".to_owned(),
        _ => return Ok(span),
    };
    Err(FieldFault::of("closes", words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::{
        Progress,
        card::plan_whole,
        plan::{AnySolved, Asked, Prior, Request, usual_linked_epsilon},
        privacy::Epsilon,
    };
    use uptack_document::Purpose;

    const PLAN: &str = "owners=500&yes=50&epsilon=1";

    fn read(rest: &str) -> FieldResult<Draft> {
        let fields = FormFields::parse(format!("{PLAN}&{rest}").as_bytes());
        Draft::read(&fields)
    }

    fn card(rest: &str) -> Card {
        let draft = read(rest).unwrap();
        draft.card(&draft.wanted.plan().unwrap()).unwrap()
    }

    #[test]
    fn what_owners_would_refuse_is_not_asked() {
        let field = |rest: &str| read(rest).err().map(|fault| fault.field);
        assert_eq!(field("question=Q&predicate=a+%3D%3D+%22b%22&closes=10m"), None);
        assert_eq!(field("predicate=a+%3D%3D+%22b%22&closes=10m"), Some("question"));
        assert_eq!(field("question=Q&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&predicate=a+%3D%3D&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&predicate=true&closes=2s"), Some("closes"));
        assert_eq!(field("question=Q&predicate=true&closes=99999d"), Some("closes"));
        assert_eq!(field("question=Q&predicate=true"), Some("closes"));
        assert_eq!(field("question=Q&who=people&closes=10m"), None);
        assert_eq!(field("question=Q&who=people&predicate=true&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&who=people&each=road&closes=10m"), Some("each"));
        assert_eq!(field("question=Q&who=nobody&closes=10m"), Some("who"));
        assert_eq!(field("question=Q&each=road&closes=10m"), Some("values"));
        assert_eq!(field("question=Q&each=the+road&values=a,b&closes=10m"), Some("each"));
        assert_eq!(field("question=Q&each=road&values=a,b&predicate=speed&closes=10m"), Some("predicate"));
        assert_eq!(field("question=Q&each=road&values=0..5,5..9&closes=10m"), Some("values"));
        assert_eq!(field("question=Q&predicate=true&values=a,b&closes=10m"), Some("values"));
        assert_eq!(field("question=Q&each=road&values=a,b,a&closes=10m"), Some("values"));
        assert_eq!(field("question=Q&each=road&values=a,b&most_yes=3&closes=10m"), Some("most_yes"));
        assert_eq!(field("question=Q&each=road&values=a,b&closes=10m&times=0"), Some("times"));
        assert_eq!(field("question=Q&predicate=true&closes=10m&times=1e6"), Some("times"));
    }

    #[test]
    fn a_question_for_people_has_nothing_for_a_device() {
        let card = card("question=Did+you+vote%3F&who=people&closes=10m");
        assert!(card.asks_person(), "{card:?}");
    }

    #[test]
    fn the_whole_of_a_ballot_and_a_series_keeps_what_was_asked_for() {
        let asked = "question=Q&each=road&values=A1%0AA2,A3&closes=10m&times=4";
        assert_eq!(read(asked).unwrap().schedule, Schedule::Series { every: 600, times: 4 });
        let card = card(asked);
        assert_eq!(card.ballot.as_ref().unwrap().queries[1].predicate, "road == \"A2\"");
        assert!(card.series.is_none() && card.claims.whole_one_aggregator().unwrap() <= 1.0);
    }

    /// The plan on the page, the card of the preview and the card of `uptack ask` are from one function.
    #[test]
    fn the_plan_shown_is_that_of_the_whole_card() {
        let series = "question=Q&predicate=true&closes=5m&times=288";
        let planned = read(series).unwrap().wanted.plan().unwrap();
        let request = Request::one_aggregator(500, Prior::at(50), Epsilon::new(1.0).unwrap()).unwrap();
        let asked = Asked::Counts { counts: 288, most: 1 };
        let minimum_batch = Purpose::Asking.usual_batch(500);
        let request = Request { asked, minimum_batch, ..request };
        let request = Request { linked_epsilon: Some(usual_linked_epsilon(&request, None)), ..request };
        let question = Question::single("true", &Declared::default()).unwrap();
        let draft = |card| question.on(card, "Q", Some((300, 288)));
        let asked = plan_whole(&request, 288, draft, &Progress::default()).unwrap();
        let AnySolved::Contributions(shown) = &planned.solved else { panic!("{}", planned.card.mechanism) };
        let (sd, mechanism) = (shown.plan.best.sd, &shown.plan.best.mechanism);
        assert_eq!((sd, mechanism.to_string()), (asked.predicted.sd.value(), asked.mechanism.to_string()));
        assert_eq!((&planned.card.claims, planned.queries), (&asked.claims, 1));
        assert_eq!(card(series), Card { series: None, ..asked });
        // One window has a fraction of that error.
        let one = read("question=Q&predicate=true&closes=5m").unwrap().wanted.plan().unwrap();
        let one = one.card.predicted.sd.value();
        assert!(sd > 1.5 * one && sd < 4.0 * one, "{sd} and {one}");
    }

    /// The error is that of each count, and ε that of all of them together, whichever is solved for.
    #[test]
    fn what_is_solved_for_is_solved_for_the_whole_card() {
        let solved = |plan: &str| {
            let fields = FormFields::parse(format!("{plan}&yes=10&times=4").as_bytes());
            WholeWanted::read(&fields).unwrap().plan()
        };
        for trust in ["one-aggregator", "owners"] {
            let epsilon = solved(&format!("owners=100&error=12&trust={trust}")).unwrap();
            assert!(epsilon.card.predicted.sd.value() <= 12.0);
            let whole = epsilon.epsilon().unwrap();
            // Independent questions add up, and contributions are for all windows together.
            let most = match &epsilon.solved {
                AnySolved::YesNo(one) => {
                    let one = one.value();
                    assert!(whole > one && whole <= 4.01 * one, "{trust}: {whole} of {one}");
                    4.02 * one
                }
                AnySolved::Contributions(_) => 1.2 * whole,
            };
            let owners = solved(&format!("epsilon={most}&error=12&trust={trust}")).unwrap();
            assert!(owners.card.predicted.sd.value() <= 12.0 && owners.epsilon().unwrap() <= most, "{trust}");
        }
        let refused = solved("owners=100&epsilon=1&error=2").unwrap_err();
        assert_eq!(refused.field(), Some("error"), "{refused}");
    }
}
