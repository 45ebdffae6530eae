//! Exact accounting: guarantees for every view of a channel.
//!
//! A guarantee is always for a *view*, against a *neighbouring relation* (one owner's truth is substituted, the number of
//! owners is public). Local views come straight from the integer laws. The release and the joint views are computed as
//! enclosures over every crowd, with all rounding outward; `docs/accounting.md` derives the formulas and their errors.
//!
//! ```
//! use uptack::privacy::{self, Delta, Epsilon};
//! let channel = "randomized-response(t=0.6)".parse::<uptack::Mechanism>()?.channel();
//! let release = privacy::release(&channel, 3)?;
//! // The worst crowd of three is one of each, not one of the extremes.
//! let claim = release.delta(Epsilon::new(0.0)?);
//! assert_eq!(claim.crowd(), Some(1));
//! assert!((claim.value().ok_or("a guarantee")?.upper() - 0.104).abs() < 1e-12);
//! // Two friends hide little: ε stays near the local one.
//! let claim = release.epsilon(Delta::new(1e-8)?);
//! assert!(claim.certificate().closed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accountant;
mod all_views;
mod certify;
mod claim;
mod classes;
pub mod composition;
pub mod contributions;
mod divergence;
mod explain;
mod likelihood;
mod lone_owner;
mod one_aggregator;
#[cfg(test)]
mod tests;
mod views;
mod work;

pub use crate::certified::rounding::Enclosure;
pub use accountant::{Accountant, MOST_OWNERS, answer_with_release, honest_owners, owners_alone, release};
pub use all_views::{Views, answer_epsilon, linked_epsilon};
pub(crate) use certify::{WatchedCrowds, WatchedEnds};
pub use claim::{Certificate, Delta, Epsilon, Guarantee, Neighbours, Target, View};
pub use composition::price::release_charge;
pub use composition::repeated::{ReleaseProfile, Repeated, release_loss};
pub use explain::{BayesAccuracy, statement};
pub use likelihood::Direction;
pub use lone_owner::{LoneOwner, lone_owners};
#[cfg(test)]
pub(crate) use one_aggregator::approximate as approximate_one_aggregator;
pub use one_aggregator::{one_aggregator, one_aggregator_together};
pub use work::WorkLimit;
