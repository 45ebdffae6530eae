//! Composition against answers that are known exactly (`docs/composition.md`, "How it is checked").

use crate::privacy::composition::{
    Accuracy, ApproximateProfile, Composition, FixedInAdvance, LaplaceProfile, LossDistribution, Profile, PureProfile,
};
use proptest::prelude::*;

/// The Gaussian mechanism with sensitivity/deviation = `ratio`; T of them are one with ratio·√T.
struct Gaussian {
    ratio: f64,
}

impl Gaussian {
    /// Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2).
    fn delta(&self, epsilon: f64) -> f64 {
        let (centre, half) = (epsilon / self.ratio, self.ratio / 2.0);
        normal_cdf(half - centre) - epsilon.exp() * normal_cdf(-half - centre)
    }

    /// ε at δ by bisection.
    fn epsilon(&self, delta: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1000.0);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if self.delta(middle) > delta { low = middle } else { high = middle }
        }
        low
    }
}

impl Profile for Gaussian {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        // The difference cancels; what it loses is relative to the first term.
        let first = normal_cdf(self.ratio / 2.0 - epsilon / self.ratio);
        self.delta(epsilon).max(0.0) + 1e-14 * first
    }
}

fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

fn repeated<P: Profile>(profile: &P, times: u64, delta: f64) -> Composition {
    let loss = LossDistribution::from_profile(profile, Accuracy::for_repetitions(times, delta)).unwrap();
    Composition::new(FixedInAdvance::repeated(loss, times).unwrap())
}

/// δ of `times` randomized responses with pure guarantee `own`: the loss is own·(2·heads − times).
fn exact_randomized_response(own: f64, times: u32, epsilon: f64) -> f64 {
    let (log_yes, log_no) = (-((-own).exp().ln_1p()), -(own.exp().ln_1p()));
    let count = f64::from(times);
    let mut delta = 0.0;
    for heads in 0..=times {
        let loss = own * (2.0 * f64::from(heads) - count);
        if loss > epsilon {
            let heads = f64::from(heads);
            let choose = libm::lgamma(count + 1.0) - libm::lgamma(heads + 1.0) - libm::lgamma(count - heads + 1.0);
            delta += (choose + heads * log_yes + (count - heads) * log_no).exp() * -(epsilon - loss).exp_m1();
        }
    }
    delta
}

#[test]
fn composed_gaussians_are_a_gaussian() {
    for (ratio, times) in [(1.0, 1_u64), (0.5, 2), (0.3, 10), (0.1, 100), (0.01, 10_000), (0.05, 10_000)] {
        for delta in [1e-3, 1e-6, 1e-10, 1e-15, 1e-30] {
            let truth = Gaussian { ratio: ratio * (times as f64).sqrt() }.epsilon(delta);
            let bounds = repeated(&Gaussian { ratio }, times, delta).epsilon(delta).unwrap().unwrap();
            assert!(bounds.upper() >= truth * (1.0 - 1e-9), "{ratio} {times} {delta}: {bounds:?} {truth}");
            assert!(bounds.upper() < truth * 1.003, "{ratio} {times} {delta}: {bounds:?} {truth}");
            assert!(bounds.lower() <= truth * (1.0 + 1e-9), "{ratio} {times} {delta}: {bounds:?} {truth}");
            assert!(bounds.lower() > truth * 0.97, "{ratio} {times} {delta}: {bounds:?} {truth}");
        }
    }
}

#[test]
fn a_million_gaussians() {
    let (truth, delta) = (Gaussian { ratio: 1.0 }.epsilon(1e-8), 1e-8);
    let bounds = repeated(&Gaussian { ratio: 1e-3 }, 1_000_000, delta).epsilon(delta).unwrap().unwrap();
    assert!(bounds.upper() >= truth && bounds.upper() < truth * 1.003, "{bounds:?} {truth}");
    assert!(bounds.lower() <= truth && bounds.lower() > truth * 0.97, "{bounds:?} {truth}");
}

#[test]
fn composed_gaussians_in_delta() {
    for (ratio, times, epsilon) in [(0.1, 100_u64, 1.0), (0.1, 100, 5.0), (0.01, 10_000, 8.0), (0.01, 10_000, 0.0)] {
        let truth = Gaussian { ratio: ratio * (times as f64).sqrt() }.delta(epsilon);
        let bounds = repeated(&Gaussian { ratio }, times, 1e-15).delta(epsilon).unwrap();
        assert!(bounds.upper() >= truth * (1.0 - 1e-9) && bounds.upper() < truth * 1.02, "{bounds:?} {truth}");
        assert!(bounds.lower() <= truth * (1.0 + 1e-9) && bounds.lower() > truth * 0.2, "{bounds:?} {truth}");
    }
}

#[test]
fn randomized_response_is_a_binomial_sum() {
    for (own, times, delta_scale) in [(1.0, 2_u32, 1e-6), (0.5, 30, 1e-8), (0.1, 1000, 1e-12), (2.0, 12, 1e-15)] {
        let composition = repeated(&PureProfile::new(own).unwrap(), u64::from(times), delta_scale);
        for step in 0..20 {
            let epsilon = own * f64::from(times).sqrt() * 0.4 * f64::from(step);
            let truth = exact_randomized_response(own, times, epsilon);
            let bounds = composition.delta(epsilon).unwrap();
            assert!(bounds.upper() >= truth * (1.0 - 1e-9), "{own} {times} {epsilon}: {bounds:?} {truth}");
            assert!(bounds.lower() <= truth * (1.0 + 1e-9), "{own} {times} {epsilon}: {bounds:?} {truth}");
            // In ε the excess is tiny: the true δ at a slightly smaller ε is above the claim.
            let left = exact_randomized_response(own, times, (epsilon - 0.02 * epsilon.max(own)).max(0.0));
            if epsilon > 0.0 && truth > delta_scale {
                assert!(bounds.upper() <= left, "{own} {times} {epsilon}: {bounds:?} {left}");
            }
        }
    }
}

#[test]
fn where_the_grid_holds_the_losses_only_arithmetic_is_left() {
    // A dyadic loss lies on a knot, so nothing is discretized: what remains is the transform's error bound. The
    // binomial truth itself is only good to about 1e-11, by its logarithms of factorials.
    for (own, times) in [(0.25, 1000_u32), (1.0, 40), (0.0625, 10_000), (2.0, 3)] {
        let composition = repeated(&PureProfile::new(own).unwrap(), u64::from(times), 1e-15);
        for step in 0..24 {
            let epsilon = own * f64::from(times).sqrt() * f64::from(step) * 0.9;
            let truth = exact_randomized_response(own, times, epsilon);
            if truth > 1e-250 {
                let upper = composition.delta(epsilon).unwrap().upper();
                let excess = upper / truth - 1.0;
                assert!((-1e-10..1e-4).contains(&excess), "{own} {times} {epsilon}: {upper:e} {truth:e} {excess:e}");
            }
        }
    }
}

#[test]
fn a_costly_profile_is_asked_sparingly() {
    struct Counting(std::cell::Cell<u32>);
    impl Profile for Counting {
        fn delta_upper(&self, epsilon: f64) -> f64 {
            self.0.set(self.0.get() + 1);
            Gaussian { ratio: 0.1 }.delta_upper(epsilon)
        }
    }
    for (cells, most) in [(4, 120), (8, 200), (64, 1600)] {
        let profile = Counting(std::cell::Cell::new(0));
        let accuracy = Accuracy::for_repetitions(100, 1e-8).cells_per_deviation(cells);
        let loss = LossDistribution::from_profile(&profile, accuracy).unwrap();
        let bounds = Composition::new(FixedInAdvance::repeated(loss, 100).unwrap()).epsilon(1e-8).unwrap().unwrap();
        let truth = Gaussian { ratio: 1.0 }.epsilon(1e-8);
        assert!(profile.0.get() <= most, "{cells} cells: {} evaluations", profile.0.get());
        assert!(bounds.upper() >= truth && bounds.upper() < truth * 1.02, "{cells} cells: {bounds:?} {truth}");
    }
}

#[test]
fn a_single_query_is_the_profile_itself() {
    let profile = LaplaceProfile::new(1.0).unwrap();
    let composition = repeated(&profile, 1, 1e-10);
    for step in 0..12 {
        let epsilon = 0.1 * f64::from(step);
        let (truth, bounds) = (profile.delta_upper(epsilon), composition.delta(epsilon).unwrap());
        assert!(bounds.upper() >= truth && bounds.upper() < truth + 1e-3, "{epsilon}: {bounds:?} {truth}");
        assert!(bounds.lower() <= truth, "{epsilon}: {bounds:?} {truth}");
    }
    let bounds = composition.epsilon(1e-10).unwrap().unwrap();
    assert!(bounds.upper() >= 1.0 - 1e-9 && bounds.upper() < 1.02, "{bounds:?}");
}

#[test]
fn masses_at_infinity_compose() {
    let (each, times) = (1e-6, 50);
    let composition = repeated(&ApproximateProfile::new(0.1, each).unwrap(), times, 1e-3);
    let floor = -(times as f64 * f64::ln_1p(-each)).exp_m1();
    assert!(composition.floor() >= floor && composition.floor() < floor * 1.001, "{} {floor}", composition.floor());
    assert_eq!(composition.epsilon(floor * 0.99).unwrap(), None, "below the floor there is no guarantee");
    let bounds = composition.epsilon(floor * 2.0).unwrap().unwrap();
    assert!(bounds.upper() < 0.1 * times as f64);
    assert!(bounds.lower() > 0.9 * bounds.upper(), "{bounds:?}");
}

#[test]
fn different_queries_compose_in_any_order() {
    let loss =
        |ratio: f64| LossDistribution::from_profile(&Gaussian { ratio }, Accuracy::for_repetitions(500, 1e-9)).unwrap();
    let list = [(loss(0.02), 400_u64), (loss(0.3), 3), (loss(1.0), 1)];
    let truth = Gaussian { ratio: (0.0004_f64 * 400.0 + 0.09 * 3.0 + 1.0).sqrt() }.epsilon(1e-9);
    let mut reversed = list.clone();
    reversed.reverse();
    for queries in [list, reversed] {
        let composition = Composition::new(FixedInAdvance::new(queries).unwrap());
        let bounds = composition.epsilon(1e-9).unwrap().unwrap();
        assert!(bounds.upper() >= truth && bounds.upper() < truth * 1.005, "{bounds:?} {truth}");
        assert!(bounds.lower() <= truth && bounds.lower() > truth * 0.95, "{bounds:?} {truth}");
    }
}

#[test]
fn a_query_that_says_nothing_costs_nothing() {
    struct Silent;
    impl Profile for Silent {
        fn delta_upper(&self, _: f64) -> f64 {
            0.0
        }
    }
    let bounds = repeated(&Silent, 1000, 1e-9).epsilon(1e-9).unwrap().unwrap();
    assert_eq!(bounds.lower(), 0.0);
    assert!(bounds.upper() < 1e-4, "{bounds:?}");
}

#[test]
fn a_lone_large_query_among_many_small_ones() {
    // Rare jumps: the deviation is far below the largest loss.
    let rare = ApproximateProfile::new(0.001, 1e-4).unwrap();
    let composition = repeated(&rare, 10, 1e-3);
    let bounds = composition.epsilon(2e-3).unwrap().unwrap();
    assert!(bounds.upper() <= 0.01 * 1.02, "{bounds:?}");
}

#[test]
fn coarse_reading_is_still_sharp() {
    let profile = Gaussian { ratio: 0.05 };
    let accuracy = Accuracy::for_repetitions(400, 1e-8).cells_per_deviation(8);
    let loss = LossDistribution::from_profile(&profile, accuracy).unwrap();
    let bounds = Composition::new(FixedInAdvance::repeated(loss, 400).unwrap()).epsilon(1e-8).unwrap().unwrap();
    let truth = Gaussian { ratio: 1.0 }.epsilon(1e-8);
    assert!(bounds.upper() >= truth && bounds.upper() < truth * 1.005, "{bounds:?} {truth}");
}

#[test]
fn bad_requests_are_refused() {
    let composition = repeated(&PureProfile::new(0.1).unwrap(), 3, 1e-6);
    assert!(composition.epsilon(0.0).is_err() && composition.epsilon(1.0).is_err());
    assert!(composition.epsilon(f64::NAN).is_err());
    assert!(composition.delta(-1.0).is_err() && composition.delta(f64::INFINITY).is_err());
    let loss =
        LossDistribution::from_profile(&PureProfile::new(0.1).unwrap(), Accuracy::for_repetitions(1, 1e-6)).unwrap();
    assert!(FixedInAdvance::repeated(loss.clone(), 0).is_err());
    assert!(FixedInAdvance::repeated(loss, u64::MAX).is_err());
    assert!(FixedInAdvance::new([]).is_err());
}

/// Two laws over a few outcomes; the profile is the exact maximum over both directions.
#[derive(Debug, Clone)]
struct Finite {
    laws: [Vec<f64>; 2],
}

impl Finite {
    fn new(weights: &[(f64, f64)]) -> Self {
        let normalized = |side: fn(&(f64, f64)) -> f64| {
            let total: f64 = weights.iter().map(side).sum();
            weights.iter().map(|pair| side(pair) / total).collect()
        };
        Self { laws: [normalized(|pair| pair.0), normalized(|pair| pair.1)] }
    }

    /// The largest δ over all ways to go in one direction in some queries and in the other in the rest.
    fn composed(&self, times: u32, epsilon: f64) -> f64 {
        (0..1_u32 << times).map(|turns| self.directed(times, turns, 1.0, 1.0, epsilon)).fold(0.0, f64::max)
    }

    fn directed(&self, times: u32, turns: u32, first: f64, second: f64, epsilon: f64) -> f64 {
        if times == 0 {
            return (first - epsilon.exp() * second).max(0.0);
        }
        let turned = (turns & 1) as usize;
        let pairs = self.laws[turned].iter().zip(&self.laws[1 - turned]);
        pairs.map(|(p, q)| self.directed(times - 1, turns >> 1, first * p, second * q, epsilon)).sum()
    }
}

impl Profile for Finite {
    fn delta_upper(&self, epsilon: f64) -> f64 {
        self.composed(1, epsilon) * (1.0 + 1e-14)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn monotone_in_repetitions_and_delta(own in 1e-3_f64..3.0, times in 1_u64..300, exponent in 2.0_f64..15.0, floor in 0.0_f64..1e-4) {
        let delta = 10.0_f64.powf(-exponent);
        let profile = ApproximateProfile::new(own, (floor * delta).max(1e-30)).unwrap();
        let loss = LossDistribution::from_profile(&profile, Accuracy::for_repetitions(times + 1, delta)).unwrap();
        let at = |times: u64, delta: f64| {
            Composition::new(FixedInAdvance::repeated(loss.clone(), times).unwrap()).epsilon(delta).unwrap().unwrap()
        };
        let (here, longer, stricter) = (at(times, delta), at(times + 1, delta), at(times, delta * 0.5));
        prop_assert!(here.lower() <= here.upper() && here.upper().is_finite() && here.lower() >= 0.0);
        prop_assert!(longer.upper() >= here.upper() * (1.0 - 1e-6), "{here:?} {longer:?}");
        prop_assert!(stricter.upper() >= here.upper() * (1.0 - 1e-6), "{here:?} {stricter:?}");
        // Never worse than the plain sum, but for the cell that each query may be rounded up by.
        prop_assert!(here.upper() <= times as f64 * (own + 2.0 * loss.spacing()) + 1e-9);
    }

    #[test]
    fn never_below_the_binomial_truth(own in 0.01_f64..3.0, times in 1_u32..60, at in 0.0_f64..1.0) {
        let epsilon = own * f64::from(times) * at;
        let truth = exact_randomized_response(own, times, epsilon);
        let bounds = repeated(&PureProfile::new(own).unwrap(), u64::from(times), 1e-12).delta(epsilon).unwrap();
        prop_assert!(bounds.upper() >= truth * (1.0 - 1e-10), "{bounds:?} {truth}");
        prop_assert!(bounds.lower() <= truth * (1.0 + 1e-10) + 1e-300, "{bounds:?} {truth}");
    }

    #[test]
    fn either_direction_in_every_query(
        weights in proptest::collection::vec((0.0_f64..1.0, 0.0_f64..1.0), 2..5),
        times in 1_u32..5,
        epsilon in 0.0_f64..6.0,
        hidden in 0_usize..8,
    ) {
        // Sometimes an outcome is impossible under one law: an infinite loss.
        let mut weights = weights;
        weights.iter_mut().for_each(|pair| *pair = (pair.0 + 0.01, pair.1 + 0.01));
        if let Some(pair) = weights.get_mut(hidden) {
            pair.1 = 0.0;
        }
        let profile = Finite::new(&weights);
        prop_assume!(profile.laws[1].iter().all(|mass| mass.is_finite()));
        let composition = repeated(&profile, u64::from(times), 1e-9);
        let truth = profile.composed(times, epsilon);
        let bounds = composition.delta(epsilon).unwrap();
        prop_assert!(bounds.upper() >= truth * (1.0 - 1e-12), "{bounds:?} {truth}");
        prop_assert!(bounds.lower() <= bounds.upper());
    }
}
