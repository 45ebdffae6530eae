//! Refusals as callers see them: RFC 9457 documents.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use uptack_dap::protocol::{ProblemType, TaskId};

use super::logging::Throttle;
use crate::error::Error;

/// The answer to a caller, or the refusal.
pub(crate) type Answer<T> = Result<T, Problem>;

/// A refusal, with the status of its response.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    uri: &'static str,
    title: &'static str,
    detail: Option<String>,
    /// Members beyond those that every problem has.
    members: Vec<(&'static str, String)>,
    retry_after: Option<u32>,
}

impl Problem {
    /// A problem of no particular type, with the title of its status.
    pub(crate) fn http(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { detail: Some(detail.into()), ..Self::of_type(status, "about:blank", title) }
    }

    /// The request itself is at fault.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::http(StatusCode::BAD_REQUEST, detail)
    }

    /// The caller may not do this.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::http(StatusCode::FORBIDDEN, detail)
    }

    /// The resource that the request names does not exist.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::http(StatusCode::NOT_FOUND, detail)
    }

    /// The request conflicts with the current state.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::http(StatusCode::CONFLICT, detail)
    }

    /// A problem with a type that a protocol defines.
    pub(crate) fn of_type(status: StatusCode, uri: &'static str, title: &'static str) -> Self {
        Self { status, uri, title, detail: None, members: Vec::new(), retry_after: None }
    }

    /// One of the protocol's own errors about a task. Its aborts are 400, authorization is 403.
    pub(crate) fn dap(kind: ProblemType, task: &TaskId) -> Self {
        let status = match kind {
            ProblemType::UnauthorizedRequest => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::of_type(status, kind.uri(), kind.title()).with_member("taskid", task.to_string())
    }

    /// A refusal for now, which may be worth repeating after this many seconds.
    pub(crate) fn busy(detail: &str, seconds: u32) -> Self {
        Self::http(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(seconds)
    }

    /// Adds details.
    pub(crate) fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Adds a member.
    pub(crate) fn with_member(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.members.push((name, value.into()));
        self
    }

    /// Says after how many seconds it may be worth trying again.
    pub(crate) fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The message for people.
    pub(crate) fn words(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.title)
    }

    fn document(&self) -> Value {
        let mut document = json!({"type": self.uri, "title": self.title, "status": self.status.as_u16()});
        if let Some(detail) = &self.detail {
            document["detail"] = json!(detail);
        }
        for (name, value) in &self.members {
            document[*name] = json!(value);
        }
        document
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }

    /// The last word of the type, for counters and logs.
    pub(crate) fn label(&self) -> &'static str {
        match self.uri.rsplit(':').next() {
            Some(word) if self.uri.starts_with("urn:") => word,
            _ => self.title,
        }
    }
}

impl From<Error> for Problem {
    /// Tells the caller about errors of its own; logs ours, and tells the caller only that it may try again.
    fn from(error: Error) -> Self {
        if error.is_input() {
            return Self::bad_request(error.to_string());
        }
        log_failure(&error);
        let detail = "The server failed. It is safe to send the same request again.";
        Self::http(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}

fn log_failure(error: &Error) {
    static FAILURES: Throttle = Throttle::per_minute();
    if let Some(unlogged) = FAILURES.pass() {
        tracing::error!(%error, unlogged, "internal failure");
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.document().to_string()).into_response();
        self.add_headers(response.headers_mut());
        // Lets the outer layer count refusals by kind.
        response.extensions_mut().insert(Label(self.label()));
        response
    }
}

/// The kind of a refusal, attached to its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label(pub(crate) &'static str);

/// The type of a problem document that another server answered with, if it is one of the protocol's.
pub(crate) fn problem_type(body: &[u8]) -> Option<ProblemType> {
    ProblemType::of_document(&serde_json::from_slice(body).ok()?)
}
