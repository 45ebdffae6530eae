//! What a card promises, and the check of it.

use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::error::Error;
use crate::privacy::{self, Delta, Guarantee, Repeated, Target, Views, WorkLimit};

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
    /// What everything that the card asks gives away together: a ballot, a series, or both.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub whole: Option<WholeClaims>,
}

/// The claims of a ballot or a series as a whole, at the same δ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeClaims {
    /// How many single queries count: those whose truth can differ between two ballots, times the repetitions.
    pub queries: String,
    /// ε of all answers of an owner.
    pub linked: String,
    /// ε of all published counts.
    pub release: String,
}

pub(super) const NONE: &str = "none";

impl Claims {
    /// The claims that certified views support, those of `queries` such queries together among them.
    pub fn of(views: &Views, whole: Option<&Repeated>) -> Self {
        let joint = |claim: &Guarantee| claim.value().map_or(NONE.to_owned(), |value| value.upper().to_string());
        let Target::Delta(delta) = views.release.target() else { unreachable!("claims are made at a delta") };
        Self {
            delta: delta.value().to_string(),
            answers: views.answers.iter().map(local).collect(),
            linked: local(&views.linked),
            release: joint(&views.release),
            answers_with_release: views.answers_with_release.iter().map(joint).collect(),
            whole: whole.map(|repeated| WholeClaims {
                queries: repeated.times.to_string(),
                linked: local(&repeated.linked),
                release: repeated.release.map_or(NONE.to_owned(), |value| value.upper().to_string()),
            }),
        }
    }

    /// The δ of the claims.
    pub fn delta(&self) -> Result<Delta, Error> {
        let delta = self.delta.parse::<f64>();
        let delta = delta.map_err(|error| Error::syntax("claims.delta is not a number").with_source(error))?;
        Delta::new(delta)
    }

    /// The largest ε of a single answer; none where one has no guarantee.
    pub fn worst_answer(&self) -> Result<Option<f64>, Error> {
        worst("claims.answers", &self.answers)
    }

    /// The largest ε of an answer seen together with the published counts; none where one has no guarantee.
    pub fn worst_answer_with_release(&self) -> Result<Option<f64>, Error> {
        worst("claims.answers_with_release", &self.answers_with_release)
    }

    /// ε of all answers of an owner to everything that the card asks.
    pub fn whole_linked(&self) -> Result<Option<f64>, Error> {
        epsilon("claims.linked", self.whole.as_ref().map_or(&self.linked, |whole| &whole.linked))
    }

    /// ε of all published counts of everything that the card asks.
    pub fn whole_release(&self) -> Result<Option<f64>, Error> {
        epsilon("claims.release", self.whole.as_ref().map_or(&self.release, |whole| &whole.release))
    }

    /// Each claim is at least what was found.
    pub(super) fn check(&self, found: &Self) -> Result<(), Error> {
        let one = std::slice::from_ref;
        check_claims("the answers alone", &self.answers, &found.answers)?;
        check_claims("the linked answers", one(&self.linked), one(&found.linked))?;
        check_claims("the release", one(&self.release), one(&found.release))?;
        check_claims("an answer with the release", &self.answers_with_release, &found.answers_with_release)?;
        match (&self.whole, &found.whole) {
            (None, None) => Ok(()),
            (Some(claimed), Some(found)) if claimed.queries == found.queries => {
                check_claims("all linked answers together", one(&claimed.linked), one(&found.linked))?;
                check_claims("all releases together", one(&claimed.release), one(&found.release))
            }
            _ => Err(Error::card("the card's claims for the whole are not about what it asks")
                .with_hint("a ballot or a series states what all its queries together give away, other cards do not")),
        }
    }
}

/// The guarantee of `queries` such queries together; nothing for one alone.
pub(super) fn whole(
    channel: &Channel,
    owners: u64,
    views: &Views,
    queries: u64,
    limit: WorkLimit,
) -> Result<Option<Repeated>, Error> {
    if queries < 2 {
        return Ok(None);
    }
    let accountant = privacy::release(channel, owners)?.with_limit(limit);
    Repeated::of(views, &accountant, views.release.target(), queries).map(Some)
}

fn local(epsilon: &Option<f64>) -> String {
    epsilon.map_or(NONE.to_owned(), |epsilon| epsilon.to_string())
}

/// A claim as a number; none where there is no guarantee.
fn epsilon(name: &str, text: &str) -> Result<Option<f64>, Error> {
    if text == NONE {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|epsilon: &f64| *epsilon >= 0.0 && epsilon.is_finite());
    number.map(Some).ok_or_else(|| Error::syntax(format!("{name} is neither a number nor `none`")))
}

fn worst(name: &str, claims: &[String]) -> Result<Option<f64>, Error> {
    let numbers = claims.iter().map(|claim| epsilon(name, claim)).collect::<Result<Option<Vec<f64>>, _>>()?;
    Ok(numbers.map(|numbers| numbers.into_iter().fold(0.0, f64::max)))
}

fn check_claims(view: &str, claimed: &[String], found: &[String]) -> Result<(), Error> {
    let number = |text: &str| epsilon("a claim", text).ok().map(|epsilon| epsilon.unwrap_or(f64::INFINITY));
    let holds = |(claimed, found): (&String, &String)| {
        let (claimed, found) = (number(claimed)?, number(found)?);
        (claimed >= found).then_some(())
    };
    let pairs = claimed.iter().zip(found);
    if claimed.len() == found.len() && pairs.map(holds).collect::<Option<Vec<()>>>().is_some() {
        return Ok(());
    }
    let (claimed, found) = (claimed.join(", "), found.join(", "));
    Err(Error::card(format!("the card claims an epsilon of {claimed} for {view}; it is {found}"))
        .with_hint("the claim is better than the truth; do not answer such a card"))
}
