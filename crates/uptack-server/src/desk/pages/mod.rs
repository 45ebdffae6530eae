//! The analyst's pages: the whole life of a question in a browser.
//!
//! They are made on the server and work without JavaScript, except for the parts that update by themselves. They call
//! the same functions as the interface for programs, and their numbers come from the same functions as those of the
//! commands.
//! No page loads anything from another host, and none contains inline scripts or styles.
//!
//! Visitors exchange a token for a cookie; [`guard`] decides who may change something.

mod ask;
mod frame;
mod guard;
mod questions;
mod sign_in;
mod spending;
mod verify;
mod work;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, header},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use std::sync::Arc;
use uptack_dap::token::TokenHash;

use crate::{base::http::document, desk::shared::DeskState};
use frame::{PageError, PageResult};
use guard::{Links, Sessions};
use work::WorkPool;

/// The state of the pages, beside the desk's own. All of it may be lost with the process.
pub(crate) struct Pages {
    shared: Arc<DeskState>,
    /// Part of the cookies' names: browsers do not tell the ports of a host apart.
    port: u16,
    sessions: Sessions,
    links: Links,
    work: WorkPool,
    plans: ask::Plans,
    outcomes: questions::EstimatedRecords,
    counts: questions::ReportCounts,
    live: questions::LiveQuestions,
}

impl Pages {
    pub(crate) fn new(shared: Arc<DeskState>, port: u16) -> Self {
        Self {
            shared,
            port,
            sessions: Sessions::default(),
            links: Links::default(),
            work: WorkPool::default(),
            plans: ask::Plans::default(),
            outcomes: questions::EstimatedRecords::default(),
            counts: questions::ReportCounts::default(),
            live: questions::LiveQuestions::default(),
        }
    }

    /// The path of a link that signs in the holder of this token, once.
    pub(crate) fn one_time_link(&self, token: TokenHash) -> String {
        let secret = self.links.issue(token, self.shared.now());
        format!("{}?{}={}", sign_in::ONCE, sign_in::LINK, secret.as_str())
    }
}

/// The path of the list of questions, the first page.
const HOME: &str = "/pages/";

/// The state that all handlers share.
type Site = State<Arc<Pages>>;
/// The result of a handler.
type PageResponse = PageResult<Response>;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const ICON: &str = include_str!("icon.svg");

/// All pages.
pub(crate) fn routes(pages: Arc<Pages>) -> Router {
    Router::new()
        .route("/", get(|| async { Redirect::to(HOME) }))
        .route("/pages", get(|| async { Redirect::to(HOME) }))
        .merge(questions::routes())
        .route("/pages/sign-in", get(sign_in::form).post(sign_in::submit))
        .route(sign_in::ONCE, get(sign_in::by_link))
        .route("/pages/sign-out", post(sign_in::sign_out))
        .route("/pages/ask", get(ask::show))
        .route("/pages/ask/plan", get(ask::fragment))
        .route("/pages/ask/chart", get(ask::chart))
        .route("/pages/ask/preview", get(ask::preview))
        .route("/pages/ask/open", post(ask::open))
        .route("/pages/spending", get(spending::show))
        .route("/pages/verify", get(verify::form).post(verify::submit))
        .route("/pages/style.css", get(|| async { document("text/css; charset=utf-8", STYLE) }))
        .route("/pages/script.js", get(|| async { document("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/pages/icon.svg", get(|| async { document("image/svg+xml", ICON) }))
        .route("/pages/{*rest}", get(|| async { PageError::not_found("There is no such page.") }))
        .layer(middleware::from_fn(guarded))
        .with_state(pages)
}

/// Headers that forbid a browser everything that the pages do not need.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    // For browsers that do not know `frame-ancestors`.
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await.into_response();
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
