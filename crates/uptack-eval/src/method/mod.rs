//! What is compared: the family, the baselines that a user might pick instead, and a trusted curator.

mod curator;
mod oracle;

pub use curator::Curator;
pub use oracle::{Oracle, OracleKind};

use serde::Serialize;
use serde_json::{Value, json};
use uptack::privacy::{self, Delta, Guarantee, Target, WorkLimit};
use uptack::{Channel, Fraction, Mechanism, Output};

use crate::error::Error;

/// Where a method comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The paper's family and our additions to it.
    Family,
    /// A published mechanism without a trusted party.
    Baseline,
    /// A party that sees every truth and adds noise to the count.
    Curator,
}

/// A way to count.
#[derive(Clone, Debug)]
pub struct Method {
    /// What people call it.
    pub label: String,
    /// Where it comes from.
    pub kind: Kind,
    /// What it does.
    pub law: Law,
}

/// What a method does with the truths.
#[derive(Clone, Debug)]
pub enum Law {
    /// Every owner answers the station's question by a channel.
    Mechanism(Box<Mechanism>),
    /// Every owner reports on all stations at once.
    Oracle(Oracle),
    /// The truths are counted and noise is added.
    Curator(Curator),
}

impl Method {
    /// A member of the family.
    pub fn family(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self { label: label.into(), kind: Kind::Family, law: Law::Mechanism(Box::new(mechanism)) }
    }

    /// Randomized response, or another baseline that is a channel of the core.
    pub fn baseline(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self { kind: Kind::Baseline, ..Self::family(label, mechanism) }
    }

    /// A frequency oracle.
    pub fn oracle(oracle: Oracle) -> Self {
        Self { label: oracle.kind().to_string(), kind: Kind::Baseline, law: Law::Oracle(oracle) }
    }

    /// A trusted curator.
    pub fn curator(curator: Curator) -> Self {
        Self { label: format!("curator, {}", curator.name()), kind: Kind::Curator, law: Law::Curator(curator) }
    }

    /// The channel of one station's question; none with a curator.
    pub fn channel(&self) -> Result<Option<Channel>, Error> {
        Ok(match &self.law {
            Law::Mechanism(mechanism) => Some(mechanism.channel()),
            Law::Oracle(oracle) => Some(oracle.channel()?),
            Law::Curator(_) => None,
        })
    }

    /// The mechanism in words that every command accepts, where there is a channel.
    pub fn mechanism(&self) -> Result<String, Error> {
        Ok(match &self.law {
            Law::Mechanism(mechanism) => mechanism.to_string(),
            Law::Oracle(oracle) => format!("custom({})", oracle.channel()?.to_cells_text()),
            Law::Curator(curator) => curator.to_string(),
        })
    }

    /// Bytes that one owner writes to answer for one station, and whether they answer for all stations at once.
    pub fn bytes(&self) -> (u64, bool) {
        match &self.law {
            Law::Mechanism(mechanism) => {
                let bits = mechanism.channel().cells().len().next_power_of_two().trailing_zeros();
                (u64::from(bits.div_ceil(8).max(1)), false)
            }
            Law::Oracle(oracle) => (oracle.bytes(), true),
            Law::Curator(_) => (1, false),
        }
    }

    /// Fair coins that one owner tosses; a choice takes 64 of them, which is what the core's sampler reads.
    pub fn coins(&self) -> u64 {
        match &self.law {
            Law::Mechanism(_) => 64,
            Law::Oracle(oracle) => 64 * oracle.choices(),
            Law::Curator(_) => 0,
        }
    }

    /// What it gives away with `owners` owners, in every view.
    pub fn claims(&self, owners: u64, delta: f64) -> Result<Claims, Error> {
        let target = Target::Delta(Delta::new(delta)?);
        Ok(match &self.law {
            Law::Mechanism(mechanism) => Claims::Certified(Box::new(certify(&mechanism.channel(), owners, target)?)),
            Law::Oracle(oracle) => Claims::Local { epsilon: oracle.epsilon(), delta },
            Law::Curator(curator) => Claims::Curator { epsilon: curator.epsilon(), delta: curator.delta() },
        })
    }
}

/// Steps for each joint view: about a tenth of a second. What does not close is printed with its gap.
const EFFORT: u64 = 10_000_000;
/// Beyond this many owners the joint views are bounded by the linked one instead of being certified, which takes minutes.
const MOST_FOR_JOINT: u64 = 200_000;

/// What the accountant says of every view.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// Local ε of each answer alone.
    pub answers: Vec<Option<f64>>,
    /// Local ε of the whole cell.
    pub linked: Option<f64>,
    /// All tallies.
    pub release: Guarantee,
    /// Each answer together with all tallies; none where only the linked ε was taken as its bound.
    pub joint: Vec<Option<Guarantee>>,
}

fn certify(channel: &Channel, owners: u64, target: Target) -> Result<Certificates, Error> {
    let limit = WorkLimit::steps(EFFORT);
    let answers = 0..channel.answers().len();
    let joint = |answer: usize| -> Result<Option<Guarantee>, Error> {
        if owners > MOST_FOR_JOINT || !channel.determined() {
            return Ok(None);
        }
        Ok(Some(privacy::answer_with_release(channel, answer, owners)?.with_limit(limit).guarantee(target)))
    };
    Ok(Certificates {
        answers: answers.clone().map(|answer| privacy::answer_epsilon(channel, answer)).collect::<Result<_, _>>()?,
        linked: privacy::linked_epsilon(channel),
        // As `privacy` asks, so that both print the same number.
        release: privacy::release(channel, owners)?.with_limit(WorkLimit::default()).guarantee(target),
        joint: answers.map(joint).collect::<Result<_, _>>()?,
    })
}

/// The channel that shows only the class of the cell.
pub(crate) fn by_class(channel: &Channel) -> Result<Channel, Error> {
    let classes = channel.classes();
    if classes.len() > 9 {
        return Err(Error::new(format!("{} classes of cells are too many", classes.len())));
    }
    let cells = classes.iter().zip('1'..='9').map(|(class, symbol)| {
        Ok((vec![Output::new(symbol)?], Fraction::from_probability(class.yes), Fraction::from_probability(class.no)))
    });
    Ok(Channel::from_fractions(cells.collect::<Result<_, uptack::Error>>()?)?)
}

/// What a method gives away.
#[derive(Clone, Debug)]
pub enum Claims {
    /// Computed by the accountant, for every view.
    Certified(Box<Certificates>),
    /// The local guarantee of the whole report, which bounds every other view; the release is not accounted for.
    Local {
        /// Of the report.
        epsilon: f64,
        /// At which the release is stated.
        delta: f64,
    },
    /// Of the released count; the curator sees the truth.
    Curator {
        /// Of the release.
        epsilon: f64,
        /// Of the release.
        delta: f64,
    },
}

impl Claims {
    /// All views as the privacy card writes them.
    pub fn json(&self) -> Value {
        match self {
            Self::Certified(views) => {
                let bound = || bounded_json(views.linked, views.release.target());
                let joint = |claim: &Option<Guarantee>| claim.as_ref().map_or_else(bound, Guarantee::json);
                json!({
                    "answers": views.answers,
                    "linked": views.linked,
                    "release": views.release.json(),
                    "answers_with_release": views.joint.iter().map(joint).collect::<Vec<_>>(),
                })
            }
            Self::Local { epsilon, delta } => {
                let bounded = bound_json(*delta, Some(*epsilon));
                json!({"answers": [epsilon], "linked": epsilon, "release": bounded,
                    "answers_with_release": [bounded]})
            }
            Self::Curator { epsilon, delta } => json!({
                "answers": [null], "linked": null,
                "release": {"delta": delta, "epsilon": {"lower": epsilon, "upper": epsilon}, "floor": 0.0,
                    "certificate": {"gap": 0.0, "closed": true}},
                "answers_with_release": [null],
            }),
        }
    }

    /// The largest ε of a single answer; none where there is no guarantee.
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

    /// The ε of the whole report; none where there is no guarantee.
    pub fn linked(&self) -> Option<f64> {
        match self {
            Self::Certified(views) => views.linked,
            Self::Local { epsilon, .. } => Some(*epsilon),
            Self::Curator { .. } => None,
        }
    }

    /// The claimed ε of the release; none where δ is below the floor.
    pub fn release(&self) -> Option<f64> {
        match self {
            Self::Certified(views) => views.release.value().map(|value| value.upper()),
            Self::Local { epsilon, .. } | Self::Curator { epsilon, .. } => Some(*epsilon),
        }
    }
}

/// A view of which nothing is known but that it says no more than the whole report.
fn bound_json(delta: f64, linked: Option<f64>) -> Value {
    json!({"delta": delta, "epsilon": linked.map(|epsilon| json!({"lower": 0.0, "upper": epsilon})), "floor": null,
        "crowd": null, "certificate": {"gap": null, "closed": false}})
}

fn bounded_json(linked: Option<f64>, target: Target) -> Value {
    let delta = match target {
        Target::Delta(delta) => delta.value(),
        Target::Epsilon(_) => 0.0,
    };
    bound_json(delta, linked)
}
