//! Composition: the guarantee of all releases together if one owner answers many queries.
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
mod composed;
mod convolution;
mod filter;
mod loss_distribution;
pub(super) mod price;
mod profile;
pub(super) mod repeated;

pub use composed::{Ballot, Composition, FixedInAdvance};
pub use filter::{Charge, Filter, FilterRefusal, Receipt};
pub use loss_distribution::{Accuracy, LossDistribution};
pub use profile::{ApproximateProfile, LaplaceProfile, Profile, PureProfile};

use crate::certified::rounding::{ROUNDOFF, up};
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

/// The local ε of an owner who gives `times` answers, each with local `epsilon`, rounded up.
///
/// Holds for queries chosen adaptively too, as long as every one of them keeps `epsilon`. An infinite `epsilon` (no
/// local guarantee) stays infinite.
///
/// ```
/// use uptack::privacy::composition::add_local;
/// assert!(add_local(0.1, 3)? >= 0.3);
/// assert_eq!(add_local(0.0, 1_000_000)?, 0.0);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn add_local(epsilon: f64, times: u64) -> Result<f64> {
    if epsilon == f64::INFINITY && times > 0 {
        return Ok(f64::INFINITY);
    }
    let epsilon = not_negative("epsilon", epsilon)?;
    match times {
        0 => Ok(0.0),
        1 => Ok(epsilon),
        // A zero stays zero exactly; the count itself may be rounded when it is converted.
        _ if epsilon == 0.0 => Ok(0.0),
        _ => Ok(up(epsilon * times as f64, 4.0 * ROUNDOFF)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_upwards() {
        assert_eq!(add_local(0.7, 1).unwrap(), 0.7);
        assert_eq!(add_local(0.7, 0).unwrap(), 0.0);
        let sum = add_local(0.1, 10).unwrap();
        assert!(sum > 1.0 && sum < 1.0 + 1e-14);
        assert_eq!(add_local(f64::INFINITY, 2).unwrap(), f64::INFINITY);
        assert!(add_local(-0.1, 2).is_err() && add_local(f64::NAN, 2).is_err());
    }
}
