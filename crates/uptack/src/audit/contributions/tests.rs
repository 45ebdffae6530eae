//! The auditor against contributions.

use super::*;
use crate::audit::AuditCoins;

fn asked(text: &str) -> Contributions {
    text.parse().unwrap()
}

fn audit(samples: u64, seed: u64) -> Audit {
    Audit { samples, coins: AuditCoins::Seeded(seed), ..Audit::default() }
}

fn of(text: &str, samples: u64, seed: u64) -> Report {
    let asked = asked(text);
    audit(samples, seed).run_contributions(&asked, &ClaimedEpsilons::of_contributions(&asked)).unwrap()
}

const FAMILY: [&str; 8] = [
    "choice(k=2,r=0.1)",
    "choice(k=4,r=0.02)",
    "choice(k=5,f=0.7,r=0.05) + laplace(scale=2)",
    "choice(k=1000,r=1/2000)",
    "contributions(counts=1,r=0.1) + laplace(scale=1)",
    "contributions(counts=6,most=2,r=0.05)",
    "contributions(counts=3,most=3,r=0.1) + laplace(scale=3/2)",
    "contributions(counts=300,most=1,r=0.001) + laplace(scale=2)",
];

/// α = 1e-3 for each of 100 runs, and the seeds are fixed: some run of honest samplers would be called violated with a probability
/// of at most a tenth if they were not.
#[test]
fn honest_samplers_are_consistent_in_a_hundred_runs() {
    for run in 0..100 {
        let text = FAMILY[run % FAMILY.len()];
        let samples = 64 * 1024 * u64::from(asked(text).most());
        let report = of(text, samples, run as u64);
        assert_eq!(report.verdict, Verdict::Consistent, "{text}, seed {run}: {report:?}");
    }
}

/// An auditor who sees nothing would be consistent, too: the proven bounds come close to the claims that can be reached.
#[test]
fn the_attacks_come_close_to_the_claims() {
    for (text, linked, one_aggregator) in [
        ("choice(k=4,r=0.02)", 0.15, 0.0),
        ("choice(k=3,r=0.02) + laplace(scale=2)", 0.15, 0.1),
        ("contributions(counts=1,r=0.1) + laplace(scale=1)", 0.1, 0.1),
        ("contributions(counts=3,r=0.05) + laplace(scale=2)", 0.15, 0.15),
    ] {
        let report = of(text, 1_000_000, 3);
        assert_eq!(report.verdict, Verdict::Consistent, "{text}: {report:?}");
        let gap = |finding: &Finding| finding.claimed.unwrap() - finding.observed_lower;
        assert!(gap(&report.linked) < linked, "{text}: {:?}", report.linked);
        let found = report.one_aggregator.as_ref().map_or(0.0, gap);
        assert!(found <= one_aggregator, "{text}: {:?}", report.one_aggregator);
        assert!(report.samples <= 1_000_000 && report.samples > 900_000, "{}", report.samples);
    }
}

/// In a crowd of one the counts are the owner's own report.
#[test]
fn a_crowd_of_one_hides_nothing() {
    let asked = asked("choice(k=4,r=0.02)");
    let claims = ClaimedEpsilons { release: Some(3.5), ..ClaimedEpsilons::of_contributions(&asked) };
    let report = Audit { owners: 1, ..audit(1_000_000, 4) }.run_contributions(&asked, &claims).unwrap();
    assert!(report.release.is_violated() && !report.linked.is_violated(), "{:?}", report.release);
}

fn broken(text: &str, control: BrokenContributions) -> Report {
    let asked = asked(text);
    let claims = ClaimedEpsilons::of_contributions(&asked);
    audit(200_000, 5).run_broken_contributions(&asked, &claims, control).unwrap()
}

/// An option that is too likely where it is wrong reveals less and not more; the law that is drawn shows it.
#[test]
fn a_doubled_option_is_caught() {
    for text in ["choice(k=4,r=0.02)", "choice(k=100,r=0.002)", "contributions(counts=6,most=2,r=0.02)"] {
        let report = broken(text, BrokenContributions::DoubledOption);
        assert_eq!((report.verdict, report.law.verdict), (Verdict::Violated, Verdict::Violated), "{text}");
        assert!(report.law.worst.as_ref().unwrap().what.contains("count 2"), "{:?}", report.law);
    }
}

#[test]
fn a_coin_reused_across_contributions_is_caught() {
    for text in ["contributions(counts=6,most=2,r=0.05)", "contributions(counts=3,most=3,r=0.01)", "choice(k=4,r=0.02)"]
    {
        let report = broken(text, BrokenContributions::ReusedCoin);
        assert_eq!(report.verdict, Verdict::Violated, "{text}");
        assert_eq!(report.coins.independence.verdict, Verdict::Violated, "{text}: {:?}", report.coins.independence);
    }
    // Where a wrong report of both counts cannot come up any more, the report proves more than is claimed.
    let report = broken("contributions(counts=6,most=2,r=0.1)", BrokenContributions::ReusedCoin);
    assert!(report.linked.is_violated(), "{:?}", report.linked);
}

#[test]
fn a_count_without_noise_is_caught() {
    for text in ["choice(k=4,r=0.001) + laplace(scale=2)", "contributions(counts=9,most=2,r=0.01) + laplace(scale=2)"] {
        let report = broken(text, BrokenContributions::NoiseMissingOnOne);
        assert_eq!(report.noise.as_ref().unwrap().verdict, Verdict::Violated, "{text}");
        assert!(report.one_aggregator.as_ref().unwrap().is_violated(), "{text}: {:?}", report.one_aggregator);
    }
    let asked = asked("choice(k=4,r=0.001)");
    let claims = ClaimedEpsilons::of_contributions(&asked);
    let control = BrokenContributions::NoiseMissingOnOne;
    assert!(audit(200_000, 1).run_broken_contributions(&asked, &claims, control).unwrap_err().is_request());
}

#[test]
fn impossible_audits_are_refused() {
    let asked = asked("choice(k=4,r=0.02)");
    let claims = ClaimedEpsilons::of_contributions(&asked);
    for (samples, owners) in [(49_999, 20), (1_000_000, 0), (1_000_000, 1_000_000)] {
        let audit = Audit { owners, ..audit(samples, 1) };
        assert!(audit.run_contributions(&asked, &claims).unwrap_err().is_request(), "{samples} {owners}");
    }
}

#[test]
fn a_report_does_not_depend_on_threads_or_runs() {
    let run = || serde_json::to_string(&of("choice(k=5,f=0.7,r=0.05) + laplace(scale=2)", 100_000, 2)).unwrap();
    assert_eq!(run(), run());
}
