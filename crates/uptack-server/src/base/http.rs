//! HTTP for both servers: making answers, counting them.

use axum::{
    body::Bytes,
    extract::{MatchedPath, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::Value;

use super::problem::{Answer, Label, Problem};

/// What a handler gives back: a response or a refusal.
pub(crate) type Reply = Answer<Response>;

/// The media type of [counters](super::metrics).
pub(crate) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The name that servers send with every answer.
const SERVER: HeaderValue = HeaderValue::from_static(concat!("uptack/", env!("CARGO_PKG_VERSION")));

/// Passes a request on, counts the answer by its outcome, logs it and adds the server's name.
pub(crate) async fn observe(request: Request, next: Next, count: impl FnOnce(&'static str)) -> Response {
    let method = request.method().clone();
    // The route, not the path: names of tasks, jobs and queries are for the protocol, not for the log.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let refusal = response.extensions().get::<Label>().map(|label| label.0);
    count(refusal.unwrap_or("ok"));
    let status = response.status().as_u16();
    tracing::debug!(%method, route = route.as_ref().map(MatchedPath::as_str), status, refusal, "request");
    response.headers_mut().insert(header::SERVER, SERVER);
    guarded(response).await
}

/// Forbids browsers to guess the type of an answer, to show it within another site, and to load or run anything from it.
/// Pages have a policy of their own.
pub(crate) async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(header::AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")
}

/// A successful answer with a body.
pub(crate) fn document(media_type: &'static str, bytes: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, media_type)], bytes.into()).into_response()
}

/// A successful answer in JSON.
pub(crate) fn json_document(value: &Value) -> Response {
    document("application/json", value.to_string())
}

/// The answer to a method that a resource does not have.
pub(crate) async fn no_such_method() -> Problem {
    Problem::http(StatusCode::METHOD_NOT_ALLOWED, "This resource does not support this method.")
}
