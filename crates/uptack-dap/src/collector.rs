//! The analyst's side: asks for a batch, opens both shares, adds them.

use reqwest::{RequestBuilder, StatusCode, header};
use std::{path::Path, time::Duration};
use tokio::time::Instant;

pub use crate::release::Collected;
use crate::{
    error::{Error, Result},
    http_client,
    protocol::{
        self, AggregatorRole, BatchInterval, CollectionAnswer, CollectionJobId, CollectionRequest, Endpoint,
        SealedShare, Sum, Vdaf, VdafKind,
    },
    release::plausible,
    task::CollectorTask,
};

/// Collects the batches of one task.
#[derive(Debug)]
pub struct Collector {
    task: CollectorTask,
    vdaf: Vdaf,
    http: reqwest::Client,
}

impl Collector {
    /// A collector for a task, with the system's root certificates.
    pub fn new(task: CollectorTask) -> Result<Self> {
        Self::with_root(task, None)
    }

    /// A collector that also trusts the root certificate in a PEM file.
    pub fn with_root(task: CollectorTask, root: Option<&Path>) -> Result<Self> {
        let vdaf = task.parameters.checked_vdaf()?;
        Ok(Self { vdaf, http: http_client::client(root)?, task })
    }

    /// A name for a collection job. Store it before [`Collector::request`]: the batch is given to
    /// the first job that asks for it, and to no other.
    pub fn new_job() -> CollectionJobId {
        rand::random()
    }

    /// Asks for a batch. Repeating the same request changes nothing.
    pub async fn request(&self, job: &CollectionJobId, batch: BatchInterval) -> Result<()> {
        let body = CollectionRequest { interval: batch }.to_bytes();
        http_client::send("leader", self.call(Endpoint::START_COLLECTION, job)?.body(body)).await.map(drop)
    }

    /// The batch if it is ready; the error [`Error::is_not_ready`] if it is still being made.
    pub async fn poll(&self, job: &CollectionJobId, batch: BatchInterval) -> Result<Collected> {
        let post = self.call(Endpoint::POLL_COLLECTION, job)?.header(header::CONTENT_LENGTH, 0);
        let response = http_client::send("leader", post).await?;
        if response.status() == StatusCode::ACCEPTED {
            return Err(Error::not_ready("the batch is not ready yet"));
        }
        let bytes = http_client::body("leader", response).await?;
        let answer = CollectionAnswer::from_bytes(&bytes)
            .ok_or_else(|| Error::refused("the leader's answer is not a collection"))?;
        self.open(&answer, batch)
    }

    /// Asks and polls until the batch is there, for at most `patience`.
    pub async fn collect(&self, job: &CollectionJobId, batch: BatchInterval, patience: Duration) -> Result<Collected> {
        let end = Instant::now() + patience;
        let mut requested = false;
        let mut wait = Duration::from_millis(50);
        loop {
            let outcome = if requested {
                self.poll(job, batch).await
            } else {
                self.request(job, batch).await.and_then(|()| {
                    requested = true;
                    Err(Error::not_ready("the batch is not ready yet"))
                })
            };
            match outcome {
                Err(error) if (error.is_not_ready() || error.is_unreachable()) && Instant::now() + wait < end => {
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(Duration::from_secs(2));
                }
                outcome => return outcome,
            }
        }
    }

    /// Has the leader forget a job and its result. The batch is not given out again.
    pub async fn delete(&self, job: &CollectionJobId) -> Result<()> {
        http_client::send("leader", self.call(Endpoint::DELETE_COLLECTION, job)?).await.map(drop)
    }

    /// A request about a job, with the collector's token.
    fn call(&self, endpoint: Endpoint, job: &CollectionJobId) -> Result<RequestBuilder> {
        let parameters = &self.task.parameters;
        let url = http_client::join(&parameters.leader, &endpoint.of_job(&parameters.task_id, job))?;
        Ok(http_client::request(&self.http, &endpoint, url).bearer_auth(self.task.token.as_str()))
    }

    fn open(&self, answer: &CollectionAnswer, batch: BatchInterval) -> Result<Collected> {
        let shares = [
            self.open_share(AggregatorRole::Leader, batch, &answer.leader_share)?,
            self.open_share(AggregatorRole::Helper, batch, &answer.helper_share)?,
        ];
        let (reports, start, finish) = (answer.reports, answer.interval.start(), answer.interval.finish());
        let (counts, sums) = self.reveal(shares, reports)?;
        let collected = Collected { reports, counts, sums, start, finish };
        if !self.is_possible(&collected) || reports < self.task.parameters.min_batch_size {
            return Err(Error::refused("the aggregators' shares do not add up to a batch of this task"));
        }
        Ok(collected)
    }

    /// The counts, or the sums with noise.
    fn reveal(&self, shares: [Sum; 2], reports: u64) -> Result<(Vec<u64>, Option<Vec<i64>>)> {
        match self.task.parameters.noise {
            None => Ok((self.vdaf.reveal(shares, reports)?, None)),
            Some(_) => Ok((Vec::new(), Some(self.vdaf.reveal_noisy(shares, reports)?))),
        }
    }

    fn open_share(&self, sender: AggregatorRole, batch: BatchInterval, share: &SealedShare) -> Result<Sum> {
        let task = &self.task.parameters.task_id;
        protocol::open_sum(&self.task.hpke_keypair, sender, task, batch, &self.vdaf, share)
    }

    /// Whether valid reports can add up to these counts or sums; those of shares from different batches rarely can.
    fn is_possible(&self, batch: &Collected) -> bool {
        let parameters = &self.task.parameters;
        match (&batch.sums, &parameters.noise, &parameters.vdaf) {
            (Some(sums), Some(noise), _) => {
                let range = plausible(noise, batch.reports);
                sums.iter().all(|sum| range.contains(&i128::from(*sum)))
            }
            (_, _, VdafKind::Histogram { .. }) => {
                batch.counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count)) == Some(batch.reports)
            }
            (_, _, VdafKind::Bits { .. }) => batch.counts.iter().all(|count| *count <= batch.reports),
        }
    }
}
