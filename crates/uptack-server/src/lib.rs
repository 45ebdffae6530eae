//! The servers of an on-demand network.
//!
//! - [`aggregator`]: a leader or a helper of the private write; both in one process if one operator is trusted.
//! - [`desk`]: opens queries, signs their cards, collects once, keeps the record.
//! - [`base`]: the basis of both: listening with limits, logs, backups of running servers.

pub mod aggregator;
pub mod base;
pub mod desk;
pub mod error;

pub use error::{Error, Result};
