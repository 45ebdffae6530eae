//! The adversaries who see counts of everybody: those of a crowd, and those of one owner behind the noise of one aggregator.

use std::collections::BTreeMap;
use std::iter::zip;

use super::subject::ContributionSubject;
use super::worlds::Worlds;
use crate::audit::aggregator::noise_fit;
use crate::audit::checks::Fit;
use crate::audit::collect::{HALVES, Pieces, TEST, TRAINING, on_all_threads};
use crate::audit::local::{self, Outcomes, Sample};
use crate::audit::subject::{AuditCoins, Source};
use crate::audit::{Finding, some_of};
use crate::contribution::{Choice, Choices, Contributed, Contributions};
use crate::error::Result;
use crate::progress::Progress;

/// What is attacked, and how hard.
pub(super) struct CountsAttack<'a, S> {
    pub(super) subject: &'a S,
    pub(super) asked: &'a Contributions,
    pub(super) worlds: &'a Worlds,
    pub(super) progress: &'a Progress,
    pub(super) miss: f64,
    pub(super) coins: AuditCoins,
}

/// By half and world: how often each outcome came up; and each value of the noise.
struct Seen {
    outcomes: [Vec<Vec<u64>>; HALVES],
    noise: BTreeMap<i64, u64>,
}

/// Neighbouring values of each of two counts are grouped into this many buckets.
const BUCKETS: i64 = 32;

impl<S: ContributionSubject> CountsAttack<'_, S> {
    /// The adversary whom one honest aggregator faces: it knows everything but one owner's report and one draw of noise per count.
    ///
    /// A unit shift of discrete Laplace noise has only two likelihood ratios, one from 1 on and one up to 0, so the outcome is
    /// which of the watched counts are at least 1.
    pub(super) fn one_aggregator(&self, claimed: Option<f64>, calls: u64) -> Result<Option<(Finding, Fit, u64)>> {
        let Some(noise) = self.asked.noise() else { return Ok(None) };
        let counts = self.worlds.watched.len();
        let sign_pattern = |sums: &[i64]| (0..counts).map(|place| usize::from(sums[place] >= 1) << place).sum();
        let (seen, made) = self.draw(5, 1, calls, 1 << counts, sign_pattern)?;
        let name = |event: &[usize]| format!("the counts with at least 1 are {}", self.worlds.event_name(event));
        let finding = self.find(&seen, claimed, "one aggregator's noise", name);
        Ok(Some((finding, noise_fit(noise, &seen.noise, self.miss), made)))
    }

    /// The adversary who holds the counts of a crowd, knows everybody's truth but the target's, and with noise one aggregator's
    /// noise. The others all have the truth of the last world; the outcome is the first two watched counts.
    pub(super) fn release(&self, claimed: Option<f64>, owners: u64, calls: u64) -> Result<(Finding, u64)> {
        let width = self.asked.noise().map_or(1, |noise| (noise.width() / 4.0).ceil() as i64);
        let bucket = |sum: i64| ((sum - 1).div_euclid(width) + BUCKETS / 2).clamp(0, BUCKETS - 1) as usize;
        let pair = |sums: &[i64]| sums.iter().take(2).fold(0, |index, &sum| index * BUCKETS as usize + bucket(sum));
        let (seen, made) = self.draw(3, owners, calls, (BUCKETS * BUCKETS) as usize, pair)?;
        let value = |bucket: usize| (bucket as i64 - BUCKETS / 2) * width + 1;
        let name = |event: &[usize]| {
            let buckets = event.iter().map(|&pair| (pair / BUCKETS as usize, pair % BUCKETS as usize));
            let names = buckets.map(|(first, second)| match self.worlds.watched.len() {
                1 => value(second).to_string(),
                _ => format!("{}|{}", value(first), value(second)),
            });
            let names: Vec<String> = names.collect();
            format!("the first watched counts, from, are {}", some_of(names.into_iter()))
        };
        Ok((self.find(&seen, claimed, &format!("a crowd of {owners}"), name), made))
    }

    fn find(&self, seen: &Seen, claimed: Option<f64>, what: &str, name: impl Fn(&[usize]) -> String) -> Finding {
        let sample = |pair: [usize; 2]| {
            let [training, test] = [TRAINING, TEST].map(|half| {
                let [yes, no] = pair.map(|world| seen.outcomes[half][world].clone());
                Outcomes { yes, no }
            });
            Sample { name: format!("{}; {what}", self.worlds.pair_name(pair)), training, test }
        };
        let samples: Vec<Sample> = self.worlds.pairs().into_iter().map(sample).collect();
        local::attack(&samples, claimed, self.miss, name)
    }

    /// Draws the watched counts of crowds of `owners` in which the target has the truth of each world in turn.
    fn draw(
        &self,
        part: u64,
        owners: u64,
        calls: u64,
        outcomes: usize,
        outcome: impl Fn(&[i64]) -> usize + Sync,
    ) -> Result<(Seen, u64)> {
        let worlds = self.worlds.worlds.len();
        let group = (1024 / owners).max(1);
        let each = group * owners * u64::from(self.asked.most());
        let count = (calls / (each * worlds as u64) / 2 * 2).max(2);
        let pieces = Pieces { count, calls: each * worlds as u64, progress: self.progress };
        let made = pieces.count * pieces.calls;
        let empty =
            || Seen { outcomes: [(); HALVES].map(|()| vec![vec![0; outcomes]; worlds]), noise: BTreeMap::new() };
        let work = |seen: &mut Seen, piece: u64| {
            for world in 0..worlds {
                let coins = self.coins.of(part, (piece << 2) | world as u64);
                let sums = self.sums(coins, &self.crowds(world, group, owners), group, &mut seen.noise)?;
                for sums in sums.chunks_exact(self.worlds.watched.len()) {
                    seen.outcomes[piece as usize % 2][world][outcome(sums)] += 1;
                }
            }
            Ok(())
        };
        Ok((on_all_threads(pieces, empty, work, Seen::merge)?, made))
    }

    /// The watched counts of a group of crowds, one after the other, with noise if there is any.
    fn sums(&self, mut coins: Source, crowds: &Choices, group: u64, seen: &mut BTreeMap<i64, u64>) -> Result<Vec<i64>> {
        let counts = self.worlds.watched.len();
        let drawn = self.subject.draw_many(crowds, &mut coins)?;
        let releases = drawn.chunks_exact(drawn.len() / group as usize);
        let mut sums: Vec<i64> = releases.flat_map(|release| self.watched_counts(release)).collect();
        if let Some(noise) = self.asked.noise() {
            let noise = self.subject.draw_noise(noise, group as usize, counts, &mut coins)?;
            noise.iter().for_each(|&noise| *seen.entry(noise).or_default() += 1);
            zip(&mut sums, noise).for_each(|(sum, noise)| *sum = sum.saturating_add(noise));
        }
        Ok(sums)
    }

    /// The truths of a group of crowds; the target is the first owner of each.
    fn crowds(&self, world: usize, group: u64, owners: u64) -> Choices {
        let worlds = &self.worlds.worlds;
        let others = worlds.len() - 1;
        let owner = |index: u64| &worlds[if index.is_multiple_of(owners) { world } else { others }].truths;
        (0..group * owners).flat_map(|index| owner(index).iter().copied().map(Choice::new)).collect()
    }

    /// How many owners of one crowd contributed to each watched count.
    fn watched_counts(&self, release: &[Contributed]) -> Vec<i64> {
        let mut sums = vec![0; self.worlds.watched.len()];
        for report in release.chunks_exact(self.asked.most() as usize) {
            let outcome = self.worlds.outcome(report.iter().filter_map(|drawn| drawn.count()));
            sums.iter_mut().enumerate().for_each(|(place, sum)| *sum += ((outcome >> place) & 1) as i64);
        }
        sums
    }
}

impl Seen {
    fn merge(&mut self, other: Self) {
        let theirs = other.outcomes.into_iter().flatten().flatten();
        zip(self.outcomes.iter_mut().flatten().flatten(), theirs).for_each(|(sum, count)| *sum += count);
        other.noise.into_iter().for_each(|(value, count)| *self.noise.entry(value).or_default() += count);
    }
}
