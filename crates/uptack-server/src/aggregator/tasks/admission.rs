//! Which tasks an operator lets an aggregator serve.
//!
//! The operator decides whose cards count, and how small a batch may be; those who bring task definitions, even a desk
//! with the operator's own token, decide neither. The same check runs when a definition comes in, when an aggregator
//! starts with tasks that it took earlier, and when a definition is turned into a file for Janus.

use uptack_dap::{
    signed::{PublicKey, SignedCard},
    task::AggregatorTask,
};

use crate::{
    aggregator::{
        tasks::definition::{CardDefinition, Definition},
        tasks::pair_secret::PairSecret,
    },
    error::{Error, Result},
};

/// An operator's conditions. The default admits nothing.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// Keys of the desks whose cards are served.
    pub desk_keys: Vec<PublicKey>,
    /// No task with a smaller minimum batch is served.
    pub smallest_batch: u64,
    /// What the verification key and the leader's token of a card's task are derived from.
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
    pub fn resolve(&self, definition: &Definition) -> Result<AggregatorTask> {
        match definition {
            Definition::Card(definition) => self.resolve_card(definition),
            Definition::Plain(task) => {
                task.validate()?;
                self.check_without_card(task)?;
                // Nobody has checked a signature that comes with parameters.
                Ok(AggregatorTask { card_signature: None, ..(**task).clone() })
            }
        }
    }

    /// Whether a task that was taken up earlier may still be served.
    pub fn check_again(&self, task: &AggregatorTask) -> Result<()> {
        let (Some(card), Some(signature)) = (&task.card, &task.card_signature) else {
            return self.check_without_card(task);
        };
        let signed =
            SignedCard { query: task.parameters.task_id.to_string(), card: card.clone(), signature: signature.clone() };
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
