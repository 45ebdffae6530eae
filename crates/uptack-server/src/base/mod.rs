//! What both servers are built on: listening, logs, counters, refusals, state in SQLite and its copies.

pub(crate) mod backup;
pub(crate) mod http;
pub mod listener;
pub(crate) mod locks;
pub mod logging;
pub(crate) mod metrics;
pub(crate) mod problem;
pub(crate) mod sqlite;
pub(crate) mod web_pages;
