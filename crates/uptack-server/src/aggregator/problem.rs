//! Errors as callers of the HTTP interface see them: RFC 9457 documents.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::time::{Duration, Instant};
use uptack_dap::protocol::{DapProblemType, TaskId};

use crate::{aggregator::store::StoreError, base::logging::Throttle, error::Error};

/// Every upload meets a full disk; one line a minute says so.
static FULL: Throttle = Throttle::new(LOG_PAUSE);
static FAILURES: Throttle = Throttle::new(LOG_PAUSE);
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// A refusal, with the status it is answered with.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    uri: &'static str,
    title: &'static str,
    detail: Option<String>,
    task: Option<TaskId>,
    retry_after: Option<u32>,
}

impl Problem {
    /// One of the protocol's own errors. Its aborts are 400, authorization is 403.
    pub(crate) fn dap(kind: DapProblemType, task: &TaskId) -> Self {
        let status = match kind {
            DapProblemType::UnauthorizedRequest => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        Self {
            status,
            uri: kind.type_uri(),
            title: kind.description(),
            detail: None,
            task: Some(*task),
            retry_after: None,
        }
    }

    /// An error of HTTP rather than of the protocol.
    pub(crate) fn http(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            uri: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            detail: Some(detail.into()),
            task: None,
            retry_after: None,
        }
    }

    /// Not now, but perhaps in so many seconds.
    pub(crate) fn busy(detail: &str, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..Self::http(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The last word of the type, for counters and logs.
    pub(crate) fn label(&self) -> &'static str {
        match self.uri.rsplit(':').next() {
            Some(word) if self.uri.starts_with("urn:") => word,
            _ => self.title,
        }
    }
}

impl From<StoreError<Problem>> for Problem {
    fn from(error: StoreError<Problem>) -> Self {
        match error {
            StoreError::Refused(problem) => problem,
            StoreError::Full => {
                if let Some(unlogged) = FULL.pass(Instant::now()) {
                    tracing::error!(unlogged, "storage is full; refusing changes until there is room");
                }
                Self::busy("The server's storage is full; nothing was stored.", 30)
            }
            StoreError::Broken(text) => Error::environment(text).into(),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if let Some(unlogged) = FAILURES.pass(Instant::now()) {
            tracing::error!(%error, unlogged, "internal failure");
        }
        Self::http(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The server failed; nothing was changed. It is safe to send the same request again.",
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut document = json!({
            "type": self.uri,
            "title": self.title,
            "status": self.status.as_u16(),
        });
        if let Some(detail) = &self.detail {
            document["detail"] = json!(detail);
        }
        if let Some(task) = &self.task {
            document["taskid"] = json!(task.to_string());
        }
        let media_type = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, document.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, media_type);
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // Lets the outer layer count refusals by kind.
        response.extensions_mut().insert(Label(self.label()));
        response
    }
}

/// The kind of a refusal, attached to its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label(pub(crate) &'static str);
