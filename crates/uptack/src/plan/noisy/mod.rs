//! Planning with noise that the aggregators add: the bit that owners write, and the scale of the noise.
//!
//! Only the sum of one bit is published, so all that counts of an owner's answer is whether it is `1`. Of all mechanisms with
//! one answer and the same bit, the one that says nothing in place of anything else gives away least if nobody is honest, and
//! the fewest owners take part in it. So `noisy-sampling` has the best bit that any of them can have, and a bound on the error
//! over all bits is one over all mechanisms.

mod bit;
mod boxes;
mod one_aggregator;
mod owners;
mod region;
mod written;

pub(super) use one_aggregator::{Planned, with_one_aggregator};
pub(super) use owners::with_owners;
