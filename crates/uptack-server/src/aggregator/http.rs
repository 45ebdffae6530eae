//! The HTTP interface: DAP-09's resources, and those for operators.

use axum::{
    Router,
    body::Body,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use uptack_dap::{
    protocol::{
        AggregateShare, AggregateShareReq, AggregationJobContinueReq, AggregationJobInitializeReq, AggregationJobResp,
        Collection, CollectionReq, DapProblemType, HpkeConfigList, Report, TimeInterval, encode,
    },
    task::AggregatorRole,
    token::TokenHash,
};

use super::{
    collection, enrolment, helper,
    metrics::Name,
    problem,
    shared::{Shared, Task},
    upload,
};
use crate::{
    aggregator::definition::Definition,
    base::{
        http::{self, METRICS_TYPE, document},
        metrics::Gauge,
        problem::Problem,
        web_pages::{self, WebPages},
    },
    error::Error,
};

type Answer = Result<Response, Problem>;
type Server = State<Arc<Shared>>;
/// A task and one of its jobs.
type JobPath = Path<(String, String)>;

/// Builds the routes that the role serves.
pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    // Web pages may fetch keys and upload; nothing else.
    let pages = WebPages::of(&shared.config.allowed_origins);
    let shared_with_pages = || middleware::from_fn_with_state(pages.clone(), web_pages::share);
    let common = Router::new().route("/hpke_config", get(hpke_config).layer(shared_with_pages()));
    let common = match shared.config.admin_token {
        Some(_) => common.route("/uptack/tasks/{task}", get(count_reports).put(add_task).delete(remove_task)),
        None => common,
    };
    let routes = match shared.config.role {
        AggregatorRole::Leader => common
            .route(
                "/tasks/{task}/reports",
                put(upload).options(async || web_pages::preflight(&Method::PUT)).layer(shared_with_pages()),
            )
            .route(
                "/tasks/{task}/collection_jobs/{job}",
                put(create_collection).post(poll_collection).delete(delete_collection),
            ),
        AggregatorRole::Helper => common
            .route("/tasks/{task}/aggregation_jobs/{job}", put(initialize_job).post(continue_job).delete(delete_job))
            .route("/tasks/{task}/aggregate_shares", post(aggregate_share)),
    };
    routes
        .fallback(|| async { Problem::http(StatusCode::NOT_FOUND, "There is nothing here.") })
        .method_not_allowed_fallback(http::no_such_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), outermost))
        .with_state(shared)
}

/// What operators look at, on a listener of its own.
pub(crate) fn operations(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .fallback(|| async {
            Problem::http(StatusCode::NOT_FOUND, "There is nothing here; see /healthz and /metrics.")
        })
        .with_state(shared)
}

async fn outermost(State(shared): Server, request: Request, next: Next) -> Response {
    http::observe(request, next, |outcome| shared.metrics.add(Name::Requests, outcome, 1)).await
}

#[derive(Deserialize)]
struct OptionalTask {
    task_id: Option<String>,
}

async fn hpke_config(State(shared): Server, Query(query): Query<OptionalTask>) -> Answer {
    // Keys are the same for all tasks; a task that is asked for must exist all the same.
    if let Some(text) = query.task_id {
        shared.task(&upload::parse_task_id(&text)?)?;
    }
    let list = HpkeConfigList::new(vec![shared.keys().current().clone()]);
    let mut response = document(HpkeConfigList::MEDIA_TYPE, encode(&list));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Ok(response)
}

async fn upload(State(shared): Server, Path(task): Path<String>, headers: HeaderMap, body: Body) -> Answer {
    let task = find_task(&shared, &task)?;
    let body = read_message(&shared, &headers, Report::MEDIA_TYPE, body, upload::largest_body(&task)).await?;
    let shown = enrolment::shown(&headers);
    let owner = task.needs_credential.then(|| shared.enrolled.owner(task.id(), shown, &body)).transpose()?;
    upload::upload(&shared, &task, &body, owner).await?;
    Ok(StatusCode::OK.into_response())
}

async fn create_collection(State(shared): Server, path: JobPath, headers: HeaderMap, body: Body) -> Answer {
    let (task, id) = find_job(&shared, &path, Caller::Collector, &headers)?;
    let body = read_message(&shared, &headers, CollectionReq::<TimeInterval>::MEDIA_TYPE, body, SMALL).await?;
    collection::create(&shared, &task, id, &body).await?;
    Ok(StatusCode::CREATED.into_response())
}

async fn poll_collection(State(shared): Server, path: JobPath, headers: HeaderMap) -> Answer {
    let (task, id) = find_job(&shared, &path, Caller::Collector, &headers)?;
    Ok(match collection::poll(&shared, &task, id).await? {
        Some(result) => document(Collection::<TimeInterval>::MEDIA_TYPE, result),
        None => (StatusCode::ACCEPTED, [(header::RETRY_AFTER, "1")]).into_response(),
    })
}

async fn delete_collection(State(shared): Server, path: JobPath, headers: HeaderMap) -> Answer {
    let (task, id) = find_job(&shared, &path, Caller::Collector, &headers)?;
    collection::delete(&shared, &task, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn initialize_job(State(shared): Server, path: JobPath, headers: HeaderMap, body: Body) -> Answer {
    let (task, id) = find_job(&shared, &path, Caller::Leader, &headers)?;
    let media_type = AggregationJobInitializeReq::<TimeInterval>::MEDIA_TYPE;
    let body = read_message(&shared, &headers, media_type, body, helper::LARGEST_REQUEST).await?;
    let answer = helper::initialize(&shared, &task, id, body).await?;
    Ok(document(AggregationJobResp::MEDIA_TYPE, answer))
}

async fn continue_job(State(shared): Server, path: JobPath, headers: HeaderMap) -> Answer {
    let (task, id) = find_job(&shared, &path, Caller::Leader, &headers)?;
    check_media_type(&headers, AggregationJobContinueReq::MEDIA_TYPE)?;
    Err(helper::continue_job(&shared, &task, &id))
}

async fn delete_job(State(shared): Server, path: JobPath, headers: HeaderMap) -> Answer {
    let (task, id) = find_job(&shared, &path, Caller::Leader, &headers)?;
    helper::delete_job(&shared, &task, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn aggregate_share(State(shared): Server, Path(task): Path<String>, headers: HeaderMap, body: Body) -> Answer {
    let task = find_task(&shared, &task)?;
    authorize(&task, Caller::Leader, &headers)?;
    let body = read_message(&shared, &headers, AggregateShareReq::<TimeInterval>::MEDIA_TYPE, body, SMALL).await?;
    let answer = helper::aggregate_share(&shared, &task, &body).await?;
    Ok(document(AggregateShare::MEDIA_TYPE, answer))
}

async fn health(State(shared): Server) -> Answer {
    shared.store.read(|connection| connection.query_row("SELECT 1 FROM meta", [], |_| Ok(())))?;
    let health = json!({
        "status": "ok",
        "role": shared.config.role,
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": "DAP-09",
        "tasks": shared.tasks().len(),
    });
    Ok(document("application/json", health.to_string()))
}

async fn metrics(State(shared): Server) -> Answer {
    let pending = shared.store.read(|connection| {
        connection.query_row("SELECT coalesce(sum(reports), 0) FROM pending", [], |row| row.get::<_, i64>(0))
    })?;
    let text = shared.metrics.render(&[
        Gauge::single("uptack_pending_reports", "Reports stored and not yet aggregated.", pending as u64),
        Gauge::single("uptack_tasks", "Tasks served.", shared.tasks().len() as u64),
    ]);
    Ok(document(METRICS_TYPE, text))
}

async fn add_task(State(shared): Server, Path(task): Path<String>, headers: HeaderMap, body: Body) -> Answer {
    authorize_operator(&shared, &headers)?;
    let id = upload::parse_task_id(&task)?;
    let body = http::read_body(body, SMALL, shared.config.request_timeout).await?;
    let definition = Definition::parse(&body)?;
    if definition.task_id() != id {
        return Err(Error::input("the path and the definition name different tasks").into());
    }
    super::add_task(&shared, definition).await?;
    Ok(StatusCode::CREATED.into_response())
}

/// How many reports of a task arrived; who sent them, and when, is not said.
async fn count_reports(State(shared): Server, Path(task): Path<String>, headers: HeaderMap) -> Answer {
    authorize_operator(&shared, &headers)?;
    let task = find_task(&shared, &task)?;
    let reports = shared.count_reports(&task)?;
    Ok(document("application/json", json!({"reports": reports}).to_string()))
}

async fn remove_task(State(shared): Server, Path(task): Path<String>, headers: HeaderMap) -> Answer {
    authorize_operator(&shared, &headers)?;
    let id = upload::parse_task_id(&task)?;
    if shared.remove_task(&id).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(problem::dap(DapProblemType::UnrecognizedTask, &id))
    }
}

/// Largest body of a request that is not an upload or a job.
const SMALL: usize = 1024 * 1024;

fn find_task(shared: &Shared, text: &str) -> Result<Arc<Task>, Problem> {
    shared.task(&upload::parse_task_id(text)?)
}

/// Whose token a request has to show.
#[derive(Clone, Copy)]
enum Caller {
    Collector,
    Leader,
}

/// The task that a path names, if the caller may touch its jobs, and the name of the job.
fn find_job<T: std::str::FromStr>(
    shared: &Shared,
    Path((task, job)): &JobPath,
    caller: Caller,
    headers: &HeaderMap,
) -> Result<(Arc<Task>, T), Problem> {
    let task = find_task(shared, task)?;
    authorize(&task, caller, headers)?;
    let id = job.parse().map_err(|_| {
        Problem::http(StatusCode::BAD_REQUEST, "The job in the path is not 16 bytes of unpadded base64url.")
    })?;
    Ok((task, id))
}

fn check_media_type(headers: &HeaderMap, expected: &'static str) -> Result<(), Problem> {
    if headers.get(header::CONTENT_TYPE).is_some_and(|value| value == expected) {
        return Ok(());
    }
    Err(Problem::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("The Content-Type must be {expected}.")))
}

fn authorize(task: &Task, caller: Caller, headers: &HeaderMap) -> Result<(), Problem> {
    let expected = match caller {
        Caller::Collector => &task.definition.collector_token_hash,
        Caller::Leader => &task.definition.aggregator_token_hash,
    };
    if shows(headers, expected.as_ref()) { Ok(()) } else { Err(task.problem(DapProblemType::UnauthorizedRequest)) }
}

fn authorize_operator(shared: &Shared, headers: &HeaderMap) -> Result<(), Problem> {
    let expected = shared.config.admin_token.as_ref().map(|token| token.hash());
    if shows(headers, expected.as_ref()) {
        return Ok(());
    }
    Err(Problem::http(StatusCode::FORBIDDEN, "The request's authorization is not valid."))
}

fn shows(headers: &HeaderMap, expected: Option<&TokenHash>) -> bool {
    expected.zip(token(headers)).is_some_and(|(hash, token)| hash.matches(token))
}

/// The token that a request shows, in either of the headers that DAP deployments use.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    if headers.contains_key(header::AUTHORIZATION) {
        return http::bearer(headers);
    }
    headers.get("dap-auth-token").map(|value| value.as_bytes())
}

/// Reads a message of the protocol: its type as expected, its size and its time bounded.
async fn read_message(
    shared: &Shared,
    headers: &HeaderMap,
    media_type: &'static str,
    body: Body,
    limit: usize,
) -> Result<Vec<u8>, Problem> {
    check_media_type(headers, media_type)?;
    http::read_body(body, limit, shared.config.request_timeout).await
}
