//! Requests for which planning must be quick, and how long it takes, against one call of the accounting.

use uptack::Fraction;
use uptack::plan::{Form, Noise, Prior, Request, Trust, plan};
use uptack::privacy::{Delta, Epsilon, release};

/// A request, in words and as it is, and the seconds in which it must be planned.
pub(crate) struct Case {
    pub(crate) what: &'static str,
    pub(crate) request: Request,
    pub(crate) most: f64,
}

/// Medians of processor seconds: of a whole plan, and of the certificate of the mechanism that it finds.
pub(crate) struct Measured {
    pub(crate) plan: f64,
    pub(crate) certificate: f64,
    /// How often the search asked the accounting.
    pub(crate) calls: u64,
}

/// Seconds of processor time used so far, by all threads.
type Clock = fn() -> f64;

/// A certificate is repeated until so many seconds have passed: clocks tick in hundredths of a second.
const LONG_ENOUGH: f64 = 0.3;

impl Case {
    pub(crate) fn measure(&self, clock: Clock, rounds: usize) -> Measured {
        let (mut plans, mut certificates, mut calls) = (Vec::new(), Vec::new(), 0);
        for _ in 0..rounds {
            let start = clock();
            let planned = plan(&self.request).expect("a plan");
            plans.push(clock() - start);
            let (_, delta) = self.request.release.expect("the release is bounded");
            let accountant = release(&planned.best.channel, planned.claim_owners).expect("a crowd");
            certificates.push(seconds_each(clock, || accountant.epsilon(delta)));
            calls = planned.calls;
        }
        Measured { plan: median(plans), certificate: median(certificates), calls }
    }
}

fn seconds_each<T>(clock: Clock, work: impl Fn() -> T) -> f64 {
    let (start, mut times) = (clock(), 0);
    while times == 0 || clock() - start < LONG_ENOUGH {
        std::hint::black_box(work());
        times += 1;
    }
    (clock() - start) / f64::from(times)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What is measured. Where nothing else is said, one owner in a hundred is yes, and δ is 1e-8.
pub(crate) fn cases() -> Vec<Case> {
    let case = |what, request, most| Case { what, request, most };
    let mut cases = vec![
        case("10⁶ owners, ε = 0.5, answer 8, linked 9, participation 0.9, honest 90 %", everything(1_000_000), 1.0),
        case("1 000 owners, 10 yes, ε = 6, δ = 1e-6", alone(1000, 10, 6.0, 1e-6), 1.0),
    ];
    let in_a_huge_crowd = [
        ("ε = 0.5, answer 8, linked 9, participation 0.9, honest 90 %", everything(HUGE)),
        ("ε = 0.5", huge(0.5)),
        ("ε = 6", huge(6.0)),
        ("ε = 1, answer and linked 12, honest 90 %", local(1.0, 12.0, 12.0)),
        ("ε = 0.1, answer 8, linked 12, honest 90 %", local(0.1, 8.0, 12.0)),
        ("ε = 1, answer 1.5", answer(HUGE / 100, 1.5, Form::Any)),
        ("ε = 1, answer 1.0986, several answers", answer(HUGE / 100, 1.0986, Form::Several)),
        ("ε = 1, answer 1.0986, honest 90 %", honest(answer(HUGE / 100, 1.0986, Form::Any))),
        ("100 yes, ε = 1, answer 1.0986", answer(100, 1.0986, Form::Any)),
        ("1 000 yes, ε = 1, answer 0.5, several answers", answer(1000, 0.5, Form::Several)),
        ("100 yes, ε = 3, δ = 1e-10, linked 20", linked(alone(HUGE, 100, 3.0, 1e-10), 20.0)),
        ("half yes, ε = 0.05, δ = 1e-6, participation 0.5", takes_part(alone(HUGE, HUGE / 2, 0.05, 1e-6), 0.5)),
        (
            "ε = 1, linked 9, noise of aggregators, trust in one",
            noise(linked(huge(1.0), 9.0), Noise::Aggregators, Trust::OneAggregator),
        ),
        ("ε = 1, linked 12, any noise, trust in owners", noise(linked(huge(1.0), 12.0), Noise::Any, Trust::Owners)),
    ];
    cases.extend(in_a_huge_crowd.map(|(what, request)| case(what, request, 10.0)));
    cases
}

/// The owners of a case that says no number.
const HUGE: u64 = 100_000_000;

fn alone(owners: u64, yes: u64, epsilon: f64, delta: f64) -> Request {
    let release = Some((Epsilon::new(epsilon).expect("an epsilon"), Delta::new(delta).expect("a delta")));
    Request { release, ..Request::new(owners, Prior::at(yes)) }
}

fn huge(epsilon: f64) -> Request {
    alone(HUGE, HUGE / 100, epsilon, 1e-8)
}

fn honest(request: Request) -> Request {
    Request { honest: Fraction::new(9, 10).expect("a share"), ..request }
}

fn linked(request: Request, epsilon: f64) -> Request {
    Request { linked_epsilon: Some(epsilon), ..request }
}

fn takes_part(request: Request, share: f64) -> Request {
    Request { participation: Some(share), ..request }
}

fn noise(request: Request, noise: Noise, trust: Trust) -> Request {
    Request { noise, trust, ..request }
}

fn everything(owners: u64) -> Request {
    let request = linked(alone(owners, owners / 100, 0.5, 1e-8), 9.0);
    Request { answer_epsilon: Some(8.0), form: Form::Any, ..honest(takes_part(request, 0.9)) }
}

/// Where the local bounds may bind before the release does.
fn local(epsilon: f64, answer: f64, linked_epsilon: f64) -> Request {
    Request { answer_epsilon: Some(answer), form: Form::Any, ..honest(linked(huge(epsilon), linked_epsilon)) }
}

/// Where only several answers keep both bounds with a small error.
fn answer(yes: u64, answer: f64, form: Form) -> Request {
    Request { answer_epsilon: Some(answer), form, ..alone(HUGE, yes, 1.0, 1e-8) }
}
