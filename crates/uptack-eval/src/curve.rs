//! The error at the median station against ε of the release.

use uptack::simulate::Progress;

use crate::compare::{NORMAL_FORM, curators, local, noise_alone, planned_with_noise};
use crate::error::Result;
use crate::measure::{StationResult, measure};
use crate::method::{Changes, Method};
use crate::parallel::in_parallel;
use crate::planned::{Crowd, Plans, Wanted};
use crate::settings::Settings;
use crate::traffic::Traffic;

/// A point of the curve of error against ε.
#[derive(Clone, Debug)]
pub struct CurvePoint {
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

/// The bound on what the plan with noise gives away if nobody is honest.
const LINKED: f64 = 12.0;

/// Trials per point. The standard error of an error is 0.7 %, and larger for the long tails of Laplace noise.
const TRIALS: u64 = 10_000;

/// The whole curve for the first population; if stopped, without the values of ε that were not begun.
pub(crate) fn error_against_epsilon(
    traffic: &Traffic,
    settings: &Settings,
    plans: &Plans,
    progress: &Progress,
) -> Result<Vec<CurvePoint>> {
    let crowd = Crowd::at_median(traffic, settings.factors[0]);
    let stations = traffic.stations.len() as u64;
    let points = in_parallel(settings.threads, &EPSILONS, |index, &epsilon| {
        if progress.stopped() {
            return Ok(Vec::new());
        }
        let wanted = Wanted { epsilon, delta: settings.levels.release.delta };
        let first_stream = 1_000_000 + 100 * index as u64;
        points(methods(crowd, wanted, stations, plans)?, crowd, wanted, (settings.seed, first_stream))
    })?;
    Ok(points.into_iter().flatten().collect())
}

fn methods(crowd: Crowd, wanted: Wanted, stations: u64, plans: &Plans) -> Result<Vec<Method>> {
    let mut methods = vec![Method::family(NORMAL_FORM, plans.normal_form(crowd, wanted)?)];
    methods.extend(local(wanted.epsilon, stations)?);
    methods.push(noise_alone(wanted.epsilon)?);
    let planned = plans.with_noise(crowd, wanted.epsilon, LINKED)?;
    methods.push(Method::family(planned_with_noise(LINKED), planned));
    methods.extend(curators(wanted, Changes::One)?);
    Ok(methods)
}

/// One point for each method, each with coins of its own.
fn points(
    methods: Vec<Method>,
    crowd: Crowd,
    wanted: Wanted,
    (seed, first_stream): (u64, u64),
) -> Result<Vec<CurvePoint>> {
    (first_stream..).zip(methods).map(|(stream, method)| point(method, crowd, wanted, (seed, stream))).collect()
}

fn point(method: Method, crowd: Crowd, wanted: Wanted, coins: (u64, u64)) -> Result<CurvePoint> {
    let measured = measure(&method, &[crowd.yes], crowd.owners, TRIALS, coins, &Progress::default())?;
    let StationResult { predicted, rmse, .. } = measured.stations[0];
    Ok(CurvePoint { label: method.label, epsilon: wanted.epsilon, predicted, measured: rmse })
}
