//! Random requests against a dense grid of every family, which knows nothing of how the planner searches.

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use uptack::estimate::Estimator;
use uptack::plan::{Choice, Form, Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon, answer_epsilon, honest_owners, linked_epsilon, release};
use uptack::{Channel, Fraction, Mechanism};

/// No grid point that keeps every constraint by the certified accounting is better by half a per cent than the plan,
/// and no plan breaks a constraint. The grid is dense enough to tell: for most requests one of its points keeps them
/// and comes within 6 % of the plan, so that a plan which were worse by more would be caught.
#[test]
fn no_point_of_a_dense_grid_is_better() {
    let mut random = Random(TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let (mut refused, mut close) = (0, 0);
    for number in 0..REQUESTS {
        let request = random.request(number);
        let Ok(planned) = plan(&request) else { panic!("{request:?} has no plan") };
        let owners = honest_owners(request.minimum_batch, &request.honest).unwrap();
        assert_eq!(planned.claim_owners, owners);
        assert_keeps(&request, &planned.best);
        let mut points: Vec<(f64, String, Channel)> =
            grid(&request).into_iter().filter_map(|text| point(text, &request)).collect();
        points.retain(|(error, ..)| *error < 1.06 * planned.best.sd);
        points.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let first = points.iter().position(|(_, _, channel)| keeps(&request, channel, owners));
        if let Some((error, text, _)) = first.map(|at| &points[at]) {
            let planned = &planned.best;
            assert!(
                *error >= 0.995 * planned.sd,
                "{text}: {error}, {}: {}; {request:?}",
                planned.mechanism,
                planned.sd
            );
            close += 1;
        }
        refused += first.unwrap_or(points.len());
    }
    assert!(close >= REQUESTS / 2 && refused > 100 * REQUESTS, "{close} {refused}");
}

const REQUESTS: usize = 9;

fn point(text: String, request: &Request) -> Option<(f64, String, Channel)> {
    let channel = text.parse::<Mechanism>().unwrap_or_else(|error| panic!("{text}: {error}")).channel();
    let error = Estimator::new(&channel).ok()?.sd(request.owners, request.yes.low as f64).ok()?;
    Some((error, text, channel))
}

struct Random(TestRng);

impl Random {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.unit() * (high / low).ln()).exp()
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.0.next_u64().is_multiple_of(count)
    }

    /// Every third request may be met by any form; the others take turns.
    fn request(&mut self, number: usize) -> Request {
        let owners = self.between(60.0, 2500.0) as u64;
        let yes = if self.one_in(4) { 0 } else { self.between(1.0, owners as f64 / 2.0) as u64 };
        let release = (Epsilon::new(self.between(0.3, 2.5)).unwrap(), Delta::new(self.between(1e-8, 1e-4)).unwrap());
        let mut request = Request { release: Some(release), ..Request::new(owners, Prior::at(yes)) };
        request.form = [Form::One, Form::Several, Form::Any][number % 3];
        if self.one_in(3) {
            request.answer_epsilon = Some(self.between(0.8, 4.0));
        }
        if self.one_in(3) {
            request.linked_epsilon = Some(self.between(2.0, 6.0));
        }
        if self.one_in(3) {
            request.participation = Some(0.4 + 0.6 * self.unit());
        }
        if self.one_in(3) {
            request.honest = [Fraction::new(9, 10), Fraction::new(1, 2)][number % 2].clone().unwrap();
            request.minimum_batch = owners - owners / 5;
        }
        request
    }
}

/// All parameters of all families of the request's form, in steps.
fn grid(request: &Request) -> Vec<String> {
    let most = request.participation.unwrap_or(1.0);
    let parts = steps(12).map(|step| most * step);
    // Flips from a fifth of an owner to nearly half of who takes part.
    let least = 0.2 / request.owners as f64;
    let flips =
        |part: f64| (0..60).map(move |step| least * 1.2f64.powi(step)).take_while(move |flip| *flip < 0.5 * part);
    let mut texts = Vec::new();
    let (one, several) = (request.form != Form::Several, request.form != Form::One);
    for part in parts {
        for flip in flips(part) {
            // A trace less than half of the rest, so that rounding leaves the sum at one or less.
            let base = (1.0 - part) * (0.5 - 1e-12);
            if one {
                texts.push(format!("normal-form(f={part},r={flip})"));
                texts.push(format!("noisy-sampling(sy={part},sn={flip})"));
            }
            if one && most >= 1.0 && part >= 1.0 {
                texts.push(format!("randomized-response(t={})", 1.0 - flip));
            }
            if several {
                texts.push(format!("blended(b1=0,b2={base},b3={base},f1=0,f2={part},ry={flip},rn={flip})"));
                texts.push(format!("spread(pairs={},f={part},r={flip})", 2 + texts.len() % 2));
            }
        }
    }
    if one {
        texts.extend(tuned_grid(most, least));
    }
    texts
}

/// The asymmetric laws: who takes part and who flips differ between yes and no.
fn tuned_grid(most: f64, least: f64) -> Vec<String> {
    let mut texts = Vec::new();
    for sy in steps(5).map(|step| most * step) {
        for sn in steps(5).map(|step| most * step) {
            for (first, second) in (0..10).flat_map(|first| (0..10).map(move |second| (first, second))) {
                let [ry, rn] = [first, second].map(|step| 2.0 * least * 1.7f64.powi(step));
                if ry < 0.5 * sy && rn < 0.5 * sn {
                    texts.push(format!("tuned(sy1={sy},sy2=0,p1={},p2=0,sn={sn},p3={})", 1.0 - ry / sy, rn / sn));
                }
            }
        }
    }
    texts
}

fn steps(count: u32) -> impl Iterator<Item = f64> {
    (1..=count).map(move |step| f64::from(step) / f64::from(count))
}

/// By the certified accounting over every crowd; the quick test at the extreme crowds comes first.
fn keeps(request: &Request, channel: &Channel, owners: u64) -> bool {
    let (epsilon, delta) = request.release.unwrap();
    let within = |found: Option<f64>, most: f64| found.is_some_and(|epsilon| epsilon <= most);
    let answer = |most: f64| (0..channel.answers().len()).all(|k| within(answer_epsilon(channel, k).unwrap(), most));
    if !request.linked_epsilon.is_none_or(|most| within(linked_epsilon(channel), most))
        || !request.answer_epsilon.is_none_or(answer)
    {
        return false;
    }
    let accountant = release(channel, owners).unwrap();
    accountant.delta_of_ends(epsilon).lower() <= delta.value()
        && accountant.delta(epsilon).value().is_some_and(|found| found.lower() <= delta.value())
}

fn assert_keeps(request: &Request, choice: &Choice) {
    let (epsilon, _) = request.release.unwrap();
    let most = 1.0 + 1e-12;
    assert!(choice.views.release.value().unwrap().upper() <= epsilon.value(), "{request:?}");
    assert!(request.linked_epsilon.is_none_or(|bound| choice.views.linked.unwrap() <= bound * most), "{request:?}");
    let answers = choice.views.answers.iter();
    assert!(request.answer_epsilon.is_none_or(|bound| answers.clone().all(|found| found.unwrap() <= bound * most)));
    // Whoever does not take part writes \u{22a5} in one answer, and carries no shift in several.
    assert!(request.participation.is_none_or(|bound| participation(&choice.mechanism) <= bound * (1.0 + 1e-6)));
}

fn participation(mechanism: &Mechanism) -> f64 {
    let text = mechanism.to_string();
    let value = |key: &str| text.split(['(', ',', ')']).find_map(|pair| pair.strip_prefix(key)?.parse::<f64>().ok());
    match mechanism.name() {
        "randomized-response" => 1.0,
        "normal-form" | "spread" => value("f=").unwrap(),
        "noisy-sampling" => value("sy=").unwrap().max(value("sn=").unwrap()),
        "tuned" => value("sy1=").unwrap().max(value("sn=").unwrap()),
        "blended" => value("f2=").unwrap(),
        other => panic!("{other} is planned now"),
    }
}
