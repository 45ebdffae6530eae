//! The HTTP interface: for owners and analysts, and on a listener of its own for operators.

use axum::{
    Router,
    body::Body,
    extract::{Extension, FromRequestParts, Path, Query, Request, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use uptack_dap::crypto::sha256;

use crate::{
    base::{
        bodies::Sender,
        http::{self, METRICS_TYPE, Reply, document, json_document},
        listener::ClientAddress,
        metrics::Gauge,
        problem::{Answer, Problem},
        web_pages::{self, WebPages},
    },
    desk::{
        opening,
        queries::{self, Offset},
        shared::{DeskCounter, DeskState},
        store::{self, openings},
        stream,
        tokens::{self, TokenHolder},
    },
};

type SharedDesk = State<Arc<DeskState>>;

/// The document that describes this interface to programs.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Largest body of a request.
const LARGEST_BODY: usize = 1024 * 1024;
/// Longest Idempotency-Key.
const LONGEST_KEY: usize = 128;

/// Builds the router from the table of routes, with the desk's own pages next to it.
pub(crate) fn routes(shared: Arc<DeskState>, pages: Router) -> Router {
    let web = WebPages::of(&shared.config.allowed_origins);
    let served =
        table(&web).into_iter().fold(Router::new(), |router, (path, _, handlers)| router.route(path, handlers));
    served
        .fallback(|| async { Problem::not_found("There is nothing here; see /openapi.json.") })
        .method_not_allowed_fallback(http::no_such_method)
        .with_state(Arc::clone(&shared))
        .merge(pages)
        .layer(middleware::from_fn_with_state(shared, outermost))
}

/// Health and counters of the desk, and of an embedded pair below `leader` and `helper`, for operators.
pub(crate) async fn operations(shared: &Arc<DeskState>) -> Router {
    let own = Router::new().route("/healthz", get(health)).route("/metrics", get(metrics));
    own.with_state(Arc::clone(shared))
        .merge(shared.provisioner.operations().await)
        .fallback(|| async { Problem::not_found("There is nothing here; see /healthz and /metrics.") })
        .layer(middleware::map_response(http::guarded))
}

/// A path, the methods that are documented for it, and their handlers.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<DeskState>>);

/// Every route. Only the cards of open queries may be read by web pages, of the origins that the operator lists.
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

async fn outermost(State(shared): SharedDesk, request: Request, next: Next) -> Response {
    http::observe(request, next, |outcome| shared.metrics.add(DeskCounter::Requests, outcome, 1)).await
}

async fn health(State(shared): SharedDesk) -> Reply {
    shared.store.run(|store| store.setting("layout")).await?;
    Ok(json_document(&json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})))
}

async fn metrics(State(shared): SharedDesk) -> Reply {
    let census = shared.store.run(|store| store.census()).await?;
    let text = shared.metrics.render(&[
        queries_by_state(&census),
        Gauge::single("uptack_desk_streams", "Owners who follow the stream.", shared.streams.taken() as u64),
        Gauge::single("uptack_desk_body_bytes", "Bytes of request bodies under way.", shared.bodies.held() as u64),
    ]);
    Ok(document(METRICS_TYPE, text))
}

fn queries_by_state(census: &[(store::QueryState, u64)]) -> Gauge {
    let labelled = |(state, count): &(store::QueryState, u64)| (format!("{{state=\"{}\"}}", state.name()), *count);
    let values = census.iter().map(labelled).collect();
    Gauge { metric: "uptack_desk_queries", help: "Queries, by state.", values }
}

async fn key(State(shared): SharedDesk) -> Response {
    json_document(&json!({"signer": shared.signer.public().to_string()}))
}

/// The parameters of a request, or why they cannot be read.
type ParsedQuery<T> = Result<Query<T>, QueryRejection>;

fn valid<T>(query: ParsedQuery<T>) -> Answer<T> {
    match query {
        Ok(Query(parameters)) => Ok(parameters),
        Err(error) => Err(Problem::bad_request(error.body_text())),
    }
}

#[derive(Deserialize)]
struct After {
    after: Option<String>,
}

/// Every owner gets the same bytes, page by page.
async fn list(State(shared): SharedDesk, query: ParsedQuery<After>, headers: HeaderMap) -> Reply {
    let After { after } = valid(query)?;
    // The listing may be a moment behind the clock; if it cannot be made anew, the log says why, and the last one is
    // served.
    let _ = shared.refresh().await;
    let page = shared.listing.borrow().page(after.as_deref()).clone();
    let cached = [(header::ETAG, page.tag.clone()), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    if names_tag(&headers, &page.tag) {
        return Ok((StatusCode::NOT_MODIFIED, cached).into_response());
    }
    Ok((cached, document("application/json", page.bytes)).into_response())
}

/// Whether the caller already has the page with this tag.
fn names_tag(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut items = lines.flat_map(|line| line.split(',')).map(str::trim);
    items.any(|item| item == "*" || item.trim_start_matches("W/") == tag)
}

/// Lets caches keep something that never changes.
const FOREVER: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "public, max-age=31536000, immutable")];

/// A card never changes; that of an open query is for everybody, and the same bytes for all.
async fn card(
    State(shared): SharedDesk,
    Path(query): Path<String>,
    Extension(address): Extension<ClientAddress>,
    headers: HeaderMap,
) -> Reply {
    let open = shared.listing.borrow().card(&query).cloned();
    if let Some(bytes) = open {
        return Ok((FOREVER, document("application/json", bytes)).into_response());
    }
    let caller = authorize(&shared, address, &headers)
        .map_err(|_| Problem::not_found("There is no such open query; other cards are for their analysts."))?;
    Ok(document("application/json", queries::card(&shared, &caller, &query).await?))
}

/// The queries that an analyst asked, page by page.
async fn own(State(shared): SharedDesk, caller: TokenHolder, query: ParsedQuery<Offset>) -> Reply {
    let Offset { from } = valid(query)?;
    Ok(json_document(&queries::page(&shared, &caller, from).await?))
}

async fn follow(State(shared): SharedDesk, Extension(origin): Extension<ClientAddress>) -> Reply {
    stream::respond(&shared, origin)
}

async fn open(State(shared): SharedDesk, caller: TokenHolder, headers: HeaderMap, body: Body) -> Reply {
    let key = idempotency_key(&headers)?;
    let body = shared.bodies.read(body, LARGEST_BODY, Sender::Known).await?;
    let request = openings::OpeningRequest { analyst: caller.name, key, digest: sha256(&body) };
    let opened = opening::open(&shared, request, &body).await?;
    Ok((StatusCode::CREATED, json_document(&opened)).into_response())
}

/// A key is not optional: owners pay for every query that is opened, even if a repeated request opened it by mistake.
fn idempotency_key(headers: &HeaderMap) -> Answer<String> {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(key.to_owned());
    }
    let detail = format!(
        "The header Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters that you use for this request \
         alone, such as a random UUID. Send the same key when you repeat the request: it is then carried out once."
    );
    Err(Problem::bad_request(detail))
}

async fn status(State(shared): SharedDesk, Path(query): Path<String>) -> Reply {
    Ok(json_document(&queries::status(&shared, &query).await?))
}

async fn cancel(State(shared): SharedDesk, Path(query): Path<String>, caller: TokenHolder) -> Reply {
    Ok(json_document(&queries::cancel(&shared, &caller, &query).await?))
}

async fn result(State(shared): SharedDesk, Path(query): Path<String>, caller: TokenHolder) -> Reply {
    Ok(document("application/json", queries::result(&shared, &caller, &query).await?))
}

/// Refuses requests without the token of an analyst or an administrator.
impl FromRequestParts<Arc<DeskState>> for TokenHolder {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<DeskState>) -> Answer<Self> {
        let address = parts.extensions.get().copied().unwrap_or(ClientAddress::UNKNOWN);
        authorize(shared, address, &parts.headers)
    }
}

/// Whose token the request shows.
fn authorize(shared: &DeskState, address: ClientAddress, headers: &HeaderMap) -> Answer<TokenHolder> {
    let known = match http::bearer(headers) {
        Some(token) => shared.brake.look_up(address, token, || tokens::caller(&shared.tokens(), token))?,
        None => None,
    };
    known.ok_or_else(|| Problem::http(StatusCode::UNAUTHORIZED, "This needs the token of an analyst."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
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
