//! Task definitions, which are requests to serve a task, and the conditions under which an operator admits them.
//!
//! The definition of a query card's task consists of the *signed* card, the key that results are sealed to, and for the
//! leader the hash of the collector's token: [`CardDefinition`]. It states nothing else, so that nothing else can be
//! stated wrongly: each aggregator computes the task's parameters from the card, and its secrets from the
//! [secret](PairSecret) of its pair. The definition of any other DAP task states all its parameters and secrets, as an
//! [`AggregatorTask`]; an aggregator takes it only if its operator allows such tasks.
//!
//! [`Admission`] holds the operator's conditions: whose cards count, and how small a batch may be. Those who bring task
//! definitions, even a desk with the operator's own token, decide neither. The same check runs when a definition comes in,
//! when an aggregator starts with tasks that it took earlier, and when a definition is turned into a file for Janus.

use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use std::path::Path;
use uptack_dap::{
    card_task,
    protocol::{HpkeConfig, TaskId},
    signed::{OpenedCard, PublicKey, SignedCard},
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

/// A request to serve a task.
#[derive(Debug, Clone)]
pub enum TaskDefinition {
    /// The task of a card.
    Card(Box<CardDefinition>),
    /// Any other task, with all its parameters and secrets.
    Plain(Box<AggregatorTask>),
}

impl TaskDefinition {
    /// Parses a definition as an operator or a desk sends it.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let stated: StatedParameters = from_json(text)?;
        if stated.parameters.is_none() {
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

    /// The desk whose card it is, if it is one's and the signature holds.
    pub(crate) fn signer(&self) -> Option<PublicKey> {
        match self {
            Self::Card(definition) => definition.card.open().ok().map(|opened| opened.signer),
            Self::Plain(_) => None,
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

impl From<CardDefinition> for TaskDefinition {
    fn from(definition: CardDefinition) -> Self {
        Self::Card(Box::new(definition))
    }
}

impl From<AggregatorTask> for TaskDefinition {
    fn from(task: AggregatorTask) -> Self {
        Self::Plain(Box::new(task))
    }
}

/// An operator's conditions. The default admits nothing.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// Keys of the desks whose cards are served.
    pub desk_keys: Vec<PublicKey>,
    /// No task with a smaller minimum batch is served.
    pub smallest_batch: u64,
    /// The secret from which the verification key and the leader's token of a card's task are derived.
    pub pair_secret: Option<PairSecret>,
    /// Serve tasks that no signed card defines. Their minimum batch is then up to those who may add tasks.
    pub allow_tasks_without_card: bool,
}

impl Admission {
    /// Whether no task at all could be served.
    pub fn admits_nothing(&self) -> bool {
        !self.allow_tasks_without_card && (self.desk_keys.is_empty() || self.pair_secret.is_none())
    }

    /// Computes the task that a definition asks for, or says why it is not served.
    pub fn resolve(&self, definition: &TaskDefinition) -> Result<AggregatorTask> {
        match definition {
            TaskDefinition::Card(definition) => self.resolve_card(definition),
            TaskDefinition::Plain(task) => {
                task.validate()?;
                self.check_without_card(task)?;
                // Nobody has checked a signature that comes with parameters.
                Ok(AggregatorTask { card_signature: None, ..(**task).clone() })
            }
        }
    }

    /// Whether a task that was taken up earlier may still be served.
    pub fn check_again(&self, task: &AggregatorTask) -> Result<()> {
        let Some(signed) = signed_card(task) else { return self.check_without_card(task) };
        // The parameters were compared with the card's when the stored task was read.
        self.check_card(&signed.open()?.signer, task)
    }

    fn resolve_card(&self, definition: &CardDefinition) -> Result<AggregatorTask> {
        let Some(pair) = &self.pair_secret else {
            return Err(Error::input("task: tasks of cards cannot be served without a pair secret"));
        };
        let (opened, task) = definition.resolve(pair)?;
        self.check_card(&opened.signer, &task)?;
        Ok(task)
    }

    fn check_card(&self, signer: &PublicKey, task: &AggregatorTask) -> Result<()> {
        if !self.desk_keys.contains(signer) {
            return Err(Error::input(format!("task: the card is signed by {signer}, whose cards are not served here")));
        }
        self.check_batch(task)
    }

    fn check_without_card(&self, task: &AggregatorTask) -> Result<()> {
        if !self.allow_tasks_without_card {
            return Err(Error::input(
                "task: no signed card defines it, and this aggregator serves tasks of cards alone; \
                 a definition from a card states the card and none of the task's parameters",
            ));
        }
        self.check_batch(task)
    }

    fn check_batch(&self, task: &AggregatorTask) -> Result<()> {
        let (minimum, floor) = (task.parameters.min_batch_size, self.smallest_batch);
        if minimum < floor {
            return Err(Error::input(format!(
                "task: batches of {minimum} reports would be released, and this aggregator releases none below {floor}"
            )));
        }
        Ok(())
    }
}

/// The signed card that a task was computed from; none if it was defined without one.
fn signed_card(task: &AggregatorTask) -> Option<SignedCard> {
    let (card, signature) = (task.card.clone()?, task.card_signature.clone()?);
    Some(SignedCard { query: task.parameters.task_id.to_string(), card, signature })
}

/// The desk whose card a task was computed from.
pub(crate) fn signer_of(task: &AggregatorTask) -> Option<PublicKey> {
    signed_card(task)?.open().ok().map(|opened| opened.signer)
}

/// Parses JSON. Errors only give the position, because the library's own messages could quote a secret.
fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|error| {
        Error::input(format!("not a task definition (line {}, column {})", error.line(), error.column()))
    })
}

/// Enough of a definition to tell the two kinds apart.
#[derive(Deserialize)]
struct StatedParameters {
    parameters: Option<IgnoredAny>,
}
