//! Under which assumptions each claim of a card holds: which worlds it compares, who runs the aggregators, who may answer; and
//! the trust model, in the terms of draft-wang-ppm-differential-privacy.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Card;
use crate::display::{self, grouped};
use crate::error::Result;

/// A claim, and the assumptions under which it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trust {
    /// The view of the claim: `one_aggregator`, `release` or `linked`.
    pub view: &'static str,
    /// Its ε, for everything that the card asks; `None` if there is no guarantee.
    pub epsilon: Option<f64>,
    /// Its δ.
    pub delta: f64,
    /// Who has to be honest for it, such as `at least one of the two aggregators`.
    pub honest: String,
    /// The trust model.
    pub model: Model,
    /// Against whom it holds, and under which assumptions, in words.
    pub holds: String,
}

impl Trust {
    /// The claim with the parties that it trusts, such as `ε = 1 if at least one of the two aggregators is honest`.
    pub fn claim_words(&self) -> String {
        let epsilon = self.epsilon.map(|epsilon| format!("ε = {}", display::claim(epsilon)));
        let delta = if self.delta > 0.0 { format!(" at δ = {}", display::claim(self.delta)) } else { String::new() };
        let claim = epsilon.map_or("no guarantee".to_owned(), |epsilon| epsilon + &delta);
        let verb = if self.model == Model::OneAggregatorMostClients { "are" } else { "is" };
        format!("{claim} if {} {verb} honest", self.honest)
    }
}

/// A trust model of draft-wang-ppm-differential-privacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Model {
    /// One aggregator and the client itself are honest; other clients need not be.
    #[serde(rename = "OAOC")]
    OneAggregatorOneClient,
    /// One aggregator and most clients are honest.
    #[serde(rename = "OAMC")]
    OneAggregatorMostClients,
    /// The client itself is honest; nobody else is trusted.
    #[serde(rename = "OC")]
    OneClient,
}

/// The assumption of the claim for one honest aggregator.
const NOISE: &str = "Counts on the noise that an honest aggregator draws, once for each batch, and on no other owner; whoever \
                     invents owners gains nothing.";

/// Against whom the claim for all answers of an owner holds.
const LINKED: &str =
    "Against everybody, even if one operator runs both aggregators: nobody but the owner's own device is trusted.";

impl Card {
    /// The claims of this card, each with the trust model under which it holds.
    ///
    /// A card that does not say who runs its aggregators is read as if one operator ran both.
    pub fn trust(&self) -> Result<Vec<Trust>> {
        let release = Trust {
            view: "release",
            epsilon: self.claims.whole_release(),
            delta: self.delta().value(),
            honest: format!("at least one aggregator and {} owners", grouped(self.claim_owners()?)),
            model: Model::OneAggregatorMostClients,
            holds: format!("{} {}", self.against_whom(), self.which_crowd()?),
        };
        let linked = Trust {
            view: "linked",
            epsilon: self.claims.whole_linked(),
            delta: 0.0,
            honest: "nobody but the owner's own device".to_owned(),
            model: Model::OneClient,
            holds: LINKED.to_owned(),
        };
        Ok(self.one_aggregator_trust().into_iter().chain([release, linked]).collect())
    }

    /// The claim for one honest aggregator, if the aggregators add noise.
    fn one_aggregator_trust(&self) -> Option<Trust> {
        self.claims.one_aggregator.as_ref()?;
        Some(Trust {
            view: "one_aggregator",
            epsilon: self.claims.whole_one_aggregator(),
            delta: 0.0,
            honest: "at least one of the two aggregators".to_owned(),
            model: Model::OneAggregatorOneClient,
            holds: format!("{} {NOISE}", self.against_whom()),
        })
    }

    fn against_whom(&self) -> &'static str {
        match self.operators {
            Some(Operators::Two) => "Against everybody, as long as one of the two aggregators is honest.",
            Some(Operators::One) | None => {
                "Not against the operator, who runs both aggregators and can see every answer; against everybody else."
            }
        }
    }

    fn which_crowd(&self) -> Result<String> {
        let owners = grouped(self.claim_owners()?);
        let invented = match self.enrolment {
            Some(Enrolment::Required) => "each report is of an enrolled owner",
            Some(Enrolment::None) | None => "assumes that nobody invents owners",
        };
        let noise = if self.claims.one_aggregator.is_some() { " and on one aggregator's noise" } else { "" };
        Ok(format!("Counts on {owners} owners who toss their coins{noise}; {invented}."))
    }
}

/// Who runs the two aggregators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operators {
    /// One operator runs both, and can see every answer.
    One,
    /// Two operators, who must not collude.
    Two,
}

/// Who may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enrolment {
    /// Anybody: the claims assume that nobody invents owners.
    None,
    /// Holders of a credential, one report each.
    Required,
}

/// The neighbouring relation of a card's claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Neighbouring {
    /// One owner's truth is substituted, and the number of owners is public.
    Substitution,
    /// Words that this version does not know: such a card can be read, but none of its claims holds.
    Unknown(String),
}

const SUBSTITUTION: &str = "one owner's truth is substituted, the number of owners is public";

impl From<String> for Neighbouring {
    fn from(text: String) -> Self {
        if text == SUBSTITUTION { Self::Substitution } else { Self::Unknown(text) }
    }
}

impl From<Neighbouring> for String {
    fn from(relation: Neighbouring) -> Self {
        relation.to_string()
    }
}

impl fmt::Display for Neighbouring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Substitution => SUBSTITUTION,
            Self::Unknown(text) => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Prior, Request, plan};
    use crate::privacy::{Delta, Epsilon};

    fn card() -> Card {
        let mut request = Request::new(200, Prior::at(20));
        request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-4).unwrap()));
        Card::new(&request, &plan(&request).unwrap())
    }

    #[test]
    fn the_release_is_not_safe_from_one_operator() {
        let mut card = card();
        let [release, linked] = <[Trust; 2]>::try_from(card.trust().unwrap()).unwrap();
        assert!(release.holds.starts_with("Not against the operator"), "{}", release.holds);
        assert!(release.holds.contains("nobody invents owners") && release.holds.contains("200 owners"));
        assert_eq!((release.model, linked.model), (Model::OneAggregatorMostClients, Model::OneClient));
        assert!(release.epsilon.unwrap() <= 2.0);
        card.operators = Some(Operators::One);
        assert_eq!(card.trust().unwrap()[0], release);
        card.operators = Some(Operators::Two);
        card.enrolment = Some(Enrolment::Required);
        let better = card.trust().unwrap().remove(0);
        assert!(better.holds.starts_with("Against everybody, as long as one"), "{}", better.holds);
        assert!(!better.holds.contains("invents"));
        assert_eq!(card.trust().unwrap()[1], linked);
    }

    #[test]
    fn the_whole_of_a_series_is_what_counts() {
        let mut card = card();
        let series = r#"{"times":"4","number":"1","starts":"2026-11-15T08:00:00Z","every":"600"}"#;
        card.series = Some(serde_json::from_str(series).unwrap());
        card.state_claims(Delta::new(1e-4).unwrap(), Default::default()).unwrap();
        let trust = card.trust().unwrap();
        let whole = card.claims.whole.as_ref().unwrap();
        assert_eq!(trust[0].epsilon, whole.release.epsilon());
        assert!(trust[0].epsilon > card.claims.release.epsilon());
        assert_eq!(trust[1].epsilon, whole.linked.epsilon());
    }

    /// No two claims begin alike: each says whom it trusts.
    #[test]
    fn every_epsilon_is_told_with_whom_it_trusts() {
        let epsilon = Epsilon::new(1.0).unwrap();
        let request = Request { minimum_batch: 1600, ..Request::one_aggregator(2000, Prior::at(20), epsilon).unwrap() };
        let card = Card::new(&request, &plan(&request).unwrap());
        let words: Vec<String> = card.trust().unwrap().iter().map(Trust::claim_words).collect();
        assert_eq!(words[0], "ε = 1 if at least one of the two aggregators is honest");
        let release = display::claim(card.claims.whole_release());
        assert_eq!(
            words[1],
            format!("ε = {release} at δ = 1e-8 if at least one aggregator and 1 600 owners are honest")
        );
        assert_eq!(words[2], "ε = 8 if nobody but the owner's own device is honest");
        let plain = Request { linked_epsilon: None, ..request };
        let unlimited = Card::new(&plain, &plan(&plain).unwrap()).trust().unwrap().remove(2);
        assert_eq!(unlimited.claim_words(), "no guarantee if nobody but the owner's own device is honest");
    }

    #[test]
    fn models_are_named_as_in_the_draft() {
        let text = serde_json::to_value(card().trust().unwrap()).unwrap();
        assert_eq!((&text[0]["model"], &text[1]["model"]), (&"OAMC".into(), &"OC".into()));
        assert_eq!(text[1]["view"], "linked");
    }
}
