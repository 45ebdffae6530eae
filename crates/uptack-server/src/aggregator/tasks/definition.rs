//! What an aggregator is asked to serve.
//!
//! A task that a query card defines is asked for with the *signed* card, the key that results are sealed to, and for
//! the leader the hash of the collector's token: [`CardDefinition`]. Nothing else is stated, so that nothing else can be
//! stated wrongly: each aggregator computes the task's parameters from the card, and its secrets from the
//! [secret](crate::aggregator::pair_secret) of its pair. Any other DAP task is asked for with all its parameters and secrets, as an
//! [`AggregatorTask`]; an aggregator takes that only if its operator has said so.

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use std::path::Path;
use uptack_dap::{
    card_task,
    protocol::{HpkeConfig, TaskId},
    signed::{OpenedCard, SignedCard},
    task::{AggregatorRole, AggregatorTask, CollectorTask, TaskParameters},
    token::TokenHash,
};

use crate::{
    aggregator::tasks::pair_secret::PairSecret,
    error::{Error, Result},
};

/// A request to serve the task of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardDefinition {
    /// Which of the two aggregators it is for.
    pub role: AggregatorRole,
    /// The card under its signature.
    pub card: SignedCard,
    /// The key under which the result is sealed.
    pub collector_hpke_config: HpkeConfig,
    /// Leader: the hash of the token that the collector shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector_token_hash: Option<TokenHash>,
}

impl CardDefinition {
    /// The definition for one of the two aggregators, with the key and the hash of the token of a collector.
    pub fn new(role: AggregatorRole, card: SignedCard, collector: &CollectorTask) -> Self {
        let leader = role == AggregatorRole::Leader;
        Self {
            role,
            card,
            collector_hpke_config: collector.hpke_keypair.config().clone(),
            collector_token_hash: leader.then(|| collector.token.hash()),
        }
    }

    /// Computes the task: its parameters from the card, its secrets from the pair's. Checks the card's form, name and
    /// signature; whether its signer is trusted is for the caller to decide.
    pub fn resolve(&self, pair: &PairSecret) -> Result<(OpenedCard, AggregatorTask)> {
        let opened = self.card.open().map_err(|error| Error::input(format!("task: {error}")))?;
        let parameters = card_task::parameters(&opened.card)?;
        check_addresses(&parameters)?;
        let task = self.task(pair, &opened.id, parameters);
        task.validate()?;
        Ok((opened, task))
    }

    /// The task of this name, with the secrets that belong to this role.
    fn task(&self, pair: &PairSecret, id: &TaskId, parameters: TaskParameters) -> AggregatorTask {
        let token = pair.aggregator_token(id);
        let (aggregator_token, aggregator_token_hash) = match self.role {
            AggregatorRole::Leader => (Some(token), None),
            AggregatorRole::Helper => (None, Some(token.hash())),
        };
        AggregatorTask {
            role: self.role,
            verify_key: pair.verify_key(id),
            collector_hpke_config: self.collector_hpke_config.clone(),
            aggregator_token,
            aggregator_token_hash,
            collector_token_hash: self.collector_token_hash.clone(),
            card: Some(self.card.card.clone()),
            card_signature: Some(self.card.signature.clone()),
            parameters,
        }
    }
}

/// One server in both roles would hold both shares of every report.
fn check_addresses(parameters: &TaskParameters) -> Result<()> {
    if parameters.leader == parameters.helper {
        return Err(Error::input("task: the card names one server as leader and as helper"));
    }
    Ok(())
}

/// Whatever an aggregator may be asked to serve.
#[derive(Debug, Clone)]
pub enum Definition {
    /// The task of a card.
    Card(Box<CardDefinition>),
    /// Any other task, with all its parameters and secrets.
    Plain(Box<AggregatorTask>),
}

impl Definition {
    /// Parses a definition as an operator or a desk sends it.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let form: Form = from_json(text)?;
        if form.parameters.is_none() {
            return Ok(Self::Card(Box::new(from_json(text)?)));
        }
        let task: AggregatorTask = from_json(text)?;
        task.validate()?;
        Ok(Self::Plain(Box::new(task)))
    }

    /// Reads a definition from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let at = |error: &dyn std::fmt::Display| Error::input(format!("{}: {error}", path.display()));
        let text = std::fs::read(path).map_err(|error| at(&error))?;
        Self::parse(&text).map_err(|error| at(&error))
    }

    /// Which of the two aggregators it is for.
    pub fn role(&self) -> AggregatorRole {
        match self {
            Self::Card(definition) => definition.role,
            Self::Plain(task) => task.role,
        }
    }

    /// The name of the task.
    pub fn task_id(&self) -> TaskId {
        match self {
            Self::Card(definition) => card_task::task_id(&definition.card.card),
            Self::Plain(task) => task.parameters.task_id,
        }
    }
}

impl From<CardDefinition> for Definition {
    fn from(definition: CardDefinition) -> Self {
        Self::Card(Box::new(definition))
    }
}

impl From<AggregatorTask> for Definition {
    fn from(task: AggregatorTask) -> Self {
        Self::Plain(Box::new(task))
    }
}

/// Parses JSON. The library's own messages could quote a secret, so errors only give the position.
fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| {
        Error::input(format!("not a task definition (line {}, column {})", error.line(), error.column()))
    })
}

/// Enough of a definition to tell its form.
#[derive(Deserialize)]
struct Form {
    parameters: Option<IgnoredAny>,
}
