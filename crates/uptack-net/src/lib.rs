//! The private write: no server ever sees an answer.
//!
//! An owner splits its cell into two shares and seals one to each of two *aggregators*, the leader
//! and the helper. The two verify together that the shares belong to exactly one cell, without
//! learning which, and add them up. The *collector* gets two sums, and only for batches of a
//! minimum size. The protocol is the IETF's DAP, draft 09, with Prio3 of VDAF draft 08, so that
//! every part here can be exchanged for Janus 0.7's, and is tested against its published crates.
//!
//! - [`task`]: what the parties of a task have to know, as files; also for Janus.
//! - [`definition`]: what an aggregator is asked to serve. [`admission`]: what its operator lets it serve.
//! - [`pair_secret`]: what the two aggregators share, and derive each task's keys from.
//! - [`aggregator`]: a leader or a helper, with durable state.
//! - [`pair`]: both in one process.
//! - [`client`]: a report from a cell. [`collector`]: a batch to counts.
//! - [`ballot`]: many queries in one report.
//! - [`credential`]: what an enrolled owner shows with a report.
//! - [`signed`]: query cards under their signature. [`listing`]: fetching them from a desk. [`card_task`]: the one task
//!   that a card defines.
//! - [`private`]: folders and files for their owner alone. [`backup`]: copies of state that is being written.
//! - [`server`], [`web`]: listening with limits, and calling with limits.
//! - [`dap`]: everything that depends on the drafts.

pub mod admission;
pub mod aggregator;
pub mod backup;
pub mod ballot;
pub mod card_task;
pub mod client;
pub mod clock;
pub mod collector;
pub mod credential;
pub mod dap;
pub mod definition;
pub mod error;
#[doc(hidden)]
pub mod fuzzing;
mod janus;
pub mod listing;
pub mod logging;
pub mod pair;
pub mod pair_secret;
pub mod private;
pub mod server;
pub mod signed;
mod store;
pub mod task;
mod tls_errors;
pub mod token;
pub mod web;

pub use error::{Error, Result};
