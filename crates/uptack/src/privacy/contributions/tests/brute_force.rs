//! Every crowd, by enumeration of its histograms.

use std::collections::BTreeMap;

use super::{choice, epsilon_ends, target_delta};
use crate::Mechanism;
use crate::contribution::Contributions;
use crate::privacy::contributions::OwnersAlone;
use crate::privacy::{Epsilon, WorkLimit, release};

/// The probabilities of histograms over the possibilities and silence.
type HistogramLaw = BTreeMap<Vec<u8>, f64>;

/// An owner of this truth, by possibility, and silence last.
fn owner_law(contributions: &Contributions, truth: usize) -> Vec<f64> {
    let law = contributions.law();
    let mut cells = vec![law.other().to_f64(); law.possibilities() as usize];
    cells[truth] = law.told().to_f64();
    cells.push(law.silent().to_f64());
    cells
}

fn plus_owner(law: &HistogramLaw, owner: &[f64]) -> HistogramLaw {
    let mut sum = HistogramLaw::new();
    for (histogram, mass) in law {
        for (cell, probability) in owner.iter().enumerate().filter(|(_, probability)| **probability > 0.0) {
            let mut longer = histogram.clone();
            longer[cell] += 1;
            *sum.entry(longer).or_default() += mass * probability;
        }
    }
    sum
}

/// All ways to split `owners` over `parts`.
fn compositions(owners: u8, parts: usize) -> Vec<Vec<u8>> {
    if parts == 1 {
        return vec![vec![owners]];
    }
    let with_first =
        |first: u8| compositions(owners - first, parts - 1).into_iter().map(move |rest| [vec![first], rest].concat());
    (0..=owners).flat_map(with_first).collect()
}

/// Crowds that differ only in the names of options that the target neither leaves nor joins are listed once.
fn crowds(others: u8, possibilities: usize) -> impl Iterator<Item = Vec<u8>> {
    compositions(others, possibilities).into_iter().filter(|crowd| crowd[2..].is_sorted_by(|a, b| a >= b))
}

fn crowd_law(contributions: &Contributions, crowd: &[u8]) -> HistogramLaw {
    let nobody = HistogramLaw::from([(vec![0; crowd.len() + 1], 1.0)]);
    let truths = crowd.iter().enumerate().flat_map(|(truth, owners)| (0..*owners).map(move |_| truth));
    truths.fold(nobody, |law, truth| plus_owner(&law, &owner_law(contributions, truth)))
}

/// The two laws of the counts if the target has the first or the second possibility.
fn pair_of_laws(contributions: &Contributions, crowd: &[u8]) -> [HistogramLaw; 2] {
    let others = crowd_law(contributions, crowd);
    [0, 1].map(|truth| plus_owner(&others, &owner_law(contributions, truth)))
}

/// Σ (P − e^ε·Q)₊.
fn divergence([first, second]: &[HistogramLaw; 2], epsilon: f64) -> f64 {
    let excess = |(histogram, mass): (&Vec<u8>, &f64)| {
        (mass - epsilon.exp() * second.get(histogram).copied().unwrap_or(0.0)).max(0.0)
    };
    first.iter().map(excess).sum()
}

const EPSILONS: [f64; 5] = [0.0, 0.2, 0.7, 1.5, 3.0];

fn check_every_crowd(contributions: &Contributions, owners: u8) {
    let account = OwnersAlone::new(contributions, owners.into()).unwrap();
    let claims = EPSILONS.map(|epsilon| account.delta(Epsilon::new(epsilon).unwrap()).value().unwrap());
    let mut worst = [0.0_f64; EPSILONS.len()];
    let all_alike = |crowd: &[u8]| crowd[2] == owners - 1;
    // Both directions occur, because both orders of every crowd do.
    for crowd in crowds(owners - 1, contributions.possibilities() as usize) {
        let laws = pair_of_laws(contributions, &crowd);
        for ((epsilon, claim), worst) in EPSILONS.into_iter().zip(claims).zip(&mut worst) {
            let exact = divergence(&laws, epsilon);
            *worst = worst.max(exact);
            assert!(
                claim.upper() >= exact * (1.0 - 1e-11),
                "{contributions}, {crowd:?}, {epsilon}: {claim:?} for {exact}"
            );
            let is_shown = !all_alike(&crowd) || (claim.lower() - exact).abs() <= 1e-10 * exact + 1e-14;
            assert!(is_shown, "{contributions}, {crowd:?}, {epsilon}: {claim:?} for {exact}");
        }
    }
    for (claim, worst) in claims.into_iter().zip(worst) {
        assert!(claim.lower() <= worst * (1.0 + 1e-11), "{contributions}: {claim:?} for {worst}");
    }
}

#[test]
fn no_crowd_is_above_the_bound_and_one_attains_the_lower_end() {
    for (part, other) in [("1", "0.01"), ("1", "0.15"), ("0.626", "0.05"), ("0.3", "0.004")] {
        for owners in [1, 2, 3, 10] {
            check_every_crowd(&choice(3, part, other), owners);
        }
        check_every_crowd(&choice(4, part, other), 6);
        check_every_crowd(&choice(5, part, other), 5);
    }
    for text in ["contributions(counts=2,most=1,r=0.02)", "contributions(counts=3,most=1,r=0.2)"] {
        check_every_crowd(&text.parse().unwrap(), 6);
    }
}

#[test]
fn no_crowd_of_ten_among_four_or_five_options_is_above_the_bound() {
    check_every_crowd(&choice(4, "0.8", "0.02"), 10);
    check_every_crowd(&choice(4, "1", "0.1"), 10);
    check_every_crowd(&choice(5, "1", "0.03"), 10);
}

/// The probabilities of how many of `owners` owners who belong elsewhere are counted in one window.
fn window_law(owners: u32, other: f64) -> Vec<f64> {
    let plus_one = |law: Vec<f64>| {
        let at = |count: usize| law.get(count).copied().unwrap_or(0.0);
        let counted = |count: usize| if count > 0 { at(count - 1) } else { 0.0 };
        (0..=law.len()).map(|count| counted(count) * other + at(count) * (1.0 - other)).collect()
    };
    (0..owners).fold(vec![1.0], |law, _| plus_one(law))
}

/// If every window of a series has other owners, fewer of them hide a move from one window to another than if all owners were in
/// both: the certificate is for the latter only, and cards of series do not use it.
#[test]
fn the_certificate_does_not_hold_for_windows_with_different_owners() {
    let (owners, epsilon) = (60, 0.5_f64);
    let contributions: Contributions = "contributions(counts=2,most=1,r=0.1)".parse().unwrap();
    let (g, r) = (contributions.law().told().to_f64(), contributions.law().other().to_f64());
    let law = window_law(owners - 1, r);
    let at = |count: usize| law.get(count).copied().unwrap_or(0.0);
    let raised = |count: usize| if count > 0 { at(count - 1) } else { 0.0 };
    let published = |told: [f64; 2], x: usize, y: usize| {
        told[0] * raised(x) * at(y) + told[1] * at(x) * raised(y) + r * at(x) * at(y)
    };
    let counts = (0..=law.len()).flat_map(|x| (0..=law.len()).map(move |y| (x, y)));
    let excess = |(x, y): (usize, usize)| published([g, r], x, y) - epsilon.exp() * published([r, g], x, y);
    let actual: f64 = counts.map(|pair| excess(pair).max(0.0)).sum();
    let account = OwnersAlone::new(&contributions, owners.into()).unwrap();
    let certified = account.delta(Epsilon::new(epsilon).unwrap()).value().unwrap();
    assert!(actual > 1.1 * certified.upper(), "{actual} for {certified:?}");
}

/// The two options of a move are not a yes/no question: the target leaves one count and joins another.
#[test]
fn the_certificate_of_the_pair_of_options_alone_is_unsound() {
    for (options, part, expected, owners, claimed, actual) in
        [(3_u32, 0.626, 5.87, 50_000_u64, 1.001, 1.796), (12, 1.0, 60.168, 50_186, 0.844, 1.000)]
    {
        let other = expected / owners as f64;
        let pair = format!("normal-form(f={},r={other})", part - f64::from(options - 2) * other);
        let channel = pair.parse::<Mechanism>().unwrap().channel();
        let binary = release(&channel, owners).unwrap().with_limit(WorkLimit::steps(1_000_000));
        let binary = binary.epsilon(target_delta(1e-8)).value().unwrap();
        let found = epsilon_ends(&choice(options, &part.to_string(), &other.to_string()), owners, target_delta(1e-8));
        assert!((binary.lower() - claimed).abs() < 2e-3, "{binary:?}");
        assert!((found.lower() - actual).abs() < 2e-3, "{found:?}");
        assert!(found.lower() > 1.05 * binary.upper(), "{found:?} for {binary:?}");
    }
}

/// Counting the other options and silence together hides evidence: that is a lower bound, and no more.
#[test]
fn merging_the_other_options_is_a_lower_bound_only() {
    let contributions = choice(4, "0.3", "0.004");
    let laws = pair_of_laws(&contributions, &[0, 0, 7, 0]);
    let merged = laws.clone().map(|law| {
        law.into_iter().fold(HistogramLaw::new(), |mut merged, (histogram, mass)| {
            let rest = histogram[2..].iter().sum();
            *merged.entry(vec![histogram[0], histogram[1], rest]).or_default() += mass;
            merged
        })
    });
    let account = OwnersAlone::new(&contributions, 8).unwrap();
    for epsilon in [1.0, 2.0, 3.0] {
        let claim = account.delta(Epsilon::new(epsilon).unwrap()).value().unwrap();
        let (exact, merged) = (divergence(&laws, epsilon), divergence(&merged, epsilon));
        assert!(merged <= exact * (1.0 + 1e-12) && merged <= claim.lower() * (1.0 + 1e-9), "{merged} for {claim:?}");
        assert!(epsilon < 2.5 || merged < 0.5 * claim.lower(), "{merged} for {claim:?}");
    }
}
