//! What is audited: something that claims to draw contributions.

use crate::coins::Coins;
use crate::contribution::{Choice, Choices, Contributed, ContributionSampler};
use crate::error::Result;
use crate::noise::NoiseLaw;

/// Something that claims to draw contributions, and what aggregators add to their counts.
///
/// The real sampler is audited through the very functions that its public entry points call.
pub(super) trait ContributionSubject: Sync {
    fn draw_report<C: Coins>(&self, truths: &[Choice], coins: &mut C) -> Result<Vec<usize>>;
    fn draw_many<C: Coins>(&self, truths: &Choices, coins: &mut C) -> Result<Vec<Contributed>>;

    /// What one aggregator adds to each of the counts of some releases, release by release.
    fn draw_noise<C: Coins>(
        &self,
        noise: &NoiseLaw,
        releases: usize,
        counts: usize,
        coins: &mut C,
    ) -> Result<Vec<i64>> {
        noise.draw_many_from(releases * counts, coins)
    }
}

impl ContributionSubject for ContributionSampler {
    fn draw_report<C: Coins>(&self, truths: &[Choice], coins: &mut C) -> Result<Vec<usize>> {
        self.draw_report_from(truths, coins)
    }

    fn draw_many<C: Coins>(&self, truths: &Choices, coins: &mut C) -> Result<Vec<Contributed>> {
        self.draw_many_from(truths, coins)
    }
}
