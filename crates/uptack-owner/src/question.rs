//! What an analyst asks, checked so that owners can answer it: predicates are parsed as they will be on a device.

use std::{collections::BTreeSet, fmt};
use uptack::card::{BallotQuery, Card, CardBallot, CardQuestion, CardSeries, Timestamp};

use crate::{
    error::Error,
    predicate::Predicate,
    typing::{Declared, Type},
};

/// A question that owners can evaluate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What counts as *yes*, for a single question.
    pub predicate: Option<String>,
    /// Many questions instead of one.
    pub ballot: Option<CardBallot>,
    /// The attributes that the predicates read.
    pub attributes: Vec<String>,
}

/// Why a question cannot be asked.
#[derive(Debug)]
pub struct Unaskable {
    /// The question at fault, if it is one of a ballot.
    pub name: Option<String>,
    /// What is wrong.
    pub cause: Box<Error>,
    /// A predicate that was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for Unaskable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(formatter, "{name}: {}", self.cause)?,
            None => self.cause.fmt(formatter)?,
        }
        self.meant.as_ref().map_or(Ok(()), |meant| write!(formatter, "; did you mean `{meant}`?"))
    }
}

impl std::error::Error for Unaskable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}

impl Question {
    /// A question that a person answers: it holds nothing that a device could evaluate.
    pub fn of_people() -> Self {
        Self { predicate: None, ballot: None, attributes: Vec::new() }
    }

    /// One question.
    ///
    /// ```
    /// use uptack_owner::{question::Question, typing::Declared};
    /// let question = Question::single("speed > 50.0 && station == \"7\"", &Declared::default()).unwrap();
    /// assert_eq!(question.attributes, ["speed", "station"]);
    /// let unaskable = Question::single("station = 7", &Declared::default()).unwrap_err();
    /// assert_eq!(unaskable.meant.as_deref(), Some("station == 7"));
    /// ```
    pub fn single(predicate: &str, declared: &Declared) -> Result<Self, Unaskable> {
        let attributes = checked(None, predicate, declared)?.attributes().to_vec();
        Ok(Self { predicate: Some(predicate.to_owned()), ballot: None, attributes })
    }

    /// A ballot: whether an attribute has each of these values, for owners of whom `restriction` is true.
    pub fn each(
        attribute: &str,
        values: Vec<String>,
        restriction: Option<&str>,
        most_yes: u64,
        declared: &Declared,
    ) -> Result<Self, Unaskable> {
        check_attribute(attribute).map_err(|cause| unaskable(None, cause, None))?;
        if let Some(restriction) = restriction {
            checked(None, restriction, declared)?;
        }
        let kind = declared.declared_as(attribute);
        let query = |name: String| {
            let literal = literal(attribute, &name, kind).map_err(|cause| unaskable(Some(&name), cause, None))?;
            Ok(BallotQuery { predicate: has_value(attribute, &literal, restriction), name })
        };
        let queries: Vec<BallotQuery> = values.into_iter().map(query).collect::<Result<_, Unaskable>>()?;
        let mut attributes = BTreeSet::new();
        for query in &queries {
            let predicate = checked(Some(&query.name), &query.predicate, declared)?;
            attributes.extend(predicate.attributes().iter().cloned());
        }
        let ballot = Some(CardBallot { most_yes, queries });
        Ok(Self { predicate: None, ballot, attributes: attributes.into_iter().collect() })
    }

    /// How many queries can differ for one owner if all of it is asked `times` times; `None` if that is without end.
    pub fn counted_queries(&self, times: u64) -> Result<Option<u64>, uptack::Error> {
        CardQuestion::of(None, self.predicate.as_deref(), self.ballot.as_ref()).counted_queries(times)
    }

    /// What the planner is asked for if all of it is asked `times` times: up to `most_yes` contributions of one owner to all counts
    /// together. A ballot has its own limit.
    pub fn asked(&self, times: u64, most_yes: u64) -> uptack::plan::Asked {
        let (questions, most) = match &self.ballot {
            Some(ballot) => (ballot.queries.len() as u64, ballot.most_yes),
            None => (1, most_yes),
        };
        let counts = u32::try_from(questions.saturating_mul(times)).unwrap_or(u32::MAX);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if counts == 1 { uptack::plan::Asked::YesNo } else { uptack::plan::Asked::Counts { counts, most } }
    }

    /// A card that asks this question in these words; `series` is the length of a window and the number of windows.
    pub fn on(&self, card: Card, words: &str, series: Option<(u64, u64)>) -> Card {
        let series =
            series.map(|(every, times)| CardSeries { times, number: Some(1), starts: Timestamp::EPOCH, every });
        Card {
            question: Some(words.to_owned()),
            predicate: self.predicate.clone(),
            ballot: self.ballot.clone(),
            attributes: self.attributes.clone(),
            series,
            ..card
        }
    }
}

/// Refuses what is not the name of an attribute. A part of an expression would change the meaning of the comparisons: with
/// `true || lane`, everybody would say yes.
pub fn check_attribute(name: &str) -> Result<(), Error> {
    let compared = Predicate::parse(&has_value(name, "\"\"", None));
    if compared.is_ok_and(|predicate| predicate.attributes() == [name]) {
        return Ok(());
    }
    Err(Error::Input(format!("`{name}` is not the name of an attribute, such as station")))
}

/// The predicate that an attribute has a value, for owners of whom `restriction` is true.
fn has_value(attribute: &str, literal: &str, restriction: Option<&str>) -> String {
    let equal = format!("{attribute} == {literal}");
    match restriction {
        Some(restriction) => format!("({restriction}) && {equal}"),
        None => equal,
    }
}

/// A value of a ballot as it is written in a predicate: as text, unless the attribute is declared to be something else.
fn literal(attribute: &str, value: &str, kind: Option<Type>) -> Result<String, Error> {
    let is_text = kind == Some(Type::Text);
    if looks_like_a_range(value) && !is_text {
        return Err(Error::Input(format!(
            "this looks like a range, but a ballot counts the owners whose `{attribute}` is exactly that; ask for a \
             range with a question of its own, as in `{attribute} >= 0 && {attribute} < 50`"
        )));
    }
    let is_meant = match kind {
        Some(Type::Int) => value.parse::<i64>().is_ok(),
        Some(Type::Double) => value.parse::<f64>().is_ok_and(f64::is_finite),
        Some(Type::Bool) => matches!(value, "true" | "false"),
        _ => return Ok(quoted(value)),
    };
    match (is_meant, kind) {
        (true, Some(Type::Double)) if !value.contains(['.', 'e', 'E']) => Ok(format!("{value}.0")),
        (true, _) => Ok(value.to_owned()),
        (false, kind) => {
            let expected = kind.map(|kind| kind.to_string()).unwrap_or_default();
            Err(Error::Input(format!("this is not {expected}, which `{attribute}` is declared to be")))
        }
    }
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Two numbers with two dots between them.
fn looks_like_a_range(value: &str) -> bool {
    value.split_once("..").is_some_and(|(low, high)| {
        let is_end = |end: &str| end.trim().is_empty() || end.trim().parse::<f64>().is_ok();
        is_end(low) && is_end(high.trim_start_matches('='))
    })
}

/// Parses a predicate and checks its types; `name` is the name of its question on a ballot.
fn checked(name: Option<&str>, text: &str, declared: &Declared) -> Result<Predicate, Unaskable> {
    let predicate = Predicate::parse(text).map_err(|cause| unaskable(name, cause, Predicate::suggestion(text)))?;
    predicate.check_types(declared).map_err(|cause| unaskable(name, cause, None))?;
    Ok(predicate)
}

fn unaskable(name: Option<&str>, cause: Error, meant: Option<String>) -> Unaskable {
    Unaskable { name: name.map(str::to_owned), cause: Box::new(cause), meant }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicates(values: &[&str], declared: &[&str]) -> Result<Vec<String>, Unaskable> {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let declared = Declared::parse(declared.iter().copied()).unwrap();
        let question = Question::each("lane", values, None, 1, &declared)?;
        Ok(question.ballot.unwrap().queries.into_iter().map(|query| query.predicate).collect())
    }

    #[test]
    fn a_ballot_compares_with_values_of_the_declared_type() {
        assert_eq!(predicates(&["1", "2"], &[]).unwrap(), ["lane == \"1\"", "lane == \"2\""]);
        assert_eq!(predicates(&["1", "-2"], &["lane:int"]).unwrap(), ["lane == 1", "lane == -2"]);
        assert_eq!(predicates(&["1", "2.5"], &["lane:double"]).unwrap(), ["lane == 1.0", "lane == 2.5"]);
        assert_eq!(predicates(&["true"], &["lane:bool"]).unwrap(), ["lane == true"]);
        for (value, kind) in [("left", "lane:int"), ("1.5", "lane:int"), ("NaN", "lane:double"), ("yes", "lane:bool")] {
            let told = predicates(&[value], &[kind]).unwrap_err().to_string();
            assert!(told.starts_with(&format!("{value}: this is not")) && told.contains("declared to be"), "{told}");
        }
    }

    #[test]
    fn a_range_is_not_a_value_of_a_ballot_unless_it_is_declared_to_be_text() {
        for range in ["0..50", "50..=100", "0.5..1", "100.."] {
            for declared in [&[][..], &["lane:int"], &["lane:double"]] {
                let told = predicates(&[range], declared).unwrap_err().to_string();
                assert!(told.contains("looks like a range") && told.contains("`lane >= 0 && lane < 50`"), "{told}");
            }
            assert_eq!(predicates(&[range], &["lane:text"]).unwrap(), [format!("lane == \"{range}\"")]);
        }
        assert!(predicates(&["18-25", "A..B", "v1.2"], &[]).is_ok());
    }

    #[test]
    fn a_ballot_is_about_an_attribute_and_not_about_an_expression() {
        let each =
            |attribute: &str| Question::each(attribute, vec!["a".to_owned()], None, 1, &Declared::default()).map(drop);
        for attribute in ["lane", "_lane2"] {
            assert!(each(attribute).is_ok(), "{attribute}");
        }
        for wrong in ["true || lane", "lane x", "!lane", " lane", "", "7", "lane //"] {
            let told = each(wrong).unwrap_err().to_string();
            assert_eq!(told, format!("`{wrong}` is not the name of an attribute, such as station"));
        }
    }

    /// A predicate for all questions of a ballot is an expression of its own: in brackets, `a) || (b` would be one, too.
    #[test]
    fn the_restriction_of_a_ballot_is_a_yes_no_expression_by_itself() {
        let each = |restriction| {
            Question::each("lane", vec!["1".to_owned()], Some(restriction), 1, &Declared::default()).map(drop)
        };
        assert!(each("speed < 5").is_ok());
        assert!(each("speed").unwrap_err().to_string().contains("by itself"));
        assert!(each("true) || (true").is_err());
    }
}
