//! The auditor against the family.

use super::*;
use crate::Mechanism;
use crate::settings_of_tests::FAMILY;

fn channel(text: &str) -> Channel {
    text.parse::<Mechanism>().unwrap().channel()
}

fn audit(samples: u64) -> Audit {
    Audit { samples, coins: AuditCoins::Seeded(11), ..Audit::default() }
}

const TEN_MILLION: u64 = 10_000_000;

fn of_family(text: &str, samples: u64) -> Report {
    let channel = channel(text);
    let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
    audit(samples).run(&channel, &claims).unwrap()
}

/// α = 1e-3 for each mechanism; the seed is fixed. The proven bounds are also not far below the claims: an auditor
/// who sees nothing would be consistent too. The linked ε is proved to within a tenth.
#[test]
fn the_family_is_consistent_with_ten_million_samples_each() {
    for text in FAMILY {
        let report = of_family(text, TEN_MILLION);
        assert_eq!(report.verdict, Verdict::Consistent, "{text}: {report:?}");
        assert!(report.linked.claimed.is_none_or(|claimed| report.linked.observed_lower > 0.9 * claimed), "{text}");
        assert!(report.samples > TEN_MILLION * 99 / 100 && report.samples <= TEN_MILLION);
    }
}

/// The smallest violation that ten million samples see: a claim that is too good by this much is contradicted, and a
/// claim that is too good by a third of it is not. The bound's mean distance from the truth and three of its standard
/// deviations, √((1−q)/(1.25e6·q)) for a rarer side of probability q, make the figures, so that they do not hang on the
/// seed.
#[test]
fn the_smallest_overclaim_that_is_seen() {
    for (text, seen) in [
        ("randomized-response(t=0.8)", 0.015),
        ("deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)", 0.04),
        ("noisy-sampling(sy=0.05,sn=0.01)", 0.08),
        ("normal-form(f=0.5,r=0.0001)", 0.6),
    ] {
        let linked = of_family(text, TEN_MILLION).linked;
        let gap = linked.claimed.unwrap() - linked.observed_lower;
        assert!(gap < seen && gap > seen / 3.0, "{text}: {gap}");
    }
}

/// The attack on the release, where the crowd is small and δ large enough for an event to be seen, comes close to the
/// certificate: five owners at δ = 0.01, claim and proof.
#[test]
fn the_attack_on_the_release_comes_close_to_the_certificate() {
    for (text, gap) in [("randomized-response(t=0.8)", 0.1), ("paired(b=0.5,sy=0.2,sn=0.05)", 0.2)] {
        let channel = channel(text);
        let claims = ClaimedEpsilons::of(&channel, 5, 0.01).unwrap();
        let release = Audit { owners: 5, ..audit(TEN_MILLION) }.run(&channel, &claims).unwrap().release;
        let claimed = release.claimed.unwrap();
        assert!(!release.is_violated(), "{text}: {release:?}");
        assert!(release.observed_lower > claimed - gap, "{text}: {release:?}");
    }
}

#[test]
fn the_systems_coins_and_a_channel_of_one_cell() {
    let confidence = Confidence::of_miss(1e-9).unwrap();
    for text in ["randomized-response(t=0.8)", "custom(1=1:1)"] {
        let channel = channel(text);
        let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
        let audit = Audit { samples: 200_000, confidence, ..Audit::default() };
        let report = audit.run(&channel, &claims).unwrap();
        assert_eq!(report.verdict, Verdict::Consistent, "{text}: {report:?}");
    }
}

#[test]
fn a_report_does_not_depend_on_threads_or_runs() {
    let channel = channel("blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.01,rn=0.01)");
    let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
    let run = || serde_json::to_string(&audit(100_000).run(&channel, &claims).unwrap()).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn samples_are_not_overspent() {
    let channel = channel("normal-form(f=0.5,r=0.01)");
    let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
    for samples in [60_000, 1_000_000] {
        let made = audit(samples).run(&channel, &claims).unwrap().samples;
        assert!(made <= samples && made > samples / 2, "{made} of {samples}");
    }
}

#[test]
fn impossible_audits_are_refused() {
    let channel = channel("normal-form(f=0.5,r=0.01)");
    let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
    for (samples, owners) in [(49_999, 1), (1_000_000, 0), (1_000_000, 1_000_000), (u64::MAX, u64::MAX)] {
        let audit = Audit { owners, ..audit(samples) };
        assert!(audit.run(&channel, &claims).unwrap_err().is_request(), "{samples} {owners}");
    }
    for bad_claims in [ClaimedEpsilons { answers: vec![], ..claims.clone() }, ClaimedEpsilons { delta: 2.0, ..claims }]
    {
        assert!(audit(100_000).run(&channel, &bad_claims).unwrap_err().is_request());
    }
}

/// In a crowd of one the tallies are the owner's own cell, and the attack must find what the linked view finds.
#[test]
fn a_crowd_of_one_hides_nothing() {
    let channel = channel("randomized-response(t=0.8)");
    let claims = ClaimedEpsilons::of(&channel, 1, 1e-8).unwrap();
    let report = Audit { owners: 1, ..audit(1_000_000) }.run(&channel, &claims).unwrap();
    assert!(report.release.observed_lower > 1.3, "{:?}", report.release);
    assert!(report.release.observed_lower < 4f64.ln());
}

/// A lone *yes* in a crowd of *no* shows with probability s: the event proves an ε that grows with the samples (1.85 here).
#[test]
fn cancelled_noise_betrays_the_release() {
    let channel = channel("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)");
    let claims = ClaimedEpsilons { release: Some(1.5), ..ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap() };
    let report = audit(2_000_000).run(&channel, &claims).unwrap();
    assert!(report.release.is_violated(), "{:?}", report.release);
    assert!(report.linked.claimed.is_none() && !report.linked.is_violated());
}

/// Mechanisms with noise; those of two outputs have a release that is the sum but for the noise.
const NOISY: [&str; 4] = [
    "randomized-response(t=1) + laplace(scale=1)",
    "randomized-response(t=0.9) + laplace(scale=2)",
    "normal-form(f=0.5,r=0.01) + laplace(scale=1/2)",
    "randomized-response(t=0.2) + laplace(scale=10)",
];

const NOISY_SAMPLES: u64 = 4_000_000;

/// α = 1e-3 for each; the seed is fixed. What is proved of the one-aggregator view comes close to the closed form: half a million
/// sums, of which events hold a quarter.
#[test]
fn noise_keeps_its_claims_and_the_attack_comes_close() {
    for text in NOISY {
        let report = of_family(text, NOISY_SAMPLES);
        assert_eq!(report.verdict, Verdict::Consistent, "{text}: {report:?}");
        let finding = report.one_aggregator.unwrap();
        let claimed = finding.claimed.unwrap();
        assert!(finding.observed_lower > claimed - 0.04, "{text}: {finding:?}");
        assert!(report.noise.unwrap().tests > 20);
        assert!(report.samples > NOISY_SAMPLES * 9 / 10 && report.samples <= NOISY_SAMPLES, "{}", report.samples);
    }
}

/// A claim for one aggregator that is too good by a twentieth is found out.
#[test]
fn an_overclaimed_aggregator_is_found_out() {
    let channel = channel(NOISY[0]);
    let claims = ClaimedEpsilons { one_aggregator: Some(0.95), ..ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap() };
    let report = audit(NOISY_SAMPLES).run(&channel, &claims).unwrap();
    assert!(report.one_aggregator.unwrap().is_violated());
    assert_eq!(report.verdict, Verdict::Violated);
}

#[test]
fn without_noise_there_is_no_aggregator_to_count_on() {
    let report = of_family("randomized-response(t=0.8)", 100_000);
    assert!(report.one_aggregator.is_none() && report.noise.is_none());
}

#[cfg(debug_assertions)]
mod broken_controls {
    use super::*;

    /// Four million samples, half a million of them sums of one bit and one draw: every way to break the noise is seen in the
    /// law of the noise. Where the claim is 0.3 or more, it also proves more than is claimed, but for one-sided noise on top of
    /// answers that are silent half of the time.
    #[test]
    fn broken_noise_is_caught() {
        for control in BrokenControl::NOISE {
            for text in NOISY {
                let channel = channel(text);
                let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
                let report = audit(NOISY_SAMPLES).run_broken(&channel, &claims, control).unwrap();
                assert_eq!(report.noise.as_ref().unwrap().verdict, Verdict::Violated, "{control:?} {text}");
                assert_eq!(report.verdict, Verdict::Violated, "{control:?} {text}");
                assert_eq!(report.law.verdict, Verdict::Consistent, "{control:?} {text}");
                let finding = report.one_aggregator.unwrap();
                let hidden = control == BrokenControl::NoiseOneSided && text.starts_with("normal-form");
                let seen = finding.claimed.unwrap() > 0.3 && !hidden;
                assert!(finding.is_violated() || !seen, "{control:?} {text}: {finding:?}");
            }
        }
        let channel = channel("randomized-response(t=0.8)");
        let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
        let refused = audit(100_000).run_broken(&channel, &claims, BrokenControl::NoiseScale);
        assert!(refused.unwrap_err().is_request());
    }

    fn broken(text: &str, control: BrokenControl, samples: u64) -> Report {
        let channel = channel(text);
        let claims = ClaimedEpsilons::of(&channel, 20, 1e-8).unwrap();
        audit(samples).run_broken(&channel, &claims, control).unwrap()
    }

    /// Every control is caught on every mechanism, by the check that is meant for it, within ten million samples. Most need far
    /// fewer, so a twentieth is tried first.
    #[test]
    fn every_control_is_caught_on_the_whole_family() {
        for control in BrokenControl::ALL {
            for text in FAMILY {
                if is_caught_by_the_right_check(control, &broken(text, control, TEN_MILLION / 20)) {
                    continue;
                }
                let report = broken(text, control, TEN_MILLION);
                assert!(is_caught_by_the_right_check(control, &report), "{control:?} {text}: {report:?}");
            }
        }
    }

    fn is_caught_by_the_right_check(control: BrokenControl, report: &Report) -> bool {
        let violated = |finding: &Finding| finding.is_violated() || finding.claimed.is_none();
        let law_is_kept = report.law.verdict == Verdict::Consistent;
        let is_right_check = match control {
            BrokenControl::LastOutputUnprotected => {
                !law_is_kept && report.answers.last().is_some_and(violated) && violated(&report.linked)
            }
            BrokenControl::BiasedThreshold { .. } => !law_is_kept && violated(&report.linked),
            BrokenControl::ReusedCoin => {
                law_is_kept
                    && report.coins.independence.verdict == Verdict::Violated
                    && violated(&report.coins.neighbour)
            }
            BrokenControl::TruthDependentLength => {
                law_is_kept && report.coins.length.observed_lower > 10.0 && report.coins.replays.differing > 0
            }
            BrokenControl::WrongBranch => !law_is_kept,
            _ => unreachable!("noise has a test of its own"),
        };
        is_right_check && report.verdict == Verdict::Violated
    }

    /// A wrong branch is more than another law: it is a loss of privacy, proved in a view that has a claim.
    #[test]
    fn a_wrong_branch_breaks_a_claim() {
        for text in ["randomized-response(t=0.8)", "noisy-sampling(sy=0.05,sn=0.01)", "paired(b=0.5,sy=0.2,sn=0.05)"] {
            assert!(broken(text, BrokenControl::WrongBranch, TEN_MILLION).linked.is_violated(), "{text}");
        }
    }

    /// The smallest bias of a threshold that ten million samples see, for cells of probability 0.2, 0.1 and 0.0001; a
    /// quarter of it passes (the seed is fixed).
    #[test]
    fn the_smallest_bias_that_is_seen() {
        for (text, seen) in [
            ("randomized-response(t=0.8)", 9),
            ("paired(b=0.5,sy=0.2,sn=0.05)", 10),
            ("normal-form(f=0.5,r=0.0001)", 14),
        ] {
            let verdict = |bits| broken(text, BrokenControl::BiasedThreshold { bits }, TEN_MILLION).verdict;
            assert_eq!(verdict(seen), Verdict::Violated, "{text}");
            assert_eq!(verdict(seen + 2), Verdict::Consistent, "{text}");
        }
    }
}
