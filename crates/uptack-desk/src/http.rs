//! The HTTP interface: for owners, for analysts, for operators.

use axum::{
    Router,
    body::Body,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::{Value, json};
use std::{fmt::Write, sync::Arc};

use crate::{
    metrics::{Gauge, Name},
    problem::{Label, Problem},
    queries::{self, Opening},
    shared::Shared,
    stream, tokens,
};

type Answer = Result<Response, Problem>;
type Desk = State<Arc<Shared>>;

/// The document that describes this interface to programs.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Largest body of a request.
const LARGEST_BODY: usize = 1024 * 1024;

/// Builds the router from the table of routes.
pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    let served = table().into_iter().fold(Router::new(), |router, (path, _, handlers)| router.route(path, handlers));
    served
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "There is nothing here; see /openapi.json.") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "This resource does not take this method.")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), outermost))
        .with_state(shared)
}

/// A path, the methods that are documented for it, and what serves them.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<Shared>>);

/// Every route.
fn table() -> Vec<Route> {
    vec![
        ("/healthz", &["get"], get(health)),
        ("/metrics", &["get"], get(metrics)),
        ("/openapi.json", &["get"], get(|| async { document("application/json", OPENAPI.to_owned()) })),
        ("/key", &["get"], get(key)),
        ("/queries", &["get", "post"], get(list).post(open)),
        ("/queries/stream", &["get"], get(follow)),
        ("/queries/{query}", &["delete", "get"], get(status).delete(cancel)),
        ("/queries/{query}/result", &["post"], post(result)),
    ]
}

/// Counts, logs and signs every answer.
async fn outermost(State(shared): Desk, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let route = request.extensions().get::<axum::extract::MatchedPath>().map(|path| path.as_str().to_owned());
    let mut response = next.run(request).await;
    let label = response.extensions().get::<Label>().map(|label| label.0);
    shared.metrics.add(Name::Requests, label.unwrap_or("ok"));
    tracing::debug!(%method, route = route.as_deref(), status = response.status().as_u16(), "request");
    let version = HeaderValue::from_static(concat!("uptack/", env!("CARGO_PKG_VERSION")));
    response.headers_mut().insert(header::SERVER, version);
    response
}

async fn health(State(shared): Desk) -> Answer {
    shared.store.run(|store| store.setting("layout")).await?;
    Ok(json_answer(StatusCode::OK, &json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")})))
}

async fn metrics(State(shared): Desk) -> Answer {
    let census = shared.store.run(|store| store.census()).await?;
    let queries = census.iter().map(|(state, count)| (format!("{{state=\"{}\"}}", state.name()), *count)).collect();
    let streams = (shared.config.max_connections / 2).max(1) - shared.streams.available_permits();
    let text = shared.metrics.render(&[
        Gauge { metric: "uptack_desk_queries", help: "Queries, by state.", values: queries },
        Gauge {
            metric: "uptack_desk_streams",
            help: "Owners who follow the stream.",
            values: vec![(String::new(), streams as u64)],
        },
    ]);
    Ok(document("text/plain; version=0.0.4; charset=utf-8", text))
}

async fn key(State(shared): Desk) -> Response {
    json_answer(StatusCode::OK, &json!({"signer": shared.signer.public().to_string()}))
}

/// Nothing of the request is looked at: every owner gets the same bytes.
async fn list(State(shared): Desk) -> Response {
    let listing = Arc::clone(&shared.listing.borrow());
    let now = shared.now();
    let mut text = "{\"queries\":[".to_owned();
    for (index, listed) in listing.iter().filter(|listed| listed.is_open(now)).enumerate() {
        let _ = write!(text, "{}{}", if index > 0 { "," } else { "" }, listed.text);
    }
    text.push_str("]}");
    document("application/json", text)
}

async fn follow(State(shared): Desk) -> Answer {
    stream::respond(&shared)
}

async fn open(State(shared): Desk, headers: HeaderMap, body: Body) -> Answer {
    let analyst = authorize(&shared, &headers).await?;
    let body = read(&shared, body).await?;
    let opening: Opening = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, format!("The body is not a query: {error}")))?;
    Ok(json_answer(StatusCode::CREATED, &queries::open(&shared, &analyst, opening).await?))
}

async fn status(State(shared): Desk, Path(query): Path<String>) -> Answer {
    Ok(json_answer(StatusCode::OK, &queries::status(&shared, &query).await?))
}

async fn cancel(State(shared): Desk, Path(query): Path<String>, headers: HeaderMap) -> Answer {
    let analyst = authorize(&shared, &headers).await?;
    Ok(json_answer(StatusCode::OK, &queries::cancel(&shared, &analyst, &query).await?))
}

async fn result(State(shared): Desk, Path(query): Path<String>, headers: HeaderMap) -> Answer {
    let analyst = authorize(&shared, &headers).await?;
    Ok(document("application/json", queries::result(&shared, &analyst, &query).await?))
}

/// The analyst whose token the request shows.
async fn authorize(shared: &Shared, headers: &HeaderMap) -> Result<String, Problem> {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let known = match shown {
        Some(token) => tokens::analyst(&shared.tokens(), token)?,
        None => None,
    };
    known.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "This needs the token of an analyst."))
}

/// Reads a body of bounded size in bounded time.
async fn read(shared: &Shared, body: Body) -> Result<Vec<u8>, Problem> {
    let collected = Limited::new(body, LARGEST_BODY).collect();
    match tokio::time::timeout(shared.config.request_timeout, collected).await {
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "The request's body did not arrive in time.")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("The body is larger than {LARGEST_BODY} bytes.")))
        }
        Ok(Err(_)) => Err(Problem::new(StatusCode::BAD_REQUEST, "The request's body was cut off.")),
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
    }
}

fn json_answer(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn document(media_type: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, media_type)], text).into_response()
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
        let table = table();
        let served = table.iter().flat_map(|(path, methods, _)| methods.iter().map(|method| (*path, *method)));
        assert_eq!(documented, served.collect());
    }
}
