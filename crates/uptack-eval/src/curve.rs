//! The error at the median station against ε of the release.

use uptack::simulate::Progress;

use crate::compare::{NORMAL_FORM, curators, local, noise_alone, planned_with_noise};
use crate::error::Error;
use crate::measure::measure;
use crate::method::{Changes, Method};
use crate::parallel::in_parallel;
use crate::planned::{Crowd, Plans, Wanted};
use crate::settings::Settings;
use crate::traffic::Traffic;

/// A point of the curve of error against ε.
#[derive(Clone, Debug)]
pub struct CurvePoint {
    /// What people call the method.
    pub label: String,
    /// The ε of the release.
    pub epsilon: f64,
    /// The error that theory predicts at the median station.
    pub predicted: f64,
    /// The error measured there.
    pub measured: f64,
}

const EPSILONS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// What the plan with noise gives away if nobody is honest.
const LINKED: f64 = 12.0;

/// Trials a point: the error is known to 0.7 % two times out of three, that of Laplace's long tails less exactly.
const TRIALS: u64 = 10_000;

/// The whole curve for the population as it is; what was not begun when stopped is left out.
pub(crate) fn error_against_epsilon(
    traffic: &Traffic,
    settings: &Settings,
    plans: &Plans,
    progress: &Progress,
) -> Result<Vec<CurvePoint>, Error> {
    let crowd = Crowd { owners: traffic.total() * settings.factors[0], yes: traffic.median() };
    let stations = traffic.stations.len() as u64;
    let points = |index: usize| -> Result<Vec<CurvePoint>, Error> {
        if progress.stopped() {
            return Ok(Vec::new());
        }
        let wanted = Wanted { epsilon: EPSILONS[index], delta: settings.levels.release.delta };
        let methods = methods(crowd, wanted, stations, plans)?.into_iter().enumerate();
        let stream = |number: usize| 1_000_000 + 100 * index as u64 + number as u64;
        methods.map(|(number, method)| point(method, crowd, wanted, (settings.seed, stream(number)))).collect()
    };
    Ok(in_parallel(settings.threads, EPSILONS.len(), &points)?.into_iter().flatten().collect())
}

fn methods(crowd: Crowd, wanted: Wanted, stations: u64, plans: &Plans) -> Result<Vec<Method>, Error> {
    let mut methods = vec![Method::family(NORMAL_FORM, plans.normal_form(crowd, wanted)?)];
    methods.extend(local(wanted.epsilon, stations)?);
    methods.push(noise_alone(wanted.epsilon)?);
    let planned = plans.with_noise(crowd, wanted.epsilon, LINKED)?;
    methods.push(Method::family(planned_with_noise(LINKED), planned));
    methods.extend(curators(wanted, Changes::One)?);
    Ok(methods)
}

fn point(method: Method, crowd: Crowd, wanted: Wanted, coins: (u64, u64)) -> Result<CurvePoint, Error> {
    let one = measure(&method, &[crowd.yes], crowd.owners, TRIALS, coins, &Progress::default())?.stations[0];
    Ok(CurvePoint { label: method.label, epsilon: wanted.epsilon, predicted: one.predicted, measured: one.rmse })
}
