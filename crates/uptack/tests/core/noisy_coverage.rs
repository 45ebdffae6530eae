//! Intervals from sums with the aggregators' noise hold the truth as often as they say.

use uptack::SeededCoins;
use uptack::estimate::many::{Sharing, simultaneous, simultaneous_kind};
use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack::simulate::{CrowdSampling, Simulation};

use crate::exact_coverage::{Case, exact_coverage, law_of_sums};
use crate::family::channel;
use crate::mechanisms::NOISY;
use crate::random_channels::{TESTED, least, promised};

const LEVELS: [f64; 3] = [0.9, 0.95, 0.999];

fn confidence(level: f64) -> Confidence {
    Confidence::new(level).unwrap()
}

fn check(text: &str, owners: u64, levels: &[f64]) {
    let both = |&level: &f64| TESTED.map(|kind| (kind, confidence(level)));
    let cases: Vec<Case> = levels.iter().flat_map(both).collect();
    for ((kind, confidence), held) in cases.iter().zip(exact_coverage(&channel(text), owners, &cases)) {
        let least = least(&held);
        let promised = promised(*kind, confidence.level());
        assert!(least >= promised, "{text}, {owners} owners, {kind:?} at {}: {least}", confidence.level());
    }
}

#[test]
fn small_crowds_are_covered_whatever_they_hold() {
    for text in NOISY {
        check(text, 20, &LEVELS);
        check(text, 60, &LEVELS);
    }
}

#[test]
fn two_hundred_owners_are_covered_whatever_they_hold() {
    NOISY.iter().for_each(|text| check(text, 200, &[0.95, 0.999]));
}

/// Far in the tails, where laws are computed in relation to themselves.
#[test]
fn one_in_a_billion_is_one_in_a_billion() {
    for miss in [1e-4, 1e-9] {
        let confidence = Confidence::of_miss(miss).unwrap();
        for text in NOISY {
            let cases = TESTED.map(|kind| (kind, confidence));
            for (case, held) in cases.iter().zip(exact_coverage(&channel(text), 30, &cases)) {
                let most = if case.0 == IntervalKind::Auto { 1.1 * miss } else { miss };
                let missed = 1.0 - least(&held);
                assert!(missed <= most * 1.001 + 1e-12, "{text} {case:?}: misses {missed}");
            }
        }
    }
}

/// The control: the normal approximation is caught by the same sums, as noise is no normal law.
#[test]
fn the_score_interval_would_be_caught() {
    let case = (IntervalKind::Score, confidence(0.999));
    let held = exact_coverage(&channel("randomized-response(t=1) + laplace(scale=1)"), 60, &[case]);
    assert!(least(&held[0]) < 0.9985, "{}", least(&held[0]));
}

/// With nothing but noise, no test that keeps the floor accepts fewer sums: in the middle of the range as many as the likeliest
/// sums that reach the floor, or one more where two are equally likely.
#[test]
fn intervals_are_as_short_as_the_noise_allows() {
    for (text, owners) in
        [("randomized-response(t=1) + laplace(scale=1)", 100), ("randomized-response(t=1) + laplace(scale=4)", 200)]
    {
        let channel = channel(text);
        let estimator = Estimator::new(&channel).unwrap();
        let reach = channel.noise().unwrap().plausible_reach();
        for level in LEVELS {
            let acceptance = estimator.acceptance(owners, owners / 2, confidence(level), IntervalKind::Auto).unwrap();
            let accepted = (-reach..=owners as i64 + reach).filter(|&sum| acceptance.holds_sum(sum)).count();
            let mut law = law_of_sums(&channel, owners, owners / 2, reach);
            law.sort_unstable_by(|a, b| b.total_cmp(a));
            let floor = promised(IntervalKind::Auto, level);
            let mut sum = 0.0;
            let fewest = law
                .iter()
                .take_while(|&&mass| {
                    sum += mass;
                    sum < floor
                })
                .count()
                + 1;
            assert!((fewest..=fewest + 1).contains(&accepted), "{text} at {level}: {accepted}, {fewest} at least");
        }
    }
}

/// The ends that the search finds are the first and the last of all hypotheses that are accepted; intervals are nested.
#[test]
fn searches_find_what_testing_every_hypothesis_finds() {
    for text in NOISY {
        let estimator = Estimator::new(&channel(text)).unwrap();
        for (owners, sum) in [(90u64, -3i64), (90, 0), (90, 17), (90, 88), (90, 95), (700, 12), (700, 350)] {
            let Ok(observation) = estimator.observe_sum(owners, sum) else { continue };
            let estimate = estimator.estimate_observed(&observation).estimate.clamp(0.0, owners as f64);
            for kind in TESTED {
                let interval = estimator.interval(&observation, confidence(0.95), kind);
                let covered = |yes: &u64| estimator.covers(&observation, confidence(0.95), kind, *yes);
                let accepted: Vec<f64> = (0..=owners).filter(covered).map(|yes| yes as f64).collect();
                let (low, high) = (accepted.first().copied(), accepted.last().copied());
                assert_eq!(interval.low, low.map_or(estimate, |low| low.min(estimate)), "{text} {sum} {kind:?}");
                assert_eq!(interval.high, high.map_or(estimate, |high| high.max(estimate)), "{text} {sum} {kind:?}");
                let wider = estimator.interval(&observation, confidence(0.999), kind);
                assert!(wider.low <= interval.low && wider.high >= interval.high, "{text} {sum} {kind:?}");
            }
        }
    }
}

/// The sum of a channel whose ones are rarer for *yes* says the same as that of its mirror image.
#[test]
fn rarer_ones_speak_for_yes_as_much() {
    let (plain, mirrored) =
        ("randomized-response(t=0.9) + laplace(scale=2)", "randomized-response(t=0.1) + laplace(scale=2)");
    let [plain, mirrored] = [plain, mirrored].map(|text| Estimator::new(&channel(text)).unwrap());
    for sum in [-2i64, 10, 55, 104] {
        let (here, there) = (plain.observe_sum(100, sum).unwrap(), mirrored.observe_sum(100, 100 - sum).unwrap());
        let (first, second) = (plain.estimate_observed(&here), mirrored.estimate_observed(&there));
        assert!((first.estimate - second.estimate).abs() < 1e-9 && (first.sd - second.sd).abs() < 1e-9);
        let interval =
            |estimator: &Estimator, observation| estimator.interval(observation, confidence(0.95), IntervalKind::Auto);
        assert_eq!(interval(&plain, &here), interval(&mirrored, &there));
    }
}

/// Sampling, the owners' coins and the aggregators' noise add up, and are those of the formula.
#[test]
fn the_parts_of_the_error_add_up() {
    for text in NOISY {
        let channel = channel(text);
        let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
        let estimator = Estimator::new(&channel).unwrap();
        for (owners, sum) in [(1000u64, 400i64), (1000, -5), (1000, 1003), (20, 10)] {
            let estimate = estimator.estimate_observed(&estimator.observe_sum(owners, sum).unwrap());
            let difference = bit.difference();
            let expected = (sum as f64 - owners as f64 * bit.no.to_f64()) / difference;
            assert!((estimate.estimate - expected).abs() < 1e-9 * expected.abs().max(1.0), "{text} {sum}");
            let yes = expected.clamp(0.0, owners as f64);
            let variance = (bit.variance(owners as f64, yes) + 2.0 * noise.variance()) / difference.powi(2);
            assert!((estimate.sd.powi(2) / variance - 1.0).abs() < 1e-9, "{text} {sum}");
            assert!((estimator.sd(owners, yes).unwrap() / estimate.sd - 1.0).abs() < 1e-9, "{text} {sum}");
            let aggregators = 2.0 * noise.variance() / difference.powi(2);
            assert!((estimate.aggregator_sd.powi(2) / aggregators - 1.0).abs() < 1e-9, "{text} {sum}");
            let parts = [estimate.sampling_sd, estimate.privacy_sd, estimate.aggregator_sd];
            let sum_of_squares: f64 = parts.iter().map(|part| part * part).sum();
            assert!((sum_of_squares / estimate.sd.powi(2) - 1.0).abs() < 1e-9, "{text} {sum}");
            assert_eq!(estimate.by_bin.len(), 1);
            assert!((estimate.by_bin[0].sd.unwrap() / estimate.sd - 1.0).abs() < 1e-9);
        }
    }
}

/// What the design states for 50 000 owners at ε = 1.
#[test]
fn the_stated_standard_deviation_is_reached() {
    let sd = |text: &str| Estimator::new(&channel(text)).unwrap().sd(50_000, 500.0).unwrap();
    assert!((sd("randomized-response(t=1) + laplace(scale=1)") - 1.919).abs() < 0.001);
    assert!((sd("randomized-response(t=1) + laplace(scale=0.5)") - 0.851).abs() < 0.001);
    assert!((sd("randomized-response(t=1) + laplace(scale=10)") - 19.99).abs() < 0.005);
}

#[test]
fn sums_that_no_run_can_have_produced_are_refused() {
    let noisy = channel("randomized-response(t=0.9) + laplace(scale=1)");
    let reach = noisy.noise().unwrap().plausible_reach();
    let estimator = Estimator::new(&noisy).unwrap();
    for sum in [-reach, 0, 100, 100 + reach] {
        assert!(estimator.observe_sum(100, sum).is_ok(), "{sum}");
    }
    for (owners, sum) in [(100, -reach - 1), (100, 101 + reach), (100, i64::MIN), (0, 1), (u64::MAX, 1)] {
        assert!(estimator.observe_sum(owners, sum).unwrap_err().is_counts(), "{owners} {sum}");
    }
    let tally = serde_json::from_str(r#"{"answers":[{"1":60,"0":40}]}"#).unwrap();
    assert!(estimator.observe(&tally).unwrap_err().hint().is_some());
    let plain = Estimator::new(&noisy.without_noise()).unwrap();
    assert!(plain.observe_sum(100, 60).unwrap_err().hint().is_some());
    assert!(plain.observe(&tally).is_ok());
    assert!(Estimator::new(&channel("randomized-response(t=0.5) + laplace(scale=1)")).unwrap_err().is_parameter());
}

/// A ballot of ten questions: all intervals hold at once as often as they say. 2 000 ballots, α = 1e-4.
#[test]
fn simultaneous_intervals_hold_together() {
    let channel = channel("randomized-response(t=0.99) + laplace(scale=2)");
    let estimator = Estimator::new(&channel).unwrap();
    let noise = channel.noise().unwrap();
    let (owners, questions, ballots) = (400u64, 10, 2000);
    for sharing in [Sharing::Bonferroni, Sharing::Sidak] {
        let each = simultaneous(confidence(0.95), questions, sharing).unwrap();
        let kind = simultaneous_kind(IntervalKind::Auto);
        let mut coins = SeededCoins::new(31);
        let acceptances: Vec<_> = (0..questions as u64)
            .map(|question| estimator.acceptance(owners, 40 * question, each, kind).unwrap())
            .collect();
        let holds = |question: usize, coins: &mut SeededCoins| {
            let cells = uptack::simulate::draw_counts(&channel, owners, 40 * question as u64, coins).unwrap();
            let sum = cells[0] as i64 + noise.draw_seeded(coins) + noise.draw_seeded(coins);
            acceptances[question].holds_sum(sum)
        };
        let together = (0..ballots).filter(|_| {
            let held: Vec<bool> = (0..questions).map(|question| holds(question, &mut coins)).collect();
            held.into_iter().all(|held| held)
        });
        let share = together.count() as f64 / ballots as f64;
        assert!(share > 0.95 - 3.9 * (0.95f64 * 0.05 / ballots as f64).sqrt(), "{sharing:?}: {share}");
    }
}

/// By the law of the noise itself, without a channel: K intervals that share α miss with a probability of at most α in all. `auto`,
/// the control, exceeds it.
#[test]
fn intervals_that_share_a_confidence_never_miss_more_often_than_it_allows() {
    let (owners, yes, mut exceeded) = (1000u64, 500u64, 0);
    for scale in ["1/2", "1", "3/2", "2", "3", "7"] {
        let channel = channel(&format!("randomized-response(t=1) + laplace(scale={scale})"));
        let (estimator, noise) = (Estimator::new(&channel).unwrap(), channel.noise().unwrap());
        for questions in [2, 3, 5, 12, 40] {
            let each = simultaneous(confidence(0.95), questions, Sharing::Bonferroni).unwrap();
            let missed = |kind: IntervalKind| {
                let acceptance = estimator.acceptance(owners, yes, each, kind).unwrap();
                let is_missed = |noise: &i64| !acceptance.holds_sum(yes as i64 + noise);
                let chance: f64 = (-250..=250).filter(is_missed).map(|value| noise.sum_probability(value)).sum();
                questions as f64 * chance
            };
            let together = missed(simultaneous_kind(IntervalKind::Auto));
            assert!(together <= 0.05, "{scale} {questions}: {together}");
            exceeded += u32::from(missed(IntervalKind::Auto) > 0.05);
        }
    }
    assert!(exceeded > 0);
}

/// Beyond what is written out exactly: large crowds, wide noise, and both. 4 000 trials at five numbers of yes-owners know the
/// mean coverage to 0.15 points; α = 1e-4 for each row.
#[test]
fn large_crowds_and_wide_noise_are_covered_as_stated() {
    for (text, owners) in [
        ("randomized-response(t=0.999) + laplace(scale=1)", 1_000_000u64),
        ("randomized-response(t=0.8) + laplace(scale=50)", 100_000_000),
        ("randomized-response(t=0.8) + laplace(scale=20000)", 1_000_000_000),
        ("randomized-response(t=0.8) + laplace(scale=2000)", 100_000),
        ("randomized-response(t=1) + laplace(scale=1000000)", 1_000_000_000),
    ] {
        let held = |quarter: u64| {
            let (yes, interval, crowd) = (owners / 4 * quarter, IntervalKind::Auto, CrowdSampling::Aggregated);
            let (trials, confidence) = (4000, confidence(0.95));
            let simulation = Simulation { owners, yes, trials, seed: quarter, confidence, interval, crowd };
            simulation.run(&channel(text)).unwrap().coverage
        };
        let mean = (0..=4).map(held).sum::<f64>() / 5.0;
        let error = 3.9 * (0.95f64 * 0.05 / 20_000.0).sqrt();
        assert!((0.945 - error..=0.965 + error).contains(&mean), "{text}, {owners} owners: {mean}");
    }
}
