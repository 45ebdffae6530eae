//! The query card: a question, its mechanism in integers, and every claim, as any tool can check them.

mod asked;
mod channel;
mod claims;
mod imprecision;
mod recomputation;
mod stated;
mod timestamp;
mod trust;
mod unsigned;
mod whole_plan;

pub use asked::{BallotQuery, CardBallot, CardQuestion, CardSeries};
pub use channel::{CardChannel, CardLaw};
pub use claims::{CardViews, Claims, WholeClaims};
pub use imprecision::{CountRange, Imprecision, Remedy};
pub use recomputation::{Check, Verdict};
pub use stated::{Claim, Stated};
pub use timestamp::Timestamp;
pub use trust::{Enrolment, Model, Neighbouring, Operators, Trust};
pub use unsigned::NotChecked;
pub use whole_plan::{WholePlan, plan_whole, solve_whole, whole_progress};

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Deserializer;

use crate::channel::{Channel, Output};
use crate::contribution::{AnyMechanism, Contributions};
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::plan::{ContributionPlan, Plan, PlannedContributions, PlannedMechanism, Request, USUAL_DELTA};
use crate::privacy::{self, Delta, Target, Views, WorkLimit};
use crate::progress::Progress;
use stated::{decimal, write_canonical};

/// A question, its mechanism, and the claims of privacy.
///
/// Every number is written as a decimal string: integers beyond 2⁵³ survive every JSON reader, and the canonical form
/// has no number whose digits could be written in two ways. It is read once, here. Unknown fields are refused, because
/// nobody could check them.
///
/// Every claim is made for floor(honest · minimum batch) owners, so it also holds for every larger batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The version of this form of card: `2`.
    #[serde(with = "decimal")]
    pub version: u64,
    /// The question in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question: Option<String>,
    /// The predicate that an owner evaluates on its own attributes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicate: Option<String>,
    /// Many questions instead of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ballot: Option<CardBallot>,
    /// The series that this card belongs to, if it is asked again and again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub series: Option<CardSeries>,
    /// The attributes that the predicates read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attributes: Vec<String>,
    /// The mechanism as text: that of each question, or one of contributions to everything that the card asks.
    pub mechanism: AnyMechanism,
    /// How many owners are expected.
    #[serde(with = "decimal")]
    pub owners: u64,
    /// With fewer reports than this, nothing is released.
    #[serde(with = "decimal")]
    pub minimum_batch: u64,
    /// The share of owners who are counted on to follow the mechanism.
    pub honest: Fraction,
    /// Which worlds the claims compare.
    pub neighbouring: Neighbouring,
    /// From when on answers are accepted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opens: Option<Timestamp>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub closes: Option<Timestamp>,
    /// Who runs the aggregators.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub operators: Option<Operators>,
    /// Who may answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enrolment: Option<Enrolment>,
    /// Whose key signs the card.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signer: Option<String>,
    /// The mechanism's integers, in the order of its cells.
    pub channel: CardChannel,
    /// The claim for each view.
    pub claims: Claims,
    /// The error that the planner expects.
    pub predicted: Predicted,
    /// Who adds up the answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub aggregators: Option<Aggregators>,
}

/// The expected error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// The least number of owners expected to have the truth yes.
    #[serde(with = "decimal")]
    pub yes_low: u64,
    /// The largest such number.
    #[serde(with = "decimal")]
    pub yes_high: u64,
    /// The standard deviation of the estimate.
    pub sd: Stated<f64>,
}

/// Who adds up the answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aggregators {
    /// The leader's address.
    pub leader: String,
    /// The helper's address.
    pub helper: String,
}

const VERSION: u64 = 2;

impl Card {
    /// The card of a plan, without question, times and aggregators as yet.
    pub fn new(request: &Request, plan: &Plan) -> Self {
        let PlannedMechanism { mechanism, channel, sd, views, .. } = &plan.best;
        Self::of_mechanism(mechanism.clone().into(), request, *sd, Claims::of(channel, views, None))
    }

    /// The card of a plan for everything that it asks together, without question, times and aggregators as yet.
    pub fn of_contributions(request: &Request, plan: &ContributionPlan) -> Result<Self> {
        let PlannedContributions { mechanism, sd, .. } = &plan.best;
        let delta = request.release.map_or_else(|| Delta::new(USUAL_DELTA), |(_, delta)| Ok(delta))?;
        let claims = Claims::of_contributions(mechanism, delta);
        Ok(Self::of_mechanism(mechanism.clone().into(), request, *sd, claims))
    }

    fn of_mechanism(mechanism: AnyMechanism, request: &Request, sd: f64, claims: Claims) -> Self {
        Self {
            version: VERSION,
            question: None,
            predicate: None,
            ballot: None,
            series: None,
            attributes: Vec::new(),
            channel: CardChannel::from(&mechanism),
            mechanism,
            owners: request.owners,
            minimum_batch: request.minimum_batch,
            honest: request.honest.clone(),
            neighbouring: Neighbouring::Substitution,
            opens: None,
            closes: None,
            operators: None,
            enrolment: None,
            signer: None,
            claims,
            predicted: Predicted {
                yes_low: request.yes.low,
                yes_high: request.yes.high,
                sd: Stated::try_from(sd).expect("a planned error is finite"),
            },
            aggregators: None,
        }
    }

    /// Reads a card from JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        let mut reader = Deserializer::from_str(text);
        let card = serde_path_to_error::deserialize(&mut reader).map_err(|error| unreadable(text, error))?;
        reader.end().map_err(not_a_card)?;
        Ok(card)
    }

    /// The canonical form of this card (RFC 8785), which is signed and hashed.
    pub fn canonical(&self) -> String {
        let value = serde_json::to_value(self).expect("a card is strings, lists and maps");
        let mut text = String::new();
        write_canonical(&value, &mut text);
        text
    }

    /// The channel of one count by itself, if the integers are those of the mechanism's text.
    pub fn checked_channel(&self) -> Result<Channel> {
        let refuse = |message: &str| {
            Err(Error::card(message).with_hint("one of the two was changed; do not answer such a card"))
        };
        if self.version != VERSION {
            return Err(other_version(self.version));
        }
        if self.channel != CardChannel::from(&self.mechanism) {
            return refuse("the card's integers are not those of its mechanism");
        }
        Ok(self.mechanism.count_channel())
    }

    /// The owners whom the claims count on.
    pub fn claim_owners(&self) -> Result<u64> {
        privacy::honest_owners(self.minimum_batch, &self.honest)
    }

    /// The δ of the claims.
    pub fn delta(&self) -> Delta {
        self.claims.delta.value()
    }

    /// When answers are accepted, in seconds since the epoch: from the first moment until just before the second.
    ///
    /// A card of a series is refused if this is not the window of its number: otherwise many cards could pass for one
    /// that has been paid for already.
    pub fn window(&self) -> Result<(u64, u64)> {
        let (opens, closes) = (stated_moment("opens", self.opens)?, stated_moment("closes", self.closes)?);
        if opens >= closes {
            return Err(Error::card("the card closes before it opens"));
        }
        match &self.series {
            Some(series) if series.window() != Some((opens, closes)) => {
                Err(Error::card("the card's window is not the one of its number in the series")
                    .with_hint("card `number` opens at `starts` + (`number` − 1) · `every` and closes `every` later"))
            }
            _ => Ok((opens, closes)),
        }
    }

    /// States the claims that hold for the card as it is now, including its ballot and series.
    pub fn state_claims(&mut self, delta: Delta, limit: WorkLimit) -> Result<()> {
        self.claims = self.found_claims(delta, limit)?.1;
        Ok(())
    }

    /// Recomputes every claim from the integers; a card that claims more than is true is refused.
    ///
    /// If recomputing a claim takes more work than `limit`, the result is wider than necessary, and the card is refused, too.
    pub fn verify(&self, limit: WorkLimit) -> Result<CardViews> {
        if self.neighbouring != Neighbouring::Substitution {
            return Err(Error::card("the card's claims compare worlds that this version does not know"));
        }
        let (views, found) = self.found_claims(self.delta(), limit)?;
        self.claims.check(&found)?;
        Ok(views)
    }

    fn found_claims(&self, delta: Delta, limit: WorkLimit) -> Result<(CardViews, Claims)> {
        self.checked_channel()?;
        self.check_form()?;
        self.claims_for(delta, limit, None)
    }

    fn claims_for(
        &self,
        delta: Delta,
        limit: WorkLimit,
        progress: Option<&Arc<Progress>>,
    ) -> Result<(CardViews, Claims)> {
        let (owners, target) = (self.claim_owners()?, Target::Delta(delta));
        let mechanism = match &self.mechanism {
            AnyMechanism::YesNo(mechanism) => mechanism,
            AnyMechanism::Contributions(contributions) => {
                return Ok((CardViews::Contributions, Claims::of_contributions(contributions, delta)));
            }
        };
        let channel = mechanism.channel();
        let views = Views::of_watched(&channel, owners, target, limit, progress)?;
        let whole = claims::whole(&channel, owners, &views, self.counted_queries()?, limit)?;
        let claims = Claims::of(&channel, &views, whole.as_ref());
        Ok((CardViews::YesNo(Box::new(views)), claims))
    }

    /// Checks the rules that the types do not express: the card has one question or a ballot, a ballot can hold the mechanism's
    /// answers, and contributions are to everything that the card asks.
    pub fn check_form(&self) -> Result<()> {
        if let CardQuestion::Ballot(ballot) = self.asked() {
            if self.predicate.is_some() {
                return Err(Error::card("the card has both a predicate and a ballot"));
            }
            ballot.check_names()?;
        }
        match &self.mechanism {
            AnyMechanism::YesNo(mechanism) => self.check_answers(&mechanism.channel()),
            AnyMechanism::Contributions(contributions) => self.check_contributions(contributions),
        }
    }

    /// Checks that a ballot can hold the mechanism's answers.
    fn check_answers(&self, channel: &Channel) -> Result<()> {
        let known = [Output::ONE, Output::ZERO, Output::BOTTOM];
        let is_known = |outputs: &Vec<Output>| outputs.iter().all(|output| known.contains(output));
        match (self.asked(), channel.answers()) {
            (CardQuestion::Person(_) | CardQuestion::Predicate(_), _) => Ok(()),
            (CardQuestion::Ballot(_), [outputs]) if is_known(outputs) => Ok(()),
            (CardQuestion::Ballot(_), _) => Err(Error::card("a ballot holds one answer for each question, 1, 0 or ⊥")),
        }
    }

    /// Checks that contributions are to the questions of the card's ballot, in every window of its series.
    fn check_contributions(&self, contributions: &Contributions) -> Result<()> {
        let refuse = |message: String| Err(Error::card(message).with_hint("do not answer such a card"));
        if contributions.is_choice() || contributions.counts() < 2 || contributions.noise().is_none() {
            return refuse("contributions on a card are to several counts, with noise".to_owned());
        }
        let (counts, asked) = (contributions.counts() as u64, self.asked_counts());
        if asked != Some(counts) {
            let asked = asked.map_or("more than can be counted".to_owned(), |asked| asked.to_string());
            return refuse(format!("the mechanism has {counts} counts, and the card asks for {asked}"));
        }
        match self.asked() {
            CardQuestion::Ballot(ballot) if ballot.most_yes != u64::from(contributions.most()) => refuse(format!(
                "the ballot allows {} yes of one owner, and the mechanism {} contributions",
                ballot.most_yes,
                contributions.most()
            )),
            _ => Ok(()),
        }
    }
}

/// The error for a text that is not a card of this version: one of another version says so first.
fn unreadable(text: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    #[derive(Deserialize)]
    struct Versioned {
        #[serde(with = "decimal")]
        version: u64,
    }
    match serde_json::from_str(text) {
        Ok(Versioned { version }) if version != VERSION => other_version(version),
        _ => not_a_card(error),
    }
}

fn other_version(version: u64) -> Error {
    Error::card(format!("the card has version {version}; this program reads version {VERSION}")).with_hint(
        if version < VERSION {
            "plan the question again with this program, and let its desk sign the new card"
        } else {
            "update this program"
        },
    )
}

fn not_a_card(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::syntax(format!("not a query card: {error}")).with_source(error)
}

fn stated_moment(name: &str, moment: Option<Timestamp>) -> Result<u64> {
    let refuse = || Error::request(format!("the card does not say when it {name}"));
    Ok(moment.ok_or_else(refuse)?.seconds())
}

#[cfg(test)]
mod tests;
