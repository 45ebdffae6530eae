//! Random requests: the plan is certified, nothing certified beats it, and its error moves the right way.

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use uptack::estimate::Estimator;
use uptack::plan::{Form, Plan, PlannedMechanism, Prior, Request, least_sd, plan};
use uptack::privacy::{Delta, Epsilon, answer_epsilon, honest_owners, linked_epsilon, release};
use uptack::{Channel, Fraction, Mechanism};

#[path = "rivals.rs"]
mod rivals;

use rivals::{Shape, best_rival};

/// What anything may be better than a plan by, and what an error may rise by where it should not.
const TOLERANCE: f64 = 0.005;

/// What a survey found.
#[derive(Default)]
pub(crate) struct Survey {
    requests: usize,
    /// What was wrong, each with its request.
    pub(crate) failures: Vec<String>,
    /// Requests for which a certified rival came within 2 % of the plan.
    pub(crate) close: usize,
    /// The largest gap, and how many were above one per cent.
    largest_gap: f64,
    wide: usize,
    /// By how much the best certified rival was better than the plan at most.
    largest_gain: f64,
    /// By how much an error rose at most where it should not.
    largest_rise: f64,
    /// Requests for which the gap proves that a larger crowd's best error is larger.
    grown: usize,
}

impl Survey {
    /// The survey in one line.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} requests, {} failures; best rival better by {:.3} % at most; error rose by {:.3} % at most, but for {} that \
             are proven to grow with the crowd; {} gaps above 1 %, the largest {:.2} %; a certified rival within 2 % for {}",
            self.requests,
            self.failures.len(),
            100.0 * self.largest_gain,
            100.0 * self.largest_rise,
            self.grown,
            self.wide,
            100.0 * self.largest_gap,
            self.close,
        )
    }
}

/// Plans random requests of up to `most_owners` and looks for a better one among so many random `rivals` and a grid, as long as
/// `goes_on`, which is told the number of each.
pub(crate) fn survey(requests: usize, most_owners: f64, rivals: usize, goes_on: impl Fn(usize) -> bool) -> Survey {
    // The requests are the same ones whatever they are compared with.
    let [mut random, mut random_shapes] = [7, 11].map(Random::new);
    let mut survey = Survey::default();
    for number in (0..requests).take_while(|number| goes_on(*number)) {
        survey.requests += 1;
        let request = random.request(number, most_owners);
        let easier = random.eased(&request);
        let drawn = (0..rivals).map(|_| random_shapes.shape(&request));
        let shapes = drawn.chain(rivals::grid(&request)).collect();
        let found = plan(&request).map_err(|error| format!("no plan: {error}")).and_then(|planned| {
            survey.look_at(&request, &planned)?;
            survey.compare(&request, &planned.best, shapes)?;
            survey.ease(&planned.best, &request, &easier)
        });
        survey.failures.extend(found.err().map(|what| format!("{what}; {request:?}")));
    }
    survey
}

impl Survey {
    /// The plan and its alternatives keep the request, and none of these is better.
    fn look_at(&mut self, request: &Request, planned: &Plan) -> Result<(), String> {
        for choice in std::iter::once(&planned.best).chain(&planned.alternatives) {
            if let Some(broken) = broken_constraint(request, choice) {
                return Err(format!("{} breaks {broken}", choice.mechanism));
            }
            if 1.0 - choice.sd / planned.best.sd > TOLERANCE {
                return Err(format!("alternative {} is better: {}", choice.mechanism, choice.sd));
            }
        }
        let gap = planned.gap.ok_or("no gap")?;
        self.largest_gap = self.largest_gap.max(gap);
        self.wide += usize::from(gap > 0.01);
        Ok(())
    }

    /// Nothing that is certified is better.
    fn compare(&mut self, request: &Request, planned: &PlannedMechanism, shapes: Vec<Shape>) -> Result<(), String> {
        let Some((gain, mechanism)) = best_rival(request, planned.sd, shapes) else { return Ok(()) };
        self.close += 1;
        self.largest_gain = self.largest_gain.max(gain);
        if gain <= TOLERANCE {
            return Ok(());
        }
        Err(format!("{mechanism} is better than {} with {} by {gain}", planned.mechanism, planned.sd))
    }

    /// More room makes no error larger.
    fn ease(&mut self, planned: &PlannedMechanism, request: &Request, easier: &Request) -> Result<(), String> {
        let eased = least_sd(easier).map_err(|error| format!("no plan for {easier:?}: {error}"))?;
        let rise = eased / planned.sd - 1.0;
        // Where a larger crowd hides hardly anybody yet, the best error itself grows with it: the gap proves that.
        let proven = || plan(easier).is_ok_and(|plan| plan.best.sd * (1.0 - plan.gap.unwrap_or(1.0)) > planned.sd);
        if rise > TOLERANCE && easier.owners > request.owners && proven() {
            self.grown += 1;
            return Ok(());
        }
        self.largest_rise = self.largest_rise.max(rise);
        if rise <= TOLERANCE {
            return Ok(());
        }
        Err(format!("rose from {} to {eased} for {easier:?}", planned.sd))
    }
}

pub(crate) struct Random(TestRng);

impl Random {
    pub(crate) fn new(seed: u8) -> Self {
        Self(TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]))
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + self.unit() * (high / low).ln()).exp()
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.0.next_u64().is_multiple_of(count)
    }

    /// Every third request may be met by any form; the others take turns.
    fn request(&mut self, number: usize, most_owners: f64) -> Request {
        let owners = self.between(50.0, most_owners) as u64;
        let yes = if self.one_in(4) { 0 } else { self.between(1.0, owners as f64 / 2.0) as u64 };
        let release = (Epsilon::new(self.between(0.05, 8.0)).unwrap(), Delta::new(self.between(1e-10, 1e-3)).unwrap());
        let mut request = Request { release: Some(release), ..Request::new(owners, Prior::at(yes)) };
        request.form = [Form::One, Form::One, Form::Any][number % 3];
        if self.one_in(4) {
            request.answer_epsilon = Some(self.between(0.8, 6.0));
        }
        if self.one_in(4) {
            request.linked_epsilon = Some(self.between(2.0, 9.0));
        }
        if self.one_in(4) {
            request.participation = Some(0.3 + 0.7 * self.unit());
        }
        if self.one_in(4) {
            request.honest = [Fraction::new(9, 10), Fraction::new(1, 2)][number % 2].clone().unwrap();
            request.minimum_batch = owners - owners / 5;
        }
        request
    }

    /// The same with more room: the error must not be larger.
    fn eased(&mut self, request: &Request) -> Request {
        let (epsilon, delta) = request.release.unwrap();
        let alone =
            request.answer_epsilon.is_none() && request.linked_epsilon.is_none() && request.participation.is_none();
        match (self.0.next_u64() % 4, alone) {
            (0, _) => {
                let more = Epsilon::new(epsilon.value() * self.between(1.01, 1.5)).unwrap();
                Request { release: Some((more, delta)), ..request.clone() }
            }
            (1, _) => {
                let more = Delta::new((delta.value() * self.between(1.1, 5.0)).min(1e-3)).unwrap();
                Request { release: Some((epsilon, more)), ..request.clone() }
            }
            (_, true) => {
                let owners = (request.owners as f64 * self.between(1.1, 2.0)) as u64;
                let share = request.minimum_batch as f64 / request.owners as f64;
                Request { owners, minimum_batch: (owners as f64 * share) as u64, ..request.clone() }
            }
            (2, _) => Request { answer_epsilon: None, participation: None, ..request.clone() },
            (_, _) => Request { linked_epsilon: None, ..request.clone() },
        }
    }

    /// A random shape of any family that the request admits.
    fn shape(&mut self, request: &Request) -> Shape {
        let most = request.participation.unwrap_or(1.0);
        let cliff = (-request.release.unwrap().0.value()).exp();
        let part = match self.0.next_u64() % 3 {
            0 => self.between(2e-3, 1.0) * most,
            1 => (1.0 - cliff * self.between(0.8, 1.6)).clamp(0.01, most),
            _ => most * (1.0 - self.between(1e-6, 0.1)),
        };
        match self.0.next_u64() % 6 {
            0 | 1 => Shape::NormalForm { part },
            2 => Shape::NoisySampling { part, of_no: self.one_in(4) },
            3 if request.form == Form::Any && self.one_in(4) => Shape::Blended { part },
            4 if request.form == Form::Any && self.one_in(4) => {
                Shape::Spread { pairs: 2 + self.0.next_u64() % 2, part }
            }
            _ => {
                let other = (part * self.between(0.3, 3.0)).min(most);
                Shape::Tuned { parts: [part, other], lean: self.between(0.01, 100.0) }
            }
        }
    }
}

fn broken_constraint(request: &Request, choice: &PlannedMechanism) -> Option<&'static str> {
    let (epsilon, _) = request.release.unwrap();
    let above = |found: Option<f64>, most: Option<f64>| {
        most.is_some_and(|most| found.is_none_or(|found| found > most * (1.0 + 1e-12)))
    };
    let views = &choice.views;
    if views.release.value().is_none_or(|value| value.upper() > epsilon.value()) {
        return Some("epsilon");
    }
    if above(views.linked, request.linked_epsilon) {
        return Some("linked-epsilon");
    }
    if views.answers.iter().any(|answer| above(*answer, request.answer_epsilon)) {
        return Some("answer-epsilon");
    }
    // Whoever does not take part writes \u{22a5} in one answer, and carries no shift in several.
    above(Some(participation(&choice.mechanism)), request.participation).then_some("participation")
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
