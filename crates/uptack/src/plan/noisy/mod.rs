//! Planning with noise that the aggregators add: the bit that owners write, and the scale of the noise.
//!
//! Only the sum of one bit is published, so all that counts about an owner's answer is whether it is `1`. Of all mechanisms
//! with one answer and the same bit, the one that never says anything else gives away the least if nobody is honest, and the
//! fewest owners take part in it. So `noisy-sampling` can have the best bit of all, and a bound on the error over all bits
//! holds for all mechanisms.

mod bit;
mod boxes;
mod one_aggregator;
mod owners;
mod region;
mod written;

pub(super) use one_aggregator::{Planned, with_one_aggregator};
pub(super) use owners::with_owners;
