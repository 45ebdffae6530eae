//! Tasks: their definitions, whether the operator admits them, and the keys and secrets that belong to them.

pub(crate) mod definition;
pub(crate) mod enrolment;
pub(crate) mod failures;
pub(crate) mod keys;
pub(crate) mod pair_secret;

use tokio::sync::{Notify, watch};
use uptack_dap::{
    protocol::{ProblemType, TaskId, Vdaf},
    signed::PublicKey,
    task::{AggregatorTask, TaskParameters},
};

use crate::{
    aggregator::{
        noise_secret::NoiseSecret,
        store::{ChangeResult, StoredTask, TaskStore},
    },
    base::problem::Problem,
    error::Result,
};
use failures::Failures;

/// A task that is being served.
pub(crate) struct ServedTask {
    /// Its number in the store.
    pub(crate) number: i64,
    pub(crate) definition: AggregatorTask,
    /// What the noise of its batches is derived from.
    pub(crate) noise_secret: NoiseSecret,
    /// The desk whose card it is; none if it was defined without one.
    pub(crate) signer: Option<PublicKey>,
    /// Whether its card requires a credential with every report.
    pub(crate) needs_credential: bool,
    pub(crate) vdaf: Vdaf,
    /// Tells the task's driver that there may be work.
    pub(crate) wake: Notify,
    /// Becomes true once, when the task is removed.
    pub(crate) removed: watch::Sender<bool>,
    /// Leader: which jobs failed at the helper, and how much it answered.
    pub(crate) failures: Failures,
}

impl ServedTask {
    pub(crate) fn new(stored: StoredTask, failures: Failures) -> Result<Self> {
        let StoredTask { number, definition, noise_secret } = stored;
        Ok(Self {
            number,
            noise_secret,
            signer: definition::signer_of(&definition),
            needs_credential: enrolment::is_required(&definition),
            vdaf: Vdaf::new(&definition.parameters.vdaf)?,
            definition,
            wake: Notify::new(),
            removed: watch::Sender::new(false),
            failures,
        })
    }

    pub(crate) fn id(&self) -> &TaskId {
        &self.definition.parameters.task_id
    }

    pub(crate) fn parameters(&self) -> &TaskParameters {
        &self.definition.parameters
    }

    pub(crate) fn problem(&self, kind: ProblemType) -> Problem {
        Problem::dap(kind, self.id())
    }

    /// The time below which no more reports are taken; refused if the task has been removed.
    pub(crate) fn floor(&self, stored: TaskStore<'_>) -> ChangeResult<u64, Problem> {
        stored.floor()?.ok_or_else(|| self.problem(ProblemType::UnrecognizedTask).into())
    }
}
