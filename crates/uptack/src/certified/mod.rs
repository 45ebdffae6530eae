//! Numbers together with how far they may be off: what every privacy claim is computed from.

pub(crate) mod binomial;
pub(crate) mod binomial_sum;
pub(crate) mod enclosure;
pub(crate) mod fourier;
pub(crate) mod rounding;
pub(crate) mod score_sum;
