//! The HTTP interface: DAP-09's resources, and those for operators.

use axum::{
    Router,
    body::Body,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodFilter, MethodRouter, get, on},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{convert::Infallible, str::FromStr, sync::Arc};
use uptack_dap::{
    protocol::{
        self, AggregationJobId, AggregatorRole, CollectionJobId, Endpoint, KeysQuery, ProblemType, TaskId,
        keys_to_bytes,
    },
    signed::PublicKey,
    token::TokenHash,
};

use crate::{
    aggregator::{
        Config, DeskToken,
        aggregation::helper,
        collection::{self, aggregate_share},
        reports,
        state::{AggregatorCounter, AggregatorState},
        tasks::{ServedTask, definition::TaskDefinition, enrolment},
    },
    base::{
        bodies::{ReadBody, Sender},
        http::{self, METRICS_TYPE, Reply, document, json_document},
        listener::ClientAddress,
        metrics::Gauge,
        problem::{Answer, Problem},
        web_pages::{self, WebPages},
    },
    error::Error,
};

type SharedState = State<Arc<AggregatorState>>;

/// Builds the routes that the role serves.
pub(crate) fn routes(shared: Arc<AggregatorState>) -> Router {
    let pages = WebPages::of(&shared.config.allowed_origins);
    let mut routes = match shared.config.role {
        AggregatorRole::Leader => leader_routes(&pages),
        AggregatorRole::Helper => helper_routes(),
    };
    routes = routes.route(Endpoint::FETCH_KEYS.path, open_to(&pages, on(filter(Endpoint::FETCH_KEYS), hpke_config)));
    if shared.config.admin_token.is_some() || !shared.config.desk_tokens.is_empty() {
        routes = routes.route("/uptack/tasks", get(list_tasks));
        routes = routes.route("/uptack/tasks/{task}", get(count_reports).put(add_task).delete(remove_task));
    }
    routes
        .fallback(|| async { Problem::not_found("There is nothing here.") })
        .method_not_allowed_fallback(http::no_such_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), outermost))
        .with_state(shared)
}

fn leader_routes(pages: &WebPages) -> Router<Arc<AggregatorState>> {
    let reports =
        on(filter(Endpoint::UPLOAD), upload).options(async || web_pages::preflight(&method(Endpoint::UPLOAD)));
    let collections = on(filter(Endpoint::START_COLLECTION), create_collection)
        .on(filter(Endpoint::POLL_COLLECTION), poll_collection)
        .on(filter(Endpoint::DELETE_COLLECTION), delete_collection);
    Router::new()
        .route(Endpoint::UPLOAD.path, open_to(pages, reports))
        .route(Endpoint::START_COLLECTION.path, collections)
}

fn helper_routes() -> Router<Arc<AggregatorState>> {
    let jobs = on(filter(Endpoint::START_AGGREGATION), initialize_job)
        .on(filter(Endpoint::CONTINUE_AGGREGATION), continue_job)
        .on(filter(Endpoint::DELETE_AGGREGATION), delete_job);
    Router::new()
        .route(Endpoint::START_AGGREGATION.path, jobs)
        .route(Endpoint::AGGREGATE_SHARE.path, on(filter(Endpoint::AGGREGATE_SHARE), aggregate_share))
}

fn filter(endpoint: Endpoint) -> MethodFilter {
    method(endpoint).try_into().expect("a router knows the methods of the protocol")
}

fn method(endpoint: Endpoint) -> Method {
    endpoint.method.parse().expect("the methods of the protocol are those of HTTP")
}

/// A resource that web pages may use. They may fetch keys and upload; nothing else.
fn open_to(pages: &WebPages, resource: MethodRouter<Arc<AggregatorState>>) -> MethodRouter<Arc<AggregatorState>> {
    resource.layer(middleware::from_fn_with_state(pages.clone(), web_pages::share))
}

/// What operators look at, on a listener of its own.
pub(crate) fn operations(shared: Arc<AggregatorState>) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .fallback(|| async { Problem::not_found("There is nothing here; see /healthz and /metrics.") })
        .with_state(shared)
}

async fn outermost(State(shared): SharedState, request: Request, next: Next) -> Response {
    http::observe(request, next, |outcome| shared.metrics.add(AggregatorCounter::Requests, outcome, 1)).await
}

async fn hpke_config(State(shared): SharedState, Query(query): Query<KeysQuery>) -> Reply {
    // All tasks have the same keys; a task that is named must exist nevertheless.
    if let Some(text) = query.task_id {
        find_task(&shared, &text)?;
    }
    let keys = keys_to_bytes(vec![shared.keys().current().clone()]);
    let mut response = answer(Endpoint::FETCH_KEYS, keys);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Ok(response)
}

async fn upload(State(shared): SharedState, Path(task): Path<String>, message: Message) -> Reply {
    let task = find_task(&shared, &task)?;
    let shown = enrolment::shown(&message.headers);
    let sender = message.stranger;
    let body = message.read(&shared, Endpoint::UPLOAD, reports::largest_body(&task), sender).await?;
    let owner = task.needs_credential.then(|| shared.enrolled.owner(task.id(), shown, &body)).transpose()?;
    reports::upload(&shared, &task, &body, owner).await?;
    Ok(StatusCode::OK.into_response())
}

async fn create_collection(job: NamedJob<CollectionJobId>, message: Message) -> Reply {
    let body = message.read(&job.shared, Endpoint::START_COLLECTION, SMALL, Sender::Known).await?;
    collection::create(&job.shared, &job.task, job.id, &body).await?;
    Ok(StatusCode::CREATED.into_response())
}

async fn poll_collection(job: NamedJob<CollectionJobId>) -> Reply {
    Ok(match collection::poll(&job.shared, &job.task, job.id).await? {
        Some(result) => answer(Endpoint::POLL_COLLECTION, result),
        None => (StatusCode::ACCEPTED, [(header::RETRY_AFTER, "1")]).into_response(),
    })
}

async fn delete_collection(job: NamedJob<CollectionJobId>) -> Reply {
    collection::delete(&job.shared, &job.task, job.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn initialize_job(job: NamedJob<AggregationJobId>, message: Message) -> Reply {
    let body = message.read(&job.shared, Endpoint::START_AGGREGATION, helper::LARGEST_REQUEST, Sender::Known).await?;
    let results = helper::initialize(&job.shared, &job.task, job.id, body).await?;
    Ok(answer(Endpoint::START_AGGREGATION, results))
}

async fn continue_job(job: NamedJob<AggregationJobId>, headers: HeaderMap) -> Reply {
    check_media_type(&headers, Endpoint::CONTINUE_AGGREGATION)?;
    Err(helper::continue_job(&job.shared, &job.task, &job.id))
}

async fn delete_job(job: NamedJob<AggregationJobId>) -> Reply {
    helper::delete_job(&job.shared, &job.task, job.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn aggregate_share(State(shared): SharedState, Path(task): Path<String>, message: Message) -> Reply {
    let task = find_task(&shared, &task)?;
    authorize(&task, AuthorizedParty::Leader, &message.headers)?;
    let body = message.read(&shared, Endpoint::AGGREGATE_SHARE, SMALL, Sender::Known).await?;
    let share = aggregate_share::aggregate_share(&shared, &task, &body).await?;
    Ok(answer(Endpoint::AGGREGATE_SHARE, share))
}

/// The successful answer of an endpoint.
fn answer(endpoint: Endpoint, body: Vec<u8>) -> Response {
    document(endpoint.answer_type.expect("the endpoint's answer has a body"), body)
}

async fn health(State(shared): SharedState) -> Reply {
    shared.store.check()?;
    let health = json!({
        "status": "ok",
        "role": shared.config.role,
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": protocol::NAME,
        "tasks": shared.tasks().len(),
    });
    Ok(json_document(&health))
}

async fn metrics(State(shared): SharedState) -> Reply {
    let pending = shared.store.pending_reports()?;
    let text = shared.metrics.render(&[
        Gauge::single("uptack_pending_reports", "Reports stored and not yet aggregated.", pending),
        Gauge::single("uptack_tasks", "Tasks served.", shared.tasks().len() as u64),
        Gauge::single("uptack_body_bytes", "Bytes of request bodies under way.", shared.bodies.held() as u64),
    ]);
    Ok(document(METRICS_TYPE, text))
}

async fn add_task(Path(task): Path<String>, manager: TaskManager, body: Body) -> Reply {
    let shared = &manager.shared;
    let id = parse_task_id(&task)?;
    let body = shared.bodies.read(body, SMALL, Sender::Known).await?;
    let definition = TaskDefinition::parse(&body)?;
    if definition.task_id() != id {
        return Err(Error::input("the path and the definition name different tasks").into());
    }
    manager.check(definition.signer().as_ref())?;
    crate::aggregator::add_task(shared, definition).await?;
    Ok(StatusCode::CREATED.into_response())
}

/// The tasks that are served, of those that the caller manages.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TaskList {
    pub(crate) tasks: Vec<ListedTask>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListedTask {
    pub(crate) task: String,
    /// The desk whose card it is; none if it was defined without one.
    pub(crate) signer: Option<PublicKey>,
}

async fn list_tasks(manager: TaskManager) -> Reply {
    let listed = |task: &Arc<ServedTask>| ListedTask { task: task.id().to_string(), signer: task.signer };
    let served = manager.shared.tasks();
    let own = served.iter().filter(|task| manager.check(task.signer.as_ref()).is_ok());
    Ok(json_document(&json!(TaskList { tasks: own.map(listed).collect() })))
}

/// How many reports of a task arrived, but not who sent them or when.
async fn count_reports(Path(task): Path<String>, manager: TaskManager) -> Reply {
    let task = find_task(&manager.shared, &task)?;
    manager.check(task.signer.as_ref())?;
    let reports = manager.shared.count_reports(&task)?;
    Ok(json_document(&json!({"reports": reports})))
}

async fn remove_task(Path(task): Path<String>, manager: TaskManager) -> Reply {
    let id = parse_task_id(&task)?;
    manager.check(manager.shared.task(&id)?.signer.as_ref())?;
    if manager.shared.remove_task(&id).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(Problem::dap(ProblemType::UnrecognizedTask, &id))
    }
}

/// Largest body of a request that is not an upload or a job.
const SMALL: usize = 1024 * 1024;

/// A job that a request names, if the request carries the token of the party whose jobs these are.
struct NamedJob<T> {
    shared: Arc<AggregatorState>,
    task: Arc<ServedTask>,
    id: T,
}

impl<T: JobId> FromRequestParts<Arc<AggregatorState>> for NamedJob<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<AggregatorState>) -> Result<Self, Response> {
        let path = Path::<(String, String)>::from_request_parts(parts, shared).await;
        let Path((task, job)) = path.map_err(IntoResponse::into_response)?;
        Self::find(shared, &task, &job, &parts.headers).map_err(IntoResponse::into_response)
    }
}

impl<T: JobId> NamedJob<T> {
    fn find(shared: &Arc<AggregatorState>, task: &str, job: &str, headers: &HeaderMap) -> Answer<Self> {
        let task = find_task(shared, task)?;
        authorize(&task, T::PARTY, headers)?;
        let id = job
            .parse()
            .map_err(|_| Problem::bad_request("The job in the path is not 16 bytes of unpadded base64url."))?;
        Ok(Self { shared: Arc::clone(shared), task, id })
    }
}

/// The name of a job, which says whose it is.
trait JobId: FromStr + Send {
    const PARTY: AuthorizedParty;
}

impl JobId for CollectionJobId {
    const PARTY: AuthorizedParty = AuthorizedParty::Collector;
}

impl JobId for AggregationJobId {
    const PARTY: AuthorizedParty = AuthorizedParty::Leader;
}

/// Whose token a request must carry.
#[derive(Clone, Copy)]
enum AuthorizedParty {
    Collector,
    Leader,
}

/// Whoever may add, count and remove tasks: the operator all of them, a desk those of its own cards.
struct TaskManager {
    shared: Arc<AggregatorState>,
    /// The desk; none if it is the operator.
    desk: Option<PublicKey>,
}

impl FromRequestParts<Arc<AggregatorState>> for TaskManager {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<AggregatorState>) -> Answer<Self> {
        let address = parts.extensions.get().copied().unwrap_or(ClientAddress::UNKNOWN);
        let known = match token(&parts.headers) {
            Some(shown) => shared.brake.look_up(address, shown, || Ok(manager_with(&shared.config, shown)))?,
            None => None,
        };
        let desk = known.ok_or_else(|| Problem::forbidden("The request's authorization is not valid."))?;
        Ok(Self { shared: Arc::clone(shared), desk })
    }
}

/// Whose token is shown: the operator's, or that of a desk. Every token is compared, even after one has matched.
fn manager_with(config: &Config, shown: &[u8]) -> Option<Option<PublicKey>> {
    let operators = config.admin_token.iter().map(|token| (token, None));
    let desks = config.desk_tokens.iter().map(|DeskToken { desk, token }| (token, Some(*desk)));
    operators
        .chain(desks)
        .filter(|(token, _)| token.hash().matches(shown))
        .fold(None, |found, (_, desk)| found.or(Some(desk)))
}

impl TaskManager {
    /// Refuses a desk the tasks of another desk's cards, and those that no card defines.
    fn check(&self, signer: Option<&PublicKey>) -> Answer<()> {
        if self.desk.is_none() || self.desk.as_ref() == signer {
            return Ok(());
        }
        Err(Problem::forbidden("This token is for the tasks of its own desk's cards alone."))
    }
}

/// A message of the protocol, not yet read.
struct Message {
    headers: HeaderMap,
    body: Body,
    /// Who sent it, if no token says more.
    stranger: Sender,
}

impl<S: Send + Sync> FromRequest<S> for Message {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Infallible> {
        let (parts, body) = request.into_parts();
        Ok(Self { stranger: Sender::stranger(&parts.extensions), headers: parts.headers, body })
    }
}

impl Message {
    /// Reads a message of the expected type, within limits of size and time.
    async fn read(
        self,
        shared: &AggregatorState,
        endpoint: Endpoint,
        limit: usize,
        sender: Sender,
    ) -> Answer<ReadBody> {
        check_media_type(&self.headers, endpoint)?;
        shared.bodies.read(self.body, limit, sender).await
    }
}

/// The task that a path names.
fn find_task(shared: &AggregatorState, text: &str) -> Answer<Arc<ServedTask>> {
    shared.task(&parse_task_id(text)?)
}

fn parse_task_id(text: &str) -> Answer<TaskId> {
    text.parse().map_err(|_| Problem::bad_request("The task in the path is not 32 bytes of unpadded base64url."))
}

fn check_media_type(headers: &HeaderMap, endpoint: Endpoint) -> Answer<()> {
    let Some(expected) = endpoint.media_type else { return Ok(()) };
    if headers.get(header::CONTENT_TYPE).is_some_and(|value| value == expected) {
        return Ok(());
    }
    Err(Problem::http(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("The Content-Type must be {expected}.")))
}

fn authorize(task: &ServedTask, party: AuthorizedParty, headers: &HeaderMap) -> Answer<()> {
    let expected = match party {
        AuthorizedParty::Collector => &task.definition.collector_token_hash,
        AuthorizedParty::Leader => &task.definition.aggregator_token_hash,
    };
    if carries(headers, expected.as_ref()) { Ok(()) } else { Err(task.problem(ProblemType::UnauthorizedRequest)) }
}

fn carries(headers: &HeaderMap, expected: Option<&TokenHash>) -> bool {
    expected.zip(token(headers)).is_some_and(|(hash, token)| hash.matches(token))
}

/// The token of a request, in either of the headers that DAP deployments use.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    if headers.contains_key(header::AUTHORIZATION) {
        return http::bearer(headers);
    }
    headers.get(protocol::TOKEN_HEADER).map(|value| value.as_bytes())
}
