//! Sends stored reports at their moments, with no attribute to look at.

use futures_util::{StreamExt, stream};
use uptack_dap::{client::SealedReport, credential::Credential};

use super::{Client, ClientEvent, GROUP};
use crate::{
    check::Allowed,
    error::{Error, Result},
    ledger::{Due, State},
    schedule::{self, FIXED_DELAY},
};

/// The most uploads at once.
const AT_ONCE: usize = 32;

impl Client {
    /// Sends every stored report whose moment has come, and returns how many were acknowledged.
    pub async fn send_due(&self) -> Result<usize> {
        let mut acknowledged = 0;
        loop {
            let now = self.now();
            let due = self.ledger.due(now, GROUP)?;
            if due.is_empty() {
                return Ok(acknowledged);
            }
            acknowledged += self.send_group(due, now).await?;
        }
    }

    async fn send_group(&self, group: Vec<Due>, now: u64) -> Result<usize> {
        let (mut settled, mut outdated) = (Settled::default(), Vec::new());
        for (due, outcome) in self.upload(group).await? {
            match outcome {
                Ok(state) => settled.ended.push((due, state)),
                // Sealing again is put off like a first report, by a delay that nothing shortens.
                Err(Error::Network(error)) if error.is_outdated_key() => outdated.push((due, now + FIXED_DELAY)),
                Err(error) => settled.add_failed(due, error, now)?,
            }
        }
        if !outdated.is_empty() {
            self.forget_keys();
        }
        self.ledger.settle(&settled.ended)?;
        self.ledger.postpone(&settled.later)?;
        self.ledger.outdate(&outdated)?;
        Ok(settled.ended.iter().filter(|(_, state)| *state == State::Sent).count())
    }

    /// Sends the reports of a group, several at once, and returns what became of each.
    async fn upload(&self, group: Vec<Due>) -> Result<Vec<(Due, Result<State>)>> {
        let cards = &self.cards(&group)?;
        let sent = stream::iter(group).map(|due| async move {
            let outcome = match cards.get(&due.query) {
                Some(accepted) => self.send(&due, accepted).await,
                None => Ok(State::Lost),
            };
            (due, outcome)
        });
        Ok(sent.buffer_unordered(AT_ONCE).collect().await)
    }

    /// Sends stored bytes and does nothing else.
    async fn send(&self, due: &Due, accepted: &Allowed) -> Result<State> {
        let Some(stored) = self.ledger.report(due)? else { return Ok(State::Lost) };
        let writer = self.writer(accepted)?;
        let sealed = SealedReport::from_bytes(stored.bytes)?;
        let credential = stored.credential.map(Credential::from_text);
        self.config.observer.on(ClientEvent::Sent);
        writer.send_as(&sealed, credential.as_ref()).await?;
        Ok(State::Sent)
    }
}

/// The entries of a group that have ended, and those to be tried again, with the moment.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) ended: Vec<(Due, State)>,
    pub(super) later: Vec<(Due, u64)>,
}

impl Settled {
    /// Adds an entry that failed: it is tried again if a server was away, and lost if one refused. Returns an error that is
    /// not the network's.
    pub(super) fn add_failed(&mut self, due: Due, error: Error, now: u64) -> Result<()> {
        match error {
            Error::Network(error) if error.is_unreachable() => {
                self.later.push((due, schedule::retry_at(now, &error)));
            }
            Error::Network(_) => self.ended.push((due, State::Lost)),
            error => return Err(error),
        }
        Ok(())
    }
}
