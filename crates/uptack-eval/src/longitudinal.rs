//! One day of five-minute windows: what an owner who answers all of them gives away, and what memoized coins change.

use uptack::estimate::Estimator;
use uptack::privacy::{Accountant, Delta, ReleaseProfile, Repeated, Target, Views, release};
use uptack::simulate::{Progress, draw_counts};
use uptack::{Channel, Mechanism, SeededCoins};

use crate::compare::{NORMAL_FORM, randomized_response};
use crate::error::Error;
use crate::planned::{Crowd, Plans, Wanted};
use crate::settings::Settings;
use crate::traffic::Traffic;

/// Five-minute windows of a day.
pub const WINDOWS: u64 = 288;

/// What the releases of several windows give away together.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    /// What people call the method.
    pub label: String,
    /// The mechanism of every window.
    pub mechanism: String,
    /// How many windows are answered, with fresh coins each.
    pub windows: u64,
    /// The ε of all releases together at the δ of the evaluation, from below and as claimed; none below the floor.
    pub release: Option<(f64, f64)>,
    /// The ε of all of the owner's reports together.
    pub linked: Option<f64>,
    /// The error of one window at the median station, by theory.
    pub error: f64,
}

/// The error of the day's mean at a station whose count does not change, with fresh and with memoized coins.
#[derive(Clone, Debug, PartialEq)]
pub struct Memoized {
    /// What people call the method.
    pub label: String,
    /// The mechanism.
    pub mechanism: String,
    /// The error of one window.
    pub window: f64,
    /// The error of the mean of the day with fresh coins in every window.
    pub fresh: f64,
    /// The same where every owner tosses once and repeats itself.
    pub memoized: f64,
    /// The local ε of the day's reports of an owner with fresh coins.
    pub fresh_linked: Option<f64>,
    /// The same with memoized coins, for an owner whose truth does not change.
    pub memoized_linked: Option<f64>,
}

/// All of the longitudinal part.
#[derive(Clone, Debug, PartialEq)]
pub struct Longitudinal {
    /// The δ at which the composed ε are stated.
    pub delta: f64,
    /// The composed guarantees.
    pub composed: Vec<Composed>,
    /// What memoized coins change.
    pub memoized: Vec<Memoized>,
}

/// Days that are simulated.
const DAYS: u64 = 400;

impl Longitudinal {
    /// For the population as it is and the median station; none if stopped.
    pub fn of(
        traffic: &Traffic,
        settings: &Settings,
        plans: &Plans,
        progress: &Progress,
    ) -> Result<Option<Self>, Error> {
        if progress.stopped() {
            return Ok(None);
        }
        let crowd = Crowd { owners: traffic.total() * settings.factors[0], yes: traffic.median() };
        let wanted = settings.levels.release;
        let best = plans.normal_form(crowd, wanted)?;
        // In the family of randomized response everybody takes part.
        let always = plans.of_family(crowd, "randomized-response", wanted)?;
        let mut composed = Vec::new();
        for (label, mechanism) in [(NORMAL_FORM, &best), ("planned, everybody takes part", &always)] {
            if progress.stopped() {
                return Ok(None);
            }
            composed.extend(compose(label, mechanism, crowd, &[1, 12, 72, WINDOWS], wanted.delta)?);
        }
        let Some(day) = planned_for_the_day(crowd, &always, wanted, progress)? else { return Ok(None) };
        composed.push(day);
        let response = randomized_response(wanted.epsilon)?;
        let memoized = vec![
            memoize(NORMAL_FORM, &best, crowd, settings.seed)?,
            memoize("randomized response", &response, crowd, settings.seed)?,
        ];
        Ok(Some(Self { delta: wanted.delta, composed, memoized }))
    }
}

/// The releases of so many windows together, as `uptack privacy --repeat` has them: by the same function with the same work.
fn compose(
    label: &str,
    mechanism: &Mechanism,
    Crowd { owners, yes }: Crowd,
    windows: &[u64],
    delta: f64,
) -> Result<Vec<Composed>, Error> {
    let channel = mechanism.channel();
    let target = Target::Delta(Delta::new(delta)?);
    let accountant = release(&channel, owners)?;
    let views = release_only(&channel, &accountant, target);
    let profile = ReleaseProfile::new(&accountant);
    let error = Estimator::new(&channel)?.sd(owners, yes as f64)?;
    let composed = |&windows: &u64| -> Result<Composed, Error> {
        let repeated = Repeated::with_profile(&views, &profile, target, windows)?;
        Ok(Composed {
            label: label.to_owned(),
            mechanism: mechanism.to_string(),
            windows,
            release: repeated.release.map(|value| (value.lower(), value.upper())),
            linked: repeated.linked,
            error,
        })
    };
    windows.iter().map(composed).collect()
}

/// The views that a composition needs; the joint ones would only cost time.
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

/// Everybody takes part with so many flips that the whole day keeps what the others keep in a window.
///
/// By bisection here: a request to the planner bounds one release, not a composition of many.
fn planned_for_the_day(
    crowd: Crowd,
    window: &Mechanism,
    wanted: Wanted,
    progress: &Progress,
) -> Result<Option<Composed>, Error> {
    let (mut low, mut high) = (window.channel().cells()[1].yes().to_f64(), MOST_FLIPS);
    while high / low > 1.02 {
        if progress.stopped() {
            return Ok(None);
        }
        let half = (low * high).sqrt();
        if day_keeps(&flipped(half)?, crowd.owners, wanted)? { high = half } else { low = half }
    }
    let label = "planned for the whole day, everybody takes part";
    let composed = compose(label, &flipped(high)?, crowd, &[WINDOWS], wanted.delta)?;
    composed.into_iter().next().map(Some).ok_or_else(|| Error::new("no window was composed"))
}

/// Everybody takes part, and this share of the answers is flipped.
fn flipped(flip: f64) -> Result<Mechanism, Error> {
    Ok(format!("normal-form(f=1,r={flip:.6})").parse()?)
}

/// Whether the releases of all windows of a day together keep a guarantee.
fn day_keeps(mechanism: &Mechanism, owners: u64, wanted: Wanted) -> Result<bool, Error> {
    let accountant = release(&mechanism.channel(), owners)?;
    let upper = ReleaseProfile::new(&accountant).epsilon_upper(WINDOWS, Delta::new(wanted.delta)?)?;
    Ok(upper.is_some_and(|upper| upper <= wanted.epsilon))
}

/// Nearer to a half nothing is told any more.
const MOST_FLIPS: f64 = 0.49;

fn memoize(label: &str, mechanism: &Mechanism, crowd: Crowd, seed: u64) -> Result<Memoized, Error> {
    let channel = mechanism.channel();
    let estimator = Estimator::new(&channel)?;
    let (mut fresh, mut once) = (0.0, 0.0);
    for day in 0..DAYS {
        let errors = errors_of_day(&channel, &estimator, crowd, SeededCoins::stream(seed, (2_000_000 << 32) + day))?;
        // With memoized coins every window shows the same tallies, so that the first one is the day.
        once += errors[0] * errors[0];
        fresh += (errors.iter().sum::<f64>() / WINDOWS as f64).powi(2);
    }
    let linked = uptack::privacy::linked_epsilon(&channel);
    Ok(Memoized {
        label: label.to_owned(),
        mechanism: mechanism.to_string(),
        window: estimator.sd(crowd.owners, crowd.yes as f64)?,
        fresh: (fresh / DAYS as f64).sqrt(),
        memoized: (once / DAYS as f64).sqrt(),
        fresh_linked: linked.map(|epsilon| epsilon * WINDOWS as f64),
        memoized_linked: linked,
    })
}

/// The error of each window of one day, with fresh coins in every window.
fn errors_of_day(
    channel: &Channel,
    estimator: &Estimator,
    Crowd { owners, yes }: Crowd,
    mut coins: SeededCoins,
) -> Result<Vec<f64>, Error> {
    let mut error = || {
        let cells = draw_counts(channel, owners, yes, &mut coins)?;
        Ok(estimator.estimate_observed(&estimator.observe_cells(&cells)).estimate - yes as f64)
    };
    (0..WINDOWS).map(|_| error()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::card::{Card, CardSeries};
    use uptack::plan::{Prior, Request, plan};
    use uptack::privacy::composition::{Composition, FixedInAdvance};
    use uptack::privacy::{Epsilon, WorkLimit, release_loss};

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
        let (channel, owners) = (card.mechanism.channel(), card.claim_owners().unwrap());
        let target = Target::Delta(Delta::new(1e-6).unwrap());
        let report = compose("", &card.mechanism, Crowd { owners, yes: 20 }, &[1, TIMES], 1e-6).unwrap();
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
