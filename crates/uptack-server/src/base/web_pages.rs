//! Which web pages may call a server: those of the origins that its operator lists, and only the routes that a page for
//! people needs.
//!
//! A browser lets a page read another server's answer only if that server names the page's origin (CORS). Without a
//! list no page can; programs other than browsers are not affected.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::sync::Arc;
use uptack_dap::{address::Origin, credential};

/// For how many seconds a browser may remember that a page was let through.
const REMEMBERED: &str = "600";

/// The origins of pages that are let through; none by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebPages(Arc<[HeaderValue]>);

impl WebPages {
    /// Pages of these origins.
    pub(crate) fn of(origins: &[Origin]) -> Self {
        let value = |origin: &Origin| HeaderValue::try_from(origin.to_string()).ok();
        Self(origins.iter().filter_map(value).collect())
    }

    fn let_through(&self, request: &Request) -> Option<HeaderValue> {
        let origin = request.headers().get(header::ORIGIN)?;
        self.0.iter().find(|allowed| *allowed == origin).cloned()
    }
}

/// Answers a route's requests so that pages of the origins can read it, refusals included.
pub(crate) async fn share(State(pages): State<WebPages>, request: Request, next: Next) -> Response {
    let page = pages.let_through(&request);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    // Also if the page is not let through: a cache must not give its answer to another page.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    }
    response
}

/// Answers the request by which a browser asks which method and headers a page may use.
///
/// [`share`] says to whom that is granted.
pub(crate) fn preflight(method: &Method) -> Response {
    let granted = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, method.to_string()),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, format!("content-type, {}", credential::HEADER)),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED.to_owned()),
    ];
    (StatusCode::OK, granted).into_response()
}
