//! Every outcome of small crowds, straight from the definition of the views.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::{Accountant, WorkLimit, answer_with_release, release};
use super::{delta, epsilon};
use crate::privacy::certify::CrowdSearch;
use crate::privacy::divergence::DivergenceRequest;
use crate::privacy::divergence::many_classes::{self, Fineness};
use crate::privacy::likelihood::{Crowd, Direction, Likelihood, PerDirection, WeightedClass};
use crate::privacy::work::WorkBudget;
use crate::truth::Truth;
use crate::{Cell, Channel, Output, Probability};

/// What the adversary sees: the target's answer, if the view has one, and all tallies.
type Seen = (Option<Output>, Vec<Vec<u16>>);

/// The law of what is seen with the target's truth and a crowd of others.
fn law(channel: &Channel, answer: Option<usize>, target: Truth, crowd: Crowd) -> HashMap<Seen, f64> {
    let empty: Vec<Vec<u16>> = channel.answers().iter().map(|outputs| vec![0; outputs.len()]).collect();
    let mut law = HashMap::from([((None, empty), 1.0)]);
    law = with_owner(channel, &law, target, answer);
    for truth in [Truth::Yes, Truth::No] {
        for _ in 0..crowd[truth] {
            law = with_owner(channel, &law, truth, None);
        }
    }
    law
}

fn with_owner(channel: &Channel, law: &HashMap<Seen, f64>, truth: Truth, answer: Option<usize>) -> HashMap<Seen, f64> {
    let mut next = HashMap::new();
    for ((seen, tallies), mass) in law {
        for cell in channel.cells() {
            let probability = likelihood(cell)[truth];
            let mut tallies = tallies.clone();
            for (index, output) in cell.outputs().iter().enumerate() {
                let bin = channel.answers()[index].iter().position(|other| other == output).expect("a listed output");
                tallies[index][bin] += 1;
            }
            let seen = answer.map(|answer| cell.outputs()[answer]).or(*seen);
            *next.entry((seen, tallies)).or_insert(0.0) += mass * probability;
        }
    }
    next
}

fn likelihood(cell: &Cell) -> Likelihood {
    Likelihood { yes: cell.yes().to_f64(), no: cell.no().to_f64() }
}

/// Both directions of the divergence in one crowd.
fn divergence(channel: &Channel, answer: Option<usize>, crowd: Crowd, growth: f64) -> PerDirection<f64> {
    let (with_yes, with_no) = (law(channel, answer, Truth::Yes, crowd), law(channel, answer, Truth::No, crowd));
    let one_way = |first: &HashMap<Seen, f64>, second: &HashMap<Seen, f64>| {
        let excess = |(seen, mass): (&Seen, &f64)| (mass - growth * second.get(seen).unwrap_or(&0.0)).max(0.0);
        first.iter().map(excess).sum::<f64>()
    };
    PerDirection { yes_over_no: one_way(&with_yes, &with_no), no_over_yes: one_way(&with_no, &with_yes) }
}

/// The largest divergence over all crowds, and over the two crowds of one truth.
fn truth(channel: &Channel, answer: Option<usize>, owners: u64, epsilon: f64) -> (f64, f64) {
    let of = |yes: u64| divergence(channel, answer, Crowd { yes, no: owners - 1 - yes }, epsilon.exp()).largest();
    ((0..owners).map(of).fold(0.0, f64::max), of(0).max(of(owners - 1)))
}

/// A law over `weights.len()` cells, in integers over 2⁶⁴ that sum to one exactly.
fn numerators(weights: &[u32]) -> Vec<Probability> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut parts: Vec<u128> = weights.iter().map(|weight| (u128::from(*weight) << 64) / total).collect();
    let rest = (1_u128 << 64) - parts.iter().sum::<u128>();
    let largest = (0..parts.len()).max_by_key(|index| parts[*index]).expect("at least one cell");
    parts[largest] += rest;
    parts.into_iter().map(|part| Probability::from_numerator(part).expect("at most one whole")).collect()
}

fn weights(cells: usize) -> impl Strategy<Value = Vec<u32>> {
    let weight = prop_oneof![2 => 1_u32..1000, 1 => Just(0_u32), 1 => 1_u32..5, 1 => 1_u32..u32::MAX];
    proptest::collection::vec(weight, cells).prop_filter("a law needs mass", |weights| weights.iter().any(|w| *w > 0))
}

/// Random channels: one to three answers of up to three outputs, two to five cells, zeros and equal ratios included.
fn channels() -> impl Strategy<Value = Channel> {
    (1_usize..=3, 2_usize..=5).prop_flat_map(|(answers, cells)| {
        let names = proptest::collection::btree_set(proptest::collection::vec(1_u8..=3, answers), 2..=cells);
        names.prop_flat_map(|names| {
            let count = names.len();
            (Just(names), weights(count), weights(count), proptest::bool::weighted(0.3)).prop_map(build)
        })
    })
}

fn build((names, yes, mut no, tie): (std::collections::BTreeSet<Vec<u8>>, Vec<u32>, Vec<u32>, bool)) -> Channel {
    if tie {
        // Two cells of equal ratio, the same in both laws.
        let last = no.len() - 1;
        (no[0], no[last]) = (yes[0], yes[last]);
        if no.iter().all(|weight| *weight == 0) {
            no[0] = 1;
        }
    }
    let output = |symbol: &u8| Output::new(char::from(b'0' + symbol)).expect("a digit");
    let laws = numerators(&yes).into_iter().zip(numerators(&no));
    let cells = names.iter().zip(laws).map(|(name, (yes, no))| Cell::new(name.iter().map(output).collect(), yes, no));
    Channel::from_cells(cells.collect()).expect("laws that sum to one")
}

fn views(channel: &Channel, owners: u64) -> Vec<(Option<usize>, Accountant)> {
    let joint = |answer| (Some(answer), answer_with_release(channel, answer, owners).expect("an answer"));
    let all = release(channel, owners).expect("owners");
    std::iter::once((None, all)).chain((0..channel.answers().len()).map(joint)).collect()
}

/// Enough for a test to take about ten seconds. The cases are the same every time, and so is the time that a run takes.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_iters: 100, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() }
}

/// Rounding of the enumeration above: a few hundred terms of size at most one.
const ROUNDING: f64 = 1e-13;

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn every_view_of_every_small_crowd_is_enclosed(channel in channels(), owners in 1_u64..=8, at in 0.0_f64..3.0) {
        for (answer, accountant) in views(&channel, owners) {
            let (all, ends) = truth(&channel, answer, owners, at);
            let claim = accountant.delta(epsilon(at));
            let value = claim.value().expect("δ always has a value");
            prop_assert!(value.lower() <= all + ROUNDING, "{answer:?}: lower {} above the truth {all}", value.lower());
            prop_assert!(value.upper() >= all - ROUNDING, "{answer:?}: upper {} below the truth {all}", value.upper());
            let bracket = accountant.delta_of_ends(epsilon(at));
            prop_assert!(bracket.upper() >= ends - ROUNDING);
            if channel.determined() {
                let tolerance = 1e-12 * all + ROUNDING;
                prop_assert!((value.upper() - all).abs() <= tolerance && (value.lower() - all).abs() <= tolerance,
                    "{answer:?}: [{}, {}] is not {all}", value.lower(), value.upper());
                prop_assert!(claim.certificate().closed() || all < 1e-10);
                let exact = accountant.reduced_view().is_exact();
                prop_assert!(!exact || (bracket.middle() - ends).abs() <= 1e-12 * ends + ROUNDING,
                    "{answer:?}: ends {bracket:?} are not {ends}");
            }
        }
    }

    /// Crowds too large to enumerate outcome by outcome: the same number by two methods, crowd by crowd and range by range.
    #[test]
    fn ranges_enclose_what_all_crowds_show(f in 0.05_f64..1.0, share in 0.001_f64..0.45, owners in 9_u64..32, at in 0.0_f64..1.5) {
        let channel = super::channel(&format!("normal-form(f={f},r={})", f * share));
        let accountant = release(&channel, owners).expect("owners");
        let search = || CrowdSearch::new(accountant.reduced_view(), owners, WorkLimit::default());
        let (exact, found) = (search().delta(at).value, search().without_enumeration().delta(at).value);
        prop_assert!(exact.upper() <= exact.lower() * (1.0 + 1e-9) + ROUNDING, "{exact:?}");
        prop_assert!(found.lower() <= exact.upper() && found.upper() >= exact.lower(), "{found:?} does not enclose {exact:?}");
    }

    #[test]
    fn epsilon_inverts_delta(channel in channels(), owners in 1_u64..=7, exponent in -9.0_f64..-0.3) {
        let given = 10_f64.powf(exponent);
        for (answer, accountant) in views(&channel, owners) {
            let claim = accountant.epsilon(delta(given));
            prop_assert_eq!(claim.value().is_none(), given < claim.floor());
            if let Some(value) = claim.value() {
                let above = truth(&channel, answer, owners, value.upper()).0;
                prop_assert!(above <= given + ROUNDING, "{answer:?}: δ({}) = {above} > {given}", value.upper());
                if value.lower() > 0.0 {
                    // At an ε that is claimed to be too small, the view behind the lower end exceeds δ.
                    let below = truth(&channel, answer, owners, value.lower()).0;
                    prop_assert!(below >= given - ROUNDING, "{answer:?}: δ({}) = {below} < {given}", value.lower());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn the_search_over_ranges_encloses_the_truth_too(channel in channels(), owners in 1_u64..=8, at in 0.0_f64..3.0) {
        for (answer, accountant) in views(&channel, owners) {
            let (all, _) = truth(&channel, answer, owners, at);
            let search = || CrowdSearch::new(accountant.reduced_view(), owners, WorkLimit::steps(200_000)).without_enumeration();
            let found = search().delta(at).value;
            prop_assert!(found.lower() <= all + ROUNDING, "{answer:?}: lower {} above the truth {all}", found.lower());
            prop_assert!(found.upper() >= all - ROUNDING, "{answer:?}: upper {} below the truth {all}", found.upper());
            if let Some(found) = search().epsilon(all.clamp(1e-9, 1.0)) {
                let above = truth(&channel, answer, owners, found.value.upper()).0;
                prop_assert!(above <= all.max(1e-9) + ROUNDING, "{answer:?}: ε {} has δ {above}, not {all}", found.value.upper());
            }
        }
    }
}

/// All cells of each outcome of a view, with the target's weights in a direction.
fn outcomes(channel: &Channel, answer: Option<usize>, growth: f64, direction: Direction) -> Vec<Vec<WeightedClass>> {
    let outputs: Vec<Option<Output>> = match answer {
        None => vec![None],
        Some(answer) => channel.answers()[answer].iter().map(|output| Some(*output)).collect(),
    };
    let class = |cell: &Cell, output: &Option<Output>| {
        let inside = output.is_none_or(|output| cell.outputs()[answer.unwrap_or(0)] == output);
        let likelihood = likelihood(cell);
        if inside { likelihood.weighted(direction, growth) } else { likelihood.without_target() }
    };
    outputs.iter().map(|output| channel.cells().iter().map(|cell| class(cell, output)).collect()).collect()
}

proptest! {
    #![proptest_config(cases(48))]

    /// Crowd by crowd and direction by direction, not only the worst of them.
    #[test]
    fn any_number_of_classes_is_enclosed_in_every_crowd(channel in channels(), others in 0_u64..=6, at in 0.0_f64..2.5) {
        let work = WorkBudget::unlimited();
        for answer in std::iter::once(None).chain((0..channel.answers().len()).map(Some)) {
            if !channel.determined() {
                continue;
            }
            for yes in 0..=others {
                let crowd = Crowd { yes, no: others - yes };
                let truth = divergence(&channel, answer, crowd, at.exp());
                for direction in Direction::BOTH {
                    let (outcomes, truth) = (outcomes(&channel, answer, at.exp(), direction), truth[direction]);
                    let above = |classes: &Vec<_>| many_classes::upper(classes, crowd, -60.0, Fineness::TINY, &work);
                    let above: f64 = outcomes.iter().map(above).sum();
                    prop_assert!(above >= truth - ROUNDING, "{answer:?}, {crowd:?}, {direction:?}: {above} below {truth}");
                    let below = |classes: &Vec<_>| many_classes::lower(classes, crowd, -60.0, &work);
                    let below: f64 = outcomes.iter().map(below).sum();
                    prop_assert!(below <= truth + ROUNDING, "{answer:?}, {crowd:?}, {direction:?}: {below} above {truth}");
                }
            }
        }
    }

}

proptest! {
    #![proptest_config(cases(8))]

    /// The same for outcomes of at most three classes. Few cases, because bounds are refined without a limit here.
    #[test]
    fn outcomes_are_enclosed_in_every_crowd(channel in channels(), others in 0_u64..=6, at in 0.0_f64..2.5) {
        let work = WorkBudget::unlimited();
        for (answer, accountant) in views(&channel, others + 1) {
            for yes in 0..=others {
                let crowd = Crowd { yes, no: others - yes };
                let truth = divergence(&channel, answer, crowd, at.exp());
                let request = DivergenceRequest::new(at, -60.0, 0.0);
                let view = accountant.reduced_view();
                let bound = if view.is_exact_in_every_crowd() {
                    view.both_truths(crowd, request, &work).upper()
                } else {
                    view.bound(crowd, DivergenceRequest { goal: 1.0, ..request }, &work).bound
                };
                for (bound, truth) in bound.iter().zip(truth.iter()) {
                    prop_assert!(*bound >= truth - ROUNDING, "{answer:?}, {crowd:?}: {bound} below {truth}");
                }
            }
        }
    }
}

/// Channels whose tallies do not determine the cells: the claim is that of the tallies, and so is the floor. The first has a cell that
/// only *yes* reaches, but a crowd writes nearly all tallies without it.
#[test]
fn tallies_that_do_not_fix_the_cells_are_enumerated_by_themselves() {
    for (text, owners) in [
        ("custom(11=1/100:0/100, 12=6/100:11/100, 22=34/100:66/100, 21=59/100:23/100)", 9),
        ("custom(11=1/100:0/100, 12=6/100:11/100, 22=34/100:66/100, 21=59/100:23/100)", 2),
        ("custom(11=0:0.1, 12=0.4:0.2, 22=0.2:0.3, 21=0.4:0.4)", 5),
        ("custom(11=0.1:0.2, 12=0.4:0.2, 22=0.1:0.2, 21=0.4:0.4)", 6),
    ] {
        let channel = super::channel(text);
        let floor = truth(&channel, None, owners, 600.0).0;
        for accountant in [release(&channel, owners), answer_with_release(&channel, 1, owners)] {
            let accountant = accountant.expect("a view");
            let answer = matches!(accountant.view(), super::super::View::AnswerWithRelease(_)).then_some(1);
            for asked in [0.0, 0.3, 1.0, 2.5, 5.0, 9.0] {
                let worst = truth(&channel, answer, owners, asked).0;
                let found = accountant.delta(epsilon(asked)).value().expect("δ always has a value");
                let near = 1e-9 * worst + 1e-15;
                assert!(
                    found.lower() <= worst + near && worst <= found.upper() + near,
                    "{text} {asked}: {found:?} {worst}"
                );
                assert!(found.upper() - found.lower() <= 1e-6 * worst + 1e-14, "{text} {asked}: {found:?} {worst}");
            }
        }
        let accountant = release(&channel, owners).expect("a view");
        assert!((accountant.floor() - floor).abs() <= 1e-9 * floor + 1e-15, "{text}: {} {floor}", accountant.floor());
        // Just above the floor there is an ε, and its δ is the one asked for.
        let above = 1.1 * floor + 1e-9;
        let claim = accountant.epsilon(delta(above));
        let found = claim.value().expect("a guarantee");
        assert!(claim.certificate().closed(), "{text}: {claim:?}");
        let worst = truth(&channel, None, owners, found.upper()).0;
        assert!(worst <= above * (1.0 + 1e-6), "{text}: {worst} for {above} at {found:?}");
    }
}
