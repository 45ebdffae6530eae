//! Task definitions in the form that Janus 0.7 provisions from.
//!
//! The form is the list of tasks that `janus_cli provision-tasks` reads (its sample is
//! `docs/samples/tasks.yaml` in the Janus repository). Every value is a number or a double-quoted
//! string, so that nothing has to be escaped and no YAML library is needed to write it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::fmt::Write;

use crate::{
    dap::{HpkeConfig, HpkeKeypair, VdafKind},
    task::{AggregatorRole, AggregatorTask},
};

/// One task for one Janus instance, as a list of one.
pub(crate) fn task_yaml(task: &AggregatorTask, keypair: &HpkeKeypair) -> String {
    let parameters = &task.parameters;
    let (peer, role) = match task.role {
        AggregatorRole::Leader => (&parameters.helper, "Leader"),
        AggregatorRole::Helper => (&parameters.leader, "Helper"),
    };
    let private_key = URL_SAFE_NO_PAD.encode(keypair.private_key());
    let mut text = String::new();
    let mut line = |depth: usize, content: String| {
        let _ = writeln!(text, "{:indent$}{content}", "", indent = 2 * depth);
    };
    line(0, format!("- task_id: \"{}\"", parameters.task_id));
    line(1, format!("peer_aggregator_endpoint: \"{peer}\""));
    line(1, "query_type: TimeInterval".to_owned());
    for (depth, content) in vdaf_lines(&parameters.vdaf) {
        line(depth, content);
    }
    line(1, format!("role: {role}"));
    line(1, format!("vdaf_verify_key: \"{}\"", URL_SAFE_NO_PAD.encode(task.verify_key)));
    line(1, "max_batch_query_count: 1".to_owned());
    for (name, value) in [
        ("task_expiration", parameters.task_expiration),
        ("report_expiry_age", parameters.report_expiry_age),
        ("min_batch_size", Some(parameters.min_batch_size)),
        ("time_precision", Some(parameters.time_precision)),
        ("tolerable_clock_skew", Some(parameters.tolerable_clock_skew)),
    ] {
        let value = value.map_or("null".to_owned(), |number| number.to_string());
        line(1, format!("{name}: {value}"));
    }
    line(1, "collector_hpke_config:".to_owned());
    for content in config_lines(&task.collector_hpke_config) {
        line(2, content);
    }
    for (name, field, value) in [
        ("aggregator_auth_token", "token", task.aggregator_token.as_ref().map(|token| token.as_str().to_owned())),
        ("aggregator_auth_token_hash", "hash", task.aggregator_token_hash.as_ref().map(|hash| hash.to_text())),
        ("collector_auth_token_hash", "hash", task.collector_token_hash.as_ref().map(|hash| hash.to_text())),
    ] {
        let Some(value) = value else { continue };
        line(1, format!("{name}:"));
        line(2, "type: \"Bearer\"".to_owned());
        line(2, format!("{field}: \"{value}\""));
    }
    line(1, "hpke_keys:".to_owned());
    line(1, "- config:".to_owned());
    for content in config_lines(keypair.config()) {
        line(3, content);
    }
    line(2, format!("private_key: \"{private_key}\""));
    text
}

fn vdaf_lines(kind: &VdafKind) -> Vec<(usize, String)> {
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
        dap,
        task::{TaskParameters, TaskSet},
    };
    use janus_core::{
        auth_tokens::{AuthenticationToken, AuthenticationTokenHash},
        vdaf::VdafInstance,
    };
    use serde::Deserialize;
    use url::Url;

    /// The fields that Janus 0.7 reads, with the types of its own published crates.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct JanusTask {
        task_id: Option<dap::TaskId>,
        peer_aggregator_endpoint: Url,
        query_type: QueryType,
        vdaf: VdafInstance,
        role: dap::Role,
        vdaf_verify_key: Option<String>,
        max_batch_query_count: u64,
        task_expiration: Option<dap::Time>,
        report_expiry_age: Option<dap::Duration>,
        min_batch_size: u64,
        time_precision: dap::Duration,
        tolerable_clock_skew: dap::Duration,
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
        let mut parameters = TaskParameters::new(
            "https://leader.example/dap".parse().unwrap(),
            "https://helper.example/".parse().unwrap(),
            kind,
            600,
            100,
        );
        parameters.task_expiration = Some(1_900_000_000);
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
            (&leader, dap::Role::Leader, "https://helper.example/"),
            (&helper, dap::Role::Helper, "https://leader.example/dap/"),
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
        assert_ne!(leader.hpke_keys, helper.hpke_keys);
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
}
