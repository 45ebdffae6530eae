//! Decides about cards and charges for them: before any truth is looked at, and without any attribute.

use uptack_dap::signed::SignedCard;

use super::{Client, ClientEvent};
use crate::{
    check::{Accepted, Refusal},
    error::Result,
    ledger::{ChargeDecision, State},
    schedule::{self, FIXED_DELAY},
};

/// What became of one query for one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whose.
    pub owner: String,
    /// The query.
    pub query: String,
    /// The result.
    pub status: Status,
    /// Why it was refused, failed, or was done before.
    pub reason: Option<String>,
}

/// How a query ended, or where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The report was acknowledged, now or before.
    Answered,
    /// Accepted and charged; the report is sent at its moment.
    Waiting,
    /// Not answered, and nothing was spent.
    Refused,
    /// Not decided at this visit, and nothing was spent; the next visit considers it.
    Postponed,
    /// Charged, but the report did not arrive.
    Failed,
}

impl Outcome {
    pub(super) fn refused(owner: &str, query: &str, refusal: &Refusal) -> Self {
        let reason = Some(refusal.to_string());
        Self { owner: owner.to_owned(), query: query.to_owned(), status: Status::Refused, reason }
    }

    pub(super) fn postponed(owner: &str, query: &str, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self { owner: owner.to_owned(), query: query.to_owned(), status: Status::Postponed, reason }
    }

    pub(super) fn of(owner: &str, query: &str, state: State) -> Self {
        let (status, reason) = described(state);
        Self { owner: owner.to_owned(), query: query.to_owned(), status, reason }
    }

    /// The outcome of a query that an earlier visit answered, or began to answer.
    pub(super) fn known(owner: &str, query: &str, state: State) -> Self {
        let mut outcome = Self::of(owner, query, state);
        if state == State::Sent {
            outcome.reason = Some("it was answered before; an owner answers once".to_owned());
        }
        outcome
    }

    /// Whether a report is still to be sent.
    pub(super) fn is_waiting(&self) -> bool {
        self.status == Status::Waiting
    }

    /// Brings it up to date with the ledger.
    pub(super) fn update(&mut self, state: State) {
        (self.status, self.reason) = described(state);
    }
}

impl Status {
    /// The word for it in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Postponed => "postponed",
            Self::Failed => "failed",
        }
    }
}

/// The reports of one card.
#[derive(Clone, Copy)]
struct Work {
    /// Seconds until they are made, including those of the cards before it.
    to_make: u64,
    /// How many there are.
    reports: usize,
}

impl Work {
    fn too_late(self, closes: u64, now: u64) -> Refusal {
        let (left, earliest) = (closes.saturating_sub(now), FIXED_DELAY + self.to_make);
        let reports = if self.reports > 1 { format!("the {} reports", self.reports) } else { "a report".to_owned() };
        Refusal(format!(
            "the query closes in {left} seconds, too soon to make and send {reports}: sending begins {earliest} seconds \
             after acceptance, and needs time to be repeated"
        ))
    }
}

impl Client {
    /// Decides about every card for every owner, draws the moments of their reports and charges those who accept.
    ///
    /// It takes only names: no attribute has a part in the decision.
    pub fn consider(&self, owners: &[&str], cards: &[SignedCard]) -> Result<Vec<Outcome>> {
        self.consider_each(cards.iter().map(|signed| (signed, owners.to_vec())))
    }

    /// Decides about each card for its own owners.
    pub(super) fn consider_each<'a>(
        &self,
        cards: impl IntoIterator<Item = (&'a SignedCard, Vec<&'a str>)>,
    ) -> Result<Vec<Outcome>> {
        let now = self.now();
        self.ledger.expire(now)?;
        let mut outcomes = Vec::new();
        let mut to_make = 0;
        for (signed, owners) in cards {
            outcomes.extend(self.consider_card(signed, &owners, &mut to_make, now)?);
        }
        Ok(outcomes)
    }

    /// Decides about one card. `to_make` is how many seconds the reports of the cards before it take to make; if the card is
    /// accepted, its own are added.
    fn consider_card(&self, signed: &SignedCard, owners: &[&str], to_make: &mut u64, now: u64) -> Result<Vec<Outcome>> {
        let known = self.known(signed, owners)?;
        if known.len() == owners.len() {
            // Their claims were recomputed before they were charged.
            return Ok(match self.checker.allow(signed, now) {
                Ok(_) => known,
                Err(refusal) => refuse(signed, owners, &refusal),
            });
        }
        let reports = owners.len() - known.len();
        let accepted = match self.checker.check(signed, now) {
            Ok(accepted) => accepted,
            Err(refusal) => return Ok(refuse(signed, owners, &refusal)),
        };
        let work = Work { to_make: *to_make + schedule::time_to_make(reports, accepted.asked.questions()), reports };
        match self.moments(owners, &accepted, work, now) {
            Ok(moments) => {
                *to_make = work.to_make;
                self.charge(signed, &accepted, &moments, now)
            }
            Err(refusal) => self.refuse_unanswered(signed, owners, &refusal),
        }
    }

    /// The outcomes of the owners who have an entry for a card.
    fn known(&self, signed: &SignedCard, owners: &[&str]) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for owner in owners {
            let state = self.ledger.state(owner, &signed.query)?;
            outcomes.extend(state.map(|state| Outcome::known(owner, &signed.query, state)));
        }
        Ok(outcomes)
    }

    /// Refuses a card for which too little time is left. What was answered before stays answered.
    fn refuse_unanswered(&self, signed: &SignedCard, owners: &[&str], refusal: &Refusal) -> Result<Vec<Outcome>> {
        let mut outcomes = refuse(signed, owners, refusal);
        for outcome in &mut outcomes {
            if let Some(state) = self.ledger.state(&outcome.owner, &signed.query)? {
                *outcome = Outcome::known(&outcome.owner, &signed.query, state);
            }
        }
        Ok(outcomes)
    }

    /// When each owner's report will be sent; a refusal if the window closes before that.
    fn moments<'a>(
        &self,
        owners: &[&'a str],
        accepted: &Accepted,
        work: Work,
        now: u64,
    ) -> std::result::Result<Vec<(&'a str, u64)>, Refusal> {
        let closes = accepted.window.1;
        // Sending many reports takes time, and the last of them must arrive before the window closes.
        let last = closes.saturating_sub(schedule::time_to_send(work.reports));
        let draw = |owner: &&'a str| {
            self.config.observer.on(ClientEvent::Drawn);
            Some((*owner, schedule::moment(now, work.to_make, last, self.config.within)?))
        };
        owners.iter().map(draw).collect::<Option<_>>().ok_or_else(|| work.too_late(closes, now))
    }

    fn charge(
        &self,
        signed: &SignedCard,
        accepted: &Accepted,
        moments: &[(&str, u64)],
        now: u64,
    ) -> Result<Vec<Outcome>> {
        let decided = self.ledger.accept(signed, accepted, moments, &self.checker, now)?;
        let owners = moments.iter().map(|(owner, _)| *owner);
        Ok(owners.zip(decided).map(|(owner, acceptance)| outcome_of(owner, &signed.query, acceptance)).collect())
    }
}

fn outcome_of(owner: &str, query: &str, acceptance: ChargeDecision) -> Outcome {
    match acceptance {
        ChargeDecision::Refused(reason) => Outcome::refused(owner, query, &Refusal(reason)),
        ChargeDecision::Charged => Outcome::of(owner, query, State::Due),
        ChargeDecision::Known(state) => Outcome::known(owner, query, state),
    }
}

/// Refuses a card for all of its owners.
fn refuse(signed: &SignedCard, owners: &[&str], refusal: &Refusal) -> Vec<Outcome> {
    tracing::info!(query = signed.query, reason = %refusal, "refused");
    owners.iter().map(|owner| Outcome::refused(owner, &signed.query, refusal)).collect()
}

fn described(state: State) -> (Status, Option<String>) {
    match state {
        State::Due => (Status::Waiting, None),
        State::Sent => (Status::Answered, None),
        State::Lost => (Status::Failed, Some("the leader refused the report; the budget stays spent".to_owned())),
        State::Expired => {
            (Status::Failed, Some("the query closed before the report arrived; the budget stays spent".to_owned()))
        }
    }
}
