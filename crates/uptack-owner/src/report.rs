//! From a truth to the cells that are sent: the only place where coins are tossed.

use uptack::{Channel, OsCoins, Output, Sampler, Truth, card::Card};
use uptack_dap::{ballot, protocol::Measurement};

use crate::{
    attributes::Attributes,
    check::Accepted,
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

/// What of the answers is summed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sums {
    /// The cells of one question.
    Cells,
    /// The outputs `1` and `0` of each question of a ballot.
    Outputs,
    /// Whether the answer is `1`, of each question: all that is published where aggregators add noise.
    Ones,
}

impl Sums {
    fn of(card: &Card) -> Self {
        match (card.mechanism.noise(), &card.ballot) {
            (Some(_), _) => Self::Ones,
            (None, Some(_)) => Self::Outputs,
            (None, None) => Self::Cells,
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

    /// Evaluates every predicate, and tosses coins for every one whatever its truth.
    pub(crate) fn toss(
        &self,
        accepted: &Accepted,
        attributes: &Attributes,
        observer: &Observer,
    ) -> Result<Measurement> {
        let truths = truths(accepted, attributes, observer);
        let draw = |truth: &bool| {
            observer.on(Event::Tossed);
            let drawn = self.sampler.draw(Truth::from_bool(*truth), &mut OsCoins);
            drawn.map_err(|error| Error::Environment(error.to_string()))
        };
        let cells = truths.iter().map(draw).collect::<Result<Vec<usize>>>()?;
        Ok(self.measurement(&cells))
    }

    fn measurement(&self, cells: &[usize]) -> Measurement {
        let output = |cell: &usize| match self.channel.cells()[*cell].outputs()[0] {
            Output::ONE => Some(true),
            Output::ZERO => Some(false),
            _ => None,
        };
        let outputs = || cells.iter().map(output).collect::<Vec<_>>();
        match self.sums {
            Sums::Cells => Measurement::Cell(cells[0]),
            Sums::Outputs => ballot::measurement(&outputs()),
            Sums::Ones => ballot::noisy_measurement(&outputs()),
        }
    }
}

/// The truth of every predicate. More than a ballot allows: the first are kept and the rest are answered as no.
fn truths(accepted: &Accepted, attributes: &Attributes, observer: &Observer) -> Vec<bool> {
    let mut left = accepted.most_yes;
    let subject = Subject::new(attributes, &accepted.opened.card.attributes);
    let most_steps = MOST_STEPS / accepted.predicates.len().max(1) as u64;
    let truth = |predicate: &Predicate| {
        observer.on(Event::Evaluated);
        let kept = predicate.is_true_of(&subject, most_steps) && left > 0;
        left -= usize::from(kept);
        kept
    };
    accepted.predicates.iter().map(truth).collect()
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
