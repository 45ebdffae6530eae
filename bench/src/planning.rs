//! Planning, against one call of the accounting for the mechanism that is planned.

use uptack::Fraction;
use uptack::plan::{Form, Plan, Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon, release};

use crate::Size;
use crate::clock::{Rounds, seconds_of};
use crate::table::{Row, Target};

pub fn measure(size: &Size) -> Vec<Row> {
    let cases = [
        ("a plan with all constraints, 10⁶ owners", everything(1_000_000), 1.0),
        ("a plan with all constraints, 10⁸ owners", everything(100_000_000), 10.0),
        ("a plan with a linked and an answer bound, 10⁸ owners", local(100_000_000), 10.0),
        ("a plan of several answers, 10⁸ owners", several(100_000_000), 10.0),
        ("a plan for 1000 owners at ε = 6", alone(1000, 10, 6.0, 1e-6), 1.0),
    ];
    cases.into_iter().flat_map(|(what, request, most)| rows(what, &request, most, size.simulation_rounds.min(5))).collect()
}

/// The time of a whole plan, certificates and bound included; its ratio to one certificate; and its calls.
fn rows(what: &str, request: &Request, most: f64, rounds: usize) -> [Row; 3] {
    let (mut planning, mut accounting) = (Rounds::default(), Rounds::default());
    let mut calls = 0;
    for _ in 0..rounds {
        let mut planned: Option<Plan> = None;
        planning.push(seconds_of(|| planned = Some(plan(request).expect("a plan"))));
        let planned = planned.expect("it was planned");
        let (_, delta) = request.release.expect("the release is bounded");
        let accountant = release(&planned.best.channel, planned.claim_owners).expect("a crowd");
        accounting.push(seconds_of(|| accountant.epsilon(delta)));
        calls = planned.calls;
    }
    [
        Row::new(what, Target::AtMost(most), planning.median(), "s"),
        Row::new("  one certificate of it takes", Target::None, planning.median() / accounting.median(), "× less"),
        Row::new("  calls of the accounting in its search", Target::None, calls as f64, ""),
    ]
}

fn alone(owners: u64, yes: u64, epsilon: f64, delta: f64) -> Request {
    let release = Some((Epsilon::new(epsilon).expect("an epsilon"), Delta::new(delta).expect("a delta")));
    Request { release, ..Request::new(owners, Prior::at(yes)) }
}

fn everything(owners: u64) -> Request {
    let constraints = alone(owners, owners / 100, 0.5, 1e-8);
    Request { answer_epsilon: Some(8.0), linked_epsilon: Some(9.0), participation: Some(0.9), ..constraints }
}

/// The local bounds bind, and the release does not.
fn local(owners: u64) -> Request {
    let constraints = alone(owners, owners / 100, 1.0, 1e-8);
    Request {
        linked_epsilon: Some(12.0),
        answer_epsilon: Some(12.0),
        honest: Fraction::new(9, 10).expect("a share"),
        form: Form::Any,
        ..constraints
    }
}

/// Only several answers keep both bounds with a small error.
fn several(owners: u64) -> Request {
    Request { answer_epsilon: Some(1.5), form: Form::Any, ..alone(owners, owners / 100, 1.0, 1e-8) }
}
