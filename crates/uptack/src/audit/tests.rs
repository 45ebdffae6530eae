//! The auditor against the family.

use super::*;
use crate::Mechanism;

fn channel(text: &str) -> Channel {
    text.parse::<Mechanism>().unwrap().channel()
}

fn audit(samples: u64) -> Audit {
    Audit { samples, coins: AuditCoins::Seeded(11), ..Audit::default() }
}

#[test]
fn a_report_does_not_depend_on_threads_or_runs() {
    let channel = channel("blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.01,rn=0.01)");
    let claims = Claims::of(&channel, 100, 1e-8).unwrap();
    let run = || serde_json::to_string(&audit(100_000).run(&channel, &claims).unwrap()).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn samples_are_not_overspent() {
    let channel = channel("normal-form(f=0.5,r=0.01)");
    let claims = Claims::of(&channel, 100, 1e-8).unwrap();
    for samples in [30_000, 1_000_000] {
        let made = audit(samples).run(&channel, &claims).unwrap().samples;
        assert!(made <= samples && made > samples * 7 / 10, "{made} of {samples}");
    }
}

#[test]
fn impossible_audits_are_refused() {
    let channel = channel("normal-form(f=0.5,r=0.01)");
    let claims = Claims::of(&channel, 100, 1e-8).unwrap();
    for (samples, owners) in [(9999, 1), (1_000_000, 0), (1_000_000, 1_000_000), (u64::MAX, u64::MAX)] {
        let audit = Audit { owners, ..audit(samples) };
        assert!(audit.run(&channel, &claims).unwrap_err().is_request(), "{samples} {owners}");
    }
    let bad_claims = Claims { answers: vec![], ..claims.clone() };
    assert!(audit(100_000).run(&channel, &bad_claims).unwrap_err().is_request());
    let bad_claims = Claims { delta: 2.0, ..claims };
    assert!(audit(100_000).run(&channel, &bad_claims).unwrap_err().is_request());
}

/// In a crowd of one the tallies are the owner's own cell, and the attack must find what the linked view finds.
#[test]
fn a_crowd_of_one_hides_nothing() {
    let channel = channel("randomized-response(t=0.8)");
    let claims = Claims::of(&channel, 1, 1e-8).unwrap();
    let report = Audit { owners: 1, ..audit(1_000_000) }.run(&channel, &claims).unwrap();
    assert!(report.release.observed_lower > 1.3, "{:?}", report.release);
    assert!(report.release.observed_lower < 4f64.ln());
}

/// A lone *yes* in a crowd of *no* shows with probability s: the event proves an ε that grows with the samples (1.85 here).
#[test]
fn cancelled_noise_betrays_the_release() {
    let channel = channel("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)");
    let claims = Claims { release: Some(1.5), ..Claims::of(&channel, 100, 1e-8).unwrap() };
    let report = audit(2_000_000).run(&channel, &claims).unwrap();
    assert!(report.release.is_violated(), "{:?}", report.release);
    assert!(report.linked.claimed.is_none() && !report.linked.is_violated());
}
