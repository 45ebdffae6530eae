//! Everything that a card asks, as far as its plan depends on it: the plan of a card with many questions is not that of one.

use uptack::{
    Error, Progress,
    card::{BallotQuery, CardBallot, WholePlan, solve_whole},
    plan::{Asked, Unknown},
    quantity::count,
};
use uptack_document::Solvable;
use uptack_owner::question::Question;

use super::reading::{self, FieldFault, FieldResult};
use crate::desk::{opening::LONGEST_SERIES, pages::guard::FormFields};

/// The request to the planner, and how often and how much is asked.
#[derive(Debug, Clone)]
pub(super) struct WholeWanted {
    wanted: Solvable,
    /// A ballot's questions, and how many of them one owner answers with yes.
    ballot: Option<(u64, u64)>,
    /// How many windows a series has.
    times: Option<u64>,
    /// How many queries can differ for one owner.
    queries: u64,
}

impl WholeWanted {
    pub(super) fn read(fields: &FormFields) -> FieldResult<Self> {
        let (ballot, times) = (ballot(fields)?, times(fields)?);
        let counted = stand_in(ballot).counted_queries(times.unwrap_or(1)).map_err(FieldFault::at("most_yes"))?;
        let queries = counted.ok_or_else(|| FieldFault::of("times", "a series has at least one window, and an end"))?;
        // Pages for people answer each window of a series by itself.
        let asked = match fields.get("who") {
            "people" => Asked::YesNo,
            _ => stand_in(ballot).asked(times.unwrap_or(1), most_yes(fields)?),
        };
        let wanted = reading::read(fields, asked, queries)?;
        Ok(Self { wanted, ballot, times, queries })
    }

    /// The plan, by the function that plans for `uptack ask`.
    pub(super) fn plan(&self) -> Result<WholePlan, Error> {
        let (question, series) = (stand_in(self.ballot), self.times.map(|times| (1, times)));
        let draft = |card| question.on(card, "", series);
        let Solvable { request, unknown, error } = &self.wanted;
        solve_whole(request, (*unknown, *error), self.queries, draft, &Progress::default())
    }

    /// Why the result of a plan would say next to nothing, and what would help; none if it is useful.
    pub(super) fn imprecision(&self, planned: &WholePlan) -> Option<String> {
        let imprecision = planned.card.imprecision()?;
        // What was solved for is not in the request, and has been solved for an error that was wanted.
        let remedies = match self.wanted.unknown {
            Unknown::Error => imprecision.remedies(&self.wanted.request, self.queries, self.times.unwrap_or(1)),
            Unknown::Epsilon | Unknown::Owners => Vec::new(),
        };
        let remedies: Vec<String> = remedies.iter().map(ToString::to_string).collect();
        Some(match remedies.as_slice() {
            [] => format!("{imprecision}; ask more owners or fewer questions, and allow a larger ε"),
            remedies => format!("{imprecision}; {}", remedies.join("; or ")),
        })
    }

    /// A text that identifies the request.
    pub(super) fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// The values of a ballot, as they are written.
pub(super) fn values(fields: &FormFields) -> FieldResult<Vec<String>> {
    let written = fields.get("values").split([',', '\n']).map(str::trim);
    let values: Vec<String> = written.filter(|value| !value.is_empty()).map(str::to_owned).collect();
    if values.is_empty() {
        return Err(FieldFault::of("values", "a ballot needs values, one per line or with commas between them"));
    }
    let mut sorted: Vec<&String> = values.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(FieldFault::of("values", format!("`{}` is in the list twice", pair[0]))),
        None => Ok(values),
    }
}

/// How many questions of a ballot one owner answers with yes.
pub(super) fn most_yes(fields: &FormFields) -> FieldResult<u64> {
    Ok(reading::parsed(fields, "most_yes", count)?.unwrap_or(1))
}

/// How many windows a series has; none for a single window.
pub(super) fn times(fields: &FormFields) -> FieldResult<Option<u64>> {
    match reading::parsed(fields, "times", count)? {
        None | Some(1) => Ok(None),
        Some(times) if times > LONGEST_SERIES => {
            Err(FieldFault::of("times", format!("a series has at most {LONGEST_SERIES} windows, not {times}")))
        }
        Some(times) => Ok(Some(times)),
    }
}

/// How many questions a ballot has, and how many of them one owner answers with yes; none for a single question.
fn ballot(fields: &FormFields) -> FieldResult<Option<(u64, u64)>> {
    if fields.given("each").is_none() || fields.get("who") == "people" {
        return Ok(None);
    }
    Ok(Some((values(fields)?.len() as u64, most_yes(fields)?)))
}

/// A question that costs what the one in the form costs, which may not be written down yet: claims count questions and do not
/// read them.
fn stand_in(ballot: Option<(u64, u64)>) -> Question {
    let query = |number: u64| BallotQuery { name: number.to_string(), predicate: "true".to_owned() };
    let ballot = ballot.map(|(queries, most_yes)| CardBallot { most_yes, queries: (1..=queries).map(query).collect() });
    Question { ballot, ..Question::of_people() }
}
