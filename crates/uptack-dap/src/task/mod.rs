//! Task definitions: what each party of one task has to know, and the files that hold it.
//!
//! A task has four readers. The *client's* part is public; the *leader*, the *helper* and the
//! *collector* each get secrets of their own, and no file holds more than its reader needs: the
//! leader has the token it shows to the helper, the helper only its hash; the collector alone has
//! the key that opens the result.

pub mod card_task;
mod files;
#[cfg(feature = "janus")]
mod janus;

pub use files::{read, write};
#[cfg(feature = "janus")]
pub use janus::{Software, write_for_janus};

pub use crate::protocol::AggregatorRole;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rand::{RngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use std::fmt;
use uptack::NoiseLaw;
use url::Url;

use crate::{
    address,
    error::{Error, Result},
    protocol::{self, BatchInterval, HpkeConfig, HpkeKeypair, TaskId, Vdaf, VdafKind, VerifyKey},
    token::{Token, TokenHash},
};

/// How many seconds a batch that nobody collects is kept; a desk waits no longer for aggregators that are away.
pub const RETENTION: u64 = 14 * 24 * 3600;

/// What everybody may know of a task: all that a client needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskParameters {
    /// Names the task; base64url in files.
    pub task_id: TaskId,
    /// Base address of the leader.
    #[serde(deserialize_with = "address::deserialize")]
    pub leader: Url,
    /// Base address of the helper.
    #[serde(deserialize_with = "address::deserialize")]
    pub helper: Url,
    /// The sum that is computed.
    pub vdaf: VdafKind,
    /// Report times are rounded down to multiples of this many seconds, and batches are made of
    /// such windows.
    pub time_precision: u64,
    /// Fewer reports than this are never released.
    pub min_batch_size: u64,
    /// Reports of this second or later are refused.
    #[serde(default)]
    pub task_expiration: Option<u64>,
    /// Reports older than this many seconds are refused, and what is kept of them is deleted.
    #[serde(default)]
    pub report_expiry_age: Option<u64>,
    /// Reports from further in the future than this many seconds are refused.
    #[serde(default = "default_clock_skew")]
    pub tolerable_clock_skew: u64,
    /// What each aggregator adds to each sum of a batch, once, before its share leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseLaw>,
}

impl TaskParameters {
    /// A task with a random name, expiry after two weeks and a minute of tolerated clock skew.
    pub fn new(leader: Url, helper: Url, vdaf: VdafKind, time_precision: u64, min_batch_size: u64) -> Self {
        Self {
            task_id: rand::random(),
            leader,
            helper,
            vdaf,
            time_precision,
            min_batch_size,
            task_expiration: None,
            report_expiry_age: Some(RETENTION),
            tolerable_clock_skew: default_clock_skew(),
            noise: None,
        }
    }

    /// Checks what the types do not.
    pub fn validate(&self) -> Result<()> {
        Vdaf::new(&self.vdaf)?;
        let problem = if self.time_precision == 0 || self.time_precision > MAXIMUM_SECONDS {
            Some("time_precision must be at least one second and less than a century")
        } else if self.min_batch_size == 0 || self.min_batch_size > i64::MAX as u64 {
            Some("min_batch_size must be at least 1")
        } else if self.tolerable_clock_skew > MAXIMUM_SECONDS {
            Some("tolerable_clock_skew must be less than a century")
        } else if self.report_expiry_age.is_some_and(|age| age == 0 || age > MAXIMUM_SECONDS) {
            Some("report_expiry_age must be at least one second and less than a century")
        } else if self.report_expiry_age.is_some_and(|age| age < self.time_precision) {
            // Reports carry the start of their window: they would be too old before it ends.
            Some("report_expiry_age must not be shorter than time_precision")
        } else if self.leader.cannot_be_a_base() || self.helper.cannot_be_a_base() {
            Some("leader and helper must be http or https addresses")
        } else if self.noise.is_some() && !matches!(self.vdaf, VdafKind::Bits { .. }) {
            Some("noise is added to sums of bits, not to the cells of a histogram")
        } else {
            None
        };
        problem.map_or(Ok(()), |text| Err(Error::input(format!("task: {text}"))))
    }

    /// The sum that the task computes, if the parameters are valid.
    #[cfg(feature = "network")]
    pub(crate) fn checked_vdaf(&self) -> Result<Vdaf> {
        self.validate()?;
        Vdaf::new(&self.vdaf)
    }

    /// The start of the window that `time` falls into.
    pub fn window(&self, time: u64) -> u64 {
        time - time % self.time_precision
    }

    /// A batch of `windows` windows from the one that holds `time`.
    pub fn batch(&self, time: u64, windows: u64) -> Result<BatchInterval> {
        let (start, length) = (self.window(time), windows.saturating_mul(self.time_precision));
        let interval = start.checked_add(length).and_then(|finish| BatchInterval::new(start, finish));
        interval.ok_or_else(|| Error::input("the batch would end after the largest time that can be represented"))
    }
}

/// One aggregator's view of a task.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregatorTask {
    /// What everybody may know.
    pub parameters: TaskParameters,
    /// This aggregator's part in the task.
    pub role: AggregatorRole,
    /// The key under which both aggregators verify reports.
    #[serde(with = "verify_key_text")]
    pub verify_key: VerifyKey,
    /// The key under which the result is sealed.
    pub collector_hpke_config: HpkeConfig,
    /// Leader: the token it shows to the helper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregator_token: Option<Token>,
    /// Helper: the hash of the token that the leader shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregator_token_hash: Option<TokenHash>,
    /// Leader: the hash of the token that the collector shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collector_token_hash: Option<TokenHash>,
    /// The canonical text of the query card that this task serves. The parameters must be those that the card
    /// defines: an aggregator that has the card enforces its minimum batch, whatever anybody else says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// The desk's signature over the card, if the task was computed from a signed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_signature: Option<String>,
}

impl AggregatorTask {
    /// Checks that the role has what it needs and no more.
    pub fn validate(&self) -> Result<()> {
        self.parameters.validate()?;
        if let Some(card) = &self.card {
            card_task::check(card, &self.parameters)?;
        }
        if !protocol::is_hpke_config_supported(&self.collector_hpke_config) {
            return Err(Error::input("task: the collector's key uses an algorithm that is not supported"));
        }
        let (needed, is_complete) = match self.role {
            AggregatorRole::Leader => (
                "aggregator_token and collector_token_hash",
                self.aggregator_token.is_some() && self.collector_token_hash.is_some(),
            ),
            AggregatorRole::Helper => ("aggregator_token_hash", self.aggregator_token_hash.is_some()),
        };
        if !is_complete {
            return Err(Error::input(format!("task: a {} needs {needed}", self.role)));
        }
        Ok(())
    }
}

impl fmt::Debug for AggregatorTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AggregatorTask")
            .field("task_id", &self.parameters.task_id.to_string())
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// The collector's view of a task.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectorTask {
    /// What everybody may know.
    pub parameters: TaskParameters,
    /// The token it shows to the leader.
    pub token: Token,
    /// The key that opens the result.
    pub hpke_keypair: HpkeKeypair,
}

impl CollectorTask {
    /// Draws the collector's secrets from the operating system's randomness.
    pub fn generate(parameters: TaskParameters) -> Self {
        Self { parameters, token: Token::generate(), hpke_keypair: protocol::generate_keypair(1) }
    }
}

impl fmt::Debug for CollectorTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CollectorTask")
            .field("task_id", &self.parameters.task_id.to_string())
            .finish_non_exhaustive()
    }
}

/// One task as its four readers see it.
#[derive(Debug, Clone)]
pub struct TaskSet {
    /// The leader's view.
    pub leader: AggregatorTask,
    /// The helper's view.
    pub helper: AggregatorTask,
    /// The collector's view.
    pub collector: CollectorTask,
}

impl TaskSet {
    /// Draws the secrets of a task from the operating system's randomness.
    pub fn generate(parameters: TaskParameters) -> Result<Self> {
        let CollectorTask { parameters, token, hpke_keypair } = CollectorTask::generate(parameters);
        Self::with_collector(parameters, token, hpke_keypair)
    }

    /// Like [`TaskSet::generate`], for a collector that already has its token and key.
    pub fn with_collector(
        mut parameters: TaskParameters,
        collector_token: Token,
        hpke_keypair: HpkeKeypair,
    ) -> Result<Self> {
        for address in [&mut parameters.leader, &mut parameters.helper] {
            address::make_base(address);
        }
        parameters.validate()?;
        let mut verify_key = VerifyKey::default();
        OsRng.fill_bytes(&mut verify_key);
        let aggregator_token = Token::generate();
        let leader = AggregatorTask {
            parameters: parameters.clone(),
            role: AggregatorRole::Leader,
            verify_key,
            collector_hpke_config: hpke_keypair.config().clone(),
            aggregator_token: Some(aggregator_token.clone()),
            aggregator_token_hash: None,
            collector_token_hash: Some(collector_token.hash()),
            card: None,
            card_signature: None,
        };
        let helper = AggregatorTask {
            role: AggregatorRole::Helper,
            aggregator_token: None,
            aggregator_token_hash: Some(aggregator_token.hash()),
            collector_token_hash: None,
            ..leader.clone()
        };
        let collector = CollectorTask { parameters, token: collector_token, hpke_keypair };
        Ok(Self { leader, helper, collector })
    }

    /// Gives both aggregators the card, so that each can check the task against it. Without the desk's signature it still
    /// counts as a task without a card.
    pub fn with_card(mut self, canonical: &str) -> Result<Self> {
        for task in [&mut self.leader, &mut self.helper] {
            task.card = Some(canonical.to_owned());
            task.validate()?;
        }
        Ok(self)
    }

    /// The public part.
    pub fn parameters(&self) -> &TaskParameters {
        &self.collector.parameters
    }
}

/// Parses a task as an aggregator keeps it.
pub fn parse_aggregator_task(text: &[u8]) -> Result<AggregatorTask> {
    let task: AggregatorTask = serde_json::from_slice(text).map_err(|error| {
        Error::input(format!("not a task definition (line {}, column {})", error.line(), error.column()))
    })?;
    task.validate()?;
    Ok(task)
}

/// About a century: sums of two such numbers and a time stay far inside 63 bits.
const MAXIMUM_SECONDS: u64 = 100 * 366 * 24 * 3600;

fn default_clock_skew() -> u64 {
    60
}

mod verify_key_text {
    use super::{Engine, URL_SAFE_NO_PAD, VerifyKey};
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(key: &VerifyKey, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&URL_SAFE_NO_PAD.encode(key))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<VerifyKey, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        VerifyKey::try_from(bytes).map_err(|_| D::Error::custom("a verify key has 16 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> TaskParameters {
        TaskParameters::new(
            "http://127.0.0.1:1/leader".parse().unwrap(),
            "http://127.0.0.1:2/".parse().unwrap(),
            VdafKind::histogram(3),
            300,
            10,
        )
    }

    /// Tasks from before there was noise, as they stand in files and stores, read and write as they did.
    #[test]
    fn only_a_task_with_noise_says_so() {
        let mut task = sample();
        let before = serde_json::to_string(&task).unwrap();
        assert!(!before.contains("noise"));
        assert_eq!(serde_json::from_str::<TaskParameters>(&before).unwrap(), task);
        (task.vdaf, task.noise) = (VdafKind::bits(1), Some("laplace(scale=5/2)".parse().unwrap()));
        task.validate().unwrap();
        let text = serde_json::to_string(&task).unwrap();
        assert!(text.ends_with(r#","noise":{"law":"discrete-laplace","scale":"2.5"}}"#), "{text}");
        assert_eq!(serde_json::from_str::<TaskParameters>(&text).unwrap(), task);
    }

    #[test]
    fn bad_parameters_are_refused_by_name() {
        type Case = (&'static str, fn(&mut TaskParameters));
        let cases: [Case; 7] = [
            ("noise", |task| task.noise = Some("laplace(scale=1)".parse().unwrap())),
            ("shorter than time_precision", |task| {
                task.report_expiry_age = Some(task.time_precision - 1);
            }),
            ("time_precision", |task| task.time_precision = 0),
            ("min_batch_size", |task| task.min_batch_size = 0),
            ("report_expiry_age", |task| task.report_expiry_age = Some(0)),
            ("tolerable_clock_skew", |task| task.tolerable_clock_skew = u64::MAX),
            ("leader", |task| task.leader = "mailto:a@b".parse().unwrap()),
        ];
        for (name, spoil) in cases {
            let mut task = sample();
            spoil(&mut task);
            let message = task.validate().unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }
}
