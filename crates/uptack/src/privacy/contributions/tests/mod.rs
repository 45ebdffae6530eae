//! Tests of the accounting for contributions, against enumerations and against other programs.

mod brute_force;
mod references;

use crate::contribution::Contributions;
use crate::privacy::contributions::OwnersAlone;
use crate::privacy::{Delta, Enclosure};

/// A choice among options, from the texts of f and r.
fn choice(options: u32, part: &str, other: &str) -> Contributions {
    Contributions::choice(options, part.parse().unwrap(), other.parse().unwrap()).unwrap()
}

fn target_delta(delta: f64) -> Delta {
    Delta::new(delta).unwrap()
}

fn epsilon_ends(contributions: &Contributions, owners: u64, delta: Delta) -> Enclosure {
    OwnersAlone::new(contributions, owners).unwrap().epsilon(delta).value().unwrap()
}
