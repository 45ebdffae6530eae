//! Everything that can be composed in small crowds, history by history.

use super::super::{Delta, Epsilon, Repeated, Target, Views, WorkLimit, release};
use super::Cases;
use crate::{Cell, Channel, Output, Probability};

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

/// The divergences of the histories that a lower end may stand for: the crowd stays, the target changes in all, none or half of the
/// queries.
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
        let crowds = |views: &Views| [0, owners - 1, views.release.crowd()];

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
