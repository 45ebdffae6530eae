//! One owner answers many queries: what all the releases together may reveal.
//!
//! A certified [`Profile`] δ(ε) becomes a dominating [`LossDistribution`] on a grid; several of them become a
//! [`Composition`], which answers δ(ε) and ε(δ) with every rounding on the safe side. If the queries are chosen as
//! one goes, a [`Filter`] decides before each toss whether the budget still covers it.
//!
//! # Conditions
//!
//! * **Fresh coins.** Every query is answered with coins of its own, independent of all others. A
//!   [`Receipt`] cannot be cloned: one permission, one toss.
//! * **Fixed in advance.** A [`Composition`] speaks about a [`FixedInAdvance`] list: for every query either
//!   the channel or a profile that dominates it was fixed before the first toss. The list cannot be extended
//!   once made. Budgets that depend on earlier answers need the [`Filter`].
//! * **Both directions.** An owner may change from yes to no in one query and from no to yes in another, so a
//!   profile is the maximum over both directions and over all crowds.
//!
//! The derivations are in `docs/composition.md`.
//!
//! # Example
//!
//! ```
//! use uptack::privacy::composition::{Accuracy, Composition, FixedInAdvance, LossDistribution, PureProfile};
//!
//! let profile = PureProfile::new(0.1)?;
//! let loss = LossDistribution::from_profile(&profile, Accuracy::for_repetitions(100, 1e-8))?;
//! let composition = Composition::new(FixedInAdvance::repeated(loss, 100)?);
//! let epsilon = composition.epsilon(1e-8)?.expect("no mass at infinity");
//! // Far below the sum 10 of the parts, never below the truth.
//! assert!(5.0 < epsilon.upper() && epsilon.upper() < 6.0);
//! assert!(epsilon.lower() <= epsilon.upper());
//! # Ok::<(), uptack::Error>(())
//! ```

pub(super) mod attained;
mod ballot;
mod composed;
mod convolution;
mod filter;
mod local;
mod loss_distribution;
mod profile;
mod profile_curve;
pub(super) mod repeated;

pub use ballot::Ballot;
pub use composed::{Composition, FixedInAdvance};
pub use filter::{Charge, Filter, Receipt, Refusal};
pub use local::add_local;
pub use loss_distribution::{Accuracy, LossDistribution};
pub use profile::{ApproximateProfile, LaplaceProfile, Profile, PureProfile};

use crate::{Error, Result};

fn not_negative(what: &str, value: f64) -> Result<f64> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Error::request(format!("{what} must be finite and not negative, but is {value}")))
}

fn open_probability(delta: f64) -> Result<f64> {
    if delta > 0.0 && delta < 1.0 {
        return Ok(delta);
    }
    Err(Error::request(format!("delta must lie strictly between 0 and 1, but is {delta}")).with_hint("try 1e-8"))
}

fn at_least_one(what: &str, count: u64) -> Result<u64> {
    if count > 0 { Ok(count) } else { Err(Error::request(format!("{what} must be at least 1"))) }
}
