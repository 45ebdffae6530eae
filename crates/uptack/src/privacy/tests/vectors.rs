//! Values of an independent program.

use super::super::answer_with_release;
use super::{channel, delta, epsilon, release_of};

/// δ over both crowds of one truth and both directions, computed by an independent program (double precision, scipy) to a
/// relative accuracy of 1e-6.
const RELEASE: &str = include_str!("release_vectors.json");

struct Vector {
    mechanism: String,
    owners: u64,
    epsilon: f64,
    delta_ends: f64,
}

fn vectors() -> Vec<Vector> {
    let document: serde_json::Value = serde_json::from_str(RELEASE).expect("the vectors are JSON");
    let rows = document["release"].as_array().expect("a list of rows");
    let vector = |row: &serde_json::Value| Vector {
        mechanism: row["mechanism"].as_str().expect("a mechanism").to_owned(),
        owners: row["owners"].as_u64().expect("owners"),
        epsilon: row["epsilon"].as_f64().expect("an epsilon"),
        delta_ends: row["delta_ends"].as_f64().expect("a delta"),
    };
    rows.iter().map(vector).collect()
}

#[test]
fn the_ends_agree_with_an_independent_program() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 13);
    for vector in vectors {
        let bracket = release_of(&vector.mechanism, vector.owners).delta_of_ends(epsilon(vector.epsilon));
        let off = bracket.middle() / vector.delta_ends - 1.0;
        assert!(off.abs() < 1e-9, "{}: {} is off by {off:e}", vector.mechanism, bracket.middle());
        assert!(bracket.upper() <= bracket.lower() * (1.0 + 1e-9), "{}: {bracket:?}", vector.mechanism);
    }
}

#[test]
fn the_certificates_close_above_the_ends() {
    for vector in vectors() {
        let accountant = release_of(&vector.mechanism, vector.owners);
        let claim = accountant.delta(epsilon(vector.epsilon));
        let value = claim.value().expect("δ always has a value");
        assert!(claim.certificate().closed(), "{}: {claim:?}", vector.mechanism);
        assert!(value.lower() >= vector.delta_ends * (1.0 - 1e-9), "{}: {claim:?}", vector.mechanism);
        let claim = accountant.epsilon(delta(vector.delta_ends));
        let value = claim.value().expect("every row has a guarantee");
        assert!(claim.certificate().closed(), "{}: {claim:?}", vector.mechanism);
        assert!(value.upper() >= vector.epsilon * (1.0 - 1e-9), "{}: {claim:?}", vector.mechanism);
    }
}

/// blended with λ = 4.06 at 50 000 owners: three answers whose joint views are not the sum of their parts.
#[test]
fn an_answer_with_the_release_is_more_than_the_sum_of_its_parts() {
    let blended = channel("blended(b1=0,b2=0.25,b3=0.25,f1=0,f2=0.5,ry=0.0000812,rn=0.0000812)");
    let view = |answer| answer_with_release(&blended, answer, 50_000).expect("three answers");
    let upper = |claim: super::super::Guarantee| {
        assert!(claim.certificate().closed(), "{claim:?}");
        claim.value().expect("a guarantee").upper()
    };
    assert!((upper(view(2).epsilon(delta(1e-8))) - 2.29).abs() < 0.005);
    assert!((view(0).delta_of_ends(epsilon(1.0)).middle() - 0.020).abs() < 5e-4);
    assert!((view(0).delta_of_ends(epsilon(3.0)).middle() - 8.6e-3).abs() < 5e-5);
    assert!((upper(view(0).delta(epsilon(1.0))) - 0.020).abs() < 1e-3);
    assert!((upper(view(0).delta(epsilon(3.0))) - 8.6e-3).abs() < 4e-4);
    assert!((upper(view(0).epsilon(delta(1e-8))) - 8.73).abs() < 0.005);
    assert!((super::super::linked_epsilon(&blended).expect("finite") - 8.73).abs() < 0.005);
    assert_eq!(super::super::answer_epsilon(&blended, 0), Ok(Some(0.0)));
    assert!((super::super::answer_epsilon(&blended, 2).expect("an answer").expect("finite") - 3_f64.ln()).abs() < 1e-3);
}

/// With fewer honest owners than planned for, ε at δ = 1e-8 grows gently at small participation: planned for 50 000 owners and
/// (1, 1e-8), of whom half or a quarter are honest.
#[test]
fn fewer_honest_owners_hide_less() {
    for (mechanism, rows) in [
        ("normal-form(f=0.5,r=0.0000812)", [(45_000, 1.05), (25_000, 1.31), (12_500, 1.69)]),
        ("normal-form(f=1,r=0.00097902)", [(45_000, 1.09), (25_000, 1.97), (12_500, 6.93)]),
    ] {
        for (owners, expected) in rows {
            let claim = release_of(mechanism, owners).epsilon(delta(1e-8));
            let value = claim.value().expect("a guarantee");
            assert!(claim.certificate().closed(), "{mechanism}, {owners}: {claim:?}");
            assert!((value.upper() - expected).abs() < 0.01, "{mechanism}, {owners}: {value:?} is not {expected}");
        }
    }
}
