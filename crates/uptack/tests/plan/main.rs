//! The planner keeps every constraint, and nobody finds anything better.

use uptack::estimate::Estimator;
use uptack::plan::{Form, Objective, Over, Plan, Prior, Request, plan, solve_epsilon, solve_owners};
use uptack::privacy::{Delta, Epsilon, release};
use uptack::{Fraction, Mechanism};

fn request(owners: u64, yes: u64, epsilon: f64, delta: f64) -> Request {
    let release = Some((Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap()));
    Request { release, ..Request::new(owners, Prior::at(yes)) }
}

fn release_upper(plan: &Plan) -> f64 {
    plan.best.views.release.value().unwrap().upper()
}

/// Optima of `normal-form` found by an independent program (extreme crowds only); a certified plan is within 0.5 %.
#[test]
fn the_known_optima_are_reached() {
    for (owners, epsilon, yes, sd) in [
        (50_000, 1.0, 0, 3.872),
        (50_000, 1.0, 500, 7.007),
        (50_000, 0.5, 25_000, 11.61),
        (1_000_000, 0.1, 10_000, 47.49),
    ] {
        let plan = plan(&request(owners, yes, epsilon, 1e-8)).unwrap();
        assert!(plan.best.sd <= 1.005 * sd, "{owners} {epsilon} {yes}: {} {}", plan.best.mechanism, plan.best.sd);
        assert!(release_upper(&plan) <= epsilon);
        assert!(plan.best.views.release.certificate().closed());
        assert!(plan.calls <= 2000, "{}", plan.calls);
    }
}

/// With the ε of a single answer at most ln 3: `blended` 22.6, `spread` 7.0, randomized response 194.
#[test]
fn several_answers_hide_each_other() {
    let mut request = request(50_000, 500, 1.0, 1e-8);
    request.answer_epsilon = Some(3f64.ln());
    request.form = Form::Any;
    let plan = plan(&request).unwrap();
    assert_eq!(plan.best.mechanism.name(), "spread");
    assert!(plan.best.sd < 1.005 * 7.007, "{}", plan.best.sd);
    let sd_of = |name: &str| plan.alternatives.iter().find(|other| other.mechanism.name() == name).unwrap().sd;
    assert!((sd_of("blended") / 22.6 - 1.0).abs() < 0.005, "{}", sd_of("blended"));
    assert!((sd_of("randomized-response") / 193.65 - 1.0).abs() < 0.005);
    assert!(plan.best.views.answers.iter().all(|epsilon| epsilon.unwrap() <= 3f64.ln() * (1.0 + 1e-12)));
}

/// At equal linked ε nothing beats randomized response, and the planner says so.
#[test]
fn randomized_response_wins_where_it_must() {
    let request = Request { linked_epsilon: Some(1.5), ..Request::new(10_000, Prior::at(100)) };
    let plan = plan(&request).unwrap();
    assert_eq!(plan.best.mechanism.name(), "randomized-response");
    let t = 1.5f64.exp() / (1.0 + 1.5f64.exp());
    let best = (10_000.0 * t * (1.0 - t)).sqrt() / (2.0 * t - 1.0);
    assert!((plan.best.sd / best - 1.0).abs() < 1e-3, "{} {best}", plan.best.sd);
}

/// A grid of laws that knows nothing of how the planner searches: none keeps the constraints and is better by 0.5 %.
#[test]
fn no_point_of_a_grid_is_better() {
    for (owners, yes, epsilon, delta, linked, participation) in [
        (400, 20, 1.0, 1e-4, None, None),
        (3000, 0, 0.7, 1e-6, None, None),
        (3000, 1500, 1.5, 1e-6, None, Some(0.6)),
        (2000, 60, 0.4, 1e-5, Some(4.0), None),
    ] {
        let mut request = request(owners, yes, epsilon, delta);
        request.linked_epsilon = linked;
        request.participation = participation;
        let plan = plan(&request).unwrap();
        assert!(release_upper(&plan) <= epsilon);
        assert!(linked.is_none_or(|most| plan.best.views.linked.unwrap() <= most * (1.0 + 1e-12)));
        for step in 1..=24 {
            let part = participation.unwrap_or(1.0) * f64::from(step) / 24.0;
            for share in 1..=60 {
                // Flips from one in ten thousand of who takes part to nearly half of them.
                let flip = part * 0.5 * 10f64.powf(-4.0 * (1.0 - f64::from(share) / 61.0));
                for text in [format!("normal-form(f={part},r={flip})"), format!("noisy-sampling(sy={part},sn={flip})")]
                {
                    check(&text, &request, plan.best.sd, yes);
                }
            }
        }
    }
}

fn check(text: &str, request: &Request, planned: f64, yes: u64) {
    let channel = text.parse::<Mechanism>().unwrap().channel();
    let Ok(estimator) = Estimator::new(&channel) else { return };
    if estimator.sd(request.owners, yes as f64).unwrap() >= 0.995 * planned {
        return;
    }
    let (epsilon, delta) = request.release.unwrap();
    let linked = uptack::privacy::linked_epsilon(&channel);
    let keeps_linked = request.linked_epsilon.is_none_or(|most| linked.is_some_and(|epsilon| epsilon <= most));
    let ends = release(&channel, request.owners).unwrap().delta_of_ends(epsilon).lower();
    assert!(!keeps_linked || ends > delta.value(), "{text} is better than {planned}");
}

#[test]
fn solving_for_epsilon_and_for_owners_inverts_solving_for_the_error() {
    let wanted = request(5000, 50, 1.0, 1e-6);
    let error = plan(&wanted).unwrap().best.sd;
    let by_epsilon = solve_epsilon(&wanted, error).unwrap();
    assert!((release_upper(&by_epsilon) - 1.0).abs() < 0.01, "{}", release_upper(&by_epsilon));
    assert!(by_epsilon.best.sd <= error);
    // Few owners hide each other badly, so that the error depends on their number.
    let few = request(150, 10, 1.0, 1e-6);
    let error = plan(&few).unwrap().best.sd;
    let by_owners = solve_owners(&few, error).unwrap();
    assert!(by_owners.best.sd <= error);
    assert!(by_owners.owners <= 157, "{}", by_owners.owners);
    let unattainable = solve_owners(&few, 0.5).unwrap_err();
    assert!(unattainable.to_string().contains("cannot be had"), "{unattainable}");
}

#[test]
fn fewer_honest_owners_and_smaller_batches_are_planned_for() {
    let whole = plan(&request(5000, 50, 1.0, 1e-6)).unwrap();
    let mut half = request(5000, 50, 1.0, 1e-6);
    half.honest = "50%".parse::<Fraction>().unwrap();
    half.minimum_batch = 4000;
    let half = plan(&half).unwrap();
    assert_eq!((half.claim_owners, half.minimum_batch), (2000, 4000));
    assert!(half.best.sd > whole.best.sd);
    assert!(release_upper(&half) <= 1.0);
    let degraded: Vec<f64> = whole.robustness.iter().map(|(_, epsilon)| epsilon.unwrap()).collect();
    assert!(degraded.len() == 3 && degraded.is_sorted() && degraded[0] > release_upper(&whole));
}

#[test]
fn ranges_weigh_the_worst_or_the_mean() {
    let over = |over: Over| {
        let mut request = request(2000, 0, 1.0, 1e-6);
        request.yes = Prior { low: 0, high: 1000, over };
        plan(&request).unwrap().best.sd
    };
    assert!(over(Over::Mean) <= over(Over::Worst));
}

#[test]
fn the_papers_objective_needs_a_bound_on_the_error() {
    let mut request = request(2000, 20, 1.0, 1e-6);
    let best = plan(&request).unwrap().best.sd;
    request.objective = Objective::Paper { error: 3.0 * best };
    let plan = plan(&request).unwrap();
    assert!(plan.best.sd <= 3.0 * best * 1.01, "{} {best}", plan.best.sd);
    assert!(release_upper(&plan) <= 1.0);
}

#[test]
fn senseless_requests_are_refused() {
    let base = || request(1000, 10, 1.0, 1e-6);
    let bad = [
        Request { release: None, ..base() },
        Request { owners: 0, ..base() },
        Request { yes: Prior::at(2000), ..base() },
        Request { minimum_batch: 2000, ..base() },
        Request { linked_epsilon: Some(0.0), ..base() },
        Request { participation: Some(0.0), ..base() },
        Request { family: Some("blendet".to_owned()), ..base() },
    ];
    for request in bad {
        assert!(plan(&request).unwrap_err().is_request(), "{request:?}");
    }
}
