//! Laws of counts, for estimates and simulation. Their errors are measured by tests and covered by margins; privacy claims
//! rest on [`certified`](crate::certified) instead.

pub(crate) mod binomial_draw;
pub(crate) mod draws;
pub(crate) mod lattice_sum;
pub(crate) mod noisy;
pub(crate) mod normal;
pub(crate) mod whole_mean;
