//! Whole runs keep what theory promises. Seeds are fixed, so that the tests are not random; their sizes say what they
//! can see.

use uptack::estimate::{Confidence, IntervalKind};
use uptack::simulate::{CrowdSampling, Simulated, Simulation};

use crate::family::{FAMILY, channel};

fn simulate(text: &str, owners: u64, yes: u64, trials: u64, crowd: CrowdSampling) -> Simulated {
    let confidence = Confidence::new(0.95).unwrap();
    let interval = IntervalKind::Auto;
    Simulation { owners, yes, trials, seed: 1, confidence, interval, crowd }.run(&channel(text)).unwrap()
}

/// 20 000 trials see a bias of 4/√20000 = 3 % of a standard deviation.
#[test]
fn unbiased_with_the_predicted_error_and_the_stated_coverage() {
    for text in FAMILY {
        let result = simulate(text, 50_000, 500, 20_000, CrowdSampling::Aggregated);
        let sd = result.predicted_sd;
        assert!(result.bias.abs() < 4.0 * sd / (20_000.0f64).sqrt(), "{text}: {result:?}");
        assert!((result.rmse / sd - 1.0).abs() < 0.03, "{text}: {result:?}");
        assert!((0.94..=0.98).contains(&result.coverage), "{text}: {result:?}");
    }
}

#[test]
fn intervals_cover_also_when_hardly_anybody_holds_yes() {
    for text in FAMILY {
        for yes in [0, 5] {
            let result = simulate(text, 50_000, yes, 20_000, CrowdSampling::Aggregated);
            assert!(result.coverage >= 0.94, "{text} {yes}: {result:?}");
        }
    }
}

/// A pseudo-inverse at the singular covariance would throw the informative cell away: bias −186 here.
#[test]
fn cancelling_is_unbiased_at_five() {
    let result = simulate("cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)", 50_000, 5, 20_000, CrowdSampling::Aggregated);
    assert!(result.bias.abs() < 4.0 * result.predicted_sd / (20_000.0f64).sqrt(), "{result:?}");
}

/// α = 1e-4 for the difference of the means and of the mean squared errors of each mechanism; with 1500 trials each a
/// difference of 0.14 standard deviations, or of 20 % in the variance, is seen.
#[test]
fn owner_by_owner_agrees_with_draws_at_once() {
    let trials = 1500;
    for text in FAMILY {
        let at_once = simulate(text, 3000, 300, trials, CrowdSampling::Aggregated);
        let one_by_one = simulate(text, 3000, 300, trials, CrowdSampling::PerOwner);
        let z = (at_once.mean - one_by_one.mean) / (at_once.predicted_sd * (2.0 / trials as f64).sqrt());
        assert!(z.abs() < 3.9, "{text}: z = {z}");
        let ratio = (at_once.rmse / one_by_one.rmse).powi(2);
        assert!((ratio.ln() / (4.0 / trials as f64).sqrt()).abs() < 3.9, "{text}: ratio {ratio}");
    }
}
