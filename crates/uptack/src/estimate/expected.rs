//! The interval that is to be expected before anybody has answered.

use super::combined::{Estimator, check_yes};
use super::interval::{Confidence, IntervalKind};
use super::observation::Observation;
use crate::error::Result;

impl Estimator {
    /// Half the width of the [`interval`](Self::interval) at the tallies, or the sum, that `yes` of `owners` are expected to give:
    /// what to write after "±" before anybody has answered.
    ///
    /// The width is how many whole numbers the interval holds, one more than the distance of its ends: the estimate may lie anywhere
    /// between two of them. Where 0 or all owners cut the interval off, the end that is not cut off counts, and where both ends are,
    /// at least what the normal law allows. So the estimate ± this covers about as often as the interval does.
    ///
    /// ```
    /// use uptack::{Mechanism, estimate::{Confidence, Estimator, IntervalKind}};
    /// let channel = "randomized-response(t=1) + laplace(scale=1)".parse::<Mechanism>()?.channel();
    /// let estimator = Estimator::new(&channel)?;
    /// // The interval is 496 to 504. 1.96 standard deviations are 3.76 and would cover 92 %: the noise is whole.
    /// assert_eq!(estimator.half_width(50_000, 500.0, Confidence::new(0.95)?, IntervalKind::Auto)?, 4.5);
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn half_width(&self, owners: u64, yes: f64, confidence: Confidence, kind: IntervalKind) -> Result<f64> {
        let observation = self.expected(owners, yes)?;
        if self.is_counted() {
            return Ok(0.0);
        }
        let all = owners as f64;
        let estimate = self.solve(&observation).0.clamp(0.0, all);
        let interval = self.interval(&observation, confidence, kind);
        let (below, above) = (estimate - interval.low + 0.5, interval.high - estimate + 0.5);
        Ok(match (interval.low <= 0.0, interval.high >= all) {
            (false, false) => 0.5 * (below + above),
            (true, false) => above,
            (false, true) => below,
            (true, true) => below.max(above).max(confidence.z() * self.sd(owners, yes)?),
        })
    }

    /// The observation that `yes` of `owners` are expected to give: the mean counts of the cells, rounded such that they add up
    /// to the owners; with noise, the sum of those, since the noise has mean 0.
    fn expected(&self, owners: u64, yes: f64) -> Result<Observation> {
        check_yes(owners, yes)?;
        let no = owners as f64 - yes;
        let mean = |cell: &crate::channel::Cell| yes * cell.yes().to_f64() + no * cell.no().to_f64();
        let means: Vec<f64> = self.cells().iter().map(mean).collect();
        Ok(self.observe_cells(&whole_parts(&means, owners)))
    }
}

/// Rounds numbers that add up to `total` such that they still do: down, and those that lose most up again.
fn whole_parts(parts: &[f64], total: u64) -> Vec<u64> {
    let mut whole: Vec<u64> = parts.iter().map(|part| part.floor() as u64).collect();
    let mut by_loss: Vec<usize> = (0..parts.len()).collect();
    by_loss.sort_by(|&a, &b| parts[b].fract().total_cmp(&parts[a].fract()));
    let missing = total.saturating_sub(whole.iter().sum());
    // In exact arithmetic fewer than one for each part are missing.
    by_loss.iter().take(missing as usize).for_each(|&index| whole[index] += 1);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;

    fn estimator(text: &str) -> Estimator {
        Estimator::new(&text.parse::<Mechanism>().unwrap().channel()).unwrap()
    }

    fn half_width(text: &str, owners: u64, yes: f64) -> f64 {
        let confidence = Confidence::new(0.95).unwrap();
        estimator(text).half_width(owners, yes, confidence, IntervalKind::Auto).unwrap()
    }

    #[test]
    fn parts_keep_their_sum_and_are_off_by_less_than_one() {
        let parts = [0.4, 2.7, 0.4, 6.5];
        assert_eq!(whole_parts(&parts, 10), [0, 3, 0, 7]);
        assert_eq!(whole_parts(&[1.0, 2.0], 3), [1, 2]);
        assert_eq!(whole_parts(&[0.5, 0.5], 1), [1, 0]);
    }

    /// Far from the ends and in large numbers, all intervals are alike.
    #[test]
    fn in_large_crowds_it_is_about_two_standard_deviations() {
        for text in ["randomized-response(0.8)", "normal-form(0.5,0.01)", "blended(0,0.25,0.25,0,0.5,0.01,0.01)"] {
            let sd = estimator(text).sd(1_000_000, 300_000.0).unwrap();
            let half_width = half_width(text, 1_000_000, 300_000.0);
            assert!((half_width / (1.959_964 * sd) - 1.0).abs() < 0.005, "{text}: {half_width} {sd}");
        }
    }

    #[test]
    fn ends_that_cut_the_interval_off_do_not_make_it_look_narrow() {
        let text = "randomized-response(0.9) + laplace(scale=2)";
        let inside = half_width(text, 1000, 500.0);
        for yes in [0.0, 1.0, 999.0, 1000.0] {
            assert!(half_width(text, 1000, yes) > 0.9 * inside, "{yes}");
        }
        // Nothing can be said about these eight owners but that they are at most eight.
        assert!(half_width("randomized-response(0.55)", 8, 4.0) > 25.0);
    }

    #[test]
    fn what_is_counted_has_no_width() {
        assert_eq!(half_width("randomized-response(1)", 100, 0.0), 0.0);
        assert_eq!(half_width("randomized-response(1)", 100, 40.0), 0.0);
    }

    #[test]
    fn more_yes_than_owners_is_refused() {
        let confidence = Confidence::new(0.95).unwrap();
        let error = estimator("randomized-response(0.9)").half_width(10, 11.0, confidence, IntervalKind::Auto);
        assert!(error.unwrap_err().is_request());
    }
}
