//! The integers of a card's mechanism.

use serde::{Deserialize, Serialize};

use super::stated::decimal;
use crate::channel::{Cell, Output};
use crate::contribution::AnyMechanism;
use crate::error::{Error, Result};
use crate::noise::NoiseLaw;
use crate::probability::Probability;

/// The integers of a card's mechanism, so that any tool can check its claims without reading the mechanism's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawChannel", into = "RawChannel")]
pub struct CardChannel {
    /// Integers are over 2 to this power.
    pub bits: u64,
    /// The probabilities.
    pub law: CardLaw,
    /// The noise that each of the two aggregators adds to every count, which is then all that is published.
    pub noise: Option<NoiseLaw>,
}

/// The probabilities of a card's mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardLaw {
    /// Those of one question.
    Cells {
        /// The outputs of each answer.
        answers: Vec<Vec<Output>>,
        /// The cells with both laws.
        cells: Vec<Cell>,
    },
    /// Those of one contribution.
    Contribution {
        /// The probability of the true possibility.
        told: Probability,
        /// That of each other one.
        other: Probability,
        /// That of none of them.
        silent: Probability,
    },
}

/// A card's channel as it is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChannel {
    #[serde(with = "decimal")]
    bits: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    answers: Option<Vec<Vec<Output>>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cells: Option<Vec<Cell>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    told: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    other: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    silent: Option<Probability>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    noise: Option<NoiseLaw>,
}

impl TryFrom<RawChannel> for CardChannel {
    type Error = Error;

    fn try_from(raw: RawChannel) -> Result<Self> {
        let law = match (raw.answers, raw.cells, raw.told, raw.other, raw.silent) {
            (Some(answers), Some(cells), None, None, None) => CardLaw::Cells { answers, cells },
            (None, None, Some(told), Some(other), Some(silent)) => CardLaw::Contribution { told, other, silent },
            _ => return Err(Error::card("a channel has `answers` and `cells`, or `told`, `other` and `silent`")),
        };
        Ok(Self { bits: raw.bits, law, noise: raw.noise })
    }
}

impl From<CardChannel> for RawChannel {
    fn from(CardChannel { bits, law, noise }: CardChannel) -> Self {
        let none = Self { bits, answers: None, cells: None, told: None, other: None, silent: None, noise };
        match law {
            CardLaw::Cells { answers, cells } => Self { answers: Some(answers), cells: Some(cells), ..none },
            CardLaw::Contribution { told, other, silent } => {
                Self { told: Some(told), other: Some(other), silent: Some(silent), ..none }
            }
        }
    }
}

impl From<&AnyMechanism> for CardChannel {
    fn from(mechanism: &AnyMechanism) -> Self {
        let law = match mechanism {
            AnyMechanism::YesNo(mechanism) => {
                let channel = mechanism.channel();
                CardLaw::Cells { answers: channel.answers().to_vec(), cells: channel.cells().to_vec() }
            }
            AnyMechanism::Contributions(contributions) => {
                let law = contributions.law();
                CardLaw::Contribution { told: law.told(), other: law.other(), silent: law.silent() }
            }
        };
        Self { bits: u64::from(Probability::BITS), law, noise: mechanism.noise().copied() }
    }
}
