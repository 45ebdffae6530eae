//! The adversary whom one honest aggregator faces, and the noise that this aggregator draws.
//!
//! It knows everybody else's bit and the other aggregator's noise. Of the published sum it does not know the target's bit
//! and one draw of noise, and it sees the sum of these two.

use std::collections::BTreeMap;
use std::iter::zip;
use std::ops::RangeBounds;

use super::bound::Hits;
use super::checks::{Fit, Fitting};
use super::collect::{HALVES, Pieces, TEST, TRAINING, on_all_threads};
use super::local::{self, Outcomes, Sample};
use super::subject::{AuditCoins, Subject};
use super::{Finding, some_of};
use crate::channel::{Channel, Output};
use crate::error::Result;
use crate::noise::NoiseLaw;
use crate::packed::Truths;
use crate::progress::Progress;
use crate::truth::Truth;

/// Sums drawn at a time.
const PIECE: u64 = 1024;
/// Two worlds, two halves.
const KINDS: u64 = 4;
/// Stretches of sums on either side of the border between 0 and 1.
const STRETCHES: i64 = 32;

/// What is attacked, and how hard.
pub(super) struct AggregatorAttack<'a> {
    pub(super) channel: &'a Channel,
    pub(super) noise: &'a NoiseLaw,
    /// The ε that one honest aggregator is claimed to be enough for.
    pub(super) claimed: Option<f64>,
    /// Calls of the sampler that may be made.
    pub(super) calls: u64,
    pub(super) miss: f64,
    pub(super) coins: AuditCoins,
}

/// What the attack found.
pub(super) struct AggregatorFinding {
    pub(super) finding: Finding,
    /// Whether the noise drawn has the law stated.
    pub(super) noise: Fit,
    pub(super) calls: u64,
}

/// How often each sum came up, by half and world (no, yes), and each value of the noise.
#[derive(Default)]
struct SumCounts {
    sums: [[BTreeMap<i64, u64>; 2]; HALVES],
    noise: BTreeMap<i64, u64>,
}

impl SumCounts {
    fn add(&mut self, half: usize, world: bool, bit: i64, noise: i64) {
        let sums = &mut self.sums[half][usize::from(world)];
        *sums.entry(bit.saturating_add(noise)).or_default() += 1;
        *self.noise.entry(noise).or_default() += 1;
    }

    fn merge(&mut self, other: Self) {
        for (sums, others) in zip(self.sums.as_flattened_mut(), other.sums.into_iter().flatten()) {
            add_counts(sums, others);
        }
        add_counts(&mut self.noise, other.noise);
    }
}

fn add_counts(sums: &mut BTreeMap<i64, u64>, others: BTreeMap<i64, u64>) {
    others.into_iter().for_each(|(value, count)| *sums.entry(value).or_default() += count);
}

impl AggregatorAttack<'_> {
    pub(super) fn run(&self, subject: &impl Subject, progress: &Progress) -> Result<AggregatorFinding> {
        let pieces = Pieces { count: (self.calls / (KINDS * PIECE)).max(1), calls: KINDS * PIECE, progress };
        let calls = pieces.count * pieces.calls;
        let work = |counts: &mut SumCounts, piece: u64| self.piece(subject, piece, counts);
        let counts = on_all_threads(pieces, SumCounts::default, work, SumCounts::merge)?;
        Ok(AggregatorFinding {
            finding: self.finding(&counts),
            noise: noise_fit(self.noise, &counts.noise, self.miss),
            calls,
        })
    }

    fn finding(&self, counts: &SumCounts) -> Finding {
        let [training, test] = [TRAINING, TEST].map(|half| self.outcomes(&counts.sums[half]));
        let sample = Sample { name: "one aggregator's noise".to_owned(), training, test };
        let name = |event: &[usize]| {
            let names: Vec<String> = event.iter().map(|&stretch| self.stretch_name(stretch)).collect();
            format!("the bit and the noise together are {}", some_of(names.into_iter()))
        };
        local::attack(&[sample], self.claimed, self.miss, name)
    }

    /// The sums of one half by stretch, from those of the worlds no and yes.
    fn outcomes(&self, [no, yes]: &[BTreeMap<i64, u64>; 2]) -> Outcomes {
        Outcomes { yes: self.by_stretch(yes), no: self.by_stretch(no) }
    }

    /// Draws one piece of each world and half.
    fn piece(&self, subject: &impl Subject, piece: u64, counts: &mut SumCounts) -> Result<()> {
        for kind in 0..KINDS {
            let (half, world) = ((kind / 2) as usize, kind % 2 == 1);
            let mut coins = self.coins.of(5, KINDS * piece + kind);
            let truths: Truths = (0..PIECE).map(|_| Truth::from_bool(world)).collect();
            let cells = subject.draw_many(&truths, &mut coins)?;
            let noise = subject.draw_noise(self.noise, PIECE as usize, &mut coins)?;
            for (cell, noise) in cells.iter().zip(noise) {
                counts.add(half, world, self.bit(cell), noise);
            }
        }
        Ok(())
    }

    /// What an owner who gives this cell adds to the sum.
    fn bit(&self, cell: usize) -> i64 {
        i64::from(self.channel.cells()[cell].outputs()[0] == Output::ONE)
    }

    /// How many neighbouring sums make up a stretch: enough that each stretch comes up often.
    fn width(&self) -> i64 {
        (self.noise.width() / 4.0).ceil() as i64
    }

    /// How often the sums were in each stretch. Stretches begin between 0 and 1, where the ratio of the two laws changes.
    fn by_stretch(&self, sums: &BTreeMap<i64, u64>) -> Vec<u64> {
        let mut counts = vec![0; 2 * STRETCHES as usize];
        for (&sum, &count) in sums {
            let stretch = sum.saturating_sub(1).div_euclid(self.width()).clamp(-STRETCHES, STRETCHES - 1);
            counts[(stretch + STRETCHES) as usize] += count;
        }
        counts
    }

    fn stretch_name(&self, stretch: usize) -> String {
        let (stretch, width) = (stretch as i64 - STRETCHES, self.width());
        let (first, last) = (stretch * width + 1, (stretch + 1) * width);
        match stretch {
            _ if stretch == -STRETCHES => format!("at most {last}"),
            _ if stretch == STRETCHES - 1 => format!("at least {first}"),
            _ if first == last => first.to_string(),
            _ => format!("{first} to {last}"),
        }
    }
}

/// Whether the noise drawn has the law stated: single values around 0, and tails at parts and multiples of its width.
pub(super) fn noise_fit(noise: &NoiseLaw, drawn: &BTreeMap<i64, u64>, miss: f64) -> Fit {
    const VALUES: i64 = 8;
    const TAILS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
    let mut fitting = Fitting::new();
    for value in -VALUES..=VALUES {
        let hits = hits_within(drawn, value..=value);
        fitting.test(hits, noise.probability(value), || format!("noise of {value}"));
    }
    for part in TAILS {
        let from = (part * noise.width()).ceil() as i64;
        let stated = noise.upper_tail(from);
        fitting.test(hits_within(drawn, from..), stated, || format!("noise of at least {from}"));
        fitting.test(hits_within(drawn, ..=-from), stated, || format!("noise of at most {}", -from));
    }
    fitting.conclude(miss)
}

fn hits_within(counts: &BTreeMap<i64, u64>, range: impl RangeBounds<i64>) -> Hits {
    Hits { hits: counts.range(range).map(|(_, count)| count).sum(), trials: counts.values().sum() }
}
