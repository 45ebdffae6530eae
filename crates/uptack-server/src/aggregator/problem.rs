//! The protocol's own refusals, and those of the store.

use axum::http::StatusCode;
use uptack_dap::protocol::{DapProblemType, TaskId};

use crate::aggregator::store::StoreError;
use crate::{
    base::{logging::Throttle, problem::Problem},
    error::Error,
};

/// One of the protocol's own errors. Its aborts are 400, authorization is 403.
pub(crate) fn dap(kind: DapProblemType, task: &TaskId) -> Problem {
    let status = match kind {
        DapProblemType::UnauthorizedRequest => StatusCode::FORBIDDEN,
        _ => StatusCode::BAD_REQUEST,
    };
    Problem::of_type(status, kind.type_uri(), kind.description()).with_member("taskid", task.to_string())
}

impl From<Problem> for StoreError<Problem> {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<StoreError<Problem>> for Problem {
    fn from(error: StoreError<Problem>) -> Self {
        match error {
            StoreError::Refused(problem) => problem,
            StoreError::Full => storage_full(),
            StoreError::Broken(text) => Error::environment(text).into(),
        }
    }
}

fn storage_full() -> Problem {
    // Every upload meets a full disk; one line per minute says so.
    static FULL: Throttle = Throttle::per_minute();
    if let Some(unlogged) = FULL.pass() {
        tracing::error!(unlogged, "storage is full; refusing changes until there is room");
    }
    Problem::busy("The server's storage is full; nothing was stored.", 30)
}
