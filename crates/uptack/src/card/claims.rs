//! The claims of a card.

use serde::{Deserialize, Serialize};

use super::stated::{Claim, Stated, decimal};
use crate::channel::Channel;
use crate::contribution::Contributions;
use crate::error::Result;
use crate::privacy::{self, Delta, Guarantee, Repeated, Target, Views, WorkLimit};

/// The claims of a card: each an ε, rounded up, or `none`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The δ of the release views.
    pub delta: Stated<Delta>,
    /// ε of each answer alone. Left out for contributions, which are claimed together.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub answers: Vec<Claim>,
    /// ε of all answers of an owner.
    pub linked: Claim,
    /// ε of the published sum if one aggregator is honest, even if nobody else is; δ is 0. Left out if the aggregators add no
    /// noise: then one honest aggregator hides no more than [`linked`](Self::linked) does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub one_aggregator: Option<Claim>,
    /// ε of the published counts; with noise, of the published sum if one aggregator and the owners are honest.
    pub release: Claim,
    /// ε of each answer seen together with the published counts. Left out for contributions.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub answers_with_release: Vec<Claim>,
    /// The claims for a ballot, a series, or both, as a whole.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub whole: Option<WholeClaims>,
}

/// The views that a card's claims were recomputed from.
#[derive(Clone, Debug)]
pub enum CardViews {
    /// Those of each question.
    YesNo(Box<Views>),
    /// Contributions are claimed without a crowd.
    Contributions,
}

/// The claims of a ballot or a series of independent questions as a whole, at the same δ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeClaims {
    /// How many single queries count: those whose truth can differ between two ballots, times the repetitions.
    #[serde(with = "decimal")]
    pub queries: u64,
    /// ε of all answers of an owner.
    pub linked: Claim,
    /// ε of all published sums if one aggregator is honest; the epsilons of the queries add up.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub one_aggregator: Option<Claim>,
    /// ε of all published counts.
    pub release: Claim,
}

impl Claims {
    /// The claims that certified views of a channel support; `whole` is for several such queries together.
    pub fn of(channel: &Channel, views: &Views, whole: Option<&Repeated>) -> Self {
        let joint = |claim: &Guarantee| Claim::at_most(claim.value().map(|value| value.upper()));
        let Target::Delta(delta) = views.release.target() else { unreachable!("claims are made at a delta") };
        Self {
            delta: Stated::try_from(delta.value()).expect("a delta is written as one"),
            answers: views.answers.iter().map(|epsilon| Claim::at_most(*epsilon)).collect(),
            linked: Claim::at_most(views.linked),
            one_aggregator: one_aggregator(channel, 1),
            release: joint(&views.release),
            answers_with_release: views.answers_with_release.iter().map(joint).collect(),
            whole: whole.map(|repeated| WholeClaims::of(channel, repeated)),
        }
    }

    /// The claims of contributions, for everything that the card asks together.
    ///
    /// The release is claimed without counting on other owners: the windows of a series may have different ones, and the
    /// certificate for a crowd is for owners who are in all counts alike.
    pub fn of_contributions(contributions: &Contributions, delta: Delta) -> Self {
        let linked = privacy::contributions::linked_epsilon(contributions);
        let noise = privacy::contributions::one_aggregator(contributions).map(|claim| claim.upper());
        Self {
            delta: Stated::try_from(delta.value()).expect("a delta is written as one"),
            answers: Vec::new(),
            linked: Claim::at_most(linked),
            one_aggregator: noise.map(|epsilon| Claim::at_most(Some(epsilon))),
            release: Claim::at_most(noise.into_iter().chain(linked).reduce(f64::min)),
            answers_with_release: Vec::new(),
            whole: None,
        }
    }

    /// The largest ε of a single answer; `None` if one has no guarantee. One report of contributions reveals no more than all of
    /// them.
    pub fn worst_answer(&self) -> Option<f64> {
        self.worst_or_linked(&self.answers)
    }

    /// The largest ε of an answer seen together with the published counts; `None` if one has no guarantee.
    pub fn worst_answer_with_release(&self) -> Option<f64> {
        self.worst_or_linked(&self.answers_with_release)
    }

    /// The largest of some claims, or the linked one if none is stated.
    fn worst_or_linked(&self, claims: &[Claim]) -> Option<f64> {
        if claims.is_empty() { self.linked.epsilon() } else { worst(claims) }
    }

    /// ε of all answers of an owner to everything that the card asks.
    pub fn whole_linked(&self) -> Option<f64> {
        self.whole.as_ref().map_or(&self.linked, |whole| &whole.linked).epsilon()
    }

    /// ε of all published sums of the card, if one aggregator is honest and nobody else.
    ///
    /// If the aggregators add no noise, it is the linked ε: somebody who knows everybody else's answers learns the owner's from
    /// the counts.
    pub fn whole_one_aggregator(&self) -> Option<f64> {
        let (one_aggregator, linked) = match &self.whole {
            Some(whole) => (&whole.one_aggregator, &whole.linked),
            None => (&self.one_aggregator, &self.linked),
        };
        one_aggregator.as_ref().unwrap_or(linked).epsilon()
    }

    /// ε of all published counts of everything that the card asks.
    pub fn whole_release(&self) -> Option<f64> {
        self.whole.as_ref().map_or(&self.release, |whole| &whole.release).epsilon()
    }
}

impl WholeClaims {
    fn of(channel: &Channel, repeated: &Repeated) -> Self {
        Self {
            queries: repeated.times,
            linked: Claim::at_most(repeated.linked),
            one_aggregator: one_aggregator(channel, repeated.times),
            release: Claim::at_most(repeated.release.map(|value| value.upper())),
        }
    }
}

/// The guarantee of `queries` such queries together; `None` for a single one.
pub(super) fn whole(
    channel: &Channel,
    owners: u64,
    views: &Views,
    queries: u64,
    limit: WorkLimit,
) -> Result<Option<Repeated>> {
    if queries < 2 {
        return Ok(None);
    }
    let accountant = privacy::release(channel, owners)?.with_limit(limit);
    Repeated::of(views, &accountant, views.release.target(), queries).map(Some)
}

fn worst(claims: &[Claim]) -> Option<f64> {
    claims.iter().map(Claim::epsilon).try_fold(0.0, |worst, epsilon| Some(f64::max(worst, epsilon?)))
}

/// The claim for one honest aggregator that adds noise to the sums of this many queries; `None` without noise.
fn one_aggregator(channel: &Channel, queries: u64) -> Option<Claim> {
    let together = privacy::one_aggregator_together(channel, queries)?;
    Some(Claim::at_most(Some(together.upper())))
}
