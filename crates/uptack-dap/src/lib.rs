//! The private write: no server ever sees an answer.
//!
//! An owner splits its cell into two shares and seals one to each of two *aggregators*, the leader
//! and the helper. The two verify together that the shares belong to exactly one cell, without
//! learning which, and add them up. The *collector* gets two sums, and only for batches of a
//! minimum size. The protocol is the IETF's DAP, draft 09, with Prio3 of VDAF draft 08. So every
//! part here can be exchanged for that of Janus 0.7, and is tested against its published crates.
//!
//! This crate has everybody's part except the servers': it listens to nothing and keeps no state.
//!
//! - [`task`]: what the parties of a task have to know, as files; also for Janus.
//! - [`client`]: a report from a cell. [`collector`]: a batch to counts.
//! - [`ballot`]: many queries in one report.
//! - [`credential`]: what an enrolled owner shows with a report.
//! - [`signed`]: query cards under their signature. [`listing`]: fetching them from a desk. [`card_task`]: the one task
//!   that a card defines.
//! - [`desk_client`]: opening queries at a desk, for analysts' programs. [`release`]: the record that the desk keeps, which
//!   anyone can check.
//! - [`private`]: folders and files for one user alone. [`token`]: bearer tokens. [`crypto`]: SHA-256 and
//!   signatures. [`clock`]: the time of day.
//! - [`address`]: which servers are safe to call. [`http_client`]: calling servers with limits.
//! - [`protocol`]: everything that depends on the drafts.
//!
//! Features separate checking from taking part:
//!
//! - `network`, which is on by default, calls servers.
//! - `protocol`, which it needs, makes and reads messages, and signs.
//! - With `portable` and neither of them, the crate checks cards and release records, signatures included. That needs no TLS library and no C compiler.

pub mod address;
pub mod ballot;
#[cfg(feature = "network")]
pub mod client;
pub mod clock;
#[cfg(feature = "network")]
pub mod collector;
#[cfg(feature = "protocol")]
pub mod credential;
pub mod crypto;
#[cfg(feature = "network")]
pub mod desk_client;
pub mod error;
#[cfg(feature = "network")]
pub mod http_client;
#[cfg(feature = "network")]
pub mod listing;
#[cfg(feature = "protocol")]
pub mod private;
#[cfg(feature = "protocol")]
pub mod protocol;
pub mod release;
pub mod signed;
#[cfg(feature = "protocol")]
pub mod task;
#[cfg(feature = "protocol")]
pub mod token;

pub use error::{Error, Hint, Result};
#[cfg(feature = "protocol")]
pub use task::card_task;

#[cfg(not(any(feature = "protocol", feature = "portable")))]
compile_error!("uptack-dap needs one of its features `network`, `protocol` and `portable`");
