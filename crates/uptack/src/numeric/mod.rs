//! Tails of the distributions that tallies have.

pub(crate) mod binomial;
mod fourier;
pub(crate) mod lattice_sum;
pub(crate) mod normal;
