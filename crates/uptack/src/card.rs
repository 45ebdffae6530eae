//! The query card: a question, its mechanism in integers, and every claim, as any tool can check them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::channel::{Channel, Output};
use crate::error::Error;
use crate::fraction::Fraction;
use crate::mechanism::Mechanism;
use crate::plan::{Choice, Plan, Request};
use crate::privacy::{self, Delta, Guarantee, Target, Views, WorkLimit};
use crate::probability::Probability;

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
    /// The attributes that the predicate reads.
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

/// The claims of a card: an ε each, rounded up, or `none`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The δ of the release views.
    pub delta: String,
    /// ε of each answer alone.
    pub answers: Vec<String>,
    /// ε of all answers of an owner.
    pub linked: String,
    /// ε of the published counts.
    pub release: String,
    /// ε of each answer seen together with the published counts.
    pub answers_with_release: Vec<String>,
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
const NONE: &str = "none";

impl Card {
    /// The card of a plan, still without question, times and aggregators.
    pub fn new(request: &Request, plan: &Plan) -> Self {
        let Choice { mechanism, channel, sd, views, .. } = &plan.best;
        Self {
            version: VERSION.to_owned(),
            question: None,
            predicate: None,
            attributes: Vec::new(),
            mechanism: mechanism.clone(),
            owners: request.owners.to_string(),
            minimum_batch: plan.minimum_batch.to_string(),
            honest: request.honest.clone(),
            neighbouring: NEIGHBOURING.to_owned(),
            opens: None,
            closes: None,
            signer: None,
            channel: CardChannel {
                bits: Probability::BITS.to_string(),
                answers: channel.answers().to_vec(),
                cells: channel.cells().to_vec(),
            },
            claims: Claims::new(views),
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
        serde_json::from_str(text).map_err(|error| Error::syntax(format!("not a query card: {error}")))
    }

    /// The one byte form of this card (RFC 8785), which is what is signed and hashed.
    pub fn canonical(&self) -> String {
        let value = serde_json::to_value(self).expect("a card is strings, lists and maps");
        let mut text = String::new();
        write_canonical(&value, &mut text);
        text
    }

    /// The channel, if the integers are those of the mechanism's text.
    pub fn checked_channel(&self) -> Result<Channel, Error> {
        let refuse =
            |message: &str| Err(Error::law(message).with_hint("one of them was changed; do not answer such a card"));
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
        whole("owners", &self.owners)
    }

    /// Below this many nothing is released.
    pub fn smallest_batch(&self) -> Result<u64, Error> {
        whole("minimum_batch", &self.minimum_batch)
    }

    /// The owners whom the claims count on.
    pub fn claim_owners(&self) -> Result<u64, Error> {
        privacy::honest_owners(self.smallest_batch()?, &self.honest)
    }

    /// The δ of the claims.
    pub fn delta(&self) -> Result<Delta, Error> {
        let delta = self.claims.delta.parse().map_err(|_| Error::syntax("claims.delta is not a number"))?;
        Delta::new(delta)
    }

    /// Recomputes every claim from the integers; a card that claims more than is true is refused.
    ///
    /// A claim that does not close within `limit` is wider than necessary, and then refused as well.
    pub fn verify(&self, limit: WorkLimit) -> Result<Views, Error> {
        let channel = self.checked_channel()?;
        if self.neighbouring != NEIGHBOURING {
            return Err(Error::law("the card's claims compare worlds that this version does not know"));
        }
        let views = Views::of(&channel, self.claim_owners()?, Target::Delta(self.delta()?), limit)?;
        self.claims.check(&views)?;
        Ok(views)
    }
}

impl Claims {
    fn new(views: &Views) -> Self {
        let local = |epsilon: &Option<f64>| epsilon.map_or(NONE.to_owned(), |epsilon| epsilon.to_string());
        let joint = |claim: &Guarantee| claim.value().map_or(NONE.to_owned(), |value| value.upper().to_string());
        let Target::Delta(delta) = views.release.target() else { unreachable!("plans are made at a delta") };
        Self {
            delta: delta.value().to_string(),
            answers: views.answers.iter().map(local).collect(),
            linked: local(&views.linked),
            release: joint(&views.release),
            answers_with_release: views.answers_with_release.iter().map(joint).collect(),
        }
    }

    /// Each claim is at least what was found.
    fn check(&self, views: &Views) -> Result<(), Error> {
        let found = Self::new(views);
        check_claims("the answers alone", &self.answers, &found.answers)?;
        check_claims("the linked answers", std::slice::from_ref(&self.linked), std::slice::from_ref(&found.linked))?;
        check_claims("the release", std::slice::from_ref(&self.release), std::slice::from_ref(&found.release))?;
        check_claims("an answer with the release", &self.answers_with_release, &found.answers_with_release)
    }
}

fn check_claims(view: &str, claimed: &[String], found: &[String]) -> Result<(), Error> {
    let number =
        |text: &str| if text == NONE { Some(f64::INFINITY) } else { text.parse().ok().filter(|x: &f64| *x >= 0.0) };
    let holds = |(claimed, found): (&String, &String)| {
        let (claimed, found) = (number(claimed)?, number(found)?);
        (claimed >= found).then_some(())
    };
    let pairs = claimed.iter().zip(found);
    if claimed.len() == found.len() && pairs.map(holds).collect::<Option<Vec<()>>>().is_some() {
        return Ok(());
    }
    let (claimed, found) = (claimed.join(", "), found.join(", "));
    Err(Error::law(format!("the card claims an epsilon of {claimed} for {view}; it is {found}"))
        .with_hint("the claim is better than the truth; do not answer such a card"))
}

fn whole(name: &str, text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| Error::syntax(format!("{name} is not a whole number")))
}

/// RFC 8785 for values without numbers: keys sorted, no blanks, the shortest escapes.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            write_list(text, ['{', '}'], keys, |key, text| {
                write_canonical(&Value::String(key.clone()), text);
                text.push(':');
                write_canonical(&fields[key], text);
            });
        }
        Value::Array(items) => write_list(text, ['[', ']'], items, write_canonical),
        // Strings, true, false and null are written by serde_json as the RFC wants them.
        other => text.push_str(&other.to_string()),
    }
}

fn write_list<T>(
    text: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    text.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Prior, plan};
    use crate::privacy::Epsilon;

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
        assert!(other.verify(WorkLimit::default()).unwrap_err().is_law());
        let extra = card.canonical().replacen('{', "{\"also\":\"this\",", 1);
        assert!(Card::from_json(&extra).unwrap_err().is_syntax());
        let mut future = card;
        future.version = "2".to_owned();
        assert!(future.verify(WorkLimit::default()).is_err());
    }

    #[test]
    fn the_canonical_form_is_sorted_and_bare() {
        let value: Value = serde_json::from_str(r#"{"b": ["x", "\u0001é\n"], "a": {"d": "1", "c": "⊥"}}"#).unwrap();
        let mut text = String::new();
        write_canonical(&value, &mut text);
        assert_eq!(text, "{\"a\":{\"c\":\"⊥\",\"d\":\"1\"},\"b\":[\"x\",\"\\u0001é\\n\"]}");
    }
}
