//! Plans with noise that the aggregators add, if one honest aggregator has to be enough.

use uptack::plan::{
    Noise, Objective, Over, Prior, Request, Trust, USUAL_LINKED_EPSILON, explain, least_sd, plan, solve_epsilon,
    solve_owners,
};
use uptack::privacy::{Delta, Epsilon, linked_epsilon, one_aggregator};
use uptack::{Fraction, Mechanism, NoiseLaw, Scale};

use crate::survey::Random;

fn request(owners: u64, yes: u64, epsilon: f64, linked: Option<f64>) -> Request {
    let usual = Request::one_aggregator(owners, Prior::at(yes), Epsilon::new(epsilon).unwrap()).unwrap();
    Request { linked_epsilon: linked, ..usual }
}

fn claimed(mechanism: &Mechanism) -> f64 {
    one_aggregator(&mechanism.channel()).unwrap().upper()
}

/// The error from the definition: two binomials and two draws of noise.
fn sd(mechanism: &Mechanism, owners: f64, yes: f64) -> f64 {
    let channel = mechanism.channel();
    let (bit, noise) = (channel.summed_bit().unwrap(), channel.noise().unwrap());
    let (p, q) = (bit.yes.to_f64(), bit.no.to_f64());
    let variance = yes * p * (1.0 - p) + (owners - yes) * q * (1.0 - q) + 2.0 * noise.variance();
    variance.sqrt() / (p - q).abs()
}

/// Errors of randomized response with the least noise, found by an independent program.
#[test]
fn the_known_errors_are_reached() {
    let known = [(14.0, 1.930), (11.0, 2.125), (10.0, 2.440), (9.0, 3.139), (8.0, 4.524), (7.0, 7.025), (6.0, 11.32)];
    for (linked, sd) in known {
        let plan = plan(&request(50_000, 500, 1.0, Some(linked))).unwrap();
        assert!(plan.best.sd <= 1.01 * sd, "{linked}: {} {}", plan.best.mechanism, plan.best.sd);
        assert!(plan.best.views.linked.unwrap() <= linked);
        assert!(claimed(&plan.best.mechanism) <= 1.0 && plan.epsilon().unwrap() <= 1.0);
        assert!(plan.gap.unwrap() < 0.004, "{linked}: {:?}", plan.gap);
    }
    for owners in [50_000, 100_000_000] {
        let mechanism = uptack::plan::least_error(&request(owners, 500, 1.0, None)).unwrap();
        assert_eq!(mechanism.to_string(), "randomized-response(t=1) + laplace(scale=1)");
        assert!((sd(&mechanism, owners as f64, 500.0) / 1.919 - 1.0).abs() < 1e-3);
        assert!((least_sd(&request(owners, 500, 1.0, None)).unwrap() / 1.919 - 1.0).abs() < 1e-3);
    }
}

#[test]
fn the_tradeoff_is_listed_from_none_to_the_smallest_bound() {
    let plan = plan(&request(50_000, 500, 1.0, Some(6.5))).unwrap();
    assert_eq!(plan.tradeoff[0].linked, None);
    assert!(plan.tradeoff.iter().any(|entry| entry.linked == Some(6.5) && entry.sd == plan.best.sd));
    assert!(plan.tradeoff.windows(2).all(|pair| pair[1].linked < Some(pair[0].linked.unwrap_or(f64::INFINITY))));
    assert!(plan.tradeoff.windows(2).all(|pair| pair[0].sd <= pair[1].sd), "{:?}", plan.tradeoff);
    let at_nine = plan.tradeoff.iter().find(|entry| entry.linked == Some(9.0)).unwrap();
    assert!((at_nine.sd / 3.139 - 1.0).abs() < 0.01, "{at_nine:?}");
}

/// Owners who may seldom take part, and those who hold the rarer truth: the bound covers every mechanism of one answer.
#[test]
fn participation_is_kept_and_either_truth_may_speak() {
    for yes in [100, 9_900] {
        let request = Request { participation: Some(0.4), ..request(10_000, yes, 1.0, Some(6.0)) };
        let plan = plan(&request).unwrap();
        let bit = plan.best.channel.summed_bit().unwrap();
        assert!(bit.yes.to_f64().max(bit.no.to_f64()) <= 0.4, "{}", plan.best.mechanism);
        assert!(plan.gap.unwrap() < 0.01, "{:?}", plan.gap);
        assert!(plan.alternatives.iter().all(|other| other.mechanism.name() != "randomized-response"));
    }
}

#[test]
fn named_families_are_planned_with_noise() {
    let best = plan(&request(5000, 50, 1.0, Some(5.0))).unwrap().best.sd;
    for family in ["randomized-response", "normal-form", "noisy-sampling", "tuned"] {
        let request = Request { family: Some(family.to_owned()), ..request(5000, 50, 1.0, Some(5.0)) };
        let plan = plan(&request).unwrap();
        assert_eq!(plan.best.mechanism.name(), family);
        assert!(plan.best.mechanism.noise().is_some());
        assert!(plan.best.sd >= best * 0.995 && plan.best.sd <= best * 1.01, "{family}: {} {best}", plan.best.sd);
        assert!(plan.best.views.linked.unwrap() <= 5.0 && claimed(&plan.best.mechanism) <= 1.0, "{family}");
    }
}

/// What cannot be planned is refused, and says why.
#[test]
fn senseless_requests_are_refused() {
    let base = || request(1000, 10, 1.0, Some(8.0));
    for (request, word) in [
        (Request { noise: Noise::None, ..base() }, "hides nobody"),
        (Request { release: None, ..base() }, "epsilon"),
        (Request { objective: Objective::Paper { error: 10.0 }, ..base() }, "objective"),
        (Request { form: uptack::plan::Form::Several, ..base() }, "several answers"),
        (Request { family: Some("spread".to_owned()), ..base() }, "several answers"),
    ] {
        let refusal = plan(&request).unwrap_err();
        assert!(refusal.is_request() && refusal.to_string().contains(word), "{refusal}");
    }
}

#[test]
fn solving_inverts_planning() {
    let wanted = request(5000, 50, 1.0, Some(7.0));
    let error = least_sd(&wanted).unwrap();
    let solved = solve_epsilon(&wanted, error).unwrap();
    assert!((solved.epsilon().unwrap() - 1.0).abs() < 0.01 && solved.best.sd <= error, "{:?}", solved.epsilon());
    // More owners only add to the error, so the fewest are those who would say yes.
    let fewest = solve_owners(&wanted, error).unwrap();
    assert_eq!(fewest.owners, 50);
    let unattainable = solve_owners(&wanted, 0.5).unwrap_err();
    assert!(unattainable.to_string().contains("cannot be attained"), "{unattainable}");
}

/// Solved for, ε binds nothing: what is said to be the least error is so at every ε, and what would do does.
#[test]
fn an_error_that_no_epsilon_has_is_explained_without_the_request_s_epsilon() {
    let wanted = request(50_000, 500, 1.0, Some(8.0));
    let at_large_epsilon = least_sd(&request(50_000, 500, 30.0, Some(8.0))).unwrap();
    assert!(at_large_epsilon < 0.95 * least_sd(&wanted).unwrap());
    assert!(solve_epsilon(&wanted, 1.01 * at_large_epsilon).is_ok());
    let refusal = solve_epsilon(&wanted, 4.0).unwrap_err().to_string();
    let after = |text: &str| -> f64 {
        let rest = refusal.split(text).nth(1).unwrap_or_else(|| panic!("{refusal}"));
        rest.split([';', ' ']).next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{refusal}"))
    };
    assert!((after("the smallest is ") / at_large_epsilon - 1.0).abs() < 1e-3, "{refusal}");
    assert!(!refusal.contains("; epsilon binds"), "{refusal}");
    let linked = refusal.rsplit("linked-epsilon ").next().and_then(|rest| rest.split(' ').next());
    let linked: f64 = linked.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{refusal}"));
    assert!(solve_epsilon(&Request { linked_epsilon: Some(linked), ..wanted }, 4.0).is_ok(), "{refusal}");
}

#[test]
fn infeasible_errors_name_what_binds_and_what_would_do() {
    let wanted = request(50_000, 500, 1.0, Some(7.0));
    let infeasible = explain(&wanted, 3.0).unwrap();
    let bound: Vec<&str> = infeasible.binding.iter().map(|(name, _)| *name).collect();
    assert!(bound.contains(&"linked-epsilon"), "{infeasible:?}");
    let (_, linked) = infeasible.nearest.iter().find(|(name, _)| *name == "linked-epsilon").unwrap();
    assert!(least_sd(&Request { linked_epsilon: Some(*linked), ..wanted.clone() }).unwrap() <= 3.0);
    assert!(least_sd(&Request { linked_epsilon: Some(linked - 0.2), ..wanted }).unwrap() > 3.0);
}

#[test]
fn ranges_weigh_the_worst_or_the_mean() {
    let over = |over: Over| {
        let yes = Prior { low: 0, high: 1000, over };
        least_sd(&Request { yes, participation: Some(0.6), ..request(2000, 0, 1.0, Some(8.0)) }).unwrap()
    };
    assert!(over(Over::Mean) < 0.99 * over(Over::Worst));
}

/// What one honest aggregator keeps, owners only help with.
#[test]
fn owners_besides_make_no_error_larger() {
    for (noise, linked) in [(Noise::Aggregators, Some(6.0)), (Noise::Any, Some(7.0)), (Noise::Any, None)] {
        let alone = request(2000, 40, 1.0, linked);
        let honest = "90%".parse::<Fraction>().unwrap();
        let delta = Delta::new(1e-6).unwrap();
        let together = Request {
            noise,
            trust: Trust::Owners,
            honest,
            release: alone.release.map(|(epsilon, _)| (epsilon, delta)),
            ..alone.clone()
        };
        let plan = plan(&together).unwrap();
        assert!(plan.best.sd <= least_sd(&alone).unwrap() * 1.002, "{linked:?}: {}", plan.best.mechanism);
        assert!(plan.epsilon().unwrap() <= 1.0 && plan.best.views.release.certificate().closed());
        assert_eq!(plan.claim_owners, 1800);
        if noise == Noise::Any {
            let without = least_sd(&Request { noise: Noise::None, ..together }).unwrap();
            assert!(plan.best.sd <= without * 1.002, "{without} {}", plan.best.sd);
        }
    }
}

/// Random requests: certified, nothing certified is better by more than 0.5 %, and room never makes an error larger.
#[test]
fn nothing_certified_is_better_than_a_noisy_plan() {
    let mut random = Random::new(23);
    let mut rivals = 0;
    for number in 0..60 {
        let owners = random.between(50.0, 1e6) as u64;
        let yes = if number % 4 == 0 { 0 } else { random.between(1.0, owners as f64 / 2.0) as u64 };
        let (epsilon, linked) = (random.between(0.05, 8.0), 3.0 + 13.0 * random.unit());
        let wanted = request(owners, yes, epsilon, Some(linked));
        let about = format!("{owners} owners, {yes} yes, epsilon {epsilon}, linked {linked}");
        let mechanism = uptack::plan::least_error(&wanted).unwrap();
        let error = sd(&mechanism, owners as f64, yes as f64);
        assert!(claimed(&mechanism) <= epsilon, "{about}: {mechanism}");
        assert!(linked_epsilon(&mechanism.channel()).unwrap() <= linked, "{about}: {mechanism}");
        assert!((least_sd(&wanted).unwrap() / error - 1.0).abs() < 1e-9, "{about}");
        let more = random.between(1.01, 1.5);
        for easier in
            [request(owners, yes, epsilon * more, Some(linked)), request(owners, yes, epsilon, Some(linked * more))]
        {
            // A simpler family is preferred where it is worse by less than 0.2 %.
            assert!(least_sd(&easier).unwrap() <= error * 1.0021, "{about}: rose for {easier:?}");
        }
        for _ in 0..40 {
            let Some(rival) = rival(&mut random, epsilon, linked) else { continue };
            rivals += 1;
            let better = 1.0 - sd(&rival, owners as f64, yes as f64) / error;
            assert!(better <= 0.005, "{about}: {rival} is better than {mechanism} by {better}");
        }
    }
    assert!(rivals > 1000, "{rivals}");
}

/// A random channel near the bound, and the least noise that keeps ε; none where it breaks a bound.
fn rival(random: &mut Random, epsilon: f64, linked: f64) -> Option<Mechanism> {
    let stray = random.between((-linked).exp(), 0.4);
    let missed = if random.one_in(2) { stray * random.between(0.5, 2.0) } else { random.between((-linked).exp(), 0.6) };
    let local: Mechanism = format!("noisy-sampling(sy={},sn={})", (1.0 - missed).max(0.0), stray).parse().ok()?;
    if linked_epsilon(&local.channel())? > linked {
        return None;
    }
    let with = |scale: f64| -> Option<Mechanism> {
        let scale: Scale = format!("{scale:.9}").parse().ok()?;
        format!("{local} + {}", NoiseLaw::laplace(scale)).parse().ok()
    };
    let (p, q) = (1.0 - missed, stray);
    let (mut low, mut high) = (0.01f64, 1e3f64);
    for _ in 0..50 {
        let half = (low * high).sqrt();
        let a = (-1.0 / half).exp();
        let ratio = ((p + (1.0 - p) * a) / (q + (1.0 - q) * a)).max((1.0 - q * (1.0 - a)) / (1.0 - p * (1.0 - a)));
        if ratio.ln() <= epsilon { high = half } else { low = half }
    }
    with(high * (1.0 + 2e-6)).filter(|rival| claimed(rival) <= epsilon)
}

/// The usual limit on the linked ε is for noise, which hides nobody from the aggregators. Without noise it would only cost.
#[test]
fn the_usual_linked_limit_does_not_bind_plans_without_noise() {
    let limits = (Epsilon::new(4.932).unwrap(), Delta::new(9.63e-7).unwrap());
    let usual = Request {
        release: Some(limits),
        linked_epsilon: Some(USUAL_LINKED_EPSILON),
        linked_epsilon_for_noise_only: true,
        noise: Noise::Any,
        ..Request::new(704_506, Prior::at(4))
    };
    let plain = Request { linked_epsilon: None, noise: Noise::None, ..usual.clone() };
    let (best, without) = (least_sd(&usual).unwrap(), least_sd(&plain).unwrap());
    assert!(best <= without && without < 0.3, "{best} {without}");
    // A limit that somebody asked for binds both.
    let asked = Request { linked_epsilon_for_noise_only: false, ..usual };
    assert!(least_sd(&asked).unwrap() > 1.0);
}
