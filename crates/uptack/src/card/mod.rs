//! The query card: a question, its mechanism in integers, and every claim, as any tool can check them.

mod asked;
mod canonical;
mod claims;
mod recomputation;
pub mod timestamp;
mod trust;
mod whole_plan;

pub use asked::{BallotQuery, CardBallot, CardSeries, Enrolment, Operators};
pub use claims::{Claims, WholeClaims};
pub use recomputation::{Check, Verdict};
pub use trust::{Model, Trust};
pub use whole_plan::{plan_whole, whole_progress};

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, Output};
use crate::error::Error;
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::plan::{Choice, Plan, Request};
use crate::privacy::composition::Ballot;
use crate::privacy::{self, Delta, Target, Views, WorkLimit};
use crate::probability::Probability;
use crate::simulate::Progress;

/// What is asked, by which mechanism, and what is promised.
///
/// Every number is a decimal string: integers beyond 2⁵³ survive every JSON reader, and the canonical form has no
/// number whose digits could be written in two ways. Unknown fields are refused, because nobody could check them.
///
/// Every claim is made for floor(honest · minimum batch) owners, so that it holds for every larger batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// The version of this form of card: `1`.
    pub version: String,
    /// The question in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub question: Option<String>,
    /// The predicate that an owner evaluates on its own attributes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicate: Option<String>,
    /// Many questions in place of one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ballot: Option<CardBallot>,
    /// The same again and again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub series: Option<CardSeries>,
    /// The attributes that the predicates read.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attributes: Vec<String>,
    /// The mechanism as text.
    pub mechanism: Mechanism,
    /// How many owners are expected.
    pub owners: String,
    /// Below this many nothing is released.
    pub minimum_batch: String,
    /// The share of owners who are counted on to toss their coins.
    pub honest: Fraction,
    /// Which worlds the claims compare.
    pub neighbouring: String,
    /// When answers are taken from, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub opens: Option<String>,
    /// Until when.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub closes: Option<String>,
    /// In whose hands the aggregators are.
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
    /// What is promised of each view.
    pub claims: Claims,
    /// The error that the planner expects.
    pub predicted: Predicted,
    /// Who adds up the answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub aggregators: Option<Aggregators>,
}

/// A channel on a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardChannel {
    /// Integers are over 2 to this power.
    pub bits: String,
    /// The outputs of each answer.
    pub answers: Vec<Vec<Output>>,
    /// The cells with both laws.
    pub cells: Vec<crate::Cell>,
}

/// What error is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicted {
    /// At least so many hold yes.
    pub yes_low: String,
    /// At most so many.
    pub yes_high: String,
    /// The standard deviation of the estimate.
    pub sd: String,
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

const VERSION: &str = "1";
const NEIGHBOURING: &str = "one owner's truth is substituted, the number of owners is public";

impl Card {
    /// The card of a plan, still without question, times and aggregators.
    pub fn new(request: &Request, plan: &Plan) -> Self {
        let Choice { mechanism, channel, sd, views, .. } = &plan.best;
        Self {
            version: VERSION.to_owned(),
            question: None,
            predicate: None,
            ballot: None,
            series: None,
            attributes: Vec::new(),
            mechanism: mechanism.clone(),
            owners: request.owners.to_string(),
            minimum_batch: plan.minimum_batch.to_string(),
            honest: request.honest.clone(),
            neighbouring: NEIGHBOURING.to_owned(),
            opens: None,
            closes: None,
            operators: None,
            enrolment: None,
            signer: None,
            channel: CardChannel {
                bits: Probability::BITS.to_string(),
                answers: channel.answers().to_vec(),
                cells: channel.cells().to_vec(),
            },
            claims: Claims::of(views, None),
            predicted: Predicted {
                yes_low: request.yes.low.to_string(),
                yes_high: request.yes.high.to_string(),
                sd: sd.to_string(),
            },
            aggregators: None,
        }
    }

    /// Reads a card from JSON.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text)
            .map_err(|error| Error::syntax(format!("not a query card: {error}")).with_source(error))
    }

    /// The one byte form of this card (RFC 8785), which is what is signed and hashed.
    pub fn canonical(&self) -> String {
        let value = serde_json::to_value(self).expect("a card is strings, lists and maps");
        let mut text = String::new();
        canonical::write(&value, &mut text);
        text
    }

    /// The channel, if the integers are those of the mechanism's text.
    pub fn checked_channel(&self) -> Result<Channel, Error> {
        let refuse =
            |message: &str| Err(Error::card(message).with_hint("one of them was changed; do not answer such a card"));
        if self.version != VERSION {
            return refuse("the card's version is not 1");
        }
        let stated = Channel::new(self.channel.answers.clone(), self.channel.cells.clone())?;
        let bits = self.channel.bits == Probability::BITS.to_string();
        if !bits || stated != self.mechanism.channel() {
            return refuse("the card's integers are not those of its mechanism");
        }
        Ok(stated)
    }

    /// How many owners are expected.
    pub fn planned_owners(&self) -> Result<u64, Error> {
        whole_number("owners", &self.owners)
    }

    /// Below this many nothing is released.
    pub fn smallest_batch(&self) -> Result<u64, Error> {
        whole_number("minimum_batch", &self.minimum_batch)
    }

    /// The owners whom the claims count on.
    pub fn claim_owners(&self) -> Result<u64, Error> {
        privacy::honest_owners(self.smallest_batch()?, &self.honest)
    }

    /// The δ of the claims.
    pub fn delta(&self) -> Result<Delta, Error> {
        self.claims.delta()
    }

    /// When answers are taken, as seconds since the epoch: from the first moment to before the second.
    ///
    /// A card of a series is refused if this is not the window of its number: otherwise many cards could pass for one
    /// that is paid already.
    pub fn window(&self) -> Result<(u64, u64), Error> {
        let moment = |name: &str, text: &Option<String>| match text {
            Some(text) => timestamp::seconds(text),
            None => Err(Error::request(format!("the card does not say when it {name}"))),
        };
        let (opens, closes) = (moment("opens", &self.opens)?, moment("closes", &self.closes)?);
        if opens >= closes {
            return Err(Error::card("the card closes before it opens"));
        }
        match &self.series {
            Some(series) if series.window()? != Some((opens, closes)) => {
                Err(Error::card("the card's window is not the one of its number in the series")
                    .with_hint("card `number` opens at `starts` + (`number` − 1) · `every` and closes `every` later"))
            }
            _ => Ok((opens, closes)),
        }
    }

    /// The predicates, in the order of the report.
    pub fn predicates(&self) -> Vec<&str> {
        match &self.ballot {
            Some(ballot) => ballot.queries.iter().map(|query| query.predicate.as_str()).collect(),
            None => self.predicate.as_deref().into_iter().collect(),
        }
    }

    /// How many queries of this card can differ for one owner, repetitions included.
    pub fn counted_queries(&self) -> Result<u64, Error> {
        let times = match &self.series {
            Some(series) => series.times()?,
            None => 1,
        };
        let changing = match &self.ballot {
            Some(ballot) => Ballot::new(ballot.queries.len() as u64, ballot.most_yes()?)?.changing_queries(),
            None => 1,
        };
        match changing.checked_mul(times) {
            Some(queries) if queries > 0 => Ok(queries),
            _ => Err(Error::card("the card's series is empty or without end")),
        }
    }

    /// The card as it stands for its whole series: without what its cards differ in.
    pub fn without_number(&self) -> Self {
        let mut card = Self { opens: None, closes: None, ..self.clone() };
        if let Some(series) = &mut card.series {
            series.number = String::new();
        }
        card
    }

    /// States the claims that hold for the card as it is now, ballot and series included.
    pub fn state_claims(&mut self, delta: Delta, limit: WorkLimit) -> Result<(), Error> {
        self.claims = self.found_claims(delta, limit)?.1;
        Ok(())
    }

    /// Recomputes every claim from the integers; a card that claims more than is true is refused.
    ///
    /// A claim that does not close within `limit` is wider than necessary, and then refused as well.
    pub fn verify(&self, limit: WorkLimit) -> Result<Views, Error> {
        if self.neighbouring != NEIGHBOURING {
            return Err(Error::card("the card's claims compare worlds that this version does not know"));
        }
        let (views, found) = self.found_claims(self.delta()?, limit)?;
        self.claims.check(&found)?;
        Ok(views)
    }

    fn found_claims(&self, delta: Delta, limit: WorkLimit) -> Result<(Views, Claims), Error> {
        let channel = self.checked_channel()?;
        self.check_form(&channel)?;
        self.claims_for(&channel, delta, limit, None)
    }

    fn claims_for(
        &self,
        channel: &Channel,
        delta: Delta,
        limit: WorkLimit,
        progress: Option<&Arc<Progress>>,
    ) -> Result<(Views, Claims), Error> {
        let owners = self.claim_owners()?;
        let views = Views::of_watched(channel, owners, Target::Delta(delta), limit, progress)?;
        let whole = claims::whole(channel, owners, &views, self.counted_queries()?, limit)?;
        let claims = Claims::of(&views, whole.as_ref());
        Ok((views, claims))
    }

    /// What the types leave open: one question or a ballot, of answers that a ballot can hold.
    fn check_form(&self, channel: &Channel) -> Result<(), Error> {
        let Some(ballot) = &self.ballot else { return Ok(()) };
        if self.predicate.is_some() {
            return Err(Error::card("the card has a predicate beside its ballot"));
        }
        let known = [Output::ONE, Output::ZERO, Output::BOTTOM];
        let one_answer = channel.answers().len() == 1;
        if !one_answer || !channel.answers()[0].iter().all(|output| known.contains(output)) {
            return Err(Error::card("a ballot holds one answer for each question, 1, 0 or ⊥"));
        }
        let mut names: Vec<&str> = ballot.queries.iter().map(|query| query.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::card(format!("two questions of the ballot are called `{}`", pair[0]))),
            None => Ok(()),
        }
    }
}

pub(crate) fn whole_number(name: &str, text: &str) -> Result<u64, Error> {
    // One form for each number: no sign, no leading zeros.
    text.parse().ok().filter(|number: &u64| number.to_string() == text).ok_or_else(|| {
        Error::syntax(format!("{name} is not a whole number")).with_hint("write it in decimal digits, as a string")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Prior, plan};
    use crate::privacy::Epsilon;
    use serde_json::json;

    fn card() -> Card {
        let mut request = Request::new(2000, Prior::at(20));
        request.release = Some((Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap()));
        Card::new(&request, &plan(&request).unwrap())
    }

    #[test]
    fn a_card_survives_json_and_verifies() {
        let card = card();
        let again = Card::from_json(&card.canonical()).unwrap();
        assert_eq!(again, card);
        assert_eq!(again.canonical(), card.canonical());
        let views = card.verify(WorkLimit::default()).unwrap();
        assert!(views.release.value().unwrap().upper() <= 1.0);
    }

    #[test]
    fn one_digit_too_good_is_refused() {
        let card = card();
        let mut better = card.clone();
        better.claims.release = format!("{}", card.claims.release.parse::<f64>().unwrap() - 1e-6);
        assert!(better.verify(WorkLimit::default()).unwrap_err().to_string().contains("for the release"));
        let mut linked = card.clone();
        linked.claims.linked = "0.1".to_owned();
        assert!(linked.verify(WorkLimit::default()).unwrap_err().to_string().contains("for the linked answers"));
        let mut fewer = card.clone();
        fewer.minimum_batch = "1500".to_owned();
        assert!(fewer.verify(WorkLimit::default()).is_err());
        let mut weaker = card.clone();
        weaker.claims.release = "2".to_owned();
        assert!(weaker.verify(WorkLimit::default()).is_ok());
        for bad in ["NaN", "-1", "", "1e400x"] {
            let mut bad_claim = card.clone();
            bad_claim.claims.release = bad.to_owned();
            assert!(bad_claim.verify(WorkLimit::default()).is_err(), "{bad}");
        }
    }

    #[test]
    fn changed_integers_and_unknown_fields_are_refused() {
        let card = card();
        let mut other = card.clone();
        other.mechanism = "randomized-response(t=0.9)".parse().unwrap();
        assert!(other.verify(WorkLimit::default()).unwrap_err().is_card());
        let extra = card.canonical().replacen('{', "{\"also\":\"this\",", 1);
        assert!(Card::from_json(&extra).unwrap_err().is_syntax());
        let mut future = card;
        future.version = "2".to_owned();
        assert!(future.verify(WorkLimit::default()).is_err());
    }

    #[test]
    fn a_ballot_and_a_series_are_priced_as_a_whole() {
        let mut ballot = card();
        let query = |name: &str| BallotQuery { name: name.to_owned(), predicate: format!("station == \"{name}\"") };
        ballot.ballot = Some(CardBallot { most_yes: "1".to_owned(), queries: ["a", "b", "c"].map(query).to_vec() });
        assert!(ballot.verify(WorkLimit::default()).unwrap_err().to_string().contains("for the whole"));
        ballot.state_claims(Delta::new(1e-6).unwrap(), WorkLimit::default()).unwrap();
        let whole = ballot.claims.whole.clone().unwrap();
        assert_eq!(whole.queries, "2");
        let (one, two) = (ballot.claims.release.parse::<f64>().unwrap(), whole.release.parse::<f64>().unwrap());
        assert!(one < two && two < 2.0 * one + 0.1, "{one} {two}");
        ballot.verify(WorkLimit::default()).unwrap();
        let mut better = ballot.clone();
        better.claims.whole.as_mut().unwrap().release = (two - 1e-6).to_string();
        assert!(better.verify(WorkLimit::default()).unwrap_err().to_string().contains("all releases together"));
        let mut series = ballot.clone();
        series.series = Some(
            serde_json::from_value(json!({
                "times": "3", "number": "2", "starts": "2026-11-15T08:00:00Z", "every": "600"
            }))
            .unwrap(),
        );
        assert!(series.verify(WorkLimit::default()).is_err());
        series.state_claims(Delta::new(1e-6).unwrap(), WorkLimit::default()).unwrap();
        assert_eq!(series.claims.whole.as_ref().unwrap().queries, "6");
        series.verify(WorkLimit::default()).unwrap();
        let mut next = series.clone();
        next.series.as_mut().unwrap().number = "3".to_owned();
        next.opens = Some("2026-11-15T08:20:00Z".to_owned());
        assert_eq!(next.without_number(), series.without_number());
        next.series.as_mut().unwrap().every = "601".to_owned();
        assert_ne!(next.without_number(), series.without_number());
        let mut twice = ballot;
        twice.ballot.as_mut().unwrap().queries[2].name = "a".to_owned();
        assert!(twice.verify(WorkLimit::default()).unwrap_err().to_string().contains("called `a`"));
    }

    #[test]
    fn a_card_of_a_series_has_the_window_of_its_number() {
        let at = |number: &str, starts: &str, every: &str, opens: &str, closes: &str| {
            let mut card = card();
            card.series = Some(
                serde_json::from_value(json!({
                    "times": "3", "number": number, "starts": starts, "every": every
                }))
                .unwrap(),
            );
            card.opens = Some(opens.to_owned());
            card.closes = Some(closes.to_owned());
            card.window().map_err(|error| error.to_string())
        };
        let (starts, epoch, last) = ("2026-11-15T08:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z");
        let second = ("2026-11-15T08:10:00Z", "2026-11-15T08:20:00Z");
        assert!(at("2", starts, "600", second.0, second.1).is_ok());
        for (number, starts, every, opens, closes) in [
            ("1", starts, "600", second.0, second.1),
            ("0", starts, "600", second.0, second.1),
            ("4", starts, "600", "2026-11-15T08:30:00Z", "2026-11-15T08:40:00Z"),
            ("2", starts, "600", second.0, "2026-11-15T08:20:01Z"),
            ("2", starts, "0", second.0, second.1),
            // However long the first window from the epoch is said to be, only one length is the card's.
            ("1", epoch, "600", epoch, second.1),
            ("3", last, "18446744073709551615", second.0, second.1),
            ("2", last, "18446744073709551615", second.0, second.1),
        ] {
            let told = at(number, starts, every, opens, closes).unwrap_err();
            assert!(told.contains("its number in the series"), "{told}");
        }
        assert!(at("2", starts, "0600", second.0, second.1).unwrap_err().contains("series.every"));
    }
}
