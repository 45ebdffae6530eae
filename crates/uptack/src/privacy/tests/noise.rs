//! The guarantees with noise: the closed form for one honest aggregator, and the release with owners and noise together.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

use super::{Cases, channel, delta, epsilon};
use crate::privacy::certify::CrowdSearch;
use crate::privacy::divergence::DivergenceRequest;
use crate::privacy::likelihood::{Crowd, PerDirection};
use crate::privacy::work::WorkBudget;
use crate::privacy::{
    Enclosure, Repeated, Target, View, Views, WorkLimit, answer_with_release, one_aggregator, owners_alone, release,
};
use crate::{Channel, Probability};

const CASES: usize = 1000;
const SEED: u64 = 0x5eed_0000_0014_0001;

/// Decimal places of the rationals.
const DIGITS: u32 = 90;

/// e^x for |x| of at most some hundred: the plain series, in whole multiples of 10^−90 and with the error of its roundings.
fn exponential(x: &BigRational) -> (BigRational, BigRational) {
    let one = BigInt::from(10).pow(DIGITS);
    let (mut term, mut sum, mut index) = (one.clone(), one.clone(), 0_u32);
    let positive = x.abs();
    while !term.is_zero() {
        index += 1;
        term = &term * positive.numer() / (positive.denom() * index);
        sum += &term;
    }
    // A term that is rounded down by one unit makes those after it smaller by e^|x| units at most.
    let error = BigInt::from(index) * (&sum / &one + 1_u32) * 2_u32;
    let (low, high) = (BigRational::new(sum.clone(), one.clone()), BigRational::new(sum + error, one));
    if x.is_negative() { (high.recip(), low.recip()) } else { (low, high) }
}

fn rational(probability: Probability) -> BigRational {
    BigRational::new(probability.numerator().into(), BigInt::one() << 64_u32)
}

/// A claim as a decimal of twelve places, which it is exactly.
fn decimal(claim: f64) -> BigRational {
    BigRational::new(BigInt::from((claim * 1e12).round() as u64), BigInt::from(10).pow(12))
}

/// The largest ratio of the two laws of w + Z, which has two values in each direction, for both ends of a.
fn largest_ratio(channel: &Channel) -> (BigRational, BigRational) {
    let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
    let (p, q) = (rational(bit.yes), rational(bit.no));
    let scale = BigRational::new(noise.scale().numerator().into(), noise.scale().denominator().into());
    let (low, high) = exponential(&-scale.recip());
    let at = |law: &BigRational, one: &BigRational, zero: &BigRational| law * one + (BigRational::one() - law) * zero;
    let one = BigRational::one();
    let ratios = |a: &BigRational| {
        let (above, below) = (at(&p, &one, a) / at(&q, &one, a), at(&p, a, &one) / at(&q, a, &one));
        [above.clone(), above.recip(), below.clone(), below.recip()].into_iter().max().unwrap()
    };
    let ends = [ratios(&low), ratios(&high)];
    (ends.iter().min().unwrap().clone(), ends.iter().max().unwrap().clone())
}

#[test]
fn the_claim_is_the_closed_form_in_rationals() {
    let mut cases = Cases(SEED);
    for case in 0..CASES {
        let scale = cases.scale(0.02, 2000.0);
        let channel = cases.noisy_bit(scale);
        let found = one_aggregator(&channel).unwrap();
        let (least, most) = largest_ratio(&channel);
        let (upper, lower) = (decimal(found.upper()), decimal(found.lower()));
        assert!(exponential(&upper).1 >= least, "case {case}: {found:?} is below the truth of {channel:?}");
        assert!(exponential(&lower).0 <= most, "case {case}: {found:?} is above the truth of {channel:?}");
        assert!(&upper - &lower <= BigRational::new(1.into(), BigInt::from(10).pow(12)), "case {case}: {found:?}");
    }
}

/// P(w + Z = k) for both truths.
fn law(channel: &Channel, k: i64) -> (f64, f64) {
    let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
    let at =
        |one: Probability| one.to_f64() * noise.probability(k - 1) + one.complement().to_f64() * noise.probability(k);
    (at(bit.yes), at(bit.no))
}

/// The law itself, cut where less than e^−45 is left: its largest ratio is ε, and its divergences are those of an empty crowd.
#[test]
fn the_law_of_a_bit_and_noise_has_this_epsilon() {
    let mut cases = Cases(SEED ^ 0xffff);
    for case in 0..CASES {
        let scale = cases.scale(0.05, 20.0);
        let channel = cases.noisy_bit(scale);
        let reach = (45.0 * scale.to_f64()).ceil() as i64 + 1;
        let all: Vec<(f64, f64)> = (-reach..=reach + 1).map(|k| law(&channel, k)).collect();
        let found = one_aggregator(&channel).unwrap();
        let largest = all.iter().map(|(yes, no)| (yes / no).ln().abs()).fold(0.0, f64::max);
        assert!(
            largest <= found.upper() + 1e-12 && largest >= found.lower() - 1e-12,
            "case {case}: {found:?} {largest}"
        );
        if case % 4 > 0 {
            continue;
        }
        let at = found.upper() * cases.unit();
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| all.iter().map(|pair| of(pair).max(0.0)).sum::<f64>();
        let growth = at.exp();
        let truth = sum(&|(yes, no)| yes - growth * no).max(sum(&|(yes, no)| no - growth * yes));
        let delta = release(&channel, 1).unwrap().delta(epsilon(at)).value().unwrap();
        assert!((delta.lower() - 1e-13..=delta.upper() + 1e-13).contains(&truth), "case {case}: {delta:?} {truth}");
        assert!(delta.upper() - delta.lower() < 1e-12, "case {case}: {delta:?}");
    }
}

#[test]
fn closed_forms_of_an_independent_program() {
    for (text, value) in [
        ("noisy-sampling(0.999,0.001) + laplace(scale=1)", 0.997_650_872_297_604_5),
        ("noisy-sampling(0.9,0.1) + laplace(scale=2.5)", 0.318_465_052_043_154_5),
        ("noisy-sampling(0.6,0.05) + laplace(scale=0.4)", 1.598_328_291_826_624_6),
        ("noisy-sampling(0.7,0.3) + laplace(scale=3)", 0.132_304_988_708_544_54),
        ("noisy-sampling(0.98,0.0005) + laplace(scale=1.25)", 0.788_312_899_763_897_7),
    ] {
        let found: Enclosure = one_aggregator(&super::channel(text)).unwrap();
        assert!(found.lower() <= value + 1e-15 && found.upper() >= value - 1e-15, "{text}: {found:?}");
    }
}

/// The rounding of the sums below, absolute.
const ROUNDING: f64 = 1e-13;

/// The law of the crowd's bits plus noise: owners are added one by one, noise by its definition, cut where e^−`depth` is left.
fn law_of_sum(channel: &Channel, crowd: Crowd, depth: f64) -> Vec<f64> {
    let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
    let mut counts = vec![1.0];
    let owners = std::iter::repeat_n(bit.yes, crowd.yes as usize).chain(std::iter::repeat_n(bit.no, crowd.no as usize));
    for one in owners {
        let (success, failure) = (one.to_f64(), one.complement().to_f64());
        let at = |index: usize| counts.get(index).copied().unwrap_or(0.0);
        let next = |index: usize| failure * at(index) + if index > 0 { success * at(index - 1) } else { 0.0 };
        counts = (0..=counts.len()).map(next).collect();
    }
    let reach = (depth * noise.scale().to_f64()).ceil() as i64;
    let weights: Vec<f64> = (-reach..=reach).map(|z| noise.probability(z)).collect();
    let mut law = vec![0.0; counts.len() + weights.len() - 1];
    for (count, mass) in counts.iter().enumerate().filter(|(_, mass)| **mass > 1e-40) {
        law[count..].iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += mass * weight);
    }
    law
}

/// The two laws of the published sum: the target adds its bit.
fn pair(channel: &Channel, crowd: Crowd, depth: f64) -> Vec<(f64, f64)> {
    let (law, bit) = (law_of_sum(channel, crowd, depth), channel.summed_bit().unwrap());
    let at = |index: usize| law.get(index).copied().unwrap_or(0.0);
    let sum = |index: usize, one: crate::Probability| {
        one.to_f64() * if index > 0 { at(index - 1) } else { 0.0 } + one.complement().to_f64() * at(index)
    };
    (0..=law.len()).map(|index| (sum(index, bit.yes), sum(index, bit.no))).collect()
}

fn divergence(pair: &[(f64, f64)], growth: f64) -> PerDirection<f64> {
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pair.iter().map(|pair| of(pair).max(0.0)).sum();
    PerDirection { yes_over_no: sum(&|(yes, no)| yes - growth * no), no_over_yes: sum(&|(yes, no)| no - growth * yes) }
}

fn crowds(owners: u64) -> impl Iterator<Item = Crowd> {
    (0..owners).map(move |yes| Crowd { yes, no: owners - 1 - yes })
}

/// Every crowd and direction of at most twelve owners: single crowds, the certified δ and the certified ε, each by both methods.
#[test]
fn every_crowd_of_few_owners_is_enclosed() {
    let mut cases = Cases(0x5eed_0000_0014_0002);
    for case in 0..300 {
        let (owners, scale) = (1 + cases.below(12), cases.scale(0.05, 6.0));
        let channel = cases.noisy_bit(scale);
        let pairs: Vec<_> = crowds(owners).map(|crowd| (crowd, pair(&channel, crowd, 45.0))).collect();
        let truth = |at: f64| {
            let worst = pairs.iter().map(|(_, pair)| divergence(pair, at.exp()).largest());
            worst.fold(0.0, f64::max)
        };
        let largest = one_aggregator(&channel).unwrap().upper();
        let at = 1.1 * largest * cases.unit();
        let accountant = release(&channel, owners).unwrap();
        for (crowd, pair) in &pairs {
            let request = DivergenceRequest::new(at, -80.0, 0.0);
            let found = accountant.reduced_view().both_truths(*crowd, request, &WorkBudget::unlimited());
            for (found, truth) in found.iter().zip(divergence(pair, at.exp()).iter()) {
                let holds = found.lower() <= truth + ROUNDING && found.upper() >= truth - ROUNDING;
                assert!(holds, "case {case}, {crowd:?}: {found:?} {truth}, {channel:?}");
                assert!(found.upper() - found.lower() < 1e-12, "case {case}, {crowd:?}: {found:?}");
            }
        }
        let swept = CrowdSearch::new(accountant.reduced_view(), owners, WorkLimit::default()).without_enumeration();
        for found in [accountant.delta(epsilon(at)).value().unwrap(), swept.delta(at).value] {
            let truth = truth(at);
            let holds = found.lower() <= truth + ROUNDING && found.upper() >= truth - ROUNDING;
            assert!(holds, "case {case}: {found:?} {truth}, {channel:?}");
        }
        let given = 10_f64.powf(-8.0 * cases.unit());
        for found in [accountant.epsilon(delta(given)).value().unwrap(), swept.epsilon(given).unwrap().value] {
            assert!(found.upper() <= largest, "case {case}: {found:?}");
            assert!(truth(found.upper()) <= given + ROUNDING, "case {case}: δ({found:?}) is not {given}, {channel:?}");
            let attained = found.lower() == 0.0 || truth(found.lower()) >= given - ROUNDING;
            assert!(attained, "case {case}: δ({found:?}) is not {given}, {channel:?}");
        }
    }
}

/// Larger crowds against a convolution owner by owner: some crowds exactly, and the certificate above all of them.
#[test]
fn crowds_of_thousands_are_enclosed() {
    for (text, owners, at) in [
        ("noisy-sampling(0.99,0.002) + laplace(scale=1.5)", 700, 0.4),
        ("randomized-response(t=0.9) + laplace(scale=2.5)", 2000, 0.15),
        ("noisy-sampling(0.02,0.3) + laplace(scale=0.5)", 1500, 0.2),
        ("randomized-response(t=0.999) + laplace(scale=4)", 5000, 0.1),
    ] {
        let channel = channel(text);
        let accountant = release(&channel, owners).unwrap();
        let claim = accountant.delta(epsilon(at));
        assert!(claim.certificate().closed(), "{text}: {claim:?}");
        let (lower, upper) = (claim.value().unwrap().lower(), claim.value().unwrap().upper());
        let others = owners - 1;
        let worst = claim.crowd().unwrap();
        for yes in [0, others / 3, others / 2, others, worst] {
            let crowd = Crowd { yes, no: others - yes };
            let truth = divergence(&pair(&channel, crowd, 60.0), at.exp());
            let request = DivergenceRequest::new(at, -80.0, 0.0);
            let found = accountant.reduced_view().both_truths(crowd, request, &WorkBudget::unlimited());
            for (found, truth) in found.iter().zip(truth.iter()) {
                let (below, above) = (truth * (1.0 - 1e-9) - 1e-18, truth * (1.0 + 1e-9) + 1e-18);
                assert!(found.lower() <= above && found.upper() >= below, "{text}, {yes} yes: {found:?} {truth}");
                assert!(found.upper() - found.lower() <= 1e-8 * found.upper() + 1e-18, "{text}, {yes} yes: {found:?}");
            }
            assert!(truth.largest() <= upper, "{text}, {yes} yes: {truth:?} above {upper}");
            assert!(yes != worst || truth.largest() >= lower * (1.0 - 1e-9), "{text}: {lower} is not attained");
        }
    }
}

/// Divergences of crowds of one truth, and of crowds with half of each, computed by another program.
#[test]
fn values_of_an_independent_program() {
    for (text, owners, yes, at, value) in [
        ("noisy-sampling(0.999,0.001) + laplace(scale=1)", 5, 0, 0.1, 0.431_766_065_221_194_43),
        ("noisy-sampling(0.999,0.001) + laplace(scale=1)", 2000, 0, 0.5, 0.080_920_613_070_280_52),
        ("noisy-sampling(0.999,0.001) + laplace(scale=1)", 50_000, 0, 0.5, 5.388_820_745_604_713e-5),
        (
            "noisy-sampling(0.999,0.001) + laplace(scale=1)",
            50_000,
            49_999,
            0.897_885_785_067_844_1,
            2.195_368_042_146_186e-9,
        ),
        ("noisy-sampling(0.9,0.1) + laplace(scale=2.5)", 2000, 0, 0.286_618_546_838_839_1, 2.879_069_575_589_784e-9),
        ("noisy-sampling(0.6,0.05) + laplace(scale=0.4)", 5, 4, 0.5, 0.073_167_278_355_630_47),
        ("noisy-sampling(0.6,0.05) + laplace(scale=0.4)", 2000, 1999, 0.1, 4.377_013_822_306_241_4e-7),
        ("noisy-sampling(0.7,0.3) + laplace(scale=3)", 2000, 0, 0.1, 2.939_279_208_843_762_5e-10),
        (
            "noisy-sampling(0.98,0.0005) + laplace(scale=1.25)",
            2000,
            1999,
            0.709_481_609_787_508,
            5.524_775_357_595_567e-7,
        ),
        ("noisy-sampling(0.98,0.0005) + laplace(scale=1.25)", 50_000, 0, 0.5, 6.946_407_479_477_117e-4),
    ] {
        let accountant = release(&channel(text), owners).unwrap();
        let crowd = Crowd { yes, no: owners - 1 - yes };
        let request = DivergenceRequest::new(at, -80.0, 0.0);
        let found = accountant.reduced_view().both_truths(crowd, request, &WorkBudget::unlimited()).largest();
        assert!((found.middle() / value - 1.0).abs() < 1e-9, "{text}, {owners}, {yes} yes: {found:?} {value}");
        assert!(accountant.delta(epsilon(at)).value().unwrap().upper() >= value * (1.0 - 1e-9), "{text}, {owners}");
    }
}

/// More owners, more ε and more noise never hurt, and no claim is above that of one aggregator or of the owners alone.
#[test]
fn claims_fall_with_owners_and_stay_below_both_of_their_parts() {
    for text in [
        "randomized-response(t=0.99)",
        "noisy-sampling(0.3,0.01)",
        "noisy-sampling(0.01,0.6)",
        "normal-form(f=0.5,r=0.01)",
    ] {
        for scale in ["0.1", "1", "30"] {
            let channel = channel(&format!("{text} + laplace(scale={scale})"));
            let largest = one_aggregator(&channel).unwrap().upper();
            let mut last = (f64::INFINITY, f64::INFINITY);
            for owners in [1, 2, 10, 100, 3000, 100_000] {
                let accountant = release(&channel, owners).unwrap();
                let claim = accountant.epsilon(delta(1e-9));
                let upper = claim.value().unwrap().upper();
                let of_owners = owners_alone(&channel, owners).unwrap().epsilon(delta(1e-9)).value();
                assert!(upper <= largest, "{text}, {scale}, {owners}: {upper} above {largest}");
                assert!(
                    of_owners.is_none_or(|alone| upper <= alone.upper()),
                    "{text}, {scale}, {owners}: {upper}, {of_owners:?}"
                );
                assert!(claim.certificate().closed() && claim.floor() == 0.0, "{text}, {scale}, {owners}: {claim:?}");
                let at = accountant.delta(epsilon(0.3 * largest)).value().unwrap();
                assert!(upper <= last.0 * 1.001 && at.upper() <= last.1 * 1.05, "{text}, {scale}, {owners}");
                assert!(accountant.delta_upper(0.6 * largest) <= at.upper(), "{text}, {scale}, {owners}");
                assert_eq!(accountant.delta_upper(largest), 0.0);
                last = (upper, at.upper());
            }
        }
    }
}

/// Exchanging the truths, or the bit with its complement, changes nothing; bits that do not depend on the truth reveal nothing.
#[test]
fn which_truth_writes_more_ones_does_not_matter() {
    let claim = |text: &str| release(&channel(text), 500).unwrap().epsilon(delta(1e-6)).value().unwrap();
    let told = claim("noisy-sampling(0.9,0.2) + laplace(scale=1)");
    for text in ["noisy-sampling(0.2,0.9) + laplace(scale=1)", "noisy-sampling(0.1,0.8) + laplace(scale=1)"] {
        assert!((claim(text).upper() / told.upper() - 1.0).abs() < 1e-3, "{text}");
    }
    let nothing = claim("noisy-sampling(0.4,0.4) + laplace(scale=1)");
    assert_eq!((nothing.lower(), nothing.upper()), (0.0, 0.0));
    assert_eq!(release(&channel("noisy-sampling(0.4,0.4) + laplace(scale=1)"), 9).unwrap().delta_upper(0.0), 0.0);
}

#[test]
fn tiny_deltas_and_huge_crowds_have_closed_claims() {
    for (text, owners, deepest) in [
        ("randomized-response(t=0.999) + laplace(scale=1)", 50_000, 1e-60),
        ("randomized-response(t=0.9999992) + laplace(scale=1.1)", 100_000_000, 1e-15),
        ("randomized-response(t=0.75) + laplace(scale=20)", 100_000_000, 1e-15),
        ("randomized-response(t=1) + laplace(scale=1e6)", 1_000_000_000, 1e-30),
        ("noisy-sampling(0.999,1e-8) + laplace(scale=2)", 1_000_000_000, 1e-15),
    ] {
        let accountant = release(&channel(text), owners).unwrap();
        let mut last = 0.0;
        for given in [1e-8, deepest] {
            let claim = accountant.epsilon(delta(given));
            let upper = claim.value().unwrap().upper();
            assert!(claim.certificate().closed() && upper >= last, "{text}, {given}: {claim:?}");
            last = upper;
        }
    }
}

/// The target's answer reveals its bit: what else is published does not depend on the target.
#[test]
fn an_answer_with_the_sum_is_the_answer_alone() {
    let noisy = channel("normal-form(f=0.5,r=0.05) + laplace(scale=2)");
    let bare = noisy.clone().without_noise();
    let target = Target::Delta(delta(1e-3));
    let found = Views::of(&noisy, 1000, target, WorkLimit::default()).unwrap();
    let alone = answer_with_release(&bare, 0, 1).unwrap().guarantee(target);
    assert_eq!(found.answers_with_release[0].value(), alone.value());
    assert_eq!((found.linked, &found.answers), (Some(found.answers[0].unwrap()), &found.answers));
    assert_eq!(found.one_aggregator, one_aggregator(&noisy));
    let of_owners = found.owners_alone.unwrap();
    assert_eq!((of_owners.view(), of_owners.owners()), (View::OwnersAlone, 1000));
    let plain = Views::of(&bare, 1000, target, WorkLimit::default()).unwrap();
    assert!(plain.one_aggregator.is_none() && plain.owners_alone.is_none());
    // The sum of bits is a function of all tallies.
    assert!(of_owners.value().unwrap().upper() <= plain.release.value().unwrap().upper() * 1.001);
}

/// The largest divergence over all histories of at most two queries: each has a crowd and a direction of its own.
fn worst_history(pairs: &[Vec<(f64, f64)>], times: u64, growth: f64) -> f64 {
    let both = |pair: &Vec<(f64, f64)>| [pair.clone(), pair.iter().map(|(yes, no)| (*no, *yes)).collect()];
    let all: Vec<Vec<(f64, f64)>> = pairs.iter().flat_map(both).collect();
    let positive = |first: f64, second: f64| (first - growth * second).max(0.0);
    if times == 1 {
        let one = |pair: &Vec<(f64, f64)>| pair.iter().map(|(first, second)| positive(*first, *second)).sum::<f64>();
        return all.iter().map(one).fold(0.0, f64::max);
    }
    let two = |one: &[(f64, f64)], other: &[(f64, f64)]| -> f64 {
        let with = |(a, b): &(f64, f64)| other.iter().map(|(c, d)| positive(a * c, b * d)).sum::<f64>();
        one.iter().map(with).sum()
    };
    let from = |index: usize| all[index..].iter().map(|other| two(&all[index], other)).fold(0.0, f64::max);
    (0..all.len()).map(from).fold(0.0, f64::max)
}

#[test]
fn repeated_releases_are_enclosed_in_every_history() {
    let mut cases = Cases(0x5eed_0000_0014_0003);
    let (mut told, mut positive) = (0, 0);
    for case in 0..120 {
        let (owners, times, scale) = (1 + cases.below(4), 1 + cases.below(2), cases.scale(0.1, 1.2));
        let channel = cases.noisy_bit(scale);
        let pairs: Vec<_> = crowds(owners).map(|crowd| pair(&channel, crowd, 32.0)).collect();
        let largest = one_aggregator(&channel).unwrap().upper();
        let accountant = release(&channel, owners).unwrap();
        let repeated = |target| {
            let views = Views::of(&channel, owners, target, WorkLimit::default()).unwrap();
            Repeated::of(&views, &accountant, target, times).unwrap()
        };
        let at = times as f64 * largest * cases.unit();
        let found = repeated(Target::Epsilon(epsilon(at)));
        let (ends, truth) = (found.release.unwrap(), worst_history(&pairs, times, at.exp()));
        assert!(
            ends.lower() <= truth + 1e-12 && ends.upper() >= truth - 1e-12,
            "case {case}: {ends:?} {truth}, {channel:?}"
        );
        told += usize::from(truth > 1e-9);
        positive += usize::from(ends.lower() > 0.0);
        let given = 10_f64.powf(-6.0 * cases.unit());
        let found = repeated(Target::Delta(delta(given)));
        let ends = found.release.unwrap();
        assert!(ends.upper() <= found.one_aggregator.unwrap().upper(), "case {case}: {found:?}");
        let above = worst_history(&pairs, times, ends.upper().exp());
        assert!(above <= given + 1e-12, "case {case}: δ({ends:?}) is {above}, not {given}, {channel:?}");
        let below = worst_history(&pairs, times, ends.lower().exp());
        assert!(
            ends.lower() == 0.0 || below >= given - 1e-12,
            "case {case}: δ({ends:?}) is {below}, not {given}, {channel:?}"
        );
    }
    assert!(told > 60 && 10 * positive > 9 * told, "{positive} lower ends of {told} are positive");
}

/// Many sums: never above the sum of the pure claims, far below it where δ is allowed, and with ends that are close.
#[test]
fn many_sums_compose() {
    let channel = channel("randomized-response(t=0.99) + laplace(scale=8)");
    let (owners, target) = (2000, Target::Delta(delta(1e-8)));
    let views = Views::of(&channel, owners, target, WorkLimit::default()).unwrap();
    let accountant = release(&channel, owners).unwrap();
    let often = Repeated::of(&views, &accountant, target, 100).unwrap();
    let (release, pure) = (often.release.unwrap(), often.one_aggregator.unwrap());
    assert!((pure.upper() / views.one_aggregator.unwrap().upper() - 100.0).abs() < 1e-9);
    assert!(release.upper() < 0.6 * pure.upper(), "{release:?} {pure:?}");
    assert!(release.lower() > 0.9 * release.upper(), "{release:?}");
}
