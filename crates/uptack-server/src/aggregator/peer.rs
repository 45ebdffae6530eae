//! The leader's calls to the helper.

use reqwest::{Response, StatusCode, header};
use uptack_dap::{
    http_client,
    protocol::{Endpoint, ProblemType},
};
use url::Url;

use crate::{
    aggregator::{
        state::AggregatorState,
        tasks::{ServedTask, failures::Scope},
    },
    base::problem::problem_type,
};

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum PeerError {
    /// The helper understood and refuses the batch for good.
    Refused(ProblemType),
    /// The helper refuses this very request, and would most likely refuse it again.
    Rejected(String),
    /// Anything that may be temporary: the helper is away, overloaded, restarted, not yet configured.
    Passing(Scope, String),
}

impl PeerError {
    fn of_helper(reason: impl ToString) -> Self {
        Self::Passing(Scope::Helper, reason.to_string())
    }

    fn of_task(reason: impl ToString) -> Self {
        Self::Passing(Scope::Task, reason.to_string())
    }
}

/// Largest answer that is read.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// A request to the helper about a task.
pub(crate) struct Call {
    pub(crate) endpoint: Endpoint,
    /// Below the helper's address.
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
}

impl Call {
    /// Sends the request and gives back the body of a successful answer.
    pub(crate) async fn send(self, shared: &AggregatorState, task: &ServedTask) -> Result<Vec<u8>, PeerError> {
        let answer_type = self.endpoint.answer_type;
        let response = self.request(shared, task).await?;
        let status = response.status();
        let media_type = response.headers().get(header::CONTENT_TYPE);
        let has_type = answer_type.is_none_or(|expected| media_type.is_some_and(|value| value == expected));
        let answer =
            http_client::body_within("helper", response, LARGEST_ANSWER).await.map_err(PeerError::of_helper)?;
        if !status.is_success() {
            return Err(refusal(status, &answer));
        }
        if !has_type {
            return Err(PeerError::of_helper("the answer has another media type than expected"));
        }
        task.failures.note_answer();
        Ok(answer)
    }

    async fn request(self, shared: &AggregatorState, task: &ServedTask) -> Result<Response, PeerError> {
        let url = address(shared, task, &self.path)?;
        let token = task.definition.aggregator_token.as_ref();
        let token = token.ok_or_else(|| PeerError::of_task("the task has no token for the helper"))?;
        let request = http_client::request(&shared.peer, &self.endpoint, url);
        let request = request.bearer_auth(token.as_str()).body(self.body);
        request.send().await.map_err(|error| PeerError::of_helper(http_client::no_answer("helper", error)))
    }
}

fn address(shared: &AggregatorState, task: &ServedTask, path: &str) -> Result<Url, PeerError> {
    let helper = shared.config.peer.as_ref().unwrap_or(&task.parameters().helper);
    helper.join(path).map_err(|error| PeerError::of_task(format!("the helper's address: {error}")))
}

/// A refusal of the batch itself is final. A helper that does not know the task or the token yet may
/// learn them, and one that fails or is overloaded may recover; anything else is about the request.
fn refusal(status: StatusCode, body: &[u8]) -> PeerError {
    let kind = problem_type(body);
    let text = kind.map_or(status.to_string(), |kind| format!("{status}: {}", kind.title()));
    match kind {
        Some(kind) if is_about_the_batch(kind) && status.is_client_error() => PeerError::Refused(kind),
        Some(ProblemType::UnrecognizedTask | ProblemType::UnauthorizedRequest) => PeerError::of_task(text),
        Some(_) if status.is_client_error() => PeerError::Rejected(text),
        _ if ABOUT_THE_REQUEST.contains(&status) => PeerError::Rejected(text),
        _ if status.is_client_error() => PeerError::of_task(text),
        _ => PeerError::of_helper(text),
    }
}

fn is_about_the_batch(kind: ProblemType) -> bool {
    matches!(
        kind,
        ProblemType::BatchInvalid
            | ProblemType::BatchMismatch
            | ProblemType::BatchOverlap
            | ProblemType::BatchQueriedTooManyTimes
            | ProblemType::InvalidBatchSize
    )
}

/// Statuses that are about the request even without a problem type of the protocol. Others, such as 404 or 405, may as
/// well come from something between us and the helper.
const ABOUT_THE_REQUEST: [StatusCode; 6] = [
    StatusCode::BAD_REQUEST,
    StatusCode::CONFLICT,
    StatusCode::GONE,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::UNPROCESSABLE_ENTITY,
];
