//! Composition against brute force and known answers, and one owner who answers again and again.

use proptest::prelude::*;

use super::Cases;
use crate::privacy::composition::{
    Accuracy, ApproximateProfile, Composition, FixedInAdvance, LaplaceProfile, LossDistribution, Profile, PureProfile,
};
use crate::privacy::{Delta, Epsilon, Repeated, Target, Views, WorkLimit, release};
use crate::{Cell, Channel, Output, Probability};

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

impl Cases {
    fn law(&mut self, cells: usize) -> Vec<u128> {
        // Now and then a class that one truth never reaches, or hardly ever.
        let weight = |cases: &mut Self| match cases.below(8) {
            0 => 0,
            1 => 1 + u128::from(cases.below(20)),
            _ => 1 + u128::from(cases.below(1000)),
        };
        let mut weights: Vec<u128> = (0..cells).map(|_| weight(self)).collect();
        weights[0] += 1;
        let total: u128 = weights.iter().sum();
        let mut parts: Vec<u128> = weights.iter().map(|weight| (weight << 64) / total).collect();
        let rest = (1_u128 << 64) - parts.iter().sum::<u128>();
        parts[0] += rest;
        parts
    }

    fn channel(&mut self, cells: usize) -> Channel {
        let (yes, no) = (self.law(cells), self.law(cells));
        let probability = |part: u128| Probability::from_numerator(part).expect("at most one whole");
        let cell = |(index, (yes, no)): (usize, (u128, u128))| {
            let output = Output::new(char::from(b'1' + index as u8)).expect("a digit");
            Cell::new(vec![output], probability(yes), probability(no))
        };
        Channel::from_cells(yes.into_iter().zip(no).enumerate().map(cell).collect()).expect("laws that sum to one")
    }
}

/// Probabilities of what is seen in the two worlds.
type Pair = Vec<(f64, f64)>;

/// The histogram of all owners with the target *yes* against *no*, in a crowd.
fn pair(channel: &Channel, yes: u64, no: u64) -> Pair {
    let law = |target: bool| {
        let mut law = std::collections::BTreeMap::from([(vec![0_u8; channel.cells().len()], 1.0)]);
        let truths = std::iter::once(target)
            .chain(std::iter::repeat_n(true, yes as usize))
            .chain(std::iter::repeat_n(false, no as usize));
        for truth in truths {
            let mut next = std::collections::BTreeMap::new();
            for (histogram, mass) in &law {
                for (index, cell) in channel.cells().iter().enumerate() {
                    let mut histogram: Vec<u8> = histogram.clone();
                    histogram[index] += 1;
                    let own = if truth { cell.yes() } else { cell.no() }.to_f64();
                    *next.entry(histogram).or_insert(0.0) += mass * own;
                }
            }
            law = next;
        }
        law
    };
    law(true).into_values().zip(law(false).into_values()).collect()
}

/// Every crowd in both directions.
fn pairs(channel: &Channel, owners: u64) -> Vec<Pair> {
    let forth = |yes: u64| pair(channel, yes, owners - 1 - yes);
    let both = |pair: Pair| {
        let back = pair.iter().map(|(one, other)| (*other, *one)).collect();
        [pair, back]
    };
    (0..owners).map(forth).flat_map(both).collect()
}

/// The largest divergence over all histories: each query has a crowd and a direction of its own. Their order does not matter.
fn truth(pairs: &[Pair], times: u64, growth: f64) -> f64 {
    fn deeper(pairs: &[Pair], from: usize, left: u64, so_far: &Pair, growth: f64) -> f64 {
        if left == 0 {
            return so_far.iter().map(|(one, other)| (one - growth * other).max(0.0)).sum();
        }
        let with = |index: usize| {
            let joined: Pair = so_far
                .iter()
                .flat_map(|(one, other)| pairs[index].iter().map(move |(first, second)| (one * first, other * second)))
                .collect();
            deeper(pairs, index, left - 1, &joined, growth)
        };
        (from..pairs.len()).map(with).fold(0.0, f64::max)
    }
    deeper(pairs, 0, times, &vec![(1.0, 1.0)], growth)
}

const CASES: usize = 500;
/// Rounding of the enumeration.
const ROUNDING: f64 = 1e-12;

/// Both ends in every case, and lower ends above zero in most of the cases where the true value is.
#[test]
fn repeated_releases_are_enclosed_in_every_history() {
    let mut cases = Cases(0x5eed_0000_0012_0001);
    let (mut told, mut positive) = (0, 0);
    for case in 0..CASES {
        let (owners, times) = (1 + cases.below(6), 1 + cases.below(3));
        let cells = if owners * times > 12 { 2 } else { 2 + cases.below(2) as usize };
        let channel = cases.channel(cells);
        let all = pairs(&channel, owners);
        let views = |target| Views::of(&channel, owners, target, WorkLimit::default()).expect("owners");
        let accountant = release(&channel, owners).expect("owners");
        let at = Epsilon::new(3.0 * cases.unit()).expect("an epsilon");
        if case % 2 == 0 {
            let target = Target::Epsilon(at);
            let found = Repeated::of(&views(target), &accountant, target, times).expect("a composition");
            let (found, truth) = (found.release.expect("δ always has a value"), truth(&all, times, at.value().exp()));
            assert!(found.lower() <= truth + ROUNDING, "case {case}: {found:?} above {truth}, {channel:?}");
            assert!(found.upper() >= truth - ROUNDING, "case {case}: {found:?} below {truth}, {channel:?}");
            told += usize::from(truth > 0.0);
            positive += usize::from(found.lower() > 0.0);
            continue;
        }
        let given = 10_f64.powf(-6.0 * cases.unit());
        let target = Target::Delta(Delta::new(given).expect("a delta"));
        let found = Repeated::of(&views(target), &accountant, target, times).expect("a composition");
        let Some(found) = found.release else { continue };
        let above = truth(&all, times, found.upper().exp());
        assert!(above <= given + ROUNDING, "case {case}: δ({found:?}) is {above}, not {given}, {channel:?}");
        told += usize::from(truth(&all, times, 1.0) > given);
        if found.lower() > 0.0 {
            positive += 1;
            let below = truth(&all, times, found.lower().exp());
            assert!(below >= given - ROUNDING, "case {case}: δ({found:?}) is {below}, not {given}, {channel:?}");
        }
    }
    assert!(positive > CASES / 2 && 10 * positive > 9 * told, "{positive} lower ends of {told} are positive");
}

/// Every histogram of the outcomes of several draws, with its probability in both worlds.
fn histograms(pair: &[(f64, f64)], draws: u64) -> Pair {
    let [(one, other), rest @ ..] = pair else {
        return if draws == 0 { vec![(1.0, 1.0)] } else { Vec::new() };
    };
    let mut all = Pair::new();
    // The binomial coefficient of the first outcome's count among those drawn.
    let mut coefficient = 1.0;
    for count in 0..=draws {
        let (first, second) = (coefficient * one.powi(count as i32), other.powi(count as i32));
        let with = |(left, right): (f64, f64)| (first * left, coefficient * second * right);
        all.extend(histograms(rest, draws - count).into_iter().map(with));
        coefficient *= (draws - count) as f64 / (count + 1) as f64;
    }
    all
}

/// The divergences of the histories that a lower end may stand for: the crowd stays, the target changes in all, none or half of
/// the queries.
fn same_crowd(pairs: &[Pair], crowds: &[u64], times: u64) -> impl Fn(f64) -> f64 + use<> {
    let histories = |crowd: &u64| {
        let possible = |index: u64| -> Pair {
            pairs[index as usize].iter().copied().filter(|(one, other)| one + other > 0.0).collect()
        };
        let [forth, back] = [2 * crowd, 2 * crowd + 1].map(possible);
        let (more, half) = (histograms(&forth, times - times / 2), histograms(&back, times / 2));
        let product = |(one, other): &(f64, f64)| {
            half.iter().map(|(first, second)| (one * first, other * second)).collect::<Pair>()
        };
        [histograms(&forth, times), histograms(&back, times), more.iter().flat_map(product).collect()]
    };
    let all: Vec<Pair> = crowds.iter().flat_map(histories).collect();
    move |growth| {
        let divergence = |pair: &Pair| pair.iter().map(|(one, other)| (one - growth * other).max(0.0)).sum::<f64>();
        all.iter().map(divergence).fold(0.0, f64::max)
    }
}

/// Longer compositions, outcome by outcome: the lower end is attained, and within a hundredth of the best of its histories.
#[test]
fn lower_ends_of_long_compositions_are_attained_and_sharp() {
    for (text, owners, times) in [
        ("randomized-response(t=0.6)", 1, 16),
        ("randomized-response(t=0.7)", 2, 16),
        ("noisy-sampling(sy=0.4,sn=0.1)", 1, 60),
        ("randomized-response(t=0.55)", 1, 288),
        ("normal-form(f=0.8,r=0.1)", 1, 16),
    ] {
        let channel = super::channel(text);
        let accountant = release(&channel, owners).expect("owners");
        let views = |target| Views::of(&channel, owners, target, WorkLimit::default()).expect("owners");
        let all = pairs(&channel, owners);
        let crowds = |views: &Views| [0, owners - 1, views.release.crowd().unwrap()];

        let given = 1e-6;
        let target = Target::Delta(Delta::new(given).expect("a delta"));
        let found = Repeated::of(&views(target), &accountant, target, times).expect("a composition");
        let lower = found.release.expect("a guarantee").lower();
        let best = same_crowd(&all, &crowds(&views(target)), times);
        let (at, above) = (best(lower.exp()), best((1.01 * lower).exp()));
        assert!(at >= given * (1.0 - 1e-9), "{text}, {times} times: δ({lower}) is {at}");
        assert!(above < given, "{text}, {times} times: δ is still {above} a hundredth above {lower}");

        let target = Target::Epsilon(Epsilon::new(0.9 * lower).expect("an epsilon"));
        let found = Repeated::of(&views(target), &accountant, target, times).expect("a composition");
        let (lower, truth) = (found.release.expect("δ always has a value").lower(), best((0.9 * lower).exp()));
        assert!(lower <= truth * (1.0 + 1e-9) && lower > 0.9 * truth, "{text}, {times} times: {lower}, not {truth}");
    }
}

#[test]
fn repeating_a_query_that_gives_everything_away_has_a_delta_of_one() {
    use crate::privacy::{Epsilon, Repeated, Target, Views, WorkLimit, release, release_loss};
    for text in
        ["randomized-response(t=1)", "randomized-response(t=0)", "sampling(sy=1,sn=1)", "noisy-sampling(sy=1,sn=0)"]
    {
        let channel = text.parse::<crate::Mechanism>().expect("a mechanism").channel();
        let target = Target::Epsilon(Epsilon::new(1.0).expect("an epsilon"));
        let accountant = release(&channel, 4).expect("a crowd");
        let views = Views::of(&channel, 4, target, WorkLimit::default()).expect("views");
        let repeated = Repeated::of(&views, &accountant, target, 2).expect("a composition").release.expect("a delta");
        assert!(repeated.upper() == 1.0 && repeated.lower() > 1.0 - 1e-9, "{text}: {repeated:?}");
        // The same by way of its measure, as lists of different queries are composed.
        let loss = release_loss(&accountant, 2, 1e-8).expect("a measure");
        let composed = Composition::new(FixedInAdvance::repeated(loss, 2).expect("a list"));
        assert_eq!(composed.delta(1.0).expect("a delta").upper(), 1.0, "{text}");
        assert_eq!(composed.epsilon(1e-8).expect("no error"), None, "{text}");
    }
}
