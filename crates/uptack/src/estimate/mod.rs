//! From tallies to the number of yes-owners, with an honest interval.
//!
//! [`Estimator`] combines all that the tallies show by generalized least squares and gives intervals; [`paper`] has
//! the paper's own estimators; [`many`] is for the answers to many queries at once, and [`options`] for contributions.

mod acceptance;
mod combined;
mod expected;
mod hypothesis;
mod interval;
mod least_squares;
pub mod many;
mod observation;
pub mod options;
pub mod paper;
mod zones;

pub use acceptance::Acceptance;
pub use combined::{BinEstimate, Estimate, Estimator};
pub use interval::{Confidence, Interval, IntervalKind};
pub use observation::Observation;
