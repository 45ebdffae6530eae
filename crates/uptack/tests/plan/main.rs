//! The planner keeps every constraint, and nobody finds anything better.

mod error;
mod noisy;
mod survey;

use uptack::Fraction;
use uptack::plan::{
    Form, Objective, Over, Plan, Prior, Request, errors_by_family, explain, plan, solve_epsilon, solve_owners,
};
use uptack::privacy::{Delta, Epsilon};

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
        assert!(plan.gap.unwrap() < 0.01, "{:?}", plan.gap);
    }
}

/// Channels that are certified and were once better than what was planned, most of them just below the cliff.
#[test]
fn what_was_missed_once_is_found() {
    for (owners, yes, epsilon, delta, sd) in [
        (5000, 10, 4.0, 1e-6, 0.5108),
        (50_000, 500, 3.4, 1e-8, 4.187),
        (50_000, 500, 5.0, 1e-8, 1.854),
        (50_000, 500, 7.0, 1e-8, 0.687),
        (10_000, 10, 6.0, 1e-6, 0.180),
        (2000, 20, 3.0, 1e-6, 1.146),
        (30_000, 0, 1.0, 1e-7, 3.584),
        (5000, 100, 2.0, 1e-6, 4.153),
        (300, 4, 4.0, 1e-4, 0.4498),
        (19_381, 2510, 7.667, 2.2e-6, 1.304),
        (228_751, 75, 2.181_611, 2.951_953e-4, 2.853),
        // Certified by its δ, once not by its ε; a little less than its 4.5505, since what was planned instead was worse by 0.6 %.
        (104_994, 1049, 2.335, 1.17e-8, 4.535),
    ] {
        let plan = plan(&request(owners, yes, epsilon, delta)).unwrap();
        assert!(plan.best.sd <= 1.005 * sd, "{owners} {yes} {epsilon}: {} {}", plan.best.mechanism, plan.best.sd);
        assert!(release_upper(&plan) <= epsilon);
        assert!(plan.alternatives.iter().all(|other| other.sd >= 0.995 * plan.best.sd));
    }
}

/// Where the worst crowd changes from law to law, a plan once took 4483 calls of the accounting and 32 certificates, and missed a
/// better law.
#[test]
fn plans_whose_worst_crowd_moves_take_few_calls() {
    let half = Request { honest: "0.5".parse().unwrap(), ..request(901, 4, 5.729, 1.96e-9) };
    let plan = plan(&half).unwrap();
    assert!(plan.best.sd < 0.4842, "{} {}", plan.best.mechanism, plan.best.sd);
    assert!(release_upper(&plan) <= 5.729);
    assert!(plan.calls < 3000, "{} calls", plan.calls);
    // Here nearly every law of `normal-form` has another worst crowd, and one of them is certified all the same.
    let errors = errors_by_family(&request(387, 1, 5.368, 1.16e-9)).unwrap();
    assert!(errors.iter().any(|(name, sd)| *name == "normal-form" && *sd < 0.295), "{errors:?}");
}

/// The error once rose between 3.8 and 3.9 and between 4.2 and 5.
#[test]
fn the_error_falls_as_epsilon_rises() {
    let epsilons = [3.5, 3.8, 3.9, 4.2, 5.0];
    let errors = epsilons.map(|epsilon| plan(&request(5000, 10, epsilon, 1e-6)).unwrap().best.sd);
    assert!(errors.windows(2).all(|pair| pair[1] <= pair[0]), "{errors:?}");
}

/// It once rose by 0.6 % here, from one tooth of the saw before the cliff to another.
#[test]
fn the_error_does_not_rise_with_the_owners() {
    let error = |owners: u64, minimum_batch: u64| {
        let fewer = request(owners, 28, 0.751_218_6, 2.655e-8);
        let honest = Fraction::from_f64(0.9).unwrap();
        plan(&Request { minimum_batch, honest, ..fewer }).unwrap().best.sd
    };
    let (few, many) = (error(2587, 2070), error(4014, 3211));
    assert!(many <= 1.003 * few, "{few} to {many}");
}

/// What is named as the nearest value that would do, does.
#[test]
fn infeasible_errors_name_what_binds_and_what_would_do() {
    let mut wanted = request(2000, 20, 1.0, 1e-6);
    wanted.participation = Some(0.5);
    let least = plan(&wanted).unwrap().best.sd;
    let infeasible = explain(&wanted, 0.9 * least).unwrap();
    assert_eq!(infeasible.least_sd, Some(least));
    assert!(!infeasible.binding.is_empty() && !infeasible.nearest.is_empty(), "{infeasible:?}");
    for (name, value) in infeasible.nearest {
        let relaxed = match name {
            "epsilon" => Request { release: request(1, 0, value, 1e-6).release, ..wanted.clone() },
            "participation" => Request { participation: Some(value), ..wanted.clone() },
            other => panic!("{other} was not given"),
        };
        assert!(plan(&relaxed).unwrap().best.sd <= 0.9 * least, "{name} {value}");
    }
}

/// Nobody who answers never is called exact, and several answers need their tallies bounded.
#[test]
fn degenerate_plans_are_refused_or_avoided() {
    let solved = solve_epsilon(&request(50_000, 0, 1.0, 1e-8), 25.0).unwrap();
    assert!(release_upper(&solved) > 0.0 && solved.best.sd > 1.0, "{}", solved.best.mechanism);
    let several = Request { answer_epsilon: Some(1.0986), form: Form::Several, ..Request::new(50_000, Prior::at(500)) };
    assert!(plan(&several).unwrap_err().to_string().contains("tallies of several answers"));
    for epsilon in [0.0, 1e-12] {
        assert!(plan(&request(1000, 10, epsilon, 1e-6)).unwrap_err().to_string().contains("epsilon"));
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

#[test]
fn solving_for_epsilon_and_for_owners_inverts_solving_for_the_error() {
    let wanted = request(5000, 50, 1.0, 1e-6);
    let error = plan(&wanted).unwrap().best.sd;
    let by_epsilon = solve_epsilon(&wanted, error).unwrap();
    assert!((release_upper(&by_epsilon) - 1.0).abs() < 0.01, "{}", release_upper(&by_epsilon));
    assert!(by_epsilon.best.sd <= error);
    // Few owners hide each other badly, so that the error falls with their number; in larger crowds it is level.
    let few = request(45, 10, 1.0, 1e-6);
    let error = plan(&few).unwrap().best.sd;
    let by_owners = solve_owners(&few, error).unwrap();
    assert!(by_owners.best.sd <= error);
    assert!((43..=47).contains(&by_owners.owners), "{}", by_owners.owners);
    let unattainable = solve_owners(&few, 0.5).unwrap_err();
    assert!(unattainable.to_string().contains("cannot be attained"), "{unattainable}");
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

/// In small crowds the worst one is often mixed, and costs more than the search allows for.
#[test]
fn small_crowds_are_planned_for() {
    for owners in [12, 20, 24, 30, 37, 61] {
        let plan = plan(&request(owners, 5, 1.0, 1e-6)).unwrap_or_else(|error| panic!("{owners}: {error}"));
        assert!(release_upper(&plan) <= 1.0);
        for other in &plan.alternatives {
            assert!(other.views.release.value().unwrap().upper() <= 1.0 && other.sd >= 0.995 * plan.best.sd);
        }
    }
}

#[test]
fn ranges_weigh_the_worst_or_the_mean() {
    let over = |over: Over| {
        let mut request = request(2000, 0, 1.0, 1e-6);
        request.yes = Prior { low: 0, high: 1000, over };
        // Who does not take part is missed: the error grows with those who would say yes.
        request.participation = Some(0.6);
        plan(&request).unwrap().best.sd
    };
    assert!(over(Over::Mean) < 0.99 * over(Over::Worst));
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

/// A sample of what `checks/planner_survey.sh` does for 500 requests.
#[test]
fn nothing_certified_is_better_than_a_plan() {
    let survey = survey::survey(30, 1e6, 8, |_| true);
    assert!(survey.failures.is_empty(), "{}\n{}", survey.summary(), survey.failures.join("\n"));
    // Rivals come close, so that a worse plan would have been beaten.
    assert!(survey.close >= 25, "{}", survey.summary());
}
