//! Random requests: the plan is certified, nothing certified beats it, and its error moves the right way.

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use uptack::estimate::Estimator;
use uptack::plan::{Choice, Form, Prior, Request, plan};
use uptack::privacy::{Delta, Epsilon, answer_epsilon, honest_owners, linked_epsilon, release};
use uptack::{Channel, Fraction, Mechanism};

/// What anything may be better than a plan by, and what an error may rise by where it should not.
const TOLERANCE: f64 = 0.005;

/// What a survey found.
#[derive(Default)]
pub(crate) struct Survey {
    requests: usize,
    /// What was wrong, each with its request.
    pub(crate) failures: Vec<String>,
    /// Requests for which a certified rival came within 10 % of the plan.
    pub(crate) close: usize,
    /// The largest gap, and how many were above one per cent.
    largest_gap: f64,
    wide: usize,
    /// By how much the best certified rival was better than the plan at most.
    largest_gain: f64,
    /// By how much an error rose at most where it should not.
    largest_rise: f64,
}

impl Survey {
    /// The survey in one line.
    pub(crate) fn summary(&self) -> String {
        format!(
            "{} requests, {} failures; best rival better by {:.3} % at most; error rose by {:.3} % at most; {} gaps above 1 %, \
             the largest {:.2} %; a certified rival within 10 % for {}",
            self.requests,
            self.failures.len(),
            100.0 * self.largest_gain,
            100.0 * self.largest_rise,
            self.wide,
            100.0 * self.largest_gap,
            self.close,
        )
    }
}

/// Plans random requests of up to `most_owners` and looks for `rivals` that are better, as long as `goes_on`.
pub(crate) fn survey(requests: usize, most_owners: f64, rivals: usize, goes_on: impl Fn() -> bool) -> Survey {
    let mut random = Random(TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let mut survey = Survey::default();
    for number in (0..requests).take_while(|_| goes_on()) {
        survey.requests += 1;
        let request = random.request(number, most_owners);
        let wrong = |what: String| format!("{what}; {request:?}");
        let planned = match plan(&request) {
            Ok(planned) => planned,
            Err(error) => {
                survey.failures.push(wrong(format!("no plan: {error}")));
                continue;
            }
        };
        if let Some(broken) = broken_constraint(&request, &planned.best) {
            survey.failures.push(wrong(format!("{} breaks {broken}", planned.best.mechanism)));
        }
        let better = |other: f64| 1.0 - other / planned.best.sd;
        for other in &planned.alternatives {
            if better(other.sd) > TOLERANCE || broken_constraint(&request, other).is_some() {
                survey.failures.push(wrong(format!("alternative {}: {}", other.mechanism, other.sd)));
            }
        }
        let gap = planned.gap.unwrap();
        survey.largest_gap = survey.largest_gap.max(gap);
        survey.wide += usize::from(gap > 0.01);
        if let Some((sd, text)) = best_rival(&request, planned.best.sd, &mut random, rivals) {
            survey.close += 1;
            survey.largest_gain = survey.largest_gain.max(better(sd));
            if better(sd) > TOLERANCE {
                survey
                    .failures
                    .push(wrong(format!("{text}: {sd}, plan {} {}", planned.best.mechanism, planned.best.sd)));
            }
        }
        if let Ok(eased) = plan(&random.eased(&request)) {
            let rise = eased.best.sd / planned.best.sd - 1.0;
            survey.largest_rise = survey.largest_rise.max(rise);
            if rise > TOLERANCE {
                survey.failures.push(wrong(format!("rose from {} to {}", planned.best.sd, eased.best.sd)));
            }
        }
    }
    survey
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

    /// A random member of a family of one answer, near what such requests need.
    fn rival(&mut self, request: &Request) -> String {
        let most = request.participation.unwrap_or(1.0);
        let epsilon = request.release.unwrap().0.value();
        let cliff = (-epsilon).exp();
        let part = match self.0.next_u64() % 3 {
            0 => most * self.unit(),
            1 => (1.0 - cliff * self.between(0.8, 1.6)).clamp(0.01, most),
            _ => most * (1.0 - self.between(1e-6, 0.1)),
        };
        let flip = (self.between(0.02, 60.0) / request.owners as f64).min(0.45 * part);
        match self.0.next_u64() % 4 {
            0 if most >= 1.0 => format!("randomized-response(t={})", 1.0 - flip),
            1 => format!("normal-form(f={part},r={flip})"),
            2 => {
                let (other, second) = (most * self.unit(), flip * self.between(0.1, 10.0));
                let (truthful, forced) = (1.0 - (flip / part).min(0.5), (second / other).min(0.5));
                format!("tuned(sy1={part},sy2=0,p1={truthful},p2=0,sn={other},p3={forced})")
            }
            _ => format!("noisy-sampling(sy={part},sn={flip})"),
        }
    }
}

/// The best of some random channels and of a grid that keeps the request by its certificate, if it comes within 10 %.
fn best_rival(request: &Request, planned: f64, random: &mut Random, count: usize) -> Option<(f64, String)> {
    let texts = (0..50 * count).map(|_| random.rival(request)).chain(grid(request));
    let point = |text: String| {
        let channel = text.parse::<Mechanism>().unwrap_or_else(|error| panic!("{text}: {error}")).channel();
        let sd = Estimator::new(&channel).ok()?.sd(request.owners, request.yes.low as f64).ok()?;
        (sd < 1.1 * planned).then_some((sd, text, channel))
    };
    let mut points: Vec<(f64, String, Channel)> = texts.filter_map(point).collect();
    points.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let owners = honest_owners(request.minimum_batch, &request.honest).unwrap();
    // Whoever never speaks is exact where nobody holds yes: such channels estimate nothing.
    let speaks = |channel: &Channel| {
        let delta = request.release.unwrap().1.value();
        channel.cells().iter().all(|cell| {
            let [yes, no] = [cell.yes(), cell.no()].map(|probability| probability.numerator() as f64 / 2f64.powi(64));
            (yes > 0.0) == (no > 0.0) && (yes.max(no) > 100.0 * delta || yes == no)
        })
    };
    let candidates = points.into_iter().filter(|(.., channel)| speaks(channel)).take(count * 8);
    let mut kept = candidates.filter(|(_, _, channel)| keeps(request, channel, owners));
    kept.next().map(|(sd, text, _)| (sd, text))
}

/// Both two-number families in steps.
fn grid(request: &Request) -> impl Iterator<Item = String> {
    let most = request.participation.unwrap_or(1.0);
    let cliff = (-request.release.unwrap().0.value()).exp();
    let parts = (1..=10).map(|step| f64::from(step) / 10.0 * most).collect::<Vec<f64>>();
    let near = [1.0, 1.01, 1.05, 1.2].map(|times| (1.0 - cliff * times).clamp(0.01, most));
    let least = 0.05 / request.owners as f64;
    parts.into_iter().chain(near).flat_map(move |part| {
        let flips = (0..30).map(move |step| least * 1.4f64.powi(step)).take_while(move |flip| *flip < 0.5 * part);
        flips.flat_map(move |flip| {
            [format!("normal-form(f={part},r={flip})"), format!("noisy-sampling(sy={part},sn={flip})")]
        })
    })
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
        && accountant.epsilon(delta).value().is_some_and(|found| found.upper() <= epsilon.value())
}

fn broken_constraint(request: &Request, choice: &Choice) -> Option<&'static str> {
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
