//! Estimates that could be counts of owners.

use super::{OptionEstimate, OptionEstimator};
use crate::error::Result;
use crate::estimate::many;

impl OptionEstimator {
    /// Fills in the consistent estimates.
    pub(super) fn make_consistent(&self, owners: u64, options: &mut [OptionEstimate]) -> Result<()> {
        let estimates: Vec<f64> = options.iter().map(|option| option.estimate).collect();
        for (option, consistent) in options.iter_mut().zip(self.consistent(owners, &estimates)?) {
            option.consistent = consistent;
        }
        Ok(())
    }

    /// For a choice, the nearest numbers that are not negative and sum to the owners; otherwise, each estimate by itself within 0 and
    /// the owners.
    ///
    /// The nearest in Euclidean distance, not in variances as for separate queries: the variances of the options differ little, and those
    /// that are estimated would favour options that happen to be small.
    pub(super) fn consistent(&self, owners: u64, estimates: &[f64]) -> Result<Vec<f64>> {
        if !self.asked.is_choice() {
            return Ok(estimates.iter().map(|estimate| estimate.clamp(0.0, owners as f64)).collect());
        }
        let equally_sure: Vec<(f64, f64)> = estimates.iter().map(|&estimate| (estimate, 1.0)).collect();
        let projected = many::consistent(&equally_sure, owners)?;
        Ok(projected.into_iter().map(|option| option.estimate.min(owners as f64)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn estimator(text: &str) -> OptionEstimator {
        OptionEstimator::new(&text.parse().unwrap()).unwrap()
    }

    proptest! {
        /// Whatever else is not negative and has the sum is farther away.
        #[test]
        fn the_projection_is_the_nearest(estimates in prop::collection::vec(-40.0f64..200.0, 3), other in prop::collection::vec(0.0f64..1.0, 3)) {
            let (owners, estimator) = (100, estimator("choice(k=3,r=0.01)"));
            let projected = estimator.consistent(owners, &estimates).unwrap();
            prop_assert!(projected.iter().all(|&value| value >= 0.0));
            prop_assert!((projected.iter().sum::<f64>() - 100.0).abs() < 1e-9);
            let total: f64 = other.iter().sum::<f64>().max(1e-9);
            let distance = |point: &[f64]| point.iter().zip(&estimates).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let rival: Vec<f64> = other.iter().map(|part| 100.0 * part / total).collect();
            prop_assert!(distance(&projected) <= distance(&rival) + 1e-6);
            // It is idempotent, and keeps the order.
            let again = estimator.consistent(owners, &projected).unwrap();
            prop_assert!(again.iter().zip(&projected).all(|(a, b)| (a - b).abs() < 1e-9));
            for i in 0..3 {
                for j in 0..3 {
                    prop_assert!(estimates[i] < estimates[j] || projected[i] >= projected[j] - 1e-9);
                }
            }
        }
    }

    #[test]
    fn counts_without_a_known_sum_are_clipped() {
        let clipped = estimator("contributions(counts=3,most=2,r=0.01)").consistent(10, &[-2.0, 4.5, 11.0]).unwrap();
        assert_eq!(clipped, [0.0, 4.5, 10.0]);
    }
}
