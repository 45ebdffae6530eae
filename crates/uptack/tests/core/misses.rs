//! How often intervals miss, by summing the probabilities of all outcomes instead of drawing.

use std::collections::HashMap;

use uptack::Channel;
use uptack::estimate::{Confidence, Estimator, IntervalKind};

use crate::family::{FAMILY, channel};

/// The counts of the classes of `owners` owners under one law, with their probabilities; those below 1e-15 are left
/// out, which all together are below 1e-10 for crowds of this size.
fn outcomes(law: &[f64], owners: u64) -> HashMap<Vec<u64>, f64> {
    let mut all = HashMap::from([(vec![0; law.len()], 1.0)]);
    for _ in 0..owners {
        let mut next = HashMap::new();
        for (counts, mass) in &all {
            for (class, part) in law.iter().enumerate().filter(|(_, part)| **part > 0.0) {
                let mut counts: Vec<u64> = counts.clone();
                counts[class] += 1;
                *next.entry(counts).or_insert(0.0) += mass * part;
            }
        }
        next.retain(|_, mass| *mass > 1e-15);
        all = next;
    }
    all
}

fn miss(channel: &Channel, owners: u64, yes: u64, confidence: Confidence, kind: IntervalKind) -> f64 {
    let estimator = Estimator::new(channel).unwrap();
    let classes = channel.classes();
    let law = |part: fn(&uptack::Cell) -> uptack::Probability| -> Vec<f64> {
        let sum = |cells: &[usize]| cells.iter().map(|&cell| part(&channel.cells()[cell]).to_f64()).sum();
        classes.iter().map(|class| sum(&class.cells)).collect()
    };
    let mut crowd: HashMap<Vec<u64>, f64> = HashMap::new();
    let others = outcomes(&law(uptack::Cell::no), owners - yes);
    for (first, mass) in outcomes(&law(uptack::Cell::yes), yes) {
        for (second, other) in &others {
            let counts = first.iter().zip(second).map(|(a, b)| a + b).collect();
            *crowd.entry(counts).or_insert(0.0) += mass * other;
        }
    }
    let covered = |counts: &[u64]| {
        // Any cell of a class stands for the class: estimation looks at classes alone.
        let mut cells = vec![0; channel.cells().len()];
        classes.iter().zip(counts).for_each(|(class, &count)| cells[class.cells[0]] = count);
        estimator.covers(&estimator.observe_cells(&cells), confidence, kind, yes)
    };
    crowd.iter().filter(|(counts, mass)| **mass > 1e-11 && !covered(counts)).map(|(_, mass)| mass).sum()
}

/// The default far in the tails: at most 1.5 times the stated 1e-4.
#[test]
fn one_in_ten_thousand_is_one_in_ten_thousand() {
    let confidence = Confidence::of_miss(1e-4).unwrap();
    for text in FAMILY {
        for yes in [0, 5, 40] {
            let miss = miss(&channel(text), 120, yes, confidence, IntervalKind::Auto);
            assert!(miss <= 1.5e-4, "{text}, {yes} of 120: misses {miss}");
        }
    }
}

/// The control: the score interval's far tails are wrong, and this test sees it.
#[test]
fn the_score_interval_would_be_caught() {
    let confidence = Confidence::of_miss(1e-4).unwrap();
    let worst = [0, 1, 2, 5, 20]
        .map(|yes| miss(&channel("noisy-sampling(sy=0.3,sn=0.05)"), 120, yes, confidence, IntervalKind::Score));
    assert!(worst.iter().any(|&miss| miss > 1.5e-4), "{worst:?}");
}
