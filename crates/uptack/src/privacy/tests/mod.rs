//! The accounting against enumeration, an independent program's values, and a published bound.

mod brute_force;
mod claims;
mod repeated;
mod variation_ratio;
mod vectors;

use super::{Accountant, Delta, Epsilon, release};
use crate::{Channel, Mechanism};

/// The channel of a mechanism that is known to parse.
pub(super) fn channel(mechanism: &str) -> Channel {
    mechanism.parse::<Mechanism>().expect("a mechanism of the family").channel()
}

fn release_of(mechanism: &str, owners: u64) -> Accountant {
    release(&channel(mechanism), owners).expect("a number of owners within the limits")
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("a finite number of at least zero")
}

fn delta(value: f64) -> Delta {
    Delta::new(value).expect("a number above zero and at most one")
}
