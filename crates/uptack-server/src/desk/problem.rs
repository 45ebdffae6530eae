//! Refusals as callers see them: RFC 9457 documents.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;
use std::time::{Duration, Instant};

use crate::{base::logging::Throttle, desk::store::State, error::Error};

/// A refusal, with the status it is answered with.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    state: Option<State>,
    retry_after: Option<u32>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), state: None, retry_after: None }
    }

    /// Says what state the query is in.
    pub(crate) fn in_state(self, state: State) -> Self {
        Self { state: Some(state), ..self }
    }

    /// Says when it may be worth trying again.
    pub(crate) fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if error.is_input() {
            return Self::new(StatusCode::BAD_REQUEST, error.to_string());
        }
        static FAILURES: Throttle = Throttle::new(Duration::from_secs(60));
        if let Some(unlogged) = FAILURES.pass(Instant::now()) {
            tracing::error!(%error, unlogged, "internal failure");
        }
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The desk failed; it is safe to send the same request again.")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let mut document =
            json!({"type": "about:blank", "title": title, "status": self.status.as_u16(), "detail": self.detail});
        if let Some(state) = self.state {
            document["state"] = json!(state.name());
        }
        let mut response = (self.status, document.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Lets the outer layer count refusals by kind.
        response.extensions_mut().insert(Label(title));
        response
    }
}

/// The kind of a refusal, attached to its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label(pub(crate) &'static str);
