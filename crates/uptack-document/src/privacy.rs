//! Guarantees: computed for every view, checked, and audited.

use serde::Serialize;
use serde_json::{Value, json};
use uptack::audit::{Audit, AuditCoins, CoinFindings, Finding, Fit, ForeignAudit, ForeignReport, Report};
use uptack::card::{Check, NotChecked, Trust};
use uptack::privacy::{Delta, Enclosure, Epsilon, Guarantee, Repeated, Target, Views};
use uptack::{audit, card};

/// Every view of a mechanism, once and repeated, with a statement in words.
#[derive(Clone, Debug)]
pub struct PrivacyDocument {
    /// The owners who are assumed to be honest.
    pub owners: u64,
    /// Which of ε and δ was given.
    pub target: Target,
    /// All views.
    pub views: Views,
    /// The same for an owner who answers many times.
    pub repeated: Option<Repeated>,
    /// In words.
    pub statement: String,
}

impl PrivacyDocument {
    /// One JSON document.
    pub fn json(&self, mechanism: &str) -> Value {
        let mut document = json!({
            "mechanism": mechanism,
            "owners": self.owners,
            "neighbours": "one owner's truth is substituted, the number of owners is public",
            "views": views_json(&self.views),
            "statement": self.statement,
        });
        if let Some(repeated) = &self.repeated {
            document["repeated"] = repeated_json(repeated, self.target);
        }
        document
    }
}

/// The `views` of a privacy card.
pub fn views_json(views: &Views) -> Value {
    json!({
        "answers": views.answers,
        "linked": views.linked,
        "one_aggregator": views.one_aggregator.map(pure_json),
        "release": views.release.json(),
        "owners_alone": views.owners_alone.as_ref().map(Guarantee::json),
        "answers_with_release": views.answers_with_release.iter().map(Guarantee::json).collect::<Vec<_>>(),
    })
}

/// The `repeated` of a privacy card.
pub fn repeated_json(repeated: &Repeated, target: Target) -> Value {
    json!({
        "times": repeated.times,
        "answers": repeated.answers,
        "linked": repeated.linked,
        "one_aggregator": repeated.one_aggregator.map(pure_json),
        "release": target.json(repeated.release),
    })
}

/// A guarantee whose δ is 0.
pub fn pure_json(epsilon: Enclosure) -> Value {
    json!({"epsilon": {"lower": epsilon.lower(), "upper": epsilon.upper()}, "delta": 0})
}

/// The checks of a document of this kind, and whom its claims rest on.
///
/// `wider_holds` accepts claims that are sound but promise less than is true.
pub fn verification_json(
    kind: &str,
    checks: &[Check],
    not_checked: &[NotChecked],
    trust: &[Trust],
    wider_holds: bool,
) -> Value {
    json!({
        "document": kind,
        "checked": checks.iter().map(|check| check_json(check, wider_holds)).collect::<Vec<_>>(),
        "holds": checks.iter().all(|check| check_holds(check, wider_holds)),
        "not_checked": not_checked,
        "trust": trust,
    })
}

/// Whether a check holds; `wider_holds` accepts claims that are sound but promise less than is true.
pub fn check_holds(check: &Check, wider_holds: bool) -> bool {
    check.holds() || (wider_holds && check.verdict == card::Verdict::Wider)
}

fn check_json(check: &Check, wider_holds: bool) -> Value {
    json!({
        "what": check.what,
        "stated": check.stated,
        "recomputed": check.recomputed,
        "holds": check_holds(check, wider_holds),
        "verdict": check.verdict,
    })
}

/// The findings of an audit of a mechanism's sampler.
#[derive(Serialize)]
pub struct AuditDocument<'a> {
    mechanism: String,
    owners: u64,
    delta: f64,
    confidence: f64,
    samples: u64,
    seed: Option<u64>,
    views: AuditedViews<'a>,
    law: &'a Fit,
    noise: Option<&'a Fit>,
    coins: &'a CoinFindings,
    verdict: audit::Verdict,
}

#[derive(Serialize)]
struct AuditedViews<'a> {
    answers: &'a [Finding],
    linked: &'a Finding,
    one_aggregator: Option<&'a Finding>,
    release: &'a Finding,
}

impl<'a> AuditDocument<'a> {
    /// The findings of `audit` about a mechanism, given by its text; `delta` is that of the claim for the release.
    pub fn new(mechanism: String, audit: &Audit, delta: f64, report: &'a Report) -> Self {
        Self {
            mechanism,
            owners: audit.owners,
            delta,
            confidence: audit.confidence.level(),
            samples: report.samples,
            seed: seed(audit.coins),
            views: AuditedViews::new(report),
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

impl<'a> AuditedViews<'a> {
    fn new(report: &'a Report) -> Self {
        Self {
            answers: &report.answers,
            linked: &report.linked,
            one_aggregator: report.one_aggregator.as_ref(),
            release: &report.release,
        }
    }
}

/// The findings of an audit of somebody else's randomizer.
#[derive(Serialize)]
pub struct ForeignDocument<'a> {
    /// The randomizer, in the caller's words.
    randomizer: &'a str,
    claimed: ForeignClaim,
    confidence: f64,
    samples: u64,
    views: ForeignViews<'a>,
    verdict: audit::Verdict,
}

#[derive(Serialize)]
struct ForeignClaim {
    epsilon: Option<f64>,
    delta: f64,
}

/// Those views of [`AuditDocument`] that a randomizer by itself has, and the finding of each adversary.
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
    /// The findings of `audit` about a randomizer, named in the caller's words.
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
