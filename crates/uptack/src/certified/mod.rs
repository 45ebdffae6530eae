//! Numbers with bounds on their errors, from which every privacy claim is computed (`docs/accounting.md`, "Errors").
//!
//! Nothing here knows of owners, truths or views. A function that rounds says by how much, and its callers add that up; a
//! search says which side of a root it kept.

pub(crate) mod binomial;
pub(crate) mod binomial_sum;
mod circle;
pub(crate) mod exponential;
pub(crate) mod fourier;
pub(crate) mod root;
pub(crate) mod rounding;
pub(crate) mod score_group;
pub(crate) mod score_sum;
mod spectrum;
