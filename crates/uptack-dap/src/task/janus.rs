//! Task definitions in the form that Janus 0.7 provisions from.
//!
//! The form is the list of tasks that `janus_cli provision-tasks` reads (its sample is
//! `docs/samples/tasks.yaml` in the Janus repository). Every value is a number or a double-quoted
//! string, so that nothing has to be escaped and no YAML library is needed to write it.
//!
//! Noise is written as libprio's strategy of a pure budget. libprio draws with the scale sensitivity/ε, and takes the
//! number of bits for the sensitivity, as if one owner changed all of them. So ε here is what gives the task's scale, and
//! says nothing about the privacy of the query.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::fmt::Write;
use uptack::DiscreteLaplace;

use crate::{
    error::{Error, Result},
    protocol::{HpkeConfig, HpkeKeypair, VdafKind},
    task::{AggregatorRole, AggregatorTask, TaskParameters},
    token::TokenHash,
};

/// One task for one Janus instance, as a list of one.
pub(crate) fn task_yaml(task: &AggregatorTask, keypair: &HpkeKeypair) -> Result<String> {
    let parameters = &task.parameters;
    let (peer, role) = match task.role {
        AggregatorRole::Leader => (&parameters.helper, "Leader"),
        AggregatorRole::Helper => (&parameters.leader, "Helper"),
    };
    let verify_key = URL_SAFE_NO_PAD.encode(task.verify_key);
    let private_key = URL_SAFE_NO_PAD.encode(keypair.private_key());
    let mut lines = vec![
        (0, format!("- task_id: \"{}\"", parameters.task_id)),
        (1, format!("peer_aggregator_endpoint: \"{peer}\"")),
        (1, "query_type: TimeInterval".to_owned()),
    ];
    lines.extend(vdaf_lines(&parameters.vdaf));
    if let Some(noise) = &parameters.noise {
        lines.extend(noise_lines(&parameters.vdaf, noise)?);
    }
    lines.push((1, format!("role: {role}")));
    lines.push((1, format!("vdaf_verify_key: \"{verify_key}\"")));
    lines.push((1, "max_batch_query_count: 1".to_owned()));
    lines.extend(number_lines(parameters));
    lines.push((1, "collector_hpke_config:".to_owned()));
    lines.extend(config_lines(&task.collector_hpke_config).map(|line| (2, line)));
    lines.extend(token_lines(task));
    lines.push((1, "hpke_keys:".to_owned()));
    lines.push((1, "- config:".to_owned()));
    lines.extend(config_lines(keypair.config()).map(|line| (3, line)));
    lines.push((2, format!("private_key: \"{private_key}\"")));
    Ok(lines.iter().fold(String::new(), |mut text, (depth, line)| {
        let _ = writeln!(text, "{:indent$}{line}", "", indent = 2 * depth);
        text
    }))
}

/// A line and how far it is indented.
type Line = (usize, String);

fn number_lines(parameters: &TaskParameters) -> impl Iterator<Item = Line> {
    [
        ("task_expiration", parameters.task_expiration),
        ("report_expiry_age", parameters.report_expiry_age),
        ("min_batch_size", Some(parameters.min_batch_size)),
        ("time_precision", Some(parameters.time_precision)),
        ("tolerable_clock_skew", Some(parameters.tolerable_clock_skew)),
    ]
    .into_iter()
    .map(|(name, value)| {
        let value = value.map_or("null".to_owned(), |number| number.to_string());
        (1, format!("{name}: {value}"))
    })
}

/// Only those that the role has.
fn token_lines(task: &AggregatorTask) -> impl Iterator<Item = Line> {
    let shown = task.aggregator_token.as_ref().map(|token| token.as_str().to_owned());
    let expected = task.aggregator_token_hash.as_ref().map(TokenHash::to_text);
    let collectors = task.collector_token_hash.as_ref().map(TokenHash::to_text);
    [
        ("aggregator_auth_token", "token", shown),
        ("aggregator_auth_token_hash", "hash", expected),
        ("collector_auth_token_hash", "hash", collectors),
    ]
    .into_iter()
    .filter_map(|(name, field, value)| value.map(|value| (name, field, value)))
    .flat_map(|(name, field, value)| {
        [(1, format!("{name}:")), (2, "type: \"Bearer\"".to_owned()), (2, format!("{field}: \"{value}\""))]
    })
}

fn vdaf_lines(kind: &VdafKind) -> Vec<Line> {
    let (name, bits, length, chunk_length) = match kind {
        VdafKind::Histogram { length, chunk_length } => ("Prio3Histogram", None, length, chunk_length),
        VdafKind::Bits { length, chunk_length } => ("Prio3SumVec", Some(1), length, chunk_length),
    };
    let mut lines = vec![(1, format!("vdaf: !{name}"))];
    lines.extend(bits.map(|bits| (2, format!("bits: {bits}"))));
    lines.push((2, format!("length: {length}")));
    lines.push((2, format!("chunk_length: {chunk_length}")));
    lines
}

/// The budget for which libprio's scale, sensitivity/ε, is the noise's.
fn noise_lines(kind: &VdafKind, noise: &DiscreteLaplace) -> Result<Vec<Line>> {
    let VdafKind::Bits { length, .. } = kind else {
        return Err(Error::input("task: noise on the cells of a histogram cannot be written for Janus"));
    };
    let [numerator, denominator] = budget(*length as u64, noise).map(digits);
    Ok(vec![
        (2, format!("# Noise of scale {}. This epsilon only sets the scale: it is not the card's.", noise.scale())),
        (2, "dp_strategy:".to_owned()),
        (3, "dp_strategy: PureDpDiscreteLaplace".to_owned()),
        (3, "budget:".to_owned()),
        (4, format!("epsilon: [{numerator}, {denominator}]")),
    ])
}

/// ε = sensitivity/scale as numerator and denominator in lowest terms; the sensitivity of so many bits is their number.
fn budget(bits: u64, noise: &DiscreteLaplace) -> [u128; 2] {
    let (numerator, denominator) = (noise.scale().numerator(), noise.scale().denominator());
    let common = greatest_common_divisor(bits, numerator);
    // Both are below 2⁶⁴, so that the product fits.
    [u128::from(bits / common) * u128::from(denominator), u128::from(numerator / common)]
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

/// Digits of 32 bits, the lowest first, as num-bigint serialises a number.
fn digits(mut number: u128) -> String {
    let mut digits = Vec::new();
    while number > 0 {
        digits.push((number as u32).to_string());
        number >>= 32;
    }
    format!("[{}]", digits.join(", "))
}

fn config_lines(config: &HpkeConfig) -> [String; 5] {
    [
        format!("id: {}", config.id()),
        // The names in the file are those of the variants.
        format!("kem_id: {:?}", config.kem_id()),
        format!("kdf_id: {:?}", config.kdf_id()),
        format!("aead_id: {:?}", config.aead_id()),
        format!("public_key: \"{}\"", config.public_key()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        protocol,
        task::{TaskParameters, TaskSet},
    };
    use janus_core::{
        auth_tokens::{AuthenticationToken, AuthenticationTokenHash},
        vdaf::{VdafInstance, vdaf_dp_strategies::Prio3SumVec},
    };
    use serde::Deserialize;
    use url::Url;

    /// The fields that Janus 0.7 reads, with the types of its own published crates.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct JanusTask {
        task_id: Option<protocol::TaskId>,
        peer_aggregator_endpoint: Url,
        query_type: QueryType,
        vdaf: VdafInstance,
        role: protocol::Role,
        vdaf_verify_key: Option<String>,
        max_batch_query_count: u64,
        task_expiration: Option<protocol::Time>,
        report_expiry_age: Option<protocol::Duration>,
        min_batch_size: u64,
        time_precision: protocol::Duration,
        tolerable_clock_skew: protocol::Duration,
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

    fn tasks(kind: VdafKind) -> (TaskSet, [JanusTask; 2]) {
        tasks_with(kind, None)
    }

    fn tasks_with(kind: VdafKind, noise: Option<DiscreteLaplace>) -> (TaskSet, [JanusTask; 2]) {
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
            let mut list: Vec<JanusTask> = yaml_serde::from_str(&text).unwrap();
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
            (&leader, protocol::Role::Leader, "https://helper.example/"),
            (&helper, protocol::Role::Helper, "https://leader.example/dap/"),
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

    /// libprio draws with the scale sensitivity/ε, and its sensitivity for a vector is length·(2^bits − 1).
    #[test]
    fn the_scale_that_janus_computes_is_the_tasks() {
        for length in [1, 2, 7, 960] {
            for scale in ["1", "10", "0.01", "5/2", "7/3", "1.918273645", "1000000000", "12345678901/1234567891"] {
                let noise = DiscreteLaplace::new(scale.parse().unwrap());
                let (_, both) = tasks_with(VdafKind::bits(length), Some(noise));
                for task in both {
                    let VdafInstance::Prio3SumVec { bits: 1, length: read, .. } = task.vdaf else { panic!("not bits") };
                    let [numerator, denominator] = read_budget(&task.vdaf).expect("noise");
                    // length/ε as a ratio, compared crosswise with the scale.
                    let sensitivity = read as u128 * ((1 << 1) - 1);
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
        let ten = DiscreteLaplace::new("10".parse().unwrap());
        let lines = noise_lines(&VdafKind::bits(1), &ten).unwrap();
        assert_eq!(lines.last().unwrap().1, "epsilon: [[1], [10]]");
        assert!(lines[0].1.contains("not the card's"), "{}", lines[0].1);
        assert_eq!(digits(1 << 32), "[0, 1]");
        assert!(noise_lines(&VdafKind::histogram(3), &ten).unwrap_err().is_input());
    }
}
