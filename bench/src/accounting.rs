//! The exact accounting against the best published bound, and composition.

use uptack::Mechanism;
use uptack::privacy::composition::{Accuracy, Composition, FixedInAdvance, LossDistribution, Profile};
use uptack::privacy::{Accountant, Delta, Epsilon, release};

use crate::Size;
use crate::clock::{Rounds, seconds_of};
use crate::published;
use crate::table::{Row, Target};

const LOCAL: f64 = 1.0;
const DELTA: f64 = 1e-6;

pub fn measure(size: &Size) -> Vec<Row> {
    let channel = published::randomized_response(LOCAL);
    let crowd = |owners: u64| release(&channel, owners).expect("a crowd");
    let (million, hundred_million) = (crowd(1_000_000), crowd(100_000_000));
    let delta = Delta::new(DELTA).expect("a delta");
    let (mut ours, mut larger, mut bound) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..size.simulation_rounds.min(5) {
        ours.push(seconds_of(|| million.epsilon_of_ends(delta)));
        larger.push(seconds_of(|| hundred_million.epsilon_of_ends(delta)));
        bound.push(seconds_of(|| published::variation_ratio(&channel, 1_000_000, DELTA)));
    }
    let mut rows = vec![
        Row::new("ε(δ) at the ends, randomized response, 10⁶ owners", Target::None, ours.median() * 1e3, "ms"),
        Row::new("  the variation-ratio bound takes", Target::AtLeast(50.0), bound.median() / ours.median(), "×"),
        Row::new("  10⁸ owners take", Target::AtMost(20.0), larger.median() / ours.median(), "×"),
    ];
    rows.push(Row::new("composing 10 000 releases", Target::AtMost(1.0), composing(), "s"));
    rows
}

/// The profile at the ends, read once for the composition; what is measured is the composing.
struct Ends(Accountant);

impl Profile for Ends {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        Epsilon::new(epsilon).map_or(0.0, |epsilon| self.0.delta_of_ends(epsilon).upper())
    }
}

fn composing() -> f64 {
    let channel = "normal-form(f=1,r=0.000979)".parse::<Mechanism>().expect("a mechanism").channel();
    let profile = Ends(release(&channel, 50_000).expect("a crowd"));
    let accuracy = Accuracy::for_repetitions(10_000, 1e-8).cells_per_deviation(8);
    let loss = LossDistribution::from_profile(&profile, accuracy).expect("a profile");
    seconds_of(|| {
        let queries = FixedInAdvance::repeated(loss.clone(), 10_000).expect("some queries");
        Composition::new(queries).epsilon(1e-8).expect("a delta")
    })
}
