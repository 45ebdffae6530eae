//! Beyond the rows, at the median station: the error against ε of the release, and one day of five-minute windows.

use uptack::Progress;
use uptack::estimate::Estimator;
use uptack::privacy::{Accountant, Delta, ReleaseProfile, Repeated, Target, Views, release};
use uptack::simulate::draw_counts;
use uptack::{Channel, Mechanism, SeededCoins};

use crate::compare::{NORMAL_FORM, curators, local, noise_alone, planned_with_noise, randomized_response};
use crate::error::Result;
use crate::measure::{StationResult, measure};
use crate::method::{ChangedCounts, Method};
use crate::planned::{Crowd, Plans, ReleaseTarget};
use crate::series::{self, DailySeries, WINDOWS};
use crate::settings::EvaluationSettings;
use crate::traffic::Traffic;

/// A point of the curve of error against ε.
#[derive(Clone, Debug)]
pub struct EpsilonPoint {
    /// The name of the method.
    pub label: String,
    /// The ε of the release.
    pub epsilon: f64,
    /// The error that theory predicts at the median station.
    pub predicted: f64,
    /// The error measured there.
    pub measured: f64,
}

const EPSILONS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// The bound on the linked ε of the plan with noise.
const LINKED: f64 = 12.0;

/// Trials per point. The standard error of an error is 0.7 %, and larger for the long tails of Laplace noise.
const TRIALS: u64 = 10_000;

/// The whole curve for the first population; if stopped, without the values of ε that were not begun.
pub(crate) fn error_against_epsilon(
    traffic: &Traffic,
    settings: &EvaluationSettings,
    plans: &Plans,
    progress: &Progress,
) -> Result<Vec<EpsilonPoint>> {
    let crowd = Crowd::at_median(traffic, settings.factors[0]);
    let places = traffic.places(settings.factors[0]);
    let points = settings.in_parallel(&EPSILONS, |index, &epsilon| {
        if progress.stopped() {
            return Ok(Vec::new());
        }
        let wanted = ReleaseTarget { epsilon, delta: settings.levels.release.delta };
        let first_stream = 1_000_000 + 100 * index as u64;
        points(methods(crowd, wanted, places, plans)?, crowd, wanted, (settings.seed, first_stream))
    })?;
    Ok(points.into_iter().flatten().collect())
}

fn methods(crowd: Crowd, wanted: ReleaseTarget, places: u64, plans: &Plans) -> Result<Vec<Method>> {
    let mut methods = vec![Method::family(NORMAL_FORM, plans.normal_form(crowd, wanted)?)];
    methods.extend(local(wanted.epsilon, places)?);
    methods.push(noise_alone(wanted.epsilon)?);
    let planned = plans.with_noise(crowd, wanted.epsilon, LINKED)?;
    methods.push(Method::family(planned_with_noise(LINKED), planned));
    methods.extend(curators(wanted, ChangedCounts::One)?);
    Ok(methods)
}

/// One point for each method, each with coins of its own.
fn points(
    methods: Vec<Method>,
    crowd: Crowd,
    wanted: ReleaseTarget,
    (seed, first_stream): (u64, u64),
) -> Result<Vec<EpsilonPoint>> {
    (first_stream..).zip(methods).map(|(stream, method)| point(method, crowd, wanted, (seed, stream))).collect()
}

fn point(method: Method, crowd: Crowd, wanted: ReleaseTarget, coins: (u64, u64)) -> Result<EpsilonPoint> {
    let measured = measure(&method, &[crowd.yes], crowd.owners, TRIALS, coins, &Progress::default())?;
    let StationResult { predicted, rmse, .. } = measured.stations[0];
    Ok(EpsilonPoint { label: method.label, epsilon: wanted.epsilon, predicted, measured: rmse })
}

/// What the releases of several windows give away together.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    /// The name of the method.
    pub label: String,
    /// The mechanism of every window.
    pub mechanism: String,
    /// The number of windows that are answered, each with fresh coins.
    pub windows: u64,
    /// The ε of all releases together at the δ of the evaluation, as a lower bound and as claimed; none if δ is below the
    /// floor.
    pub release: Option<(f64, f64)>,
    /// The ε of all of the owner's reports together.
    pub linked: Option<f64>,
    /// The error of one window at the median station, by theory.
    pub error: f64,
}

/// The error of the day's mean at a station whose count does not change, with fresh and with memoized coins.
#[derive(Clone, Debug, PartialEq)]
pub struct Memoized {
    /// The name of the method.
    pub label: String,
    /// The mechanism.
    pub mechanism: String,
    /// The error of one window.
    pub window: f64,
    /// The error of the mean of the day with fresh coins in every window.
    pub fresh: f64,
    /// The same if every owner tosses once and repeats its answer.
    pub memoized: f64,
    /// The local ε of the day's reports of an owner with fresh coins.
    pub fresh_linked: Option<f64>,
    /// The same with memoized coins, for an owner whose truth does not change.
    pub memoized_linked: Option<f64>,
}

/// All results about a day.
#[derive(Clone, Debug, PartialEq)]
pub struct Longitudinal {
    /// The δ at which the composed ε are stated.
    pub delta: f64,
    /// The composed guarantees.
    pub composed: Vec<Composed>,
    /// What memoized coins change.
    pub memoized: Vec<Memoized>,
    /// One series for the whole day, at the ε of the evaluation.
    pub series: Vec<DailySeries>,
}

/// The number of days that are simulated.
const DAYS: u64 = 400;

impl Longitudinal {
    /// For the first population and the median station; none if stopped.
    pub fn of(
        traffic: &Traffic,
        settings: &EvaluationSettings,
        plans: &Plans,
        progress: &Progress,
    ) -> Result<Option<Self>> {
        if progress.stopped() {
            return Ok(None);
        }
        let crowd = Crowd::at_median(traffic, settings.factors[0]);
        let wanted = settings.levels.release;
        let best = plans.normal_form(crowd, wanted)?;
        // In the family of randomized response everybody takes part.
        let always = plans.of_family(crowd, "randomized-response", wanted)?;
        let Some(composed) = compose_all([&best, &always], crowd, wanted, progress)? else { return Ok(None) };
        let response = randomized_response(wanted.epsilon)?;
        let memoized = vec![
            DailyMethod::new(NORMAL_FORM, &best, crowd).memoize(settings.seed)?,
            DailyMethod::new("randomized response", &response, crowd).memoize(settings.seed)?,
        ];
        let series = series::day(crowd, wanted, plans, settings.seed)?;
        Ok(Some(Self { delta: wanted.delta, composed, memoized, series }))
    }
}

/// Two plans for a window over parts of the day, and one for the whole day; none if stopped.
fn compose_all(
    [best, always]: [&Mechanism; 2],
    crowd: Crowd,
    wanted: ReleaseTarget,
    progress: &Progress,
) -> Result<Option<Vec<Composed>>> {
    let mut composed = Vec::new();
    for (label, mechanism) in [(NORMAL_FORM, best), ("planned, everybody takes part", always)] {
        if progress.stopped() {
            return Ok(None);
        }
        composed.extend(DailyMethod::new(label, mechanism, crowd).compose(&[1, 12, 72, WINDOWS], wanted.delta)?);
    }
    let Some(flips) = least_flips_of_a_day(crowd.owners, always, wanted, progress)? else { return Ok(None) };
    let planned = flipped(flips)?;
    let day = DailyMethod::new("planned for the whole day, everybody takes part", &planned, crowd);
    composed.extend(day.compose(&[WINDOWS], wanted.delta)?);
    Ok(Some(composed))
}

/// A method that answers every window.
struct DailyMethod<'a> {
    label: &'a str,
    mechanism: &'a Mechanism,
    crowd: Crowd,
}

impl<'a> DailyMethod<'a> {
    fn new(label: &'a str, mechanism: &'a Mechanism, crowd: Crowd) -> Self {
        Self { label, mechanism, crowd }
    }

    /// The releases of these numbers of windows together, as `uptack privacy --repeat` computes them: by the same function
    /// with the same amount of work.
    fn compose(&self, windows: &[u64], delta: f64) -> Result<Vec<Composed>> {
        let channel = self.mechanism.channel();
        let target = Target::Delta(Delta::new(delta)?);
        let accountant = release(&channel, self.crowd.owners)?;
        let views = release_only(&channel, &accountant, target);
        let profile = ReleaseProfile::new(&accountant);
        let repeated = windows.iter().map(|&windows| Repeated::with_profile(&views, &profile, target, windows));
        repeated.map(|repeated| self.composed(&repeated?)).collect()
    }

    fn composed(&self, repeated: &Repeated) -> Result<Composed> {
        Ok(Composed {
            label: self.label.to_owned(),
            mechanism: self.mechanism.to_string(),
            windows: repeated.times,
            release: repeated.release.map(|value| (value.lower(), value.upper())),
            linked: repeated.linked,
            error: self.error()?,
        })
    }

    fn memoize(&self, seed: u64) -> Result<Memoized> {
        let channel = self.mechanism.channel();
        let errors = simulate_days(&channel, self.crowd, seed)?;
        let linked = uptack::privacy::linked_epsilon(&channel);
        Ok(Memoized {
            label: self.label.to_owned(),
            mechanism: self.mechanism.to_string(),
            window: self.error()?,
            fresh: errors.fresh,
            memoized: errors.memoized,
            fresh_linked: linked.map(|epsilon| epsilon * WINDOWS as f64),
            memoized_linked: linked,
        })
    }

    /// The error of one window, by theory.
    fn error(&self) -> Result<f64> {
        let estimator = Estimator::new(&self.mechanism.channel())?;
        Ok(estimator.sd(self.crowd.owners, self.crowd.yes as f64)?)
    }
}

/// The views that a composition needs, without the joint ones, which would only cost time.
fn release_only(channel: &Channel, accountant: &Accountant, target: Target) -> Views {
    Views {
        answers: Vec::new(),
        linked: uptack::privacy::linked_epsilon(channel),
        one_aggregator: uptack::privacy::one_aggregator(channel),
        release: accountant.guarantee(target),
        owners_alone: None,
        answers_with_release: Vec::new(),
    }
}

/// The least share of flipped answers with which the releases of a whole day, in which everybody takes part, keep the
/// guarantee that `window` keeps in one window; none if stopped.
///
/// By bisection here: a request to the planner bounds one release, not a composition of many.
fn least_flips_of_a_day(
    owners: u64,
    window: &Mechanism,
    wanted: ReleaseTarget,
    progress: &Progress,
) -> Result<Option<f64>> {
    let (mut low, mut high) = (window.channel().cells()[1].yes().to_f64(), MOST_FLIPS);
    while high / low > 1.02 {
        if progress.stopped() {
            return Ok(None);
        }
        let middle = (low * high).sqrt();
        if day_keeps(&flipped(middle)?, owners, wanted)? { high = middle } else { low = middle }
    }
    Ok(Some(high))
}

/// Everybody takes part, and this share of the answers is flipped.
fn flipped(flip: f64) -> Result<Mechanism> {
    Ok(format!("normal-form(f=1,r={flip:.6})").parse()?)
}

/// Whether the releases of all windows of a day together keep the guarantee.
fn day_keeps(mechanism: &Mechanism, owners: u64, wanted: ReleaseTarget) -> Result<bool> {
    let accountant = release(&mechanism.channel(), owners)?;
    let upper = ReleaseProfile::new(&accountant).epsilon_upper(WINDOWS, Delta::new(wanted.delta)?)?;
    Ok(upper.is_some_and(|upper| upper <= wanted.epsilon))
}

/// The most flips that are tried; answers flipped half of the time say nothing.
const MOST_FLIPS: f64 = 0.49;

/// The root mean squared errors of a day's mean, by its coins.
struct DayErrors {
    fresh: f64,
    memoized: f64,
}

fn simulate_days(channel: &Channel, crowd: Crowd, seed: u64) -> Result<DayErrors> {
    let estimator = Estimator::new(channel)?;
    let (mut fresh, mut memoized) = (0.0, 0.0);
    for day in 0..DAYS {
        let coins = SeededCoins::stream(seed, (2_000_000 << 32) + day);
        let errors = errors_of_day(channel, &estimator, crowd, coins)?;
        // With memoized coins every window shows the same tallies, so that the first one is the day.
        memoized += errors[0] * errors[0];
        fresh += (errors.iter().sum::<f64>() / WINDOWS as f64).powi(2);
    }
    let root_mean = |squares: f64| (squares / DAYS as f64).sqrt();
    Ok(DayErrors { fresh: root_mean(fresh), memoized: root_mean(memoized) })
}

/// The error of each window of one day, with fresh coins in every window.
fn errors_of_day(
    channel: &Channel,
    estimator: &Estimator,
    Crowd { owners, yes }: Crowd,
    mut coins: SeededCoins,
) -> Result<Vec<f64>> {
    let mut error = || {
        let cells = draw_counts(channel, owners, yes, &mut coins)?;
        Ok(estimator.estimate_observed(&estimator.observe_cells(&cells)).estimate - yes as f64)
    };
    (0..WINDOWS).map(|_| error()).collect()
}

#[cfg(test)]
mod tests {
    use uptack::card::{Card, CardSeries};
    use uptack::contribution::AnyMechanism;
    use uptack::plan::{Prior, Request, plan};
    use uptack::privacy::composition::{Composition, FixedInAdvance};
    use uptack::privacy::{Epsilon, WorkLimit, release_loss};

    use super::*;

    const TIMES: u64 = 12;

    /// The card of a planned query that is asked twelve times.
    fn series() -> Card {
        let mut request = Request::new(2000, Prior::at(20));
        request.release = Some((Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap()));
        let mut card = Card::new(&request, &plan(&request).unwrap());
        let series = format!(r#"{{"times":"{TIMES}","number":"1","starts":"2026-11-15T08:00:00Z","every":"600"}}"#);
        card.series = Some(serde_json::from_str::<CardSeries>(&series).unwrap());
        card.state_claims(Delta::new(1e-6).unwrap(), WorkLimit::default()).unwrap();
        card
    }

    /// The report, the command, a card's claims for a series and what a budget is charged with are one composition.
    #[test]
    fn windows_compose_as_the_command_a_card_and_a_ledger_do() {
        let card = series();
        let AnyMechanism::YesNo(mechanism) = &card.mechanism else { panic!("{}", card.mechanism) };
        let (channel, owners) = (mechanism.channel(), card.claim_owners().unwrap());
        let target = Target::Delta(Delta::new(1e-6).unwrap());
        let window = DailyMethod::new("", mechanism, Crowd { owners, yes: 20 });
        let report = window.compose(&[1, TIMES], 1e-6).unwrap();
        let (lower, upper) = report[1].release.unwrap();
        assert!(lower <= upper && lower > 0.95 * upper, "{lower} and {upper}");

        let views = Views::of(&channel, owners, target, WorkLimit::default()).unwrap();
        let accountant = release(&channel, owners).unwrap();
        let command = Repeated::of(&views, &accountant, target, TIMES).unwrap();
        assert_eq!(command.release.map(|value| (value.lower(), value.upper())), Some((lower, upper)));
        assert_eq!(command.linked, report[1].linked);
        assert_eq!(report[0].release, views.release.value().map(|value| (value.lower(), value.upper())));

        assert_eq!(card.claims.whole.as_ref().unwrap().queries, TIMES);
        assert_eq!(card.claims.whole_release(), Some(upper));
        assert_eq!(card.claims.whole_linked(), command.linked);

        let loss = release_loss(&accountant, TIMES, 1e-6).unwrap();
        let charged = Composition::new(FixedInAdvance::repeated(loss, TIMES).unwrap());
        assert_eq!(charged.epsilon(1e-6).unwrap().map(|bounds| bounds.upper()), Some(upper));
    }
}
