//! What the HTTP interfaces of both servers share: reading requests within limits, showing answers, counting them.

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::time::Duration;

use super::problem::{Label, Problem};

/// The media type of [counters](super::metrics).
pub(crate) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Has a request answered, counts the answer by its outcome, logs it and signs it.
pub(crate) async fn observe(request: Request, next: Next, count: impl FnOnce(&'static str)) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<axum::extract::MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = next.run(request).await;
    let refusal = response.extensions().get::<Label>().map(|label| label.0);
    count(refusal.unwrap_or("ok"));
    let status = response.status().as_u16();
    // The route, not the path: names of tasks, jobs and queries are for the protocol, not for the log.
    tracing::debug!(%method, route = route.as_deref(), status, refusal, "request");
    let version = HeaderValue::from_static(concat!("uptack/", env!("CARGO_PKG_VERSION")));
    response.headers_mut().insert(header::SERVER, version);
    response
}

/// The bearer token that a request shows.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(header::AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")
}

/// Reads a body of bounded size in bounded time.
pub(crate) async fn read_body(body: Body, limit: usize, patience: Duration) -> Result<Vec<u8>, Problem> {
    let collected = Limited::new(body, limit).collect();
    match tokio::time::timeout(patience, collected).await {
        Err(_) => Err(Problem::http(StatusCode::REQUEST_TIMEOUT, "The request's body did not arrive in time.")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::http(StatusCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {limit} bytes.")))
        }
        Ok(Err(_)) => Err(Problem::http(StatusCode::BAD_REQUEST, "The request's body was cut off.")),
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
    }
}

/// A successful answer with a body.
pub(crate) fn document(media_type: &'static str, bytes: impl Into<Bytes>) -> Response {
    ([(header::CONTENT_TYPE, media_type)], bytes.into()).into_response()
}

/// What every interface says where it has nothing.
pub(crate) async fn no_such_method() -> Problem {
    Problem::http(StatusCode::METHOD_NOT_ALLOWED, "This resource does not support this method.")
}
