//! Makes reports: the only step that looks at the truth. Nothing is sent here.

use std::collections::BTreeMap;
use uptack::card::Enrolment;
use uptack_dap::{
    client::{Client as Writer, SealedReport},
    credential::Credential,
    protocol::Measurement,
};

use super::{Client, GROUP, asking, settled::Settled};
use crate::{
    attributes::Attributes,
    check::Accepted,
    error::{Error, Result},
    ledger::{Due, State, StoredReport},
    observer::Event,
    report::{self, Tosser},
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
        for due in group {
            // No answer is made up for a person who gave none.
            let accepted = cards.get(&due.query).filter(|card| asking::has_truth(card, owners.get(&due.owner)));
            let Some(accepted) = accepted else {
                settled.ended.push((due, State::Lost));
                continue;
            };
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

    /// Makes an entry's report, or seals it again under the same id with the cell that was tossed before.
    async fn make(
        &self,
        owners: &BTreeMap<String, Attributes>,
        due: &Due,
        accepted: &Accepted,
    ) -> Result<(Due, StoredReport)> {
        let writer = self.writer(accepted)?;
        writer.fetch_keys().await?;
        self.config.observer.on(Event::KeysFetched);
        let due = self.with_delay(due, accepted);
        let (measurement, sealed) = match self.ledger.report(&due)? {
            Some(before) => self.reseal(&writer, accepted, before).await?,
            None => self.toss_and_seal(&writer, accepted, owners.get(&due.owner)).await?,
        };
        let credential = self.credential(&due.owner, accepted, &sealed).map(|shown| shown.as_str().to_owned());
        let bytes = sealed.as_bytes().to_vec();
        Ok((due, StoredReport { measurement: report::to_bytes(&measurement), bytes, credential }))
    }

    /// Evaluates, tosses and seals. An owner whose attributes are gone answers as one that has none.
    async fn toss_and_seal(
        &self,
        writer: &Writer,
        accepted: &Accepted,
        attributes: Option<&Attributes>,
    ) -> Result<(Measurement, SealedReport)> {
        let unknown = Attributes::default();
        let attributes = attributes.unwrap_or(&unknown);
        let measurement = Tosser::new(accepted)?.toss(accepted, attributes, &self.config.observer)?;
        self.config.observer.on(Event::Sealed);
        let sealed = writer.seal(&measurement, accepted.window.0).await?;
        Ok((measurement, sealed))
    }

    /// Seals what was tossed before, under the same id.
    async fn reseal(
        &self,
        writer: &Writer,
        accepted: &Accepted,
        before: StoredReport,
    ) -> Result<(Measurement, SealedReport)> {
        let measurement = report::from_bytes(accepted, &before.measurement)
            .ok_or_else(|| Error::environment("ledger: a stored report does not decode"))?;
        self.config.observer.on(Event::Sealed);
        let refused = SealedReport::from_bytes(before.bytes)?;
        let sealed = writer.reseal(&measurement, &refused).await?;
        Ok((measurement, sealed))
    }

    /// The entry with a moment that is late enough. If making the report was put off for so long that the fixed delay no
    /// longer fits, a new moment is drawn, before the truth is looked at.
    fn with_delay(&self, due: &Due, accepted: &Accepted) -> Due {
        let now = self.now();
        if due.upload >= now + FIXED_DELAY {
            return due.clone();
        }
        self.config.observer.on(Event::Drawn);
        let drawn = schedule::moment(now, 0, accepted.window.1, self.config.within);
        // If the window has no room left, the report is too late rather than too soon.
        Due { upload: drawn.unwrap_or(now + FIXED_DELAY), ..due.clone() }
    }

    /// What an enrolled owner shows with a report, if the card requires enrolment.
    fn credential(&self, owner: &str, accepted: &Accepted, report: &SealedReport) -> Option<Credential> {
        if accepted.opened.card.enrolment != Some(Enrolment::Required) {
            return None;
        }
        Some(self.config.credentials.get(owner)?.credential(&accepted.opened.id, report))
    }
}
