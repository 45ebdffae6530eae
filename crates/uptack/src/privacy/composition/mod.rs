//! One owner answers many queries: what all the releases together may tell.
//!
//! The way: a certified [`Profile`] δ(ε) becomes a dominating [`LossDistribution`] on a grid, several of
//! them a [`Composition`], which answers δ(ε) and ε(δ) with every rounding against ourselves. Where the
//! queries are chosen as one goes, a [`Filter`] decides before each toss whether the budget still covers it.
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
//! assert!(5.0 < epsilon.upper && epsilon.upper < 6.0);
//! assert!(epsilon.lower <= epsilon.upper);
//! # Ok::<(), uptack::privacy::composition::CompositionError>(())
//! ```

mod ballot;
mod composed;
mod convolution;
mod filter;
mod fourier;
#[cfg(test)]
mod known_answers;
mod local;
mod loss_distribution;
mod profile;
mod rounding;

pub use ballot::Ballot;
pub use composed::{Bounds, Composition, FixedInAdvance};
pub use filter::{Charge, Filter, Receipt, Refusal};
pub use local::add_local;
pub use loss_distribution::{Accuracy, LossDistribution};
pub use profile::{ApproximateProfile, LaplaceProfile, Profile, PureProfile};

/// Why a composition could not be computed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CompositionError {
    /// A number that must be finite and not negative is not.
    BadNumber {
        /// What the number was meant to be.
        what: &'static str,
        /// The number as it came.
        value: f64,
    },
    /// A δ must lie strictly between 0 and 1.
    BadDelta(f64),
    /// The profile returned something that is no probability.
    BadProfile {
        /// Where it was asked.
        epsilon: f64,
        /// What it said.
        delta: f64,
    },
    /// The profile decays in a way that doubles cannot represent.
    Degenerate,
    /// A composition, a ballot or a number of repetitions is empty.
    Empty(&'static str),
    /// A ballot lets an owner say yes more often than there are queries.
    TooManyYes {
        /// The largest number of yes an owner may give.
        most_yes: u64,
        /// The number of queries.
        queries: u64,
    },
    /// More repetitions than the error bounds were proved for.
    TooManyRepetitions(u64),
}

impl std::fmt::Display for CompositionError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BadNumber { what, value } => {
                write!(
                    formatter,
                    "{what} must be finite and not negative, but is {value}"
                )
            }
            Self::BadDelta(delta) => write!(
                formatter,
                "delta must lie strictly between 0 and 1, but is {delta}"
            ),
            Self::BadProfile { epsilon, delta } => {
                write!(
                    formatter,
                    "the profile says delta = {delta} at epsilon = {epsilon}, which is no probability"
                )
            }
            Self::Degenerate => {
                formatter.write_str("the profile decays faster than doubles can represent")
            }
            Self::Empty(what) => write!(formatter, "{what} must be at least 1"),
            Self::TooManyYes { most_yes, queries } => {
                write!(
                    formatter,
                    "at most {most_yes} yes an owner, but the ballot has only {queries} queries"
                )
            }
            Self::TooManyRepetitions(times) => {
                write!(
                    formatter,
                    "{times} repetitions are more than the {} supported",
                    composed::MOST_REPETITIONS
                )
            }
        }
    }
}

impl std::error::Error for CompositionError {}

fn not_negative(what: &'static str, value: f64) -> Result<f64, CompositionError> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(CompositionError::BadNumber { what, value })
    }
}

fn open_probability(delta: f64) -> Result<f64, CompositionError> {
    if delta > 0.0 && delta < 1.0 {
        Ok(delta)
    } else {
        Err(CompositionError::BadDelta(delta))
    }
}
