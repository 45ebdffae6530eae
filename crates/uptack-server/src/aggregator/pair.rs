//! Both roles in one process, for one machine.
//!
//! Each role has its own keys, its own file and its own port, and the two speak the protocol with
//! each other as two machines would. What this cannot give is the protocol's point: the operator of
//! the process can read both files, combine the shares and see every single answer. It is for
//! development, for demonstrations, and for operators who are trusted with the answers anyway.

use std::path::Path;
use uptack_dap::{
    protocol::VdafKind,
    signed::SignedCard,
    task::{AggregatorRole, CollectorTask, TaskParameters, TaskSet},
};

use crate::{
    aggregator::{Aggregator, Config, tasks::definition::CardDefinition},
    error::Result,
};

/// A leader and a helper in this process.
pub struct Pair {
    /// The leader.
    pub leader: Aggregator,
    /// The helper.
    pub helper: Aggregator,
}

impl Pair {
    /// What everybody who relies on a pair has to be told.
    pub const TRUST: &str = "Both aggregators run in one process: whoever operates it can see \
        every answer. There is no protection against the operator, only against others.";

    /// Starts both below `data`, in `data/leader` and `data/helper`; `adjust` may change each
    /// configuration before it is used. Tasks without a card are served unless that is changed:
    /// nobody but the operator can add any.
    pub async fn start(data: &Path, adjust: impl Fn(&mut Config)) -> Result<Self> {
        let configure = |role: AggregatorRole| {
            let mut config = Config::new(role, data.join(role.to_string()));
            config.admission.allow_tasks_without_card = true;
            adjust(&mut config);
            config
        };
        let helper = Aggregator::start(configure(AggregatorRole::Helper)).await?;
        // Tasks of an earlier run name the helper's address of that run; it listens here now.
        let mut leader = configure(AggregatorRole::Leader);
        leader.peer = Some(helper.url());
        let leader = Aggregator::start(leader).await?;
        tracing::warn!("{}", Self::TRUST);
        Ok(Self { leader, helper })
    }

    /// Parameters of a task that this pair serves.
    pub fn parameters(&self, vdaf: VdafKind, time_precision: u64, min_batch_size: u64) -> TaskParameters {
        TaskParameters::new(self.leader.url(), self.helper.url(), vdaf, time_precision, min_batch_size)
    }

    /// Adds a task to both, to the helper first: it must know the task when the leader calls.
    pub async fn add_task(&self, task: &TaskSet) -> Result<()> {
        self.helper.add_task(task.helper.clone()).await?;
        self.leader.add_task(task.leader.clone()).await
    }

    /// Adds the task of a card to both.
    pub async fn add_card(&self, card: &SignedCard, collector: &CollectorTask) -> Result<()> {
        for (aggregator, role) in [(&self.helper, AggregatorRole::Helper), (&self.leader, AggregatorRole::Leader)] {
            aggregator.add_task(CardDefinition::new(role, card.clone(), collector)).await?;
        }
        Ok(())
    }

    /// One of the two.
    pub(crate) fn aggregator(&self, role: AggregatorRole) -> &Aggregator {
        match role {
            AggregatorRole::Leader => &self.leader,
            AggregatorRole::Helper => &self.helper,
        }
    }

    /// Stops both in order.
    pub async fn shutdown(self) {
        self.leader.shutdown().await;
        self.helper.shutdown().await;
    }
}
