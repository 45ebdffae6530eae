//! Asynchronous work, on threads of its own.

use std::future::Future;

use tokio::runtime::Runtime;

use crate::failure::{Failure, IoResultExt, Result};

/// Runs asynchronous work to its end.
pub(crate) fn block_on<T, E: Into<Failure>>(work: impl Future<Output = Result<T, E>>) -> Result<T> {
    let runtime = Runtime::new().while_writing("threads")?;
    runtime.block_on(work).map_err(Into::into)
}
