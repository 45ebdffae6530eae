//! The HTTP interface: for owners and analysts, and on a listener of its own for operators.

use axum::{
    Router,
    body::Body,
    extract::{Extension, Path, Query, Request, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

use uptack_dap::digest::sha256;

use crate::{
    base::{
        http::{self, METRICS_TYPE, document},
        listener::Origin,
        metrics::Gauge,
        problem::Problem,
        web_pages::{self, WebPages},
    },
    desk::{
        metrics::Name,
        openings,
        overview::{self, Offset},
        queries,
        shared::Shared,
        stream,
        tokens::{self, Caller},
    },
};

type Answer = Result<Response, Problem>;
type Desk = State<Arc<Shared>>;

/// The document that describes this interface to programs.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Largest body of a request.
const LARGEST_BODY: usize = 1024 * 1024;
/// Longest Idempotency-Key.
const LONGEST_KEY: usize = 128;

/// Builds the router from the table of routes, with the desk's own pages beside it.
pub(crate) fn routes(shared: Arc<Shared>, pages: Router) -> Router {
    let web = WebPages::of(&shared.config.allowed_origins);
    let served =
        table(&web).into_iter().fold(Router::new(), |router, (path, _, handlers)| router.route(path, handlers));
    served
        .fallback(|| async { Problem::http(StatusCode::NOT_FOUND, "There is nothing here; see /openapi.json.") })
        .method_not_allowed_fallback(http::no_such_method)
        .with_state(Arc::clone(&shared))
        .merge(pages)
        .layer(middleware::from_fn_with_state(shared, outermost))
}

/// What operators look at: health and counters of the desk, and of an embedded pair below `leader` and `helper`.
pub(crate) async fn operations(shared: &Arc<Shared>) -> Router {
    let own = Router::new().route("/healthz", get(health)).route("/metrics", get(metrics));
    own.with_state(Arc::clone(shared)).merge(shared.provisioner.operations().await).fallback(|| async {
        Problem::http(StatusCode::NOT_FOUND, "There is nothing here; see /healthz and /metrics.")
    })
}

/// A path, the methods that are documented for it, and what serves them.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<Shared>>);

/// Every route. Of them, web pages of the operator's list may read the cards of open queries.
fn table(pages: &WebPages) -> Vec<Route> {
    let shared_with_pages = middleware::from_fn_with_state(pages.clone(), web_pages::share);
    vec![
        ("/openapi.json", &["get"], get(|| async { document("application/json", OPENAPI) })),
        ("/key", &["get"], get(key)),
        ("/queries", &["get", "post"], get(list).post(open)),
        ("/queries/own", &["get"], get(own)),
        ("/queries/stream", &["get"], get(follow)),
        ("/queries/{query}", &["delete", "get"], get(status).delete(cancel)),
        ("/queries/{query}/card", &["get"], get(card).layer(shared_with_pages)),
        ("/queries/{query}/result", &["post"], post(result)),
    ]
}

async fn outermost(State(shared): Desk, request: Request, next: Next) -> Response {
    http::observe(request, next, |outcome| shared.metrics.add(Name::Requests, outcome, 1)).await
}

async fn health(State(shared): Desk) -> Answer {
    shared.store.run(|store| store.setting("layout")).await?;
    Ok(json_answer(StatusCode::OK, &json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})))
}

async fn metrics(State(shared): Desk) -> Answer {
    let census = shared.store.run(|store| store.census()).await?;
    let queries = census.iter().map(|(state, count)| (format!("{{state=\"{}\"}}", state.name()), *count)).collect();
    let text = shared.metrics.render(&[
        Gauge { metric: "uptack_desk_queries", help: "Queries, by state.", values: queries },
        Gauge::single("uptack_desk_streams", "Owners who follow the stream.", shared.streams.taken() as u64),
    ]);
    Ok(document(METRICS_TYPE, text))
}

async fn key(State(shared): Desk) -> Response {
    json_answer(StatusCode::OK, &json!({"signer": shared.signer.public().to_string()}))
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
}

/// Every owner gets the same bytes, page by page.
async fn list(State(shared): Desk, query: Result<Query<After>, QueryRejection>, headers: HeaderMap) -> Answer {
    let Query(After { after }) = query.map_err(|error| Problem::http(StatusCode::BAD_REQUEST, error.body_text()))?;
    // It may be a moment behind the clock; if it cannot be made anew, the one before is served, and the log says why.
    let _ = shared.refresh().await;
    let page = shared.listing.borrow().page(after.as_deref()).clone();
    let cached = [(header::ETAG, page.tag.clone()), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if names_tag(&headers, &page.tag) {
        return Ok((StatusCode::NOT_MODIFIED, cached).into_response());
    }
    Ok((cached, document("application/json", page.bytes)).into_response())
}

/// Whether the caller has what the tag stands for.
fn names_tag(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let Ok(tag) = tag.to_str() else { return false };
    let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .any(|item| item == "*" || item.trim_start_matches("W/") == tag)
}

/// A card never changes; that of an open query is for everybody, and the same bytes for all.
async fn card(State(shared): Desk, Path(query): Path<String>, headers: HeaderMap) -> Answer {
    let open = shared.listing.borrow().card(&query).cloned();
    if let Some(bytes) = open {
        let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
        return Ok(([(header::CACHE_CONTROL, forever)], document("application/json", bytes)).into_response());
    }
    let caller = authorize(&shared, &headers).map_err(|_| {
        Problem::http(StatusCode::NOT_FOUND, "There is no such open query; other cards are for their analysts.")
    })?;
    Ok(document("application/json", queries::card(&shared, &caller, &query).await?))
}

/// What an analyst asked, page by page.
async fn own(State(shared): Desk, query: Result<Query<Offset>, QueryRejection>, headers: HeaderMap) -> Answer {
    let caller = authorize(&shared, &headers)?;
    let Query(Offset { from }) = query.map_err(|error| Problem::http(StatusCode::BAD_REQUEST, error.body_text()))?;
    Ok(json_answer(StatusCode::OK, &overview::page(&shared, &caller, from).await?))
}

async fn follow(State(shared): Desk, Extension(origin): Extension<Origin>) -> Answer {
    stream::respond(&shared, origin)
}

async fn open(State(shared): Desk, headers: HeaderMap, body: Body) -> Answer {
    let analyst = authorize(&shared, &headers)?.name;
    let key = idempotency_key(&headers)?;
    let body = http::read_body(body, LARGEST_BODY, shared.config.request_timeout).await?;
    let request = openings::Request { analyst, key, digest: sha256(&body) };
    Ok(json_answer(StatusCode::CREATED, &queries::open(&shared, request, &body).await?))
}

/// A key is not optional: owners pay for every query that is opened, also for one that a repeated request opened.
fn idempotency_key(headers: &HeaderMap) -> Result<String, Problem> {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(key.to_owned());
    }
    let detail = format!(
        "The header Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters that you use for this request \
         alone, such as a random UUID. Send the same key when you repeat the request: it is then carried out once."
    );
    Err(Problem::http(StatusCode::BAD_REQUEST, detail))
}

async fn status(State(shared): Desk, Path(query): Path<String>) -> Answer {
    Ok(json_answer(StatusCode::OK, &queries::status(&shared, &query).await?))
}

async fn cancel(State(shared): Desk, Path(query): Path<String>, headers: HeaderMap) -> Answer {
    let caller = authorize(&shared, &headers)?;
    Ok(json_answer(StatusCode::OK, &queries::cancel(&shared, &caller, &query).await?))
}

async fn result(State(shared): Desk, Path(query): Path<String>, headers: HeaderMap) -> Answer {
    let caller = authorize(&shared, &headers)?;
    Ok(document("application/json", queries::result(&shared, &caller, &query).await?))
}

/// Whose token the request shows.
fn authorize(shared: &Shared, headers: &HeaderMap) -> Result<Caller, Problem> {
    let known = match http::bearer(headers) {
        Some(token) => tokens::caller(&shared.tokens(), token)?,
        None => None,
    };
    known.ok_or_else(|| Problem::http(StatusCode::UNAUTHORIZED, "This needs the token of an analyst."))
}

fn json_answer(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_served_is_what_is_documented() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
        let paths = document["paths"].as_object().unwrap();
        let documented: BTreeSet<(&str, &str)> = paths
            .iter()
            .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(|key| (path.as_str(), key.as_str())))
            .filter(|(_, key)| *key != "parameters")
            .collect();
        let table = table(&WebPages::default());
        let served = table.iter().flat_map(|(path, methods, _)| methods.iter().map(|method| (*path, *method)));
        assert_eq!(documented, served.collect());
    }
}
