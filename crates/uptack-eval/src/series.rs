//! One day of five-minute windows in which every owner contributes to at most k of them, by everything that is published.

use uptack::Progress;
use uptack::estimate::Estimator;
use uptack::privacy::contributions::linked_epsilon;

use crate::compare::told_with_noise;
use crate::error::Result;
use crate::measure::measure;
use crate::method::{Method, least_sigma_of_moved};
use crate::planned::{Crowd, NoisyTarget, Plans, ReleaseTarget};

/// Five-minute windows of a day.
pub const WINDOWS: u64 = 288;

/// A way to publish a count for every window of a day, at one ε for all of them together.
#[derive(Clone, Debug, PartialEq)]
pub struct DailySeries {
    /// The name of the method.
    pub label: String,
    /// The mechanism of the whole day or, of independent questions, of one window; none for noise that is only compared.
    pub mechanism: Option<String>,
    /// To how many windows an owner contributes at most.
    pub most: u64,
    /// The ε of all that an owner writes in a day; none if there is no guarantee.
    pub linked: Option<f64>,
    /// The δ of the day.
    pub delta: f64,
    /// The error of one window, by theory.
    pub predicted: f64,
    /// The same as measured; none for what is compared by theory alone.
    pub measured: Option<f64>,
}

/// How many windows an owner contributes to at most.
const MOST: [u32; 3] = [1, 2, 5];
/// The bounds on the ε of all that an owner writes.
const LINKED: [Option<f64>; 3] = [Some(8.0), Some(12.0), None];
/// As many as for the other results at the median station.
const TRIALS: u64 = 10_000;
/// The streams of coins of this part of the evaluation.
const FIRST_STREAM: u64 = 3_000_000;

/// The label of contributions.
pub const CONTRIBUTIONS: &str = "contributions with noise";
/// The label of a question of its own in every window.
pub const INDEPENDENT: &str = "independent questions with noise";
/// The label of Gaussian noise.
pub const GAUSSIAN: &str = "Gaussian noise, no channel";

/// All ways, for one crowd whose station has the same count in every window.
pub(crate) fn day(crowd: Crowd, wanted: ReleaseTarget, plans: &Plans, seed: u64) -> Result<Vec<DailySeries>> {
    let mut rows = Vec::new();
    for (most, linked) in MOST.into_iter().flat_map(|most| LINKED.map(|linked| (most, linked))) {
        let stream = FIRST_STREAM + rows.len() as u64;
        rows.push(contributions(crowd, most, NoisyTarget { epsilon: wanted.epsilon, linked }, plans, (seed, stream))?);
    }
    for linked in LINKED {
        rows.push(independent(crowd, NoisyTarget { epsilon: wanted.epsilon, linked }, plans)?);
    }
    rows.extend(MOST.map(|most| gaussian(most, wanted)));
    Ok(rows)
}

fn contributions(
    crowd: Crowd,
    most: u32,
    target: NoisyTarget,
    plans: &Plans,
    coins: (u64, u64),
) -> Result<DailySeries> {
    let planned = plans.contributions(crowd, WINDOWS as u32, most, target)?;
    let (mechanism, linked) = (Some(planned.to_string()), linked_epsilon(&planned));
    let method = Method::contributions(CONTRIBUTIONS, planned);
    let found = measure(&method, &[crowd.yes], crowd.owners, TRIALS, coins, &Progress::default())?.stations[0];
    Ok(DailySeries {
        label: method.label,
        mechanism,
        most: u64::from(most),
        linked,
        delta: 0.0,
        predicted: found.predicted,
        measured: Some(found.rmse),
    })
}

/// A question of its own in every window: an owner may belong to all of them, and each has its share of both ε.
fn independent(crowd: Crowd, target: NoisyTarget, plans: &Plans) -> Result<DailySeries> {
    let share = |epsilon: f64| epsilon / WINDOWS as f64;
    let planned = match target.linked {
        Some(linked) => plans.with_noise(crowd, share(target.epsilon), share(linked))?,
        None => told_with_noise(share(target.epsilon))?,
    };
    let channel = planned.channel();
    let linked = uptack::privacy::linked_epsilon(&channel).map(|epsilon| epsilon * WINDOWS as f64);
    let predicted = Estimator::new(&channel)?.sd(crowd.owners, crowd.yes as f64)?;
    let (label, mechanism) = (INDEPENDENT.to_owned(), Some(planned.to_string()));
    Ok(DailySeries { label, mechanism, most: WINDOWS, linked, delta: 0.0, predicted, measured: None })
}

/// Discrete Gaussian noise of both aggregators on true counts, of which an owner changes two with each contribution.
fn gaussian(most: u32, wanted: ReleaseTarget) -> DailySeries {
    let most = u64::from(most);
    let sigma = least_sigma_of_moved(wanted, 2 * most);
    DailySeries {
        label: GAUSSIAN.to_owned(),
        mechanism: None,
        most,
        linked: None,
        delta: wanted.delta,
        predicted: sigma * std::f64::consts::SQRT_2,
        measured: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CROWD: Crowd = Crowd { owners: 50_186, yes: 100 };

    fn error(rows: &[DailySeries], label: &str, most: u64, linked: Option<f64>) -> f64 {
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 0.01,
            (a, b) => a.is_none() && b.is_none(),
        };
        let found = rows.iter().find(|row| row.label == label && row.most == most && near(row.linked, linked));
        found.unwrap_or_else(|| panic!("{label} {most} {linked:?} in {rows:#?}")).predicted
    }

    /// The errors at ε = 1 that another program computed, each to as many digits as it printed.
    #[test]
    fn a_day_has_the_errors_of_the_reference() {
        let wanted = ReleaseTarget { epsilon: 1.0, delta: 1e-8 };
        let rows = day(CROWD, wanted, &Plans::default(), 1).unwrap();
        for (label, most, linked, expected) in [
            (CONTRIBUTIONS, 1, Some(8.0), 6.70),
            (CONTRIBUTIONS, 1, Some(12.0), 4.02),
            (CONTRIBUTIONS, 1, None, 3.96),
            (CONTRIBUTIONS, 2, Some(8.0), 113.0),
            (CONTRIBUTIONS, 2, Some(12.0), 24.1),
            (CONTRIBUTIONS, 2, None, 7.98),
            (CONTRIBUTIONS, 5, None, 19.99),
            (INDEPENDENT, WINDOWS, Some(8.0), 8085.0),
            (INDEPENDENT, WINDOWS, Some(12.0), 5407.0),
            (INDEPENDENT, WINDOWS, None, 576.0),
            (GAUSSIAN, 1, None, 10.19),
            (GAUSSIAN, 2, None, 14.42),
            (GAUSSIAN, 5, None, 22.81),
        ] {
            let found = error(&rows, label, most, linked);
            assert!((found / expected - 1.0).abs() < 0.004, "{label} {most} {linked:?}: {found}, not {expected}");
        }
    }

    /// 10 000 trials know an error to 0.7 %, and to 1.2 % with the long tails of Laplace noise; α = 1e-3 over nine rows.
    #[test]
    fn measured_errors_of_a_day_are_what_theory_says() {
        let wanted = ReleaseTarget { epsilon: 1.0, delta: 1e-8 };
        for row in day(CROWD, wanted, &Plans::default(), 2).unwrap() {
            let Some(measured) = row.measured else { continue };
            assert!((measured / row.predicted - 1.0).abs() < 0.05, "{row:?}");
        }
    }
}
