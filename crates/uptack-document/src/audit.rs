//! An audit.

use serde::Serialize;
use uptack::audit::{Audit, AuditCoins, CoinFindings, Finding, Fit, ForeignAudit, ForeignReport, Report, Verdict};
use uptack::privacy::{Delta, Epsilon};

/// What an audit of a mechanism's sampler found.
#[derive(Serialize)]
pub struct AuditDocument<'a> {
    mechanism: String,
    owners: u64,
    delta: f64,
    confidence: f64,
    samples: u64,
    seed: Option<u64>,
    views: Views<'a>,
    law: &'a Fit,
    noise: Option<&'a Fit>,
    coins: &'a CoinFindings,
    verdict: Verdict,
}

#[derive(Serialize)]
struct Views<'a> {
    answers: &'a [Finding],
    linked: &'a Finding,
    one_aggregator: Option<&'a Finding>,
    release: &'a Finding,
}

impl<'a> AuditDocument<'a> {
    /// What `audit` found about a mechanism, given by its text; `delta` is that of the claim for the release.
    pub fn new(mechanism: String, audit: &Audit, delta: f64, report: &'a Report) -> Self {
        Self {
            mechanism,
            owners: audit.owners,
            delta,
            confidence: audit.confidence.level(),
            samples: report.samples,
            seed: seed(audit.coins),
            views: Views::new(report),
            law: &report.law,
            noise: report.noise.as_ref(),
            coins: &report.coins,
            verdict: report.verdict,
        }
    }
}

fn seed(coins: AuditCoins) -> Option<u64> {
    match coins {
        AuditCoins::System => None,
        AuditCoins::Seeded(seed) => Some(seed),
    }
}

impl<'a> Views<'a> {
    fn new(report: &'a Report) -> Self {
        Self {
            answers: &report.answers,
            linked: &report.linked,
            one_aggregator: report.one_aggregator.as_ref(),
            release: &report.release,
        }
    }
}

/// What an audit of somebody else's randomizer found.
#[derive(Serialize)]
pub struct ForeignDocument<'a> {
    /// What was run, in the caller's words.
    randomizer: &'a str,
    claimed: ForeignClaim,
    confidence: f64,
    samples: u64,
    views: ForeignViews<'a>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct ForeignClaim {
    epsilon: Option<f64>,
    delta: f64,
}

/// Those views of [`AuditDocument`] that a randomizer by itself has, and what each adversary found.
#[derive(Serialize)]
struct ForeignViews<'a> {
    answers: [&'a Finding; 1],
    linked: &'a Finding,
    release: Option<&'a Finding>,
    output: &'a Finding,
    length: &'a Finding,
    size: Option<&'a Finding>,
}

impl<'a> ForeignDocument<'a> {
    /// What `audit` found about a randomizer, named in the caller's words.
    pub fn new(randomizer: &'a str, audit: &ForeignAudit, report: &'a ForeignReport) -> Self {
        Self {
            randomizer,
            claimed: ForeignClaim::new(audit),
            confidence: audit.confidence.level(),
            samples: report.samples,
            views: ForeignViews::new(report),
            verdict: report.verdict,
        }
    }
}

impl ForeignClaim {
    fn new(audit: &ForeignAudit) -> Self {
        Self { epsilon: audit.epsilon.map(Epsilon::value), delta: audit.delta.map_or(0.0, Delta::value) }
    }
}

impl<'a> ForeignViews<'a> {
    fn new(report: &'a ForeignReport) -> Self {
        Self {
            answers: [report.strongest()],
            linked: report.strongest(),
            release: None,
            output: &report.output,
            length: &report.length,
            size: report.size.as_ref(),
        }
    }
}
