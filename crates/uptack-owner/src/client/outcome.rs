//! What became of a query, for people and programs to read.

use crate::{check::Refusal, ledger::State};

/// What became of one query for one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whose.
    pub owner: String,
    /// The query.
    pub query: String,
    /// What was done.
    pub status: Status,
    /// Why it was refused, failed, or was done before.
    pub reason: Option<String>,
}

/// What was done about a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The report was acknowledged, now or before.
    Answered,
    /// Accepted and charged; the report is sent at its moment.
    Waiting,
    /// Not answered, and nothing was spent.
    Refused,
    /// Charged, but the report did not arrive.
    Failed,
}

impl Outcome {
    pub(super) fn refused(owner: &str, query: &str, refusal: &Refusal) -> Self {
        let reason = Some(refusal.to_string());
        Self { owner: owner.to_owned(), query: query.to_owned(), status: Status::Refused, reason }
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
            Self::Failed => "failed",
        }
    }
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
