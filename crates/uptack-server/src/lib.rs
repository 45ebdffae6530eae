//! The servers of an on-demand network.
//!
//! - [`aggregator`]: a leader or a helper of the private write; both in one process if one operator is trusted.
//! - [`desk`]: opens queries, signs their cards, collects once, keeps the record.
//! - [`base`]: what both are built on: listening with limits, logs, copies of state that is being written.

pub mod aggregator;
pub mod base;
pub mod desk;
pub mod error;

pub use error::{Error, Result};
