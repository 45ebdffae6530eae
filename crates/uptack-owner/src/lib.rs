//! The owner's side of a query: a device that trusts nobody.
//!
//! It fetches the open queries from a desk, and decides for each card **by itself** whether to answer: the card must be
//! signed with a key that its [`policy`] names, every claim is recomputed from the card's integers, and the [`ledger`] must
//! have budget left. An owner that accepts a card uploads exactly one report of a fixed size, whatever its truth: a false
//! [`predicate`], a missing attribute and an error all mean *no*, and `⊥` is uploaded like any other cell. The decision
//! depends on card, policy and ledger alone, never on an attribute.
//!
//! - [`policy`]: what an owner allows. [`check`]: a card against it.
//! - [`predicate`], [`attributes`]: the truth, computed on the device and nowhere else. [`typing`]: mistakes in a question.
//!   [`fit`]: owners whose attributes do not fit a question.
//! - [`question`]: what an analyst asks, as owners will parse it.
//! - [`ledger`]: what was answered and what is left; durable before the first coin.
//! - [`schedule`]: when a report is sent. [`client`]: one owner or a whole fleet answering.

pub mod attributes;
pub mod check;
pub mod client;
mod error;
pub mod fit;
pub mod ledger;
pub mod policy;
pub mod predicate;
pub mod question;
pub mod schedule;
mod spelling;
pub mod typing;

pub use error::{Error, Result};

/// The example of the page about owners, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/owner.md")]
struct OwnersPage;
