//! Options that are numbers: their mean and their quantiles.

use uptack::Error;
use uptack::contribution::{Bins, Contributions};
use uptack::estimate::options::OptionEstimator;

use crate::options::{EstimatedOptions, OptionTally};

/// What the options mean as numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionScale {
    /// Nothing: they have names, and the order in which they are given.
    None,
    /// One value for each option; none for an option without one.
    Values(Vec<Option<f64>>),
    /// Ranges of a number.
    Bins(Bins),
}

impl OptionScale {
    /// The options in the order of their values; those without a value are left out.
    pub fn ordered(&self, options: usize) -> Vec<usize> {
        match self {
            Self::None => (0..options).collect(),
            Self::Bins(bins) => bins.ordered(),
            Self::Values(values) => {
                let mut ordered: Vec<(f64, usize)> = values
                    .iter()
                    .zip(0..options)
                    .filter_map(|(value, option)| value.map(|value| (value, option)))
                    .collect();
                ordered.sort_by(|one, other| one.0.total_cmp(&other.0));
                ordered.into_iter().map(|(_, option)| option).collect()
            }
        }
    }
}

impl EstimatedOptions {
    /// The same with the mean of the options' values, if they have any, at the confidence of the estimates. Values and bins of
    /// another number of options than the mechanism has are refused.
    pub fn with_mean(mut self, asked: &Contributions, tally: &OptionTally, scale: &OptionScale) -> Result<Self, Error> {
        let (estimator, published) = (OptionEstimator::new(asked)?, tally.published(asked)?);
        let confidence = self.estimates.confidence;
        self.mean = match scale {
            OptionScale::Bins(bins) => Some(estimator.mean_of_bins(&published, bins, None, confidence)?),
            OptionScale::Values(values) => Some(estimator.mean_among(&published, values, confidence)?),
            OptionScale::None => None,
        };
        Ok(self)
    }

    /// The same with the options at which these shares of the owners are reached, in the order of their values.
    pub fn with_quantiles(
        mut self,
        asked: &Contributions,
        tally: &OptionTally,
        scale: &OptionScale,
        shares: &[f64],
    ) -> Result<Self, Error> {
        let (estimator, published) = (OptionEstimator::new(asked)?, tally.published(asked)?);
        let ordered = scale.ordered(asked.options());
        self.quantiles = estimator.quantiles_among(&published, &ordered, shares, self.estimates.confidence)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use uptack::contribution::OptionNames;
    use uptack::estimate::{Confidence, IntervalKind};

    use super::*;

    fn estimated(scale: &OptionScale, quantiles: &[f64]) -> Result<EstimatedOptions, Error> {
        let asked: Contributions = "choice(k=4,r=0.01)".parse()?;
        let tally = OptionTally::from_json(r#"{"owners":1000,"counts":[400,300,200,100]}"#).unwrap();
        let confidence = Confidence::new(0.95)?;
        EstimatedOptions::of(&asked, OptionNames::numbered(4), &tally, confidence, IntervalKind::Auto)?
            .with_mean(&asked, &tally, scale)?
            .with_quantiles(&asked, &tally, scale, quantiles)
    }

    #[test]
    fn quantiles_follow_the_order_of_the_values() {
        let falling = OptionScale::Values(vec![Some(4.0), Some(3.0), None, Some(1.0)]);
        assert_eq!(falling.ordered(4), [3, 1, 0]);
        let found = estimated(&falling, &[0.5]).unwrap();
        assert!(found.mean.is_some_and(|mean| (mean.estimate - 3.25).abs() < 0.1), "{:?}", found.mean);
        assert_eq!(found.quantiles[0].option, 0);
        let unscaled = estimated(&OptionScale::None, &[0.5]).unwrap();
        assert!(unscaled.mean.is_none() && unscaled.quantiles[0].option == 1);
    }

    #[test]
    fn another_number_of_values_or_bins_is_refused() {
        let bins = OptionScale::Bins(Bins::new(vec![0.0, 1.0, 2.0]).unwrap());
        for scale in [OptionScale::Values(vec![None]), OptionScale::Values(vec![Some(1.0); 5]), bins] {
            assert!(estimated(&scale, &[0.5]).is_err(), "{scale:?}");
        }
        let two = OptionScale::Bins(Bins::new(vec![0.0, 1.0]).unwrap());
        assert!(estimated(&two, &[0.5]).unwrap().mean.is_some());
    }
}
