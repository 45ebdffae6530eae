//! Makes reports: the only step that looks at a truth, and the only place where coins are tossed for it. Nothing is sent here.

use std::collections::{BTreeMap, HashSet};
use uptack::{
    Channel, OsCoins, Output, Sampler, Truth,
    card::{Card, CardQuestion, CardSeries, Enrolment},
    contribution::{AnyMechanism, Contributions, Toss},
};
use uptack_dap::{
    ballot,
    client::{Client as Writer, SealedReport},
    credential::Credential,
    protocol::Measurement,
};

use super::{Client, ClientEvent, GROUP, Observer, asking, sending::Settled};
use crate::{
    attributes::Attributes,
    check::{Allowed, Asked},
    error::{Error, Result},
    ledger::{Due, SeriesToss, State, StoredReport},
    predicate::{MOST_STEPS, Predicate, Subject},
    schedule::{self, FIXED_DELAY},
};

/// The most entries that are found at once, and held in memory.
const MOST_FOUND: usize = 100_000;

impl Client {
    /// Makes and stores the report of every entry that has none: fetches both keys, then at once evaluates, tosses and
    /// seals. Returns how many were made; nothing is sent.
    pub async fn prepare(&self, owners: &BTreeMap<String, Attributes>) -> Result<usize> {
        let mut made = 0;
        loop {
            let now = self.now();
            // Finding a few takes as long as finding all of them, so it is done once for many groups.
            let entries = self.ledger.unprepared(now, MOST_FOUND)?;
            if entries.is_empty() {
                break;
            }
            for group in entries.chunks(GROUP) {
                made += self.prepare_group(owners, group.to_vec(), self.now()).await?;
            }
        }
        if made > 0 {
            // A device that was slower than the delay allows for shows a multiple of the delay, not how slow it was.
            self.ledger.realign(self.now(), FIXED_DELAY)?;
        }
        Ok(made)
    }

    async fn prepare_group(&self, owners: &BTreeMap<String, Attributes>, group: Vec<Due>, now: u64) -> Result<usize> {
        let (mut made, mut settled) = (Vec::new(), Settled::default());
        let cards = self.cards(&group)?;
        let mut charges = HashSet::new();
        for due in group {
            // What a report used of a series' contributions is stored with it: two reports of a series are not made together.
            if cards.get(&due.query).is_some_and(|card| !charges.insert((due.owner.clone(), card.names.charge))) {
                continue;
            }
            // No answer is made up for a person who gave none.
            let accepted = cards.get(&due.query).filter(|card| asking::has_truth(card, owners.get(&due.owner)));
            let Some(accepted) = accepted else {
                settled.ended.push((due, State::Lost));
                continue;
            };
            if self.has_lost_coins(&due, accepted)? {
                settled.ended.push((due, State::Lost));
                continue;
            }
            match self.make(owners, &due, accepted).await {
                Ok(report) => made.push(report),
                // Without the aggregators' keys nothing can be made; nothing was tossed either.
                Err(error) => settled.add_failed(due, error, now)?,
            }
        }
        self.ledger.store(&made)?;
        self.ledger.settle(&settled.ended)?;
        self.ledger.postpone_preparing(&settled.later)?;
        Ok(made.len())
    }

    /// Whether the coins of a series were deleted because it seemed to have ended: the clock was wrong, and nothing is tossed twice.
    fn has_lost_coins(&self, due: &Due, accepted: &Allowed) -> Result<bool> {
        let tossed = self.ledger.toss(&due.owner, &accepted.names.charge.to_string())?;
        Ok(tossed.is_some_and(|tossed| tossed.coins.is_empty()) && self.ledger.report(due)?.is_none())
    }

    /// Makes an entry's report, or seals it again under the same id with the cell that was tossed before.
    async fn make(
        &self,
        owners: &BTreeMap<String, Attributes>,
        due: &Due,
        accepted: &Allowed,
    ) -> Result<(Due, StoredReport)> {
        let writer = self.writer(accepted)?;
        writer.fetch_keys().await?;
        self.config.observer.on(ClientEvent::KeysFetched);
        let due = self.with_delay(due, accepted);
        let (measurement, toss, sealed) = match self.ledger.report(&due)? {
            Some(before) => self.reseal(&writer, accepted, before).await?,
            None => self.toss_and_seal(&writer, accepted, &due.owner, owners.get(&due.owner)).await?,
        };
        let credential = self.credential(&due.owner, accepted, &sealed).map(|shown| shown.as_str().to_owned());
        let bytes = sealed.as_bytes().to_vec();
        Ok((due, StoredReport { measurement: to_bytes(&measurement), bytes, credential, toss }))
    }

    /// Evaluates, tosses and seals. An owner whose attributes are gone answers as one that has none.
    async fn toss_and_seal(
        &self,
        writer: &Writer,
        accepted: &Allowed,
        owner: &str,
        attributes: Option<&Attributes>,
    ) -> Result<(Measurement, Option<SeriesToss>, SealedReport)> {
        let unknown = Attributes::default();
        let truths = truths(accepted, attributes.unwrap_or(&unknown), &self.config.observer);
        let (measurement, toss) = match &accepted.opened.card.mechanism {
            AnyMechanism::YesNo(_) => (Randomizer::new(accepted)?.randomize(&truths, &self.config.observer)?, None),
            AnyMechanism::Contributions(contributions) => {
                let mut toss = self.toss(accepted, contributions, owner)?;
                let measurement = contribute(accepted, contributions, &truths, &mut toss)?;
                (measurement, accepted.opened.card.series.is_some().then_some(toss))
            }
        };
        self.config.observer.on(ClientEvent::Sealed);
        let sealed = writer.seal(&measurement, accepted.window.0).await?;
        Ok((measurement, toss, sealed))
    }

    /// The coins of an owner for everything that a card asks: those that an earlier report of the series was made with, or new ones.
    fn toss(&self, accepted: &Allowed, contributions: &Contributions, owner: &str) -> Result<SeriesToss> {
        let charge = accepted.names.charge.to_string();
        if let Some(tossed) = self.ledger.toss(owner, &charge)? {
            return Ok(tossed);
        }
        self.config.observer.on(ClientEvent::Tossed);
        let toss = Toss::draw(contributions, &mut OsCoins).map_err(Error::environment)?;
        let ends = accepted.opened.card.series.as_ref().and_then(CardSeries::ends).unwrap_or(accepted.window.1);
        Ok(SeriesToss { charge, coins: toss.to_bytes(), used: 0, ends })
    }

    /// Seals the stored cell again, under the same id.
    async fn reseal(
        &self,
        writer: &Writer,
        accepted: &Allowed,
        before: StoredReport,
    ) -> Result<(Measurement, Option<SeriesToss>, SealedReport)> {
        let measurement = from_bytes(accepted, &before.measurement)
            .ok_or_else(|| Error::environment("ledger: a stored report does not decode"))?;
        self.config.observer.on(ClientEvent::Sealed);
        let refused = SealedReport::from_bytes(before.bytes)?;
        let sealed = writer.reseal(&measurement, &refused).await?;
        Ok((measurement, None, sealed))
    }

    /// The entry with a moment that is late enough. If making the report was put off for so long that the fixed delay no
    /// longer fits, a new moment is drawn, before the truth is looked at.
    fn with_delay(&self, due: &Due, accepted: &Allowed) -> Due {
        let now = self.now();
        if due.upload >= now + FIXED_DELAY {
            return due.clone();
        }
        self.config.observer.on(ClientEvent::Drawn);
        let drawn = schedule::moment(now, 0, accepted.window.1, self.config.within);
        // If the window has no room left, the report is too late rather than too soon.
        Due { upload: drawn.unwrap_or(now + FIXED_DELAY), ..due.clone() }
    }

    /// What an enrolled owner shows with a report, if the card requires enrolment.
    fn credential(&self, owner: &str, accepted: &Allowed, report: &SealedReport) -> Option<Credential> {
        if accepted.opened.card.enrolment != Some(Enrolment::Required) {
            return None;
        }
        Some(self.config.credentials.get(owner)?.credential(&accepted.opened.id, report))
    }
}

/// Draws the cells of a card.
struct Randomizer {
    channel: Channel,
    sampler: Sampler,
    form: ReportForm,
}

/// Which part of the answers is summed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportForm {
    /// The cells of one question.
    Cells,
    /// The outputs `1` and `0` of each question of a ballot.
    Outputs,
    /// Whether the answer to each question is `1`: all that is published if the aggregators add noise.
    Ones,
}

impl ReportForm {
    fn of(card: &Card) -> Self {
        if card.mechanism.noise().is_some() {
            return Self::Ones;
        }
        match card.asked() {
            CardQuestion::Ballot(_) => Self::Outputs,
            CardQuestion::Person(_) | CardQuestion::Predicate(_) => Self::Cells,
        }
    }
}

impl Randomizer {
    fn new(accepted: &Allowed) -> Result<Self> {
        let card = &accepted.opened.card;
        let channel = card.checked_channel().map_err(|error| Error::Input(error.to_string()))?;
        let sampler = Sampler::new(&channel);
        Ok(Self { channel, sampler, form: ReportForm::of(card) })
    }

    /// Tosses coins for each truth.
    fn randomize(&self, truths: &[Truth], observer: &Observer) -> Result<Measurement> {
        let cells = truths.iter().map(|truth| self.draw(*truth, observer)).collect::<Result<Vec<usize>>>()?;
        Ok(self.measurement(&cells))
    }

    fn draw(&self, truth: Truth, observer: &Observer) -> Result<usize> {
        observer.on(ClientEvent::Tossed);
        let drawn = self.sampler.draw(truth, &mut OsCoins);
        drawn.map_err(Error::environment)
    }

    fn measurement(&self, cells: &[usize]) -> Measurement {
        let outputs = || cells.iter().map(|cell| self.output(*cell)).collect::<Vec<_>>();
        match self.form {
            ReportForm::Cells => Measurement::Cell(cells[0]),
            ReportForm::Outputs => ballot::measurement(&outputs()),
            ReportForm::Ones => ballot::noisy_measurement(&outputs()),
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

/// The report of contributions: the bits of this card's counts among everything that its series asks.
fn contribute(
    accepted: &Allowed,
    contributions: &Contributions,
    truths: &[Truth],
    tossed: &mut SeriesToss,
) -> Result<Measurement> {
    let toss = Toss::from_bytes(contributions, &tossed.coins).map_err(Error::environment)?;
    let first = (accepted.names.number - 1) * truths.len() as u64;
    Ok(Measurement::Bits(toss.report(first as usize, truths, &mut tossed.used)))
}

/// Finds every truth. A person who has not answered would count as *no*; callers never ask for such a person.
fn truths(accepted: &Allowed, attributes: &Attributes, observer: &Observer) -> Vec<Truth> {
    match &accepted.asked {
        Asked::Device(predicates) => evaluate(predicates, accepted, attributes, observer),
        Asked::Person(_) => vec![attributes.answer(&accepted.names.query.to_string()).unwrap_or(Truth::No)],
    }
}

/// Evaluates every predicate, without short-circuiting.
fn evaluate(predicates: &[Predicate], accepted: &Allowed, attributes: &Attributes, observer: &Observer) -> Vec<Truth> {
    let mut left = accepted.most_yes;
    let subject = Subject::new(attributes, &accepted.opened.card.attributes);
    let most_steps = MOST_STEPS / predicates.len().max(1) as u64;
    let truth_of = |predicate: &Predicate| {
        observer.on(ClientEvent::Evaluated);
        // A ballot keeps the first true answers, as many as it allows; the others are given as no.
        predicate.truth(&subject, most_steps).up_to(&mut left)
    };
    predicates.iter().map(truth_of).collect()
}

/// A measurement as the ledger keeps it until the report is acknowledged.
fn to_bytes(measurement: &Measurement) -> Vec<u8> {
    match measurement {
        Measurement::Cell(cell) => (*cell as u64).to_be_bytes().to_vec(),
        Measurement::Bits(bits) => bits.iter().map(|bit| u8::from(*bit)).collect(),
    }
}

/// Reads what [`to_bytes`] wrote.
fn from_bytes(accepted: &Allowed, bytes: &[u8]) -> Option<Measurement> {
    if ReportForm::of(&accepted.opened.card) != ReportForm::Cells {
        return Some(Measurement::Bits(bytes.iter().map(|byte| *byte == 1).collect()));
    }
    Some(Measurement::Cell(u64::from_be_bytes(bytes.try_into().ok()?) as usize))
}
