//! From a truth to the cells that are sent: the only place where coins are tossed.

use uptack::{Channel, OsCoins, Output, Sampler, Truth, card::Card};
use uptack_dap::{ballot, protocol::Measurement};

use crate::{
    attributes::Attributes,
    check::{Accepted, Asked},
    error::{Error, Result},
    observer::{Event, Observer},
    predicate::{MOST_STEPS, Predicate, Subject},
};

/// Draws the cells of a card.
pub(crate) struct Tosser {
    channel: Channel,
    sampler: Sampler,
    sums: Sums,
}

/// Which part of the answers is summed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// The cells of one question.
    Cells,
    /// The outputs `1` and `0` of each question of a ballot.
    Outputs,
    /// Whether the answer to each question is `1`: all that is published if the aggregators add noise.
    Ones,
}

impl Sums {
    fn of(card: &Card) -> Self {
        if card.mechanism.noise().is_some() {
            Self::Ones
        } else if card.ballot.is_some() {
            Self::Outputs
        } else {
            Self::Cells
        }
    }
}

impl Tosser {
    pub(crate) fn new(accepted: &Accepted) -> Result<Self> {
        let card = &accepted.opened.card;
        let channel = card.checked_channel().map_err(|error| Error::Input(error.to_string()))?;
        let sampler = Sampler::new(&channel);
        Ok(Self { channel, sampler, sums: Sums::of(card) })
    }

    /// Finds every truth, and tosses coins for each, whatever it is. A person who has said nothing would count as *no*;
    /// callers never ask for such a person.
    pub(crate) fn toss(
        &self,
        accepted: &Accepted,
        attributes: &Attributes,
        observer: &Observer,
    ) -> Result<Measurement> {
        let truths = match &accepted.asked {
            Asked::Device(predicates) => evaluate(predicates, accepted, attributes, observer),
            Asked::Person(_) => vec![attributes.says(&accepted.names.query.to_string()).unwrap_or(false)],
        };
        let cells = truths.iter().map(|truth| self.draw(*truth, observer)).collect::<Result<Vec<usize>>>()?;
        Ok(self.measurement(&cells))
    }

    fn draw(&self, truth: bool, observer: &Observer) -> Result<usize> {
        observer.on(Event::Tossed);
        let drawn = self.sampler.draw(Truth::from_bool(truth), &mut OsCoins);
        drawn.map_err(Error::environment)
    }

    fn measurement(&self, cells: &[usize]) -> Measurement {
        let outputs = || cells.iter().map(|cell| self.output(*cell)).collect::<Vec<_>>();
        match self.sums {
            Sums::Cells => Measurement::Cell(cells[0]),
            Sums::Outputs => ballot::measurement(&outputs()),
            Sums::Ones => ballot::noisy_measurement(&outputs()),
        }
    }

    /// Whether a cell's first output is `1` or `0`; `None` for `⊥`.
    fn output(&self, cell: usize) -> Option<bool> {
        match self.channel.cells()[cell].outputs()[0] {
            Output::ONE => Some(true),
            Output::ZERO => Some(false),
            _ => None,
        }
    }
}

/// Evaluates every predicate, whatever the first ones say.
fn evaluate(predicates: &[Predicate], accepted: &Accepted, attributes: &Attributes, observer: &Observer) -> Vec<bool> {
    let mut left = accepted.most_yes;
    let subject = Subject::new(attributes, &accepted.opened.card.attributes);
    let most_steps = MOST_STEPS / predicates.len().max(1) as u64;
    let truth_of = |predicate: &Predicate| {
        observer.on(Event::Evaluated);
        let truth = predicate.is_true_of(&subject, most_steps);
        // Beyond what a ballot allows, true answers are given as no; the first ones are kept.
        let kept = truth && left > 0;
        left -= usize::from(kept);
        kept
    };
    predicates.iter().map(truth_of).collect()
}

/// A measurement as the ledger keeps it until the report is acknowledged.
pub(crate) fn to_bytes(measurement: &Measurement) -> Vec<u8> {
    match measurement {
        Measurement::Cell(cell) => (*cell as u64).to_be_bytes().to_vec(),
        Measurement::Bits(bits) => bits.iter().map(|bit| u8::from(*bit)).collect(),
    }
}

/// Reads what [`to_bytes`] wrote.
pub(crate) fn from_bytes(accepted: &Accepted, bytes: &[u8]) -> Option<Measurement> {
    if Sums::of(&accepted.opened.card) != Sums::Cells {
        return Some(Measurement::Bits(bytes.iter().map(|byte| *byte == 1).collect()));
    }
    Some(Measurement::Cell(u64::from_be_bytes(bytes.try_into().ok()?) as usize))
}
