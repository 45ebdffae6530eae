//! The protocol over HTTP: method, path and media types of every request.

use janus_messages::{
    AggregateShare, AggregateShareReq, AggregationJobContinueReq, AggregationJobInitializeReq, AggregationJobResp,
    Collection, CollectionReq, HpkeConfigList, Report, query_type::TimeInterval,
};
use serde::Deserialize;

use super::TaskId;

/// A header that carries a token in some deployments, instead of `Authorization`.
pub const TOKEN_HEADER: &str = "dap-auth-token";

/// One request that the protocol defines.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// The HTTP method.
    pub method: &'static str,
    /// The path below the aggregator's address, with `{task}` and `{job}` in place of names, as routers read it.
    pub path: &'static str,
    /// The parameter of the query string that names the task, if the path does not.
    query: Option<&'static str>,
    /// The media type of the request's body.
    pub media_type: Option<&'static str>,
    /// The media type of the body of a successful answer.
    pub answer_type: Option<&'static str>,
}

const HPKE_CONFIG: &str = "/hpke_config";
const REPORTS: &str = "/tasks/{task}/reports";
const AGGREGATION_JOBS: &str = "/tasks/{task}/aggregation_jobs/{job}";
const AGGREGATE_SHARES: &str = "/tasks/{task}/aggregate_shares";
const COLLECTION_JOBS: &str = "/tasks/{task}/collection_jobs/{job}";

impl Endpoint {
    /// A client fetches an aggregator's keys.
    pub const FETCH_KEYS: Self =
        Self { query: Some("task_id"), ..Self::new("GET", HPKE_CONFIG).answered_with(HpkeConfigList::MEDIA_TYPE) };
    /// A client sends a report to the leader.
    pub const UPLOAD: Self = Self::new("PUT", REPORTS).with_body(Report::MEDIA_TYPE);
    /// The leader sends the reports of an aggregation job to the helper.
    pub const START_AGGREGATION: Self = Self::new("PUT", AGGREGATION_JOBS)
        .with_body(AggregationJobInitializeReq::<TimeInterval>::MEDIA_TYPE)
        .answered_with(AggregationJobResp::MEDIA_TYPE);
    /// The leader continues an aggregation job, which no job of a one-round VDAF needs.
    pub const CONTINUE_AGGREGATION: Self =
        Self::new("POST", AGGREGATION_JOBS).with_body(AggregationJobContinueReq::MEDIA_TYPE);
    /// The leader has the helper forget an aggregation job.
    pub const DELETE_AGGREGATION: Self = Self::new("DELETE", AGGREGATION_JOBS);
    /// The leader asks for the helper's share of a batch.
    pub const AGGREGATE_SHARE: Self = Self::new("POST", AGGREGATE_SHARES)
        .with_body(AggregateShareReq::<TimeInterval>::MEDIA_TYPE)
        .answered_with(AggregateShare::MEDIA_TYPE);
    /// The collector asks the leader for a batch.
    pub const START_COLLECTION: Self =
        Self::new("PUT", COLLECTION_JOBS).with_body(CollectionReq::<TimeInterval>::MEDIA_TYPE);
    /// The collector asks whether its batch is ready.
    pub const POLL_COLLECTION: Self =
        Self::new("POST", COLLECTION_JOBS).answered_with(Collection::<TimeInterval>::MEDIA_TYPE);
    /// The collector has the leader forget a collection job.
    pub const DELETE_COLLECTION: Self = Self::new("DELETE", COLLECTION_JOBS);

    const fn new(method: &'static str, path: &'static str) -> Self {
        Self { method, path, query: None, media_type: None, answer_type: None }
    }

    const fn with_body(self, media_type: &'static str) -> Self {
        Self { media_type: Some(media_type), ..self }
    }

    const fn answered_with(self, media_type: &'static str) -> Self {
        Self { answer_type: Some(media_type), ..self }
    }

    /// The address relative to the aggregator's, for a request that names no job.
    pub fn of_task(&self, task: &TaskId) -> String {
        let path = self.path.trim_start_matches('/').replace("{task}", &task.to_string());
        match self.query {
            Some(name) => format!("{path}?{name}={task}"),
            None => path,
        }
    }

    /// The address relative to the aggregator's, for a request about a job.
    pub fn of_job(&self, task: &TaskId, job: &impl ToString) -> String {
        self.of_task(task).replace("{job}", &job.to_string())
    }
}

/// The query string of [`Endpoint::FETCH_KEYS`].
#[derive(Debug, Clone, Deserialize)]
pub struct KeysQuery {
    /// The name of the task, as text.
    pub task_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_draft() {
        let aggregation = "/tasks/{task}/aggregation_jobs/{job}";
        let collection = "/tasks/{task}/collection_jobs/{job}";
        let init = "application/dap-aggregation-job-init-req";
        let keys = "application/dap-hpke-config-list";
        let share = "application/dap-aggregate-share";
        for (endpoint, method, path, body, answer) in [
            (Endpoint::FETCH_KEYS, "GET", "/hpke_config", None, Some(keys)),
            (Endpoint::UPLOAD, "PUT", "/tasks/{task}/reports", Some("application/dap-report"), None),
            (Endpoint::START_AGGREGATION, "PUT", aggregation, Some(init), Some("application/dap-aggregation-job-resp")),
            (
                Endpoint::CONTINUE_AGGREGATION,
                "POST",
                aggregation,
                Some("application/dap-aggregation-job-continue-req"),
                None,
            ),
            (Endpoint::DELETE_AGGREGATION, "DELETE", aggregation, None, None),
            (
                Endpoint::AGGREGATE_SHARE,
                "POST",
                "/tasks/{task}/aggregate_shares",
                Some("application/dap-aggregate-share-req"),
                Some(share),
            ),
            (Endpoint::START_COLLECTION, "PUT", collection, Some("application/dap-collect-req"), None),
            (Endpoint::POLL_COLLECTION, "POST", collection, None, Some("application/dap-collection")),
            (Endpoint::DELETE_COLLECTION, "DELETE", collection, None, None),
        ] {
            let stated = (endpoint.method, endpoint.path, endpoint.media_type, endpoint.answer_type);
            assert_eq!(stated, (method, path, body, answer));
        }
    }

    #[test]
    fn addresses_name_the_task_and_the_job() {
        let task = TaskId::from([0; 32]);
        let name = "A".repeat(43);
        assert_eq!(Endpoint::FETCH_KEYS.of_task(&task), format!("hpke_config?task_id={name}"));
        assert_eq!(Endpoint::UPLOAD.of_task(&task), format!("tasks/{name}/reports"));
        assert_eq!(Endpoint::POLL_COLLECTION.of_job(&task, &"x"), format!("tasks/{name}/collection_jobs/x"));
    }
}
