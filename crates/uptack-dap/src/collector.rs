//! The analyst's side: asks for a batch, opens both shares, adds them.

use reqwest::{StatusCode, header};
use std::{path::Path, time::Duration};
use tokio::time::Instant;

pub use crate::batch::Collected;
use crate::{
    batch::plausible,
    error::{Error, Result},
    http_client,
    protocol::{
        self, Collection, CollectionJobId, CollectionReq, Decode, Interval, Query, Role, TimeInterval, Vdaf, VdafKind,
        encode,
    },
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
        task.parameters.validate()?;
        Ok(Self { vdaf: Vdaf::new(&task.parameters.vdaf)?, http: http_client::client(root)?, task })
    }

    /// A name for a collection job. Store it before [`Collector::request`]: the batch is given to
    /// the first job that gets it, and to nobody else.
    pub fn new_job() -> CollectionJobId {
        rand::random()
    }

    /// Asks for a batch. The identical request again changes nothing.
    pub async fn request(&self, job: &CollectionJobId, batch: Interval) -> Result<()> {
        let query = Query::new_time_interval(batch);
        let request = CollectionReq::<TimeInterval>::new(query, Vec::new());
        let response = self
            .http
            .put(self.url(job)?)
            .bearer_auth(self.task.token.as_str())
            .header(header::CONTENT_TYPE, CollectionReq::<TimeInterval>::MEDIA_TYPE)
            .body(encode(&request))
            .send()
            .await
            .map_err(|error| http_client::no_answer("leader", error))?;
        http_client::check("leader", response).await.map(drop)
    }

    /// The batch if it is ready; the error [`Error::is_not_ready`] if it is still being made.
    pub async fn poll(&self, job: &CollectionJobId, batch: Interval) -> Result<Collected> {
        let response = self
            .http
            .post(self.url(job)?)
            .bearer_auth(self.task.token.as_str())
            .header(header::CONTENT_LENGTH, 0)
            .send()
            .await
            .map_err(|error| http_client::no_answer("leader", error))?;
        let response = http_client::check("leader", response).await?;
        if response.status() == StatusCode::ACCEPTED {
            return Err(Error::not_ready("the batch is not ready yet"));
        }
        let bytes = http_client::body("leader", response).await?;
        let collection = Collection::<TimeInterval>::get_decoded(&bytes)
            .map_err(|_| Error::refused("the leader's answer is not a collection"))?;
        self.open(&collection, batch)
    }

    /// Asks and polls until the batch is there, for at most `patience`.
    pub async fn collect(&self, job: &CollectionJobId, batch: Interval, patience: Duration) -> Result<Collected> {
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
        let response = self
            .http
            .delete(self.url(job)?)
            .bearer_auth(self.task.token.as_str())
            .send()
            .await
            .map_err(|error| http_client::no_answer("leader", error))?;
        http_client::check("leader", response).await.map(drop)
    }

    fn url(&self, job: &CollectionJobId) -> Result<url::Url> {
        let parameters = &self.task.parameters;
        http_client::join(&parameters.leader, &format!("tasks/{}/collection_jobs/{job}", parameters.task_id))
    }

    fn open(&self, collection: &Collection<TimeInterval>, batch: Interval) -> Result<Collected> {
        let open = |role, ciphertext| {
            let keypair = &self.task.hpke_keypair;
            let task = &self.task.parameters.task_id;
            protocol::open_aggregate_share(keypair, role, task, batch, ciphertext)
                .and_then(|bytes| self.vdaf.sum_from_bytes(&bytes))
        };
        let shares = [
            open(Role::Leader, collection.leader_encrypted_aggregate_share())?,
            open(Role::Helper, collection.helper_encrypted_aggregate_share())?,
        ];
        let reports = collection.report_count();
        let start = collection.interval().start().as_seconds_since_epoch();
        let finish = start.saturating_add(collection.interval().duration().as_seconds());
        let (counts, sums) = match &self.task.parameters.noise {
            None => (self.vdaf.reveal(shares, reports)?, None),
            Some(_) => (Vec::new(), Some(self.vdaf.reveal_noisy(shares, reports)?)),
        };
        let collected = Collected { reports, counts, sums, start, finish };
        self.check(&collected)?;
        Ok(collected)
    }

    /// Valid reports cannot add up to anything else; shares of different batches do.
    fn check(&self, batch: &Collected) -> Result<()> {
        let parameters = &self.task.parameters;
        let possible = match (&batch.sums, &parameters.noise, &parameters.vdaf) {
            (Some(sums), Some(noise), _) => {
                let range = plausible(noise, batch.reports);
                sums.iter().all(|sum| range.contains(&i128::from(*sum)))
            }
            (_, _, VdafKind::Histogram { .. }) => {
                batch.counts.iter().try_fold(0u64, |sum, count| sum.checked_add(*count)) == Some(batch.reports)
            }
            (_, _, VdafKind::Bits { .. }) => batch.counts.iter().all(|count| *count <= batch.reports),
        };
        if !possible || batch.reports < parameters.min_batch_size {
            return Err(Error::refused("the aggregators' shares do not add up to a batch of this task"));
        }
        Ok(())
    }
}
