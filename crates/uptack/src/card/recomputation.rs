//! Everything that a card states, computed again and compared, number by number.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{Card, CardChannel, CardLaw, Claim, Claims, Neighbouring, Timestamp, VERSION, WholeClaims};
use crate::channel::{Cell, Channel, Output};
use crate::contribution::AnyMechanism;
use crate::display::{Decimal, Rounding, separated};
use crate::error::{Error, Result};
use crate::estimate::Estimator;
use crate::noise::NoiseLaw;
use crate::plan::{Over, Prior};
use crate::privacy::{Views, WorkLimit};
use crate::progress::Progress;

/// A statement, and its value when it is computed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Where it is stated, such as `claims.release` or `channel.cells[2].yes`.
    pub what: String,
    /// As it is stated; `None` if it is left out.
    pub stated: Option<String>,
    /// The value that was found.
    pub recomputed: String,
    /// How the two compare.
    pub verdict: Verdict,
}

/// How a stated value compares with the one that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// They are equal to the last digit.
    Equal,
    /// A claim that is rounded up to fewer digits, but at least three.
    RoundedUp,
    /// A claim that is sound, but promises less than is true by more than its rounding.
    Wider,
    /// It differs from the value that was found; a claim is better than the truth.
    Wrong,
    /// It is not stated, so nothing can be wrong.
    NotStated,
}

/// A value with fewer digits than this does not count as rounded.
const FEWEST_DIGITS: usize = 3;

impl Check {
    /// A value that must be exactly the one that was found.
    pub fn equal(what: impl Into<String>, stated: impl fmt::Display, recomputed: impl fmt::Display) -> Self {
        let (stated, recomputed) = (stated.to_string(), recomputed.to_string());
        let verdict = if stated == recomputed { Verdict::Equal } else { Verdict::Wrong };
        Self { what: what.into(), stated: Some(stated), recomputed, verdict }
    }

    /// A value that must follow a rule, given in words.
    pub fn rule(what: impl Into<String>, stated: impl fmt::Display, rule: impl fmt::Display, kept: bool) -> Self {
        let verdict = if kept { Verdict::Equal } else { Verdict::Wrong };
        Self { what: what.into(), stated: Some(stated.to_string()), recomputed: rule.to_string(), verdict }
    }

    /// A value that was found and is not stated.
    pub fn not_stated(what: impl Into<String>, recomputed: impl fmt::Display) -> Self {
        Self { what: what.into(), stated: None, recomputed: recomputed.to_string(), verdict: Verdict::NotStated }
    }

    /// A claim of privacy, an ε or `none`: never better than the value that was found.
    pub fn claim(what: impl Into<String>, stated: &Claim, recomputed: &Claim) -> Self {
        let verdict = compare_claim(stated, recomputed);
        Self { verdict, ..Self::equal(what, stated, recomputed) }
    }

    /// Whether it agrees with the value that was found; a claim may be rounded up.
    pub fn holds(&self) -> bool {
        matches!(self.verdict, Verdict::Equal | Verdict::RoundedUp | Verdict::NotStated)
    }

    /// Whether it differs from the value that was found, or is better than the truth.
    pub fn is_wrong(&self) -> bool {
        self.verdict == Verdict::Wrong
    }

    /// The same check, with the whole that it is a part of named before it.
    #[must_use]
    pub fn within(self, whole: &str) -> Self {
        Self { what: format!("{whole}.{}", self.what), ..self }
    }
}

fn compare_claim(stated: &Claim, recomputed: &Claim) -> Verdict {
    if stated.is_below(recomputed) {
        return Verdict::Wrong;
    }
    match (stated.decimal(), recomputed.decimal()) {
        (Some(stated), Some(found)) => compare_digits(&stated, &found),
        // No guarantee is claimed although there is one.
        (None, Some(_)) => Verdict::Wider,
        (_, None) => Verdict::Equal,
    }
}

/// Compares an ε that is stated with a smaller or equal one that was found.
fn compare_digits(stated: &Decimal, found: &Decimal) -> Verdict {
    if stated == found {
        return Verdict::Equal;
    }
    let rounded = found.clone().keeping(stated.len().max(FEWEST_DIGITS) as i64, Rounding::Up);
    if *stated == rounded { Verdict::RoundedUp } else { Verdict::Wider }
}

impl Card {
    /// Computes everything that follows from something else on this card, and compares: the mechanism's integers,
    /// every claim, the predicted error, and that counts and times fit together.
    ///
    /// A card's own choices (the question, the number of owners, δ) cannot be wrong; the rest is computed
    /// from them, and [`Card::not_checked`] lists them. `progress` counts the steps taken, at most [`Card::work`].
    pub fn recompute(&self, limit: WorkLimit, progress: &Arc<Progress>) -> Vec<Check> {
        let mut checks = self.form_checks();
        checks.extend(self.channel_checks());
        checks.push(self.sd_check(&self.mechanism.count_channel()));
        checks.extend(self.claim_checks(limit, progress));
        checks
    }

    /// The most elementary steps that recomputing the claims can take; 0 if the card has no crowd.
    pub fn work(&self, limit: WorkLimit) -> u64 {
        self.claim_owners().map_or(0, |owners| Views::work(&self.mechanism.count_channel(), owners, limit))
    }

    fn form_checks(&self) -> Vec<Check> {
        let mut checks = vec![
            Check::equal("version", self.version, VERSION),
            Check::equal("neighbouring", &self.neighbouring, Neighbouring::Substitution),
            self.batch_check(),
        ];
        if let Err(error) = self.check_form() {
            let (what, stated) = match self.mechanism {
                AnyMechanism::YesNo(_) => ("ballot", "a ballot".to_owned()),
                AnyMechanism::Contributions(_) => ("mechanism", self.mechanism.to_string()),
            };
            checks.push(Check::rule(what, stated, error, false));
        }
        checks.extend(self.series_check());
        checks.extend(self.window_check());
        checks.extend(self.moment_checks());
        checks
    }

    fn batch_check(&self) -> Check {
        let rule = format!("at most {}", self.owners);
        Check::rule("minimum_batch", self.minimum_batch, rule, self.minimum_batch <= self.owners)
    }

    /// Checks that a card with a window states both ends of it, in order.
    fn window_check(&self) -> Option<Check> {
        if self.opens.is_none() && self.closes.is_none() {
            return None;
        }
        let moment = |moment: Option<Timestamp>| moment.map_or("?".to_owned(), |moment| moment.to_string());
        let stated = format!("{} to {}", moment(self.opens), moment(self.closes));
        let (rule, kept) = match self.window() {
            Ok((opens, closes)) => (format!("{} seconds", closes - opens), true),
            Err(error) => (error.to_string(), false),
        };
        Some(Check::rule("opens, closes", stated, rule, kept))
    }

    fn series_check(&self) -> Option<Check> {
        let series = self.series.as_ref()?;
        // A draft without a number stands for all of its series.
        let kept = series.number.is_none_or(|number| (1..=series.times).contains(&number));
        let stated = series.number.map_or(String::new(), |number| number.to_string());
        Some(Check::rule("series.number", stated, format!("from 1 to {}", series.times), kept))
    }

    /// Checks the integers against the mechanism's text.
    fn channel_checks(&self) -> Vec<Check> {
        let (stated, found) = (&self.channel, CardChannel::from(&self.mechanism));
        let mut checks = vec![Check::equal("channel.bits", stated.bits, found.bits)];
        checks.extend(law_checks(&stated.law, &found.law));
        checks.extend(noise_check(stated.noise.as_ref(), found.noise.as_ref()));
        checks
    }

    /// Checks the predicted error; a card does not say whether the planner took the worst over its range or the mean.
    fn sd_check(&self, channel: &Channel) -> Check {
        let what = "predicted.sd";
        let stated = self.predicted.sd.text();
        match (self.predicted_sd(channel, Over::Worst), self.predicted_sd(channel, Over::Mean)) {
            (Ok(_), Ok(mean)) if mean == stated => Check::equal(what, stated, mean),
            (Ok(worst), _) => Check::equal(what, stated, worst),
            (Err(error), _) => Check::rule(what, stated, error, false),
        }
    }

    fn predicted_sd(&self, channel: &Channel, over: Over) -> Result<String> {
        let prior = Prior { low: self.predicted.yes_low, high: self.predicted.yes_high, over };
        if prior.low > prior.high || prior.high > self.owners {
            return Err(Error::card("yes_low is at most yes_high, and that at most the owners"));
        }
        Ok(prior.predicted_sd(&Estimator::new(channel)?, self.owners)?.to_string())
    }

    fn claim_checks(&self, limit: WorkLimit, progress: &Arc<Progress>) -> Vec<Check> {
        match self.claims_for(self.delta(), limit, Some(progress)) {
            Ok((_, found)) => self.claims.compared_with(&found),
            Err(error) => vec![Check::rule("claims", &self.claims.release, error, false)],
        }
    }
}

impl Claims {
    /// Refuses claims of which one is better than the truth, with an error about the first such claim.
    pub(super) fn check(&self, found: &Self) -> Result<()> {
        let is_wrong = |comparison: &ClaimComparison<'_>| comparison.checks().iter().any(Check::is_wrong);
        self.comparisons(found)
            .iter()
            .find(|comparison| is_wrong(comparison))
            .map_or(Ok(()), |wrong| Err(wrong.error()))
    }

    fn compared_with(&self, found: &Self) -> Vec<Check> {
        self.comparisons(found).iter().flat_map(ClaimComparison::checks).collect()
    }

    /// Every claim next to the one that was found, in the order of the card.
    fn comparisons<'a>(&'a self, found: &'a Self) -> Vec<ClaimComparison<'a>> {
        use ClaimPair::{Each, IfNoise, One};
        let of = ClaimComparison::new;
        let one_aggregator = IfNoise(self.one_aggregator.as_ref(), found.one_aggregator.as_ref());
        let with_release = Each(&self.answers_with_release, &found.answers_with_release);
        let mut all = vec![
            of("claims.answers", "the answers alone", Each(&self.answers, &found.answers)),
            of("claims.linked", "the linked answers", One(&self.linked, &found.linked)),
            of("claims.one_aggregator", "one honest aggregator", one_aggregator),
            of("claims.release", "the release", One(&self.release, &found.release)),
            of("claims.answers_with_release", "an answer with the release", with_release),
        ];
        all.push(of(
            "claims.whole.queries",
            "the whole",
            ClaimPair::Queries(self.whole.as_ref(), found.whole.as_ref()),
        ));
        if let (Some(stated), Some(found)) = (&self.whole, &found.whole) {
            all.extend(stated.comparisons(found));
        }
        all
    }
}

impl WholeClaims {
    fn comparisons<'a>(&'a self, found: &'a Self) -> [ClaimComparison<'a>; 3] {
        use ClaimPair::{IfNoise, One};
        let of = ClaimComparison::new;
        let one_aggregator = IfNoise(self.one_aggregator.as_ref(), found.one_aggregator.as_ref());
        [
            of("claims.whole.linked", "all linked answers together", One(&self.linked, &found.linked)),
            of("claims.whole.one_aggregator", "one honest aggregator, all sums together", one_aggregator),
            of("claims.whole.release", "all releases together", One(&self.release, &found.release)),
        ]
    }
}

/// A card's claims about one view, next to those that were found.
struct ClaimComparison<'a> {
    /// The field of the card.
    field: &'static str,
    /// The view in words.
    view: &'static str,
    claims: ClaimPair<'a>,
}

/// Claims as they are stated, and as they were found.
enum ClaimPair<'a> {
    /// One claim.
    One(&'a Claim, &'a Claim),
    /// One claim for each answer.
    Each(&'a [Claim], &'a [Claim]),
    /// A claim that is stated if and only if the aggregators add noise.
    IfNoise(Option<&'a Claim>, Option<&'a Claim>),
    /// How many queries the claims for the whole are about. Other claims than those of a ballot or a series have no whole.
    Queries(Option<&'a WholeClaims>, Option<&'a WholeClaims>),
}

impl<'a> ClaimComparison<'a> {
    fn new(field: &'static str, view: &'static str, claims: ClaimPair<'a>) -> Self {
        Self { field, view, claims }
    }

    fn checks(&self) -> Vec<Check> {
        match self.claims {
            ClaimPair::One(stated, found) => vec![Check::claim(self.field, stated, found)],
            ClaimPair::Each(stated, found) => each(self.field, stated, found),
            ClaimPair::IfNoise(stated, found) => if_noise(self.field, stated, found).into_iter().collect(),
            ClaimPair::Queries(stated, found) => whole_queries(self.field, stated, found).into_iter().collect(),
        }
    }

    /// The error for claims that are not true.
    fn error(&self) -> Error {
        let view = self.view;
        let too_good = |claimed: String, truth: String| {
            Error::card(format!("the card claims an epsilon of {claimed} for {view}; it {truth}"))
                .with_hint("the claim is better than the truth; do not answer such a card")
        };
        match self.claims {
            ClaimPair::One(stated, found) | ClaimPair::IfNoise(Some(stated), Some(found)) => {
                too_good(stated.to_string(), format!("is {found}"))
            }
            ClaimPair::Each(stated, found) => {
                too_good(separated(stated, ", "), format!("is {}", separated(found, ", ")))
            }
            ClaimPair::IfNoise(Some(stated), None) => too_good(stated.to_string(), "adds no noise".to_owned()),
            ClaimPair::IfNoise(None, found) => {
                let found = found.map_or_else(String::new, Claim::to_string);
                Error::card(format!("the card claims nothing for {view}; it is {found}"))
                    .with_hint("where aggregators add noise, a card says what one honest one of them hides")
            }
            ClaimPair::Queries(..) => Error::card("the card's claims for the whole are not about what it asks")
                .with_hint("a ballot or a series states what all its queries together give away, other cards do not"),
        }
    }
}

/// Checks how many queries the claims for the whole are about; a card of one query has no such claims.
fn whole_queries(what: &str, stated: Option<&WholeClaims>, found: Option<&WholeClaims>) -> Option<Check> {
    match (stated, found) {
        (None, None) => None,
        (Some(stated), Some(found)) => Some(Check::equal(what, stated.queries, found.queries)),
        (Some(stated), None) => Some(Check::rule(what, stated.queries, "left out: the card asks one question", false)),
        (None, Some(found)) => Some(Check { verdict: Verdict::Wrong, ..Check::equal(what, 1, found.queries) }),
    }
}

/// Checks the integers of a law.
fn law_checks(stated: &CardLaw, found: &CardLaw) -> Vec<Check> {
    match (stated, found) {
        (CardLaw::Cells { answers, cells }, CardLaw::Cells { answers: found_answers, cells: found_cells }) => {
            let mut checks = vec![
                Check::equal("channel.answers", outputs_of(answers), outputs_of(found_answers)),
                Check::equal("channel.cells", cells.len(), found_cells.len()),
            ];
            for (index, (stated, found)) in cells.iter().zip(found_cells).enumerate() {
                let whole = format!("channel.cells[{index}]");
                checks.extend(cell_checks(stated, found).map(|check| check.within(&whole)));
            }
            checks
        }
        (
            CardLaw::Contribution { told, other, silent },
            CardLaw::Contribution { told: found_told, other: found_other, silent: found_silent },
        ) => vec![
            Check::equal("channel.told", told.numerator(), found_told.numerator()),
            Check::equal("channel.other", other.numerator(), found_other.numerator()),
            Check::equal("channel.silent", silent.numerator(), found_silent.numerator()),
        ],
        (stated, found) => vec![Check::equal("channel", law_form(stated), law_form(found))],
    }
}

/// What a law is the law of, in words.
fn law_form(law: &CardLaw) -> &'static str {
    match law {
        CardLaw::Cells { .. } => "a question",
        CardLaw::Contribution { .. } => "a contribution",
    }
}

/// The outputs of each answer, in words.
fn outputs_of(answers: &[Vec<Output>]) -> String {
    separated(answers.iter().map(|outputs| separated(outputs, " or ")), "; ")
}

/// Checks the outputs of a cell and its two integers.
fn cell_checks(stated: &Cell, found: &Cell) -> [Check; 3] {
    [
        Check::equal("outputs", stated.name(), found.name()),
        Check::equal("yes", stated.yes().numerator(), found.yes().numerator()),
        Check::equal("no", stated.no().numerator(), found.no().numerator()),
    ]
}

/// Checks the noise against the mechanism's text, which may have none.
fn noise_check(stated: Option<&NoiseLaw>, found: Option<&NoiseLaw>) -> Option<Check> {
    let words = |noise: Option<&NoiseLaw>| noise.map_or("no noise".to_owned(), |noise| noise.to_string());
    match (stated, found) {
        (None, None) => None,
        (Some(stated), Some(found)) if stated.with_scale(found.scale()) == *found => {
            Some(Check::equal("channel.noise.scale", stated.scale(), found.scale()))
        }
        (stated, found) => Some(Check::equal("channel.noise", words(stated), words(found))),
    }
}

/// Checks a claim that is stated if and only if aggregators add noise.
fn if_noise(what: &str, stated: Option<&Claim>, found: Option<&Claim>) -> Option<Check> {
    match (stated, found) {
        (None, None) => None,
        (Some(stated), Some(found)) => Some(Check::claim(what, stated, found)),
        (Some(stated), None) => Some(Check::rule(what, stated, "left out: there is no noise", false)),
        (None, Some(found)) => Some(Check { verdict: Verdict::Wrong, ..Check::not_stated(what, found) }),
    }
}

/// Checks a list of claims, one for each answer.
fn each(what: &str, stated: &[Claim], found: &[Claim]) -> Vec<Check> {
    if stated.len() != found.len() {
        return vec![Check::equal(what, stated.len(), found.len())];
    }
    let pairs = stated.iter().zip(found).enumerate();
    pairs.map(|(index, (stated, found))| Check::claim(format!("{what}[{index}]"), stated, found)).collect()
}

/// A text with another last digit.
#[cfg(test)]
pub(super) fn falsified(text: &str, by: u8) -> String {
    let at = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
    format!("{}{}{}", &text[..at], (text.as_bytes()[at] - b'0' + by) % 10, &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{BallotQuery, CardBallot};
    use crate::plan::{Request, plan};
    use crate::privacy::{Delta, Epsilon};
    use serde_json::Value;

    fn card() -> Card {
        let mut request = Request::new(300, Prior { low: 10, high: 30, over: Over::Worst });
        request.minimum_batch = 250;
        request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-4).unwrap()));
        Card::new(&request, &plan(&request).unwrap())
    }

    fn failures(card: &Card) -> Vec<String> {
        let checks = card.recompute(WorkLimit::default(), &Arc::default());
        checks.into_iter().filter(|check| !check.holds()).map(|check| check.what).collect()
    }

    #[test]
    fn claims_may_be_rounded_up_and_nothing_else() {
        let compared = |stated: &str, found: &str| compare_claim(&stated.parse().unwrap(), &found.parse().unwrap());
        let found = "0.9998160652735346";
        for (stated, verdict) in [
            (found, Verdict::Equal),
            ("0.99981606527353460", Verdict::Equal),
            ("9.998160652735346e-1", Verdict::Equal),
            ("0.99982", Verdict::RoundedUp),
            ("1", Verdict::RoundedUp),
            ("0.9998160652735347", Verdict::Wider),
            ("0.99983", Verdict::Wider),
            ("1.01", Verdict::Wider),
            ("2", Verdict::Wider),
            ("none", Verdict::Wider),
            ("0.9998160652735345", Verdict::Wrong),
            ("0.99981", Verdict::Wrong),
            ("0", Verdict::Wrong),
        ] {
            assert_eq!(compared(stated, found), verdict, "{stated}");
        }
        assert_eq!(compared("none", "none"), Verdict::Equal);
        assert_eq!(compared("5", "none"), Verdict::Wrong);
        assert_eq!(compared("0.5", "0"), Verdict::Wider);
        assert_eq!(compared("0", "1e-300"), Verdict::Wrong);
    }

    /// What a card lays down shows in what depends on it; where a digit of it changes nothing else, nothing is false.
    #[test]
    fn every_digit_that_something_depends_on_is_found() {
        let card = card();
        assert_eq!(failures(&card), [""; 0]);
        let document: Value = serde_json::from_str(&card.canonical()).unwrap();
        for (path, named) in [
            ("/owners", "predicted.sd"),
            ("/minimum_batch", "claims.release"),
            ("/honest", "claims.release"),
            ("/claims/delta", "claims.release"),
            ("/claims/release", "claims.release"),
            ("/claims/linked", "claims.linked"),
            ("/claims/answers/0", "claims.answers[0]"),
            ("/claims/answers_with_release/0", "claims.answers_with_release[0]"),
            ("/predicted/sd", "predicted.sd"),
            ("/predicted/yes_high", "predicted.sd"),
            ("/channel/bits", "channel.bits"),
            ("/channel/cells/0/yes", "channel.cells[0].yes"),
            ("/channel/cells/0/no", "channel.cells[0].no"),
            ("/channel/cells/1/yes", "channel.cells[1].yes"),
            ("/channel/cells/1/no", "channel.cells[1].no"),
            ("/version", "version"),
        ] {
            for by in [1, 9] {
                let mut wrong = document.clone();
                let value = wrong.pointer_mut(path).unwrap();
                *value = Value::from(falsified(value.as_str().unwrap(), by));
                // What cannot be read at all is refused in words.
                let Ok(wrong) = Card::from_json(&wrong.to_string()) else { continue };
                let failed = failures(&wrong);
                // Without an honest owner there is nothing to compute a claim from.
                assert!(failed.iter().any(|what| what == named || what == "claims"), "{path}: {failed:?}");
            }
        }
    }

    #[test]
    fn a_ballot_states_its_whole() {
        let mut ballot = card();
        let query = |name: &str| BallotQuery { name: name.to_owned(), predicate: format!("station == \"{name}\"") };
        ballot.ballot = Some(CardBallot { most_yes: 1, queries: ["a", "b", "c"].map(query).to_vec() });
        assert_eq!(failures(&ballot), ["claims.whole.queries"]);
        ballot.state_claims(Delta::new(1e-4).unwrap(), WorkLimit::default()).unwrap();
        assert_eq!(failures(&ballot), [""; 0]);
        let whole = ballot.claims.whole.as_mut().unwrap();
        whole.release = falsified(&whole.release.to_string(), 9).parse().unwrap();
        assert_eq!(failures(&ballot), ["claims.whole.release"]);
    }

    #[test]
    fn a_card_of_one_question_states_no_whole() {
        let mut card = card();
        let (linked, release) = (card.claims.linked.clone(), card.claims.release.clone());
        card.claims.whole = Some(WholeClaims { queries: 1, linked, one_aggregator: None, release });
        let checks = card.recompute(WorkLimit::default(), &Arc::default());
        let failed: Vec<Check> = checks.into_iter().filter(|check| !check.holds()).collect();
        let rule = "left out: the card asks one question";
        assert_eq!(failed, [Check::rule("claims.whole.queries", 1, rule, false)]);
    }
}
