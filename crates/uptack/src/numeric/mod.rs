//! Laws of what is counted, for estimates and simulation. Their errors are measured by tests and covered by margins; what a
//! privacy claim rests on is in [`certified`](crate::certified).

pub(crate) mod binomial_draw;
pub(crate) mod draws;
pub(crate) mod lattice_sum;
pub(crate) mod noisy;
pub(crate) mod normal;
