//! Whole runs, at a small and at a large crowd.

use uptack::Progress;
use uptack::estimate::{Confidence, IntervalKind};
use uptack::simulate::{CrowdSampling, Simulation};
use uptack::{Channel, Mechanism};

use crate::Size;
use crate::clock::{Rounds, seconds_of};
use crate::table::{Row, Target};

const SMALL: u64 = 10_000;
const LARGE: u64 = 1_000_000_000;
const YES: u64 = 500;

const MECHANISMS: [(&str, &str); 5] = [
    ("randomized-response", "randomized-response(t=0.8)"),
    ("normal-form", "normal-form(f=0.5, r=1e-4)"),
    ("sampling", "sampling(sy=0.05, sn=0.05)"),
    ("deniable-sampling", "deniable-sampling(sy=0.5, sn=0.2, p1=0.5, p2=0.3)"),
    ("blended", "blended(b1=0.05, b2=0.25, b3=0.25, f1=0.05, f2=0.4, ry=1e-4, rn=1e-4)"),
];

pub fn measure(size: &Size) -> Vec<Row> {
    MECHANISMS.iter().flat_map(|(name, text)| compare(name, text, size)).collect()
}

fn compare(name: &str, text: &str, size: &Size) -> [Row; 2] {
    let channel = text.parse::<Mechanism>().expect("a mechanism of the family").channel();
    let (mut small, mut large) = (Rounds::default(), Rounds::default());
    for _ in 0..size.simulation_rounds {
        small.push(seconds_of(|| run(&channel, SMALL, size.trials)));
        large.push(seconds_of(|| run(&channel, LARGE, size.trials)));
    }
    let trials = size.trials as f64;
    let ratio = large.median() / small.median();
    [
        Row::new(format!("a trial at 10⁹ owners, {name}"), Target::None, large.median() / trials * 1e6, "µs"),
        Row::new(format!("  against one at 10⁴ owners, {name}"), Target::AtMost(1.2), ratio, "×"),
    ]
}

fn run(channel: &Channel, owners: u64, trials: u64) {
    let confidence = Confidence::new(0.95).expect("a confidence");
    let (interval, crowd) = (IntervalKind::Auto, CrowdSampling::Aggregated);
    let simulation = Simulation { owners, yes: YES, trials, seed: 1, confidence, interval, crowd };
    simulation.run_with(channel, 1, &Progress::default()).expect("a possible crowd");
}
