//! The check of a card or a release record.

use serde_json::{Value, json};
use uptack::card::{Check, Trust, Verdict};

/// The checks of a document of this kind, and whom its claims rest on.
///
/// `wider_holds` accepts claims that are sound but promise less than is true.
pub fn verification_json(kind: &str, checks: &[Check], trust: &[Trust], wider_holds: bool) -> Value {
    json!({
        "document": kind,
        "checked": checks.iter().map(|check| check_json(check, wider_holds)).collect::<Vec<_>>(),
        "holds": checks.iter().all(|check| check_holds(check, wider_holds)),
        "trust": trust,
    })
}

/// Whether a check holds; `wider_holds` accepts claims that are sound but promise less than is true.
pub fn check_holds(check: &Check, wider_holds: bool) -> bool {
    check.holds() || (wider_holds && check.verdict == Verdict::Wider)
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
