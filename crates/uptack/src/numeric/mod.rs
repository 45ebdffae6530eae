//! Tails of the distributions that tallies have.

pub(crate) mod binomial;
pub(crate) mod normal;
pub(crate) mod two_binomials;
