//! What is compared: the family, the baselines that a user might choose instead, and a trusted curator.

mod claims;
mod curator;
mod oracle;

use claims::Account;
pub use claims::{Certificates, Claims, ReleaseClaim};
pub(crate) use curator::IntegerLaw;
pub use curator::{Changes, Curator};
pub use oracle::{Oracle, OracleKind};
use serde::Serialize;
use uptack::privacy::{Delta, Target};
use uptack::{Channel, Fraction, Mechanism, Output};

use crate::error::{Error, Result};

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
    /// Its name.
    pub label: String,
    /// Where it comes from.
    pub kind: Kind,
    /// What it does.
    pub law: Law,
    /// How many published counts change if an owner moves.
    pub changes: Changes,
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
        Self {
            label: label.into(),
            kind: Kind::Family,
            law: Law::Mechanism(Box::new(mechanism)),
            changes: Changes::One,
        }
    }

    /// Randomized response, or another baseline that is a channel of the core.
    pub fn baseline(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self { kind: Kind::Baseline, ..Self::family(label, mechanism) }
    }

    /// A frequency oracle.
    pub fn oracle(oracle: Oracle) -> Self {
        // Its report already hides the whole place.
        Self { label: oracle.kind().to_string(), kind: Kind::Baseline, law: Law::Oracle(oracle), changes: Changes::One }
    }

    /// A trusted curator.
    pub fn curator(curator: Curator) -> Self {
        Self {
            label: format!("curator, {}", curator.name()),
            kind: Kind::Curator,
            law: Law::Curator(curator),
            changes: Changes::One,
        }
    }

    /// The same method for all stations in one ballot, in which each owner is at one of them.
    #[must_use]
    pub fn in_a_ballot(self) -> Self {
        Self { changes: Changes::Two, ..self }
    }

    /// Whether the aggregators add noise to what is published.
    pub fn is_noisy(&self) -> bool {
        matches!(&self.law, Law::Mechanism(mechanism) if mechanism.noise().is_some())
    }

    /// The channel of one station's question; none for a curator.
    pub fn channel(&self) -> Result<Option<Channel>> {
        Ok(match &self.law {
            Law::Mechanism(mechanism) => Some(mechanism.channel()),
            Law::Oracle(oracle) => Some(oracle.channel()?),
            Law::Curator(_) => None,
        })
    }

    /// The mechanism in the notation that every command accepts, if there is a channel.
    pub fn mechanism(&self) -> Result<String> {
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

    /// Fair coins that one owner tosses: 64 per choice, as many as the core's sampler reads.
    pub fn coins(&self) -> u64 {
        match &self.law {
            Law::Mechanism(_) => 64,
            Law::Oracle(oracle) => 64 * oracle.choices(),
            Law::Curator(_) => 0,
        }
    }

    /// What it gives away in every view, with this many owners.
    pub fn claims(&self, owners: u64, delta: f64) -> Result<Claims> {
        let target = Target::Delta(Delta::new(delta)?);
        Ok(match &self.law {
            Law::Mechanism(mechanism) => {
                let account = Account { channel: &mechanism.channel(), owners, target, changes: self.changes };
                Claims::Certified(Box::new(account.certificates()?))
            }
            Law::Oracle(oracle) => Claims::Local { epsilon: oracle.epsilon(), delta },
            Law::Curator(curator) => Claims::Curator { epsilon: curator.epsilon(), delta: curator.delta() },
        })
    }
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
