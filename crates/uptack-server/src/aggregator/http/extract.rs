//! What handlers take from a request: its message, and the task and job that it names if the caller may ask for them.

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Path, Request},
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use std::{convert::Infallible, str::FromStr, sync::Arc};
use uptack_dap::{
    protocol::{AggregationJobId, CollectionJobId, DapProblemType, TaskId},
    token::TokenHash,
};

use crate::aggregator::state::{Shared, Task};
use crate::base::{
    http,
    problem::{Answer, Problem},
};

/// A job that a request names, if the request carries the token of the party whose jobs these are.
pub(super) struct Job<T> {
    pub(super) shared: Arc<Shared>,
    pub(super) task: Arc<Task>,
    pub(super) id: T,
}

impl<T: JobId> FromRequestParts<Arc<Shared>> for Job<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Response> {
        let path = Path::<(String, String)>::from_request_parts(parts, shared).await;
        let Path((task, job)) = path.map_err(IntoResponse::into_response)?;
        Self::find(shared, &task, &job, &parts.headers).map_err(IntoResponse::into_response)
    }
}

impl<T: JobId> Job<T> {
    fn find(shared: &Arc<Shared>, task: &str, job: &str, headers: &HeaderMap) -> Answer<Self> {
        let task = find_task(shared, task)?;
        authorize(&task, T::CALLER, headers)?;
        let id = job
            .parse()
            .map_err(|_| Problem::bad_request("The job in the path is not 16 bytes of unpadded base64url."))?;
        Ok(Self { shared: Arc::clone(shared), task, id })
    }
}

/// The name of a job, which says whose it is.
pub(super) trait JobId: FromStr + Send {
    const CALLER: Caller;
}

impl JobId for CollectionJobId {
    const CALLER: Caller = Caller::Collector;
}

impl JobId for AggregationJobId {
    const CALLER: Caller = Caller::Leader;
}

/// Whose token a request must carry.
#[derive(Clone, Copy)]
pub(super) enum Caller {
    Collector,
    Leader,
}

/// The state, for a request that carries the operator's token.
pub(super) struct Operator(pub(super) Arc<Shared>);

impl FromRequestParts<Arc<Shared>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Answer<Self> {
        let expected = shared.config.admin_token.as_ref().map(|token| token.hash());
        if carries(&parts.headers, expected.as_ref()) {
            return Ok(Self(Arc::clone(shared)));
        }
        Err(Problem::forbidden("The request's authorization is not valid."))
    }
}

/// A message of the protocol, not yet read.
pub(super) struct Message {
    pub(super) headers: HeaderMap,
    body: Body,
}

impl<S: Send + Sync> FromRequest<S> for Message {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Self { headers: parts.headers, body })
    }
}

impl Message {
    /// Reads a message of the expected type, within limits of size and time.
    pub(super) async fn read(self, shared: &Shared, media_type: &'static str, limit: usize) -> Answer<Vec<u8>> {
        check_media_type(&self.headers, media_type)?;
        http::read_body(self.body, limit, shared.config.request_timeout).await
    }
}

/// The task that a path names.
pub(super) fn find_task(shared: &Shared, text: &str) -> Answer<Arc<Task>> {
    shared.task(&parse_task_id(text)?)
}

pub(super) fn parse_task_id(text: &str) -> Answer<TaskId> {
    text.parse().map_err(|_| Problem::bad_request("The task in the path is not 32 bytes of unpadded base64url."))
}

pub(super) fn check_media_type(headers: &HeaderMap, expected: &'static str) -> Answer<()> {
    if headers.get(header::CONTENT_TYPE).is_some_and(|value| value == expected) {
        return Ok(());
    }
    Err(Problem::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("The Content-Type must be {expected}.")))
}

pub(super) fn authorize(task: &Task, caller: Caller, headers: &HeaderMap) -> Answer<()> {
    let expected = match caller {
        Caller::Collector => &task.definition.collector_token_hash,
        Caller::Leader => &task.definition.aggregator_token_hash,
    };
    if carries(headers, expected.as_ref()) { Ok(()) } else { Err(task.problem(DapProblemType::UnauthorizedRequest)) }
}

fn carries(headers: &HeaderMap, expected: Option<&TokenHash>) -> bool {
    expected.zip(token(headers)).is_some_and(|(hash, token)| hash.matches(token))
}

/// The token of a request, in either of the headers that DAP deployments use.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    if headers.contains_key(header::AUTHORIZATION) {
        return http::bearer(headers);
    }
    headers.get("dap-auth-token").map(|value| value.as_bytes())
}
