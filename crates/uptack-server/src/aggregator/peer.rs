//! The leader's calls to the helper.

use reqwest::{Method, StatusCode, header};
use uptack_dap::{http_client, protocol::DapProblemType};
use url::Url;

use super::failures::Scope;
use super::shared::{Shared, Task};
use crate::error::Error;

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum PeerError {
    /// The helper understood and refuses the batch for good.
    Refused(DapProblemType),
    /// The helper refuses this very request, and would most likely refuse it again.
    Rejected(String),
    /// Anything that may pass: the helper is away, overloaded, restarted, not yet configured.
    Passing(Scope, String),
}

/// Largest answer that is read.
const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// Sends one request and gives back the body of a successful answer.
pub(crate) async fn call(
    shared: &Shared,
    task: &Task,
    method: Method,
    path: &str,
    media_types: (&'static str, &'static str),
    body: Vec<u8>,
) -> Result<Vec<u8>, PeerError> {
    let passing = |error: uptack_dap::Error| PeerError::Passing(Scope::Helper, error.to_string());
    let url = address(shared, task, path).map_err(|error| PeerError::Passing(Scope::Task, error.to_string()))?;
    let token = task
        .definition
        .aggregator_token
        .as_ref()
        .ok_or_else(|| PeerError::Passing(Scope::Task, "the task has no token for the helper".to_owned()))?;
    let response = shared
        .peer
        .request(method, url)
        .bearer_auth(token.as_str())
        .header(header::CONTENT_TYPE, media_types.0)
        .body(body)
        .send()
        .await
        .map_err(|error| passing(http_client::no_answer("helper", error)))?;
    let status = response.status();
    let answered = response.headers().get(header::CONTENT_TYPE).cloned();
    let answer = http_client::body_within("helper", response, LARGEST_ANSWER).await.map_err(passing)?;
    if !status.is_success() {
        return Err(refusal(status, &answer));
    }
    if answered.as_ref().map(|value| value.as_bytes()) != Some(media_types.1.as_bytes()) {
        let text = "the answer has another media type than expected";
        return Err(PeerError::Passing(Scope::Helper, text.to_owned()));
    }
    task.failures.note_answer();
    Ok(answer)
}

fn address(shared: &Shared, task: &Task, path: &str) -> Result<Url, Error> {
    shared
        .config
        .peer
        .as_ref()
        .unwrap_or(&task.definition.parameters.helper)
        .join(&format!("tasks/{}/{path}", task.id()))
        .map_err(|error| Error::input(format!("the helper's address: {error}")))
}

/// What the helper says about the batch itself is final. A helper that does not know the task or the token yet may
/// learn them, and one that fails or is overloaded may recover; what is left is about the request.
fn refusal(status: StatusCode, body: &[u8]) -> PeerError {
    let uri = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|document| document["type"].as_str().map(str::to_owned));
    let kind = uri.and_then(|uri| uri.parse::<DapProblemType>().ok());
    let text = kind.as_ref().map_or(status.to_string(), |kind| format!("{status}: {}", kind.description()));
    match kind {
        Some(
            kind @ (DapProblemType::BatchInvalid
            | DapProblemType::BatchMismatch
            | DapProblemType::BatchOverlap
            | DapProblemType::BatchQueriedTooManyTimes
            | DapProblemType::InvalidBatchSize),
        ) if status.is_client_error() => PeerError::Refused(kind),
        Some(DapProblemType::UnrecognizedTask | DapProblemType::UnauthorizedRequest) => {
            PeerError::Passing(Scope::Task, text)
        }
        Some(_) if status.is_client_error() => PeerError::Rejected(text),
        _ if ABOUT_THE_REQUEST.contains(&status) => PeerError::Rejected(text),
        _ if status.is_client_error() => PeerError::Passing(Scope::Task, text),
        _ => PeerError::Passing(Scope::Helper, text),
    }
}

/// Statuses that speak of the request where no reason of the protocol does. Others, such as 404 or 405, may as well be
/// said by something between us and the helper.
const ABOUT_THE_REQUEST: [StatusCode; 6] = [
    StatusCode::BAD_REQUEST,
    StatusCode::CONFLICT,
    StatusCode::GONE,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::UNPROCESSABLE_ENTITY,
];
