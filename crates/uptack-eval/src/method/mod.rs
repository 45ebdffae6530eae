//! The methods that are compared: the family, the baselines that a user might choose instead, and a trusted curator.

mod claims;
mod curator;
mod oracle;

pub use claims::{MethodClaims, ReleaseClaim, ViewClaims};
use claims::{ViewAccount, contribution_claims};
pub use curator::{ChangedCounts, Curator};
pub(crate) use curator::{IntegerNoise, least_sigma_of_moved};
pub use oracle::{Oracle, OracleKind};
use serde::Serialize;
use uptack::contribution::Contributions;
use uptack::privacy::{Delta, Target};
use uptack::{Channel, Fraction, Mechanism, Output};

use crate::error::{Error, Result};

/// Where a method comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodOrigin {
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
    /// Its name.
    pub label: String,
    /// Where it comes from.
    pub kind: MethodOrigin,
    /// How it turns truths into a count.
    pub law: Protocol,
    /// How many published counts change if an owner moves.
    pub changes: ChangedCounts,
}

/// How a method turns truths into a count.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// Every owner answers the station's question by a channel.
    Mechanism(Box<Mechanism>),
    /// Every owner is at one of the stations and contributes to one of the counts, or up to k times to several.
    Contributions(Box<Contributions>),
    /// Every owner reports on all stations at once.
    Oracle(Oracle),
    /// The truths are counted and noise is added.
    Curator(Curator),
}

impl Method {
    /// A member of the family.
    pub fn family(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self {
            label: label.into(),
            kind: MethodOrigin::Family,
            law: Protocol::Mechanism(Box::new(mechanism)),
            changes: ChangedCounts::One,
        }
    }

    /// Randomized response, or another baseline that is a channel of the core.
    pub fn baseline(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self { kind: MethodOrigin::Baseline, ..Self::family(label, mechanism) }
    }

    /// Contributions to all counts that are published together.
    pub fn contributions(label: impl Into<String>, contributions: Contributions) -> Self {
        Self {
            label: label.into(),
            kind: MethodOrigin::Family,
            law: Protocol::Contributions(Box::new(contributions)),
            changes: ChangedCounts::Two,
        }
    }

    /// A frequency oracle.
    pub fn oracle(oracle: Oracle) -> Self {
        // Its report already hides the whole place.
        Self {
            label: oracle.kind().to_string(),
            kind: MethodOrigin::Baseline,
            law: Protocol::Oracle(oracle),
            changes: ChangedCounts::One,
        }
    }

    /// A trusted curator.
    pub fn curator(curator: Curator) -> Self {
        Self {
            label: format!("curator, {}", curator.name()),
            kind: MethodOrigin::Curator,
            law: Protocol::Curator(curator),
            changes: ChangedCounts::One,
        }
    }

    /// The same method for all stations in one ballot, in which each owner is at one of them.
    #[must_use]
    pub fn in_a_ballot(self) -> Self {
        Self { changes: ChangedCounts::Two, ..self }
    }

    /// Whether the aggregators add noise to the published count.
    pub fn is_noisy(&self) -> bool {
        match &self.law {
            Protocol::Mechanism(mechanism) => mechanism.noise().is_some(),
            Protocol::Contributions(contributions) => contributions.noise().is_some(),
            Protocol::Oracle(_) | Protocol::Curator(_) => false,
        }
    }

    /// The channel of one station's question; none for a curator.
    pub fn channel(&self) -> Result<Option<Channel>> {
        Ok(match &self.law {
            Protocol::Mechanism(mechanism) => Some(mechanism.channel()),
            Protocol::Contributions(contributions) => Some(contributions.count_channel()),
            Protocol::Oracle(oracle) => Some(oracle.channel()?),
            Protocol::Curator(_) => None,
        })
    }

    /// The mechanism in the notation that every command accepts, if there is a channel.
    pub fn mechanism(&self) -> Result<String> {
        Ok(match &self.law {
            Protocol::Mechanism(mechanism) => mechanism.to_string(),
            Protocol::Contributions(contributions) => contributions.to_string(),
            Protocol::Oracle(oracle) => format!("custom({})", oracle.channel()?.to_cells_text()),
            Protocol::Curator(curator) => curator.to_string(),
        })
    }

    /// Bytes that one owner writes to answer for one station, and whether they answer for all stations at once.
    pub fn bytes(&self) -> (u64, bool) {
        match &self.law {
            Protocol::Mechanism(mechanism) => {
                let bits = mechanism.channel().cells().len().next_power_of_two().trailing_zeros();
                (u64::from(bits.div_ceil(8).max(1)), false)
            }
            Protocol::Contributions(contributions) => {
                (u64::from(contributions.most()) * index_bytes(u64::from(contributions.possibilities())), true)
            }
            Protocol::Oracle(oracle) => (oracle.bytes(), true),
            Protocol::Curator(_) => (1, false),
        }
    }

    /// Fair coins that one owner flips: 64 per choice, as many as the core's sampler reads.
    pub fn coins(&self) -> u64 {
        match &self.law {
            Protocol::Mechanism(_) => 64,
            Protocol::Contributions(contributions) => 64 * u64::from(contributions.most()),
            Protocol::Oracle(oracle) => 64 * oracle.choices(),
            Protocol::Curator(_) => 0,
        }
    }

    /// Its guarantees in every view, with this many owners.
    pub fn claims(&self, owners: u64, delta: f64) -> Result<MethodClaims> {
        let target = Target::Delta(Delta::new(delta)?);
        Ok(match &self.law {
            Protocol::Mechanism(mechanism) => {
                let account = ViewAccount { channel: &mechanism.channel(), owners, target, changes: self.changes };
                MethodClaims::Certified(Box::new(account.certificates()?))
            }
            Protocol::Contributions(contributions) => {
                MethodClaims::Certified(Box::new(contribution_claims(contributions, owners, target)?))
            }
            Protocol::Oracle(oracle) => MethodClaims::Local { epsilon: oracle.epsilon(), delta },
            Protocol::Curator(curator) => MethodClaims::Curator { epsilon: curator.epsilon(), delta: curator.delta() },
        })
    }
}

/// The bytes of a number of one of so many things.
fn index_bytes(things: u64) -> u64 {
    u64::from(things.next_power_of_two().trailing_zeros().div_ceil(8))
}

/// The channel that shows only the class of a cell.
pub(crate) fn by_class(channel: &Channel) -> Result<Channel> {
    let classes = channel.classes();
    if classes.len() > 9 {
        return Err(Error::new(format!("{} classes of cells are too many", classes.len())));
    }
    let cells = classes.iter().zip('1'..='9').map(|(class, symbol)| {
        Ok((
            vec![Output::new(symbol)?],
            Fraction::from_probability(class.probability.yes),
            Fraction::from_probability(class.probability.no),
        ))
    });
    Ok(Channel::from_fractions(cells.collect::<Result<_, uptack::Error>>()?)?)
}
