//! The owner's side: one report from one cell, and the same bytes until they are acknowledged.
//!
//! Sharding is random. So a report is made once, stored by the caller if it must outlive the
//! process, and then sent as often as needed: the leader takes identical bytes for a repetition. A
//! report that was made twice would count twice.

use rand::Rng;
use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

pub use crate::protocol::SealedReport;
use crate::{
    credential::{self, Credential},
    error::{Error, Result},
    http_client,
    protocol::{self, Endpoint, HpkeConfig, Measurement, ReportHeader, Vdaf},
    task::TaskParameters,
};

/// Makes and sends reports for one task.
#[derive(Debug)]
pub struct Client {
    parameters: TaskParameters,
    vdaf: Vdaf,
    http: reqwest::Client,
    keys: Mutex<Option<Arc<[HpkeConfig; 2]>>>,
}

impl Client {
    /// A client for a task, with the system's root certificates.
    pub fn new(parameters: TaskParameters) -> Result<Self> {
        Self::with_root(parameters, None)
    }

    /// A client that also trusts the root certificate in a PEM file.
    pub fn with_root(parameters: TaskParameters, root: Option<&Path>) -> Result<Self> {
        let vdaf = parameters.checked_vdaf()?;
        Ok(Self { vdaf, http: http_client::client(root)?, keys: Mutex::new(None), parameters })
    }

    /// Makes a report for the window that holds `time`; fetches the aggregators' keys if needed.
    pub async fn seal(&self, measurement: &Measurement, time: u64) -> Result<SealedReport> {
        let header = ReportHeader { id: rand::random(), time: self.parameters.window(time) };
        self.seal_as(measurement, header).await
    }

    /// Makes a report again under the same id and for the same window, with freshly fetched keys:
    /// after [`Error::is_outdated_key`], when the first was refused and cannot have counted.
    pub async fn reseal(&self, measurement: &Measurement, refused: &SealedReport) -> Result<SealedReport> {
        self.forget_keys();
        self.seal_as(measurement, refused.header()).await
    }

    /// Fetches the aggregators' keys now, if they are not known yet.
    pub async fn fetch_keys(&self) -> Result<()> {
        self.keys().await.map(drop)
    }

    /// Sends a report once.
    pub async fn send(&self, report: &SealedReport) -> Result<()> {
        self.send_as(report, None).await
    }

    /// Sends a report once, with the credential that the owner made for it if the leader requires enrolment.
    pub async fn send_as(&self, report: &SealedReport, credential: Option<&Credential>) -> Result<()> {
        let path = Endpoint::UPLOAD.of_task(&self.parameters.task_id);
        let url = http_client::join(&self.parameters.leader, &path)?;
        let mut request = http_client::request(&self.http, &Endpoint::UPLOAD, url).body(report.as_bytes().to_vec());
        if let Some(credential) = credential {
            request = request.header(credential::HEADER, credential.as_str());
        }
        http_client::send("leader", request).await.map(drop)
    }

    /// Sends the same bytes until they are acknowledged or refused, for at most `patience`.
    pub async fn deliver(&self, report: &SealedReport, patience: Duration) -> Result<()> {
        let end = Instant::now() + patience;
        let mut wait = Duration::from_millis(50);
        loop {
            match self.send(report).await {
                Err(error) if error.is_unreachable() && Instant::now() + wait < end => {
                    // Jitter, so that the clients of a restarted leader do not all come at once.
                    let jittered = wait.mul_f64(rand::thread_rng().gen_range(0.5..1.5));
                    let pause = jittered.max(error.retry_after().unwrap_or_default());
                    tokio::time::sleep_until((Instant::now() + pause).min(end)).await;
                    wait = (wait * 2).min(Duration::from_secs(10));
                }
                outcome => return outcome,
            }
        }
    }

    /// Makes a report and delivers it; makes it again under the same id if a key is outdated.
    pub async fn upload(&self, measurement: &Measurement, time: u64, patience: Duration) -> Result<SealedReport> {
        let report = self.seal(measurement, time).await?;
        match self.deliver(&report, patience).await {
            Err(error) if error.is_outdated_key() => {
                let report = self.reseal(measurement, &report).await?;
                self.deliver(&report, patience).await?;
                Ok(report)
            }
            outcome => outcome.map(|()| report),
        }
    }

    /// Makes sure that the keys are fetched again the next time they are needed.
    pub fn forget_keys(&self) {
        *self.known_keys() = None;
    }

    async fn seal_as(&self, measurement: &Measurement, header: ReportHeader) -> Result<SealedReport> {
        let keys = self.keys().await?;
        SealedReport::seal(measurement, header, &self.parameters.task_id, &self.vdaf, &keys)
    }

    async fn keys(&self) -> Result<Arc<[HpkeConfig; 2]>> {
        let known = self.known_keys().clone();
        if let Some(keys) = known {
            return Ok(keys);
        }
        let keys = Arc::new([
            self.fetch_key("leader", &self.parameters.leader).await?,
            self.fetch_key("helper", &self.parameters.helper).await?,
        ]);
        *self.known_keys() = Some(Arc::clone(&keys));
        Ok(keys)
    }

    fn known_keys(&self) -> MutexGuard<'_, Option<Arc<[HpkeConfig; 2]>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch_key(&self, whose: &str, base: &url::Url) -> Result<HpkeConfig> {
        let url = http_client::join(base, &Endpoint::FETCH_KEYS.of_task(&self.parameters.task_id))?;
        let response = http_client::send(whose, http_client::request(&self.http, &Endpoint::FETCH_KEYS, url)).await?;
        let bytes = http_client::body(whose, response).await?;
        let keys = protocol::keys_from_bytes(&bytes)
            .ok_or_else(|| Error::refused(format!("the {whose}'s key list does not decode")))?;
        keys.into_iter()
            .find(protocol::is_hpke_config_supported)
            .ok_or_else(|| Error::refused(format!("the {whose} has no key that we can use")))
    }
}
