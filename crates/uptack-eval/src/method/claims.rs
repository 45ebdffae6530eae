//! The privacy guarantees of a method, view by view.

use std::ops::Range;

use serde_json::{Value, json};
use uptack::Channel;
use uptack::contribution::Contributions;
use uptack::privacy::contributions::ContributionViews;
use uptack::privacy::{self, Delta, Guarantee, Target, WorkLimit};

use super::curator::ChangedCounts;
use crate::error::Result;

/// Steps for each joint view, about a tenth of a second. A claim that does not close within them is printed with its gap.
const EFFORT: u64 = 40_000_000;
/// With more owners the joint views are bounded by the linked one; to certify them would take minutes.
const MOST_FOR_JOINT: u64 = 200_000;

/// The accountant's claims for every view.
#[derive(Clone, Debug)]
pub struct ViewClaims {
    /// Local ε of each answer alone.
    pub answers: Vec<Option<f64>>,
    /// Local ε of the whole cell or, in a ballot, of the whole ballot.
    pub linked: Option<f64>,
    /// ε of the published count if one aggregator is honest and nobody else, as a lower bound and as claimed; none without
    /// noise.
    pub one_aggregator: Option<(f64, f64)>,
    /// All that is published.
    pub release: ReleaseClaim,
    /// Each answer together with all tallies; none if its bound is the linked ε.
    pub joint: Vec<Option<Guarantee>>,
}

/// The claim for the release.
#[derive(Clone, Copy, Debug)]
pub enum ReleaseClaim {
    /// Certified by the accountant.
    Certified(Guarantee),
    /// Bounded by another claim.
    Bounded {
        /// None if there is no bound.
        epsilon: Option<f64>,
        /// The δ at which the bound is stated.
        delta: f64,
    },
}

impl ReleaseClaim {
    /// As the privacy card writes it.
    fn json(&self) -> Value {
        match self {
            Self::Certified(guarantee) => guarantee.json(),
            Self::Bounded { epsilon, delta } => bound_json(*delta, *epsilon),
        }
    }

    fn delta(&self) -> f64 {
        match self {
            Self::Certified(guarantee) => delta_of(guarantee.target()),
            Self::Bounded { delta, .. } => *delta,
        }
    }

    /// The claimed ε; none if δ is below the floor.
    fn upper(&self) -> Option<f64> {
        match self {
            Self::Certified(guarantee) => guarantee.value().map(|value| value.upper()),
            Self::Bounded { epsilon, .. } => *epsilon,
        }
    }
}

impl ViewClaims {
    fn json(&self) -> Value {
        let one = self.one_aggregator;
        let joint = |claim: &Option<Guarantee>| match claim {
            Some(claim) => claim.json(),
            None => bound_json(self.release.delta(), self.linked),
        };
        json!({
            "answers": self.answers,
            "linked": self.linked,
            "one_aggregator": one.map(|(lower, upper)| json!({"epsilon": {"lower": lower, "upper": upper}, "delta": 0})),
            "release": self.release.json(),
            "answers_with_release": self.joint.iter().map(joint).collect::<Vec<_>>(),
        })
    }
}

/// A channel and its crowd, whose views are certified.
pub(super) struct ViewAccount<'a> {
    pub(super) channel: &'a Channel,
    pub(super) owners: u64,
    pub(super) target: Target,
    pub(super) changes: ChangedCounts,
}

impl ViewAccount<'_> {
    pub(super) fn certificates(&self) -> Result<ViewClaims> {
        let times = self.changes.count() as f64;
        let one_aggregator = privacy::one_aggregator(self.channel);
        Ok(ViewClaims {
            answers: self.answers().map(|answer| self.answer(answer)).collect::<Result<_>>()?,
            linked: privacy::linked_epsilon(self.channel).map(|epsilon| times * epsilon),
            one_aggregator: one_aggregator.map(|one| (times * one.lower(), times * one.upper())),
            release: self.release()?,
            joint: self.answers().map(|answer| self.joint(answer)).collect::<Result<_>>()?,
        })
    }

    fn answers(&self) -> Range<usize> {
        0..self.channel.answers().len()
    }

    fn answer(&self, answer: usize) -> Result<Option<f64>> {
        let epsilon = privacy::answer_epsilon(self.channel, answer)?;
        Ok(epsilon.map(|epsilon| self.changes.count() as f64 * epsilon))
    }

    /// The release: certified as `uptack privacy` does, so that both print the same number, or by what bounds it.
    ///
    /// With noise, it assumes one honest aggregator and the owners. Two published counts give away no more than the sum:
    /// (ε/2, δ/2) for each is (ε, δ) for both.
    fn release(&self) -> Result<ReleaseClaim> {
        let (times, delta) = (self.changes.count() as f64, delta_of(self.target));
        let accountant = privacy::release(self.channel, self.owners)?.with_limit(WorkLimit::default());
        if self.changes == ChangedCounts::One {
            return Ok(ReleaseClaim::Certified(accountant.guarantee(self.target)));
        }
        let each = accountant.guarantee(Target::Delta(Delta::new(delta / times)?));
        Ok(ReleaseClaim::Bounded { epsilon: each.value().map(|value| times * value.upper()), delta })
    }

    /// An answer together with all tallies; none if its bound is the linked ε.
    fn joint(&self, answer: usize) -> Result<Option<Guarantee>> {
        let bounded = self.owners > MOST_FOR_JOINT || !self.channel.determined() || self.channel.noise().is_some();
        if bounded || self.changes == ChangedCounts::Two {
            return Ok(None);
        }
        let accountant = privacy::answer_with_release(self.channel, answer, self.owners)?;
        Ok(Some(accountant.with_limit(WorkLimit::steps(EFFORT)).guarantee(self.target)))
    }
}

/// The views of contributions, for all counts together, as `uptack privacy` certifies them.
pub(super) fn contribution_claims(contributions: &Contributions, owners: u64, target: Target) -> Result<ViewClaims> {
    let views = ContributionViews::of(contributions, owners, target, WorkLimit::default())?;
    Ok(ViewClaims {
        // One report is all that an owner writes.
        answers: vec![views.linked],
        linked: views.linked,
        one_aggregator: views.one_aggregator.map(|one| (one.lower(), one.upper())),
        release: ReleaseClaim::Certified(views.release),
        joint: vec![None],
    })
}

/// The guarantees of a method.
#[derive(Clone, Debug)]
pub enum MethodClaims {
    /// Computed by the accountant, for every view.
    Certified(Box<ViewClaims>),
    /// The local guarantee of the whole report, which bounds every other view; the release has no account of its own.
    Local {
        /// The ε of the report.
        epsilon: f64,
        /// The δ at which the release is stated.
        delta: f64,
    },
    /// The guarantee of the released count; the curator sees the truth.
    Curator {
        /// The ε of the release.
        epsilon: f64,
        /// The δ of the release.
        delta: f64,
    },
}

impl MethodClaims {
    /// All views as the privacy card writes them.
    pub fn json(&self) -> Value {
        match self {
            Self::Certified(views) => views.json(),
            Self::Local { epsilon, delta } => {
                let bounded = bound_json(*delta, Some(*epsilon));
                json!({"answers": [epsilon], "linked": epsilon, "one_aggregator": null, "release": bounded,
                    "answers_with_release": [bounded]})
            }
            Self::Curator { epsilon, delta } => json!({
                "answers": [null], "linked": null, "one_aggregator": null,
                "release": {"delta": delta, "epsilon": {"lower": epsilon, "upper": epsilon}, "floor": 0.0,
                    "certificate": {"gap": 0.0, "closed": true}},
                "answers_with_release": [null],
            }),
        }
    }

    /// The largest ε of a single answer; none if there is no guarantee.
    pub fn answer(&self) -> Option<f64> {
        match self {
            Self::Certified(views) => {
                let parts: Option<Vec<f64>> = views.answers.iter().copied().collect();
                parts.map(|parts| parts.into_iter().fold(0.0, f64::max))
            }
            Self::Local { epsilon, .. } => Some(*epsilon),
            Self::Curator { .. } => None,
        }
    }

    /// The ε of the whole report; none if there is no guarantee.
    pub fn linked(&self) -> Option<f64> {
        match self {
            Self::Certified(views) => views.linked,
            Self::Local { epsilon, .. } => Some(*epsilon),
            Self::Curator { .. } => None,
        }
    }

    /// The claimed ε of the release; none if δ is below the floor.
    pub fn release(&self) -> Option<f64> {
        match self {
            Self::Certified(views) => views.release.upper(),
            Self::Local { epsilon, .. } | Self::Curator { epsilon, .. } => Some(*epsilon),
        }
    }

    /// The claimed ε if one aggregator is honest and nobody else; none without noise.
    pub fn one_aggregator(&self) -> Option<f64> {
        match self {
            Self::Certified(views) => views.one_aggregator.map(|(_, upper)| upper),
            Self::Local { .. } | Self::Curator { .. } => None,
        }
    }
}

/// A view that is only known to give away no more than the whole report.
fn bound_json(delta: f64, linked: Option<f64>) -> Value {
    json!({"delta": delta, "epsilon": linked.map(|epsilon| json!({"lower": 0.0, "upper": epsilon})), "floor": null,
        "crowd": null, "certificate": {"gap": null, "closed": false}})
}

fn delta_of(target: Target) -> f64 {
    match target {
        Target::Delta(delta) => delta.value(),
        Target::Epsilon(_) => 0.0,
    }
}
