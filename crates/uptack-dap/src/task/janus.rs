//! Task definitions in the form that Janus 0.7 provisions from.
//!
//! The form is the list of tasks that `janus_cli provision-tasks` reads (its sample is
//! `docs/samples/tasks.yaml` in the Janus repository).
//!
//! Noise is written as libprio's strategy with a pure budget. libprio draws with the scale sensitivity/ε, and its sensitivity
//! is the number of bits, as if one owner changed all of them. So ε here is whatever yields the task's scale, and says
//! nothing about the privacy of the query.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use std::path::Path;
use uptack::NoiseLaw;
use url::Url;

use super::{AggregatorRole, AggregatorTask, TaskSet, files};
use crate::{
    error::{Error, Result},
    private,
    protocol::{self, HpkeConfig, HpkeKeypair, TaskId, VdafKind},
    token::{Token, TokenHash},
};

/// The software that an aggregator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Software {
    /// This project's aggregator.
    Uptack,
    /// Janus 0.7.
    Janus,
}

impl TaskSet {
    /// Writes `leader.yaml` and `helper.yaml` in the form that Janus 0.7 provisions tasks from
    /// (`janus_cli provision-tasks`), and `collector.json` and `client.json`.
    pub fn write_for_janus(&self, directory: &Path) -> Result<()> {
        self.write_for(directory, [Software::Janus; 2]).map(drop)
    }

    /// Writes the leader's and the helper's file, each in the form of its software, and returns their
    /// names.
    ///
    /// Janus keeps keys with the task, so each of its files gets a fresh key pair.
    pub fn write_for(&self, directory: &Path, software: [Software; 2]) -> Result<[&'static str; 2]> {
        self.write_common(directory)?;
        let [leader, helper] = software;
        Ok([self.leader.write_for(directory, leader)?, self.helper.write_for(directory, helper)?])
    }
}

impl AggregatorTask {
    /// Writes the file in the form of the aggregator's software, and returns its name.
    fn write_for(&self, directory: &Path, software: Software) -> Result<&'static str> {
        let (names, key) = match self.role {
            AggregatorRole::Leader => (["leader.json", "leader.yaml"], 1),
            AggregatorRole::Helper => (["helper.json", "helper.yaml"], 2),
        };
        let [json, yaml] = names;
        match software {
            Software::Uptack => files::write(&directory.join(json), self).map(|()| json),
            Software::Janus => write_for_janus(&directory.join(yaml), self, key).map(|()| yaml),
        }
    }
}

/// Writes one aggregator's part of a task in the form that Janus 0.7 provisions tasks from, with a fresh key pair, whose id is
/// `key`, for clients to seal to.
pub fn write_for_janus(path: &Path, task: &AggregatorTask, key: u8) -> Result<()> {
    let list = [JanusTask::new(task, protocol::generate_keypair(key))?];
    let yaml = yaml_serde::to_string(&list).expect("numbers and text are YAML");
    let remark = task.parameters.noise.as_ref().map(remark).unwrap_or_default();
    private::write_secret(path, &format!("{remark}{yaml}"))
}

/// One task for one Janus instance. The order of the fields is that of Janus' own sample.
#[derive(Serialize)]
struct JanusTask<'a> {
    task_id: TaskId,
    peer_aggregator_endpoint: &'a Url,
    query_type: &'static str,
    vdaf: JanusVdaf,
    role: &'static str,
    vdaf_verify_key: String,
    max_batch_query_count: u64,
    task_expiration: Option<u64>,
    report_expiry_age: Option<u64>,
    min_batch_size: u64,
    time_precision: u64,
    tolerable_clock_skew: u64,
    collector_hpke_config: &'a HpkeConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregator_auth_token: Option<JanusToken<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregator_auth_token_hash: Option<JanusTokenHash<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collector_auth_token_hash: Option<JanusTokenHash<'a>>,
    hpke_keys: [HpkeKeypair; 1],
}

impl<'a> JanusTask<'a> {
    fn new(task: &'a AggregatorTask, keypair: HpkeKeypair) -> Result<Self> {
        let parameters = &task.parameters;
        let (peer, role) = match task.role {
            AggregatorRole::Leader => (&parameters.helper, "Leader"),
            AggregatorRole::Helper => (&parameters.leader, "Helper"),
        };
        Ok(Self {
            task_id: parameters.task_id,
            peer_aggregator_endpoint: peer,
            query_type: "TimeInterval",
            vdaf: JanusVdaf::new(&parameters.vdaf, parameters.noise.as_ref())?,
            role,
            vdaf_verify_key: URL_SAFE_NO_PAD.encode(task.verify_key),
            max_batch_query_count: 1,
            task_expiration: parameters.task_expiration,
            report_expiry_age: parameters.report_expiry_age,
            min_batch_size: parameters.min_batch_size,
            time_precision: parameters.time_precision,
            tolerable_clock_skew: parameters.tolerable_clock_skew,
            collector_hpke_config: &task.collector_hpke_config,
            aggregator_auth_token: task.aggregator_token.as_ref().map(|token| JanusToken::Bearer { token }),
            aggregator_auth_token_hash: task.aggregator_token_hash.as_ref().map(|hash| JanusTokenHash::Bearer { hash }),
            collector_auth_token_hash: task.collector_token_hash.as_ref().map(|hash| JanusTokenHash::Bearer { hash }),
            hpke_keys: [keypair],
        })
    }
}

/// What a caller shows; Janus also knows other kinds.
#[derive(Serialize)]
#[serde(tag = "type")]
enum JanusToken<'a> {
    Bearer { token: &'a Token },
}

/// What a callee recognizes it by.
#[derive(Serialize)]
#[serde(tag = "type")]
enum JanusTokenHash<'a> {
    Bearer { hash: &'a TokenHash },
}

#[derive(Serialize)]
enum JanusVdaf {
    Prio3Histogram {
        length: usize,
        chunk_length: usize,
    },
    Prio3SumVec {
        bits: usize,
        length: usize,
        chunk_length: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        dp_strategy: Option<Strategy>,
    },
}

impl JanusVdaf {
    fn new(kind: &VdafKind, noise: Option<&NoiseLaw>) -> Result<Self> {
        match *kind {
            VdafKind::Histogram { .. } if noise.is_some() => {
                Err(Error::input("task: noise on the cells of a histogram cannot be written for Janus"))
            }
            VdafKind::Histogram { length, chunk_length } => Ok(Self::Prio3Histogram { length, chunk_length }),
            VdafKind::Bits { length, chunk_length } => {
                let dp_strategy = noise.map(|noise| Strategy::new(length as u64, noise));
                Ok(Self::Prio3SumVec { bits: 1, length, chunk_length, dp_strategy })
            }
        }
    }
}

/// libprio's noise, by a budget.
#[derive(Serialize)]
struct Strategy {
    dp_strategy: &'static str,
    budget: Budget,
}

/// ε as numerator and denominator, each in digits of 32 bits, the lowest first.
#[derive(Serialize)]
struct Budget {
    epsilon: [Vec<u32>; 2],
}

impl Strategy {
    /// The budget for which libprio's scale, sensitivity/ε, is that of the noise; the sensitivity is the number of bits.
    fn new(bits: u64, noise: &NoiseLaw) -> Self {
        let NoiseLaw::Laplace(noise) = noise;
        let (numerator, denominator) = (noise.scale().numerator(), noise.scale().denominator());
        let common = greatest_common_divisor(bits, numerator);
        // Both factors are below 2⁶⁴, so the product fits.
        let epsilon = [u128::from(bits / common) * u128::from(denominator), u128::from(numerator / common)];
        Self { dp_strategy: "PureDpDiscreteLaplace", budget: Budget { epsilon: epsilon.map(digits) } }
    }
}

/// Warns the reader of a file not to take the budget for the card's ε.
fn remark(noise: &NoiseLaw) -> String {
    let NoiseLaw::Laplace(noise) = noise;
    format!(
        "# Noise of scale {}. The epsilon of the budget only sets the scale: it is not the card's.\n",
        noise.scale()
    )
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

fn digits(mut number: u128) -> Vec<u32> {
    let mut digits = Vec::new();
    while number > 0 {
        digits.push(number as u32);
        number >>= 32;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::messages, task::TaskParameters};
    use janus_core::{
        auth_tokens::{AuthenticationToken, AuthenticationTokenHash},
        vdaf::{VdafInstance, vdaf_dp_strategies::Prio3SumVec},
    };
    use serde::Deserialize;

    /// The fields that Janus 0.7 reads, with the types of its own published crates.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ReadTask {
        task_id: Option<protocol::TaskId>,
        peer_aggregator_endpoint: Url,
        query_type: QueryType,
        vdaf: VdafInstance,
        role: messages::Role,
        vdaf_verify_key: Option<String>,
        max_batch_query_count: u64,
        task_expiration: Option<messages::Time>,
        report_expiry_age: Option<messages::Duration>,
        min_batch_size: u64,
        time_precision: messages::Duration,
        tolerable_clock_skew: messages::Duration,
        collector_hpke_config: HpkeConfig,
        aggregator_auth_token: Option<AuthenticationToken>,
        aggregator_auth_token_hash: Option<AuthenticationTokenHash>,
        collector_auth_token_hash: Option<AuthenticationTokenHash>,
        hpke_keys: Vec<HpkeKeypair>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    enum QueryType {
        TimeInterval,
    }

    fn tasks(kind: VdafKind) -> (TaskSet, [ReadTask; 2]) {
        tasks_with(kind, None)
    }

    fn tasks_with(kind: VdafKind, noise: Option<NoiseLaw>) -> (TaskSet, [ReadTask; 2]) {
        let mut parameters = TaskParameters::new(
            "https://leader.example/dap".parse().unwrap(),
            "https://helper.example/".parse().unwrap(),
            kind,
            600,
            100,
        );
        parameters.task_expiration = Some(1_900_000_000);
        parameters.noise = noise;
        let set = TaskSet::generate(parameters).unwrap();
        let directory = tempfile::tempdir().unwrap();
        set.write_for_janus(directory.path()).unwrap();
        let read = |name: &str| {
            let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
            let mut list: Vec<ReadTask> = yaml_serde::from_str(&text).unwrap();
            assert_eq!(list.len(), 1);
            list.remove(0)
        };
        let both = [read("leader.yaml"), read("helper.yaml")];
        (set, both)
    }

    #[test]
    fn a_leader_and_a_helper_get_what_they_need() {
        let (set, [leader, helper]) = tasks(VdafKind::histogram(6));
        for (task, role, peer) in [
            (&leader, messages::Role::Leader, "https://helper.example/"),
            (&helper, messages::Role::Helper, "https://leader.example/dap/"),
        ] {
            assert_eq!(task.task_id, Some(set.parameters().task_id));
            assert_eq!(task.peer_aggregator_endpoint.as_str(), peer);
            assert_eq!(task.query_type, QueryType::TimeInterval);
            assert_eq!(task.role, role);
            assert_eq!(task.max_batch_query_count, 1);
            assert_eq!(task.min_batch_size, 100);
            assert_eq!(task.time_precision.as_seconds(), 600);
            assert_eq!(task.tolerable_clock_skew.as_seconds(), 60);
            assert_eq!(task.task_expiration.unwrap().as_seconds_since_epoch(), 1_900_000_000);
            assert_eq!(task.report_expiry_age.unwrap().as_seconds(), 1_209_600);
            let key = URL_SAFE_NO_PAD.decode(task.vdaf_verify_key.as_ref().unwrap()).unwrap();
            assert_eq!(key, set.leader.verify_key);
            assert_eq!(&task.collector_hpke_config, set.collector.hpke_keypair.config());
            assert_eq!(task.hpke_keys.len(), 1);
            let VdafInstance::Prio3Histogram { length, chunk_length, .. } = task.vdaf else {
                panic!("not a histogram: {:?}", task.vdaf)
            };
            assert_eq!(VdafKind::histogram(6).length(), length);
            assert_eq!(VdafKind::histogram(6), VdafKind::Histogram { length, chunk_length });
        }
        assert_ne!(leader.hpke_keys[0].private_key().as_ref(), helper.hpke_keys[0].private_key().as_ref());
        // The helper recognizes the leader's token, the leader the collector's; neither has more.
        let shown = leader.aggregator_auth_token.unwrap();
        assert!(helper.aggregator_auth_token_hash.unwrap().validate(&shown));
        let collectors = AuthenticationToken::new_bearer_token_from_string(set.collector.token.as_str()).unwrap();
        assert!(leader.collector_auth_token_hash.unwrap().validate(&collectors));
        assert!(leader.aggregator_auth_token_hash.is_none());
        assert!(helper.aggregator_auth_token.is_none());
        assert!(helper.collector_auth_token_hash.is_none());
    }

    #[test]
    fn a_ballot_is_a_vector_of_single_bits() {
        let (_, [leader, _]) = tasks(VdafKind::bits(1920));
        let VdafInstance::Prio3SumVec { bits, length, chunk_length, .. } = leader.vdaf else {
            panic!("not a vector: {:?}", leader.vdaf)
        };
        assert_eq!(bits, 1);
        assert_eq!(VdafKind::bits(1920), VdafKind::Bits { length, chunk_length });
    }

    /// The budget as Janus reads it: numerator and denominator of ε. None if Janus would add no noise.
    fn read_budget(vdaf: &VdafInstance) -> Option<[u128; 2]> {
        let VdafInstance::Prio3SumVec { dp_strategy, .. } = vdaf else { panic!("not a vector: {vdaf:?}") };
        let Prio3SumVec::PureDpDiscreteLaplace(strategy) = dp_strategy else { return None };
        let written = serde_json::to_value(strategy).unwrap();
        let digits: [Vec<u32>; 2] = serde_json::from_value(written["budget"]["epsilon"].clone()).unwrap();
        Some(digits.map(|digits| digits.iter().rev().fold(0, |number, digit| number << 32 | u128::from(*digit))))
    }

    /// libprio draws with the scale sensitivity/ε, and its sensitivity for a vector is length·(2^bits − 1): of single bits, their number.
    #[test]
    fn the_scale_that_janus_computes_is_the_tasks() {
        for length in [1, 2, 7, 960] {
            for scale in ["1", "10", "0.01", "5/2", "7/3", "1.918273645", "1000000000", "12345678901/1234567891"] {
                let noise = NoiseLaw::laplace(scale.parse().unwrap());
                let (_, both) = tasks_with(VdafKind::bits(length), Some(noise));
                for task in both {
                    let VdafInstance::Prio3SumVec { bits: 1, length: read, .. } = task.vdaf else { panic!("not bits") };
                    let [numerator, denominator] = read_budget(&task.vdaf).expect("noise");
                    // length/ε as a ratio, compared crosswise with the scale.
                    let sensitivity = read as u128;
                    let left = sensitivity * denominator * u128::from(noise.scale().denominator());
                    assert_eq!(left, u128::from(noise.scale().numerator()) * numerator, "{length} {scale}");
                }
            }
        }
    }

    #[test]
    fn noise_is_written_only_where_there_is_some_and_says_that_its_budget_is_a_knob() {
        let (_, [leader, helper]) = tasks(VdafKind::bits(1));
        assert!(read_budget(&leader.vdaf).is_none() && read_budget(&helper.vdaf).is_none());
        let ten = NoiseLaw::laplace("10".parse().unwrap());
        // What Janus stores of it, as docs/scale-out.md has it.
        let (_, [noisy, _]) = tasks_with(VdafKind::bits(1), Some(ten));
        let stored = |vdaf: &VdafInstance| serde_json::to_string(vdaf).unwrap();
        let expected = r#""dp_strategy":{"dp_strategy":"PureDpDiscreteLaplace","budget":{"epsilon":[[1],[10]]}}"#;
        assert!(stored(&noisy.vdaf).contains(expected), "{}", stored(&noisy.vdaf));
        assert!(stored(&leader.vdaf).contains("NoDifferentialPrivacy"), "{}", stored(&leader.vdaf));
        assert_eq!(Strategy::new(1, &ten).budget.epsilon, [vec![1], vec![10]]);
        assert_eq!(digits(1 << 32), [0, 1]);
        let (set, _) = tasks_with(VdafKind::bits(1), Some(ten));
        let directory = tempfile::tempdir().unwrap();
        set.write_for_janus(directory.path()).unwrap();
        let text = std::fs::read_to_string(directory.path().join("helper.yaml")).unwrap();
        assert!(text.starts_with("# Noise of scale 10.") && text.contains("not the card's"), "{text}");
        assert!(JanusVdaf::new(&VdafKind::histogram(3), Some(&ten)).is_err_and(|error| error.is_input()));
    }
}
