//! What is claimed of a channel, view by view.

use crate::channel::{Bin, Channel};
use crate::error::Error;
use crate::probability::Probability;

/// The ε claimed for each view; none where there is no guarantee.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims {
    /// For each answer alone.
    pub answers: Vec<Option<f64>>,
    /// For the whole cell.
    pub linked: Option<f64>,
    /// For all tallies, at `delta`.
    pub release: Option<f64>,
    /// The δ of the claim for all tallies.
    pub delta: f64,
}

impl Claims {
    /// What the accounting claims for `owners` owners.
    pub fn of(channel: &Channel, _owners: u64, delta: f64) -> Result<Self, Error> {
        let answer = |(answer, outputs): (usize, &Vec<crate::Output>)| {
            local(outputs.iter().map(|&output| channel.bin_law(Bin { answer, output })))
        };
        let answers = channel.answers().iter().enumerate().map(answer).collect();
        let linked = local(channel.cells().iter().map(|cell| (cell.yes(), cell.no())));
        Ok(Self { answers, linked, release: None, delta })
    }

    pub(super) fn check(&self, channel: &Channel) -> Result<(), Error> {
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

fn local(laws: impl Iterator<Item = (Probability, Probability)>) -> Option<f64> {
    let possible = laws.filter(|(yes, no)| yes.numerator() + no.numerator() > 0);
    let loss = |(yes, no): (Probability, Probability)| (yes.numerator() as f64 / no.numerator() as f64).ln().abs();
    let epsilon = possible.map(loss).fold(0.0, f64::max);
    epsilon.is_finite().then_some(epsilon * (1.0 + 1e-12))
}
