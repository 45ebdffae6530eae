//! What is claimed of a channel, view by view.

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::privacy::{self, Delta};

/// The ε claimed for each view; none if there is no guarantee.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// For each answer alone.
    pub answers: Vec<Option<f64>>,
    /// For the whole cell.
    pub linked: Option<f64>,
    /// For what is published if one aggregator is honest and nobody else; none without noise.
    pub one_aggregator: Option<f64>,
    /// For all that is published, at `delta`; with noise, if one aggregator and the other owners are honest.
    pub release: Option<f64>,
    /// The δ of the claim for all that is published.
    pub delta: f64,
}

impl Claims {
    /// What the accounting claims for `owners` owners: the upper ends of its certificates.
    pub fn of(channel: &Channel, owners: u64, delta: f64) -> Result<Self> {
        let answers = (0..channel.answers().len()).map(|answer| privacy::answer_epsilon(channel, answer));
        let release = privacy::release(channel, owners)?.epsilon(Delta::new(delta)?);
        Ok(Self {
            answers: answers.collect::<Result<_>>()?,
            linked: privacy::linked_epsilon(channel),
            one_aggregator: privacy::one_aggregator(channel).map(|epsilon| epsilon.upper()),
            release: release.value().map(|epsilon| epsilon.upper()),
            delta,
        })
    }

    pub(super) fn check(&self, channel: &Channel) -> Result<()> {
        let (has, wants) = (self.answers.len(), channel.answers().len());
        if has != wants {
            return Err(Error::request(format!("claims for {has} answers, but the mechanism asks for {wants}")));
        }
        if !(0.0..=1.0).contains(&self.delta) {
            return Err(Error::request(format!("delta = {} is not between 0 and 1", self.delta)));
        }
        Ok(())
    }
}
