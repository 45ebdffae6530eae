//! The adversary whom one honest aggregator faces, and the noise that this aggregator draws.
//!
//! It knows everybody else's bit and the other aggregator's noise, so that of what is published it does not know the target's
//! bit and one draw of noise: it sees their sum.

use std::collections::BTreeMap;

use super::bound::Hits;
use super::checks::{Fit, Fitting};
use super::collect::{HALVES, Pieces, TEST, TRAINING, on_all_threads};
use super::local::{self, Outcomes, Sample};
use super::subject::{AuditCoins, Subject};
use super::{Finding, some_of};
use crate::channel::{Channel, Output};
use crate::error::Error;
use crate::noise::DiscreteLaplace;
use crate::packed::Truths;
use crate::simulate::Progress;
use crate::truth::Truth;

/// Sums drawn at a time.
const PIECE: u64 = 1024;
/// Two worlds, two halves.
const KINDS: u64 = 4;
/// Stretches of sums on either side of what no owner and one owner can write.
const STRETCHES: i64 = 32;

/// What is attacked, and how hard.
pub(super) struct Attack<'a> {
    pub(super) channel: &'a Channel,
    pub(super) noise: &'a DiscreteLaplace,
    /// The ε that one honest aggregator is claimed to be enough for.
    pub(super) claimed: Option<f64>,
    /// Calls of the sampler that may be made.
    pub(super) calls: u64,
    pub(super) miss: f64,
    pub(super) coins: AuditCoins,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) finding: Finding,
    /// Whether the noise drawn has the law stated.
    pub(super) noise: Fit,
    pub(super) calls: u64,
}

/// How often each sum came up, by half and world (no, yes), and each value of the noise.
#[derive(Default)]
struct Counts {
    sums: [[BTreeMap<i64, u64>; 2]; HALVES],
    noise: BTreeMap<i64, u64>,
}

impl Attack<'_> {
    pub(super) fn run(&self, subject: &impl Subject, progress: &Progress) -> Result<Outcome, Error> {
        let pieces = Pieces { count: (self.calls / (KINDS * PIECE)).max(1), calls: KINDS * PIECE, progress };
        let calls = pieces.count * pieces.calls;
        let work = |counts: &mut Counts, piece: u64| self.piece(subject, piece, counts);
        let counts = on_all_threads(pieces, Counts::default, work, merge)?;
        Ok(Outcome { finding: self.finding(&counts), noise: self.fit(&counts.noise), calls })
    }

    fn finding(&self, counts: &Counts) -> Finding {
        let outcomes = |half: usize| {
            let [no, yes] = [0, 1].map(|world| self.by_stretch(&counts.sums[half][world]));
            Outcomes { yes, no }
        };
        let sample =
            Sample { name: "one aggregator's noise".to_owned(), training: outcomes(TRAINING), test: outcomes(TEST) };
        let name = |event: &[usize]| {
            let names: Vec<String> = event.iter().map(|&stretch| self.stretch_name(stretch)).collect();
            format!("the bit and the noise together are {}", some_of(names.into_iter()))
        };
        local::attack(&[sample], self.claimed, self.miss, name)
    }

    fn piece(&self, subject: &impl Subject, piece: u64, counts: &mut Counts) -> Result<(), Error> {
        for kind in 0..KINDS {
            let (half, world) = ((kind / 2) as usize, kind % 2 == 1);
            let mut coins = self.coins.of(5, KINDS * piece + kind);
            let truths: Truths = (0..PIECE).map(|_| Truth::from_bool(world)).collect();
            let cells = subject.draw_many(&truths, &mut coins)?;
            let noise = subject.draw_noise(self.noise, PIECE as usize, &mut coins)?;
            let sums = &mut counts.sums[half][usize::from(world)];
            for (cell, noise) in cells.iter().zip(noise) {
                *sums.entry(self.bit(cell).saturating_add(noise)).or_default() += 1;
                *counts.noise.entry(noise).or_default() += 1;
            }
        }
        Ok(())
    }

    /// What an owner who gives this cell adds to the sum.
    fn bit(&self, cell: usize) -> i64 {
        i64::from(self.channel.cells()[cell].outputs()[0] == Output::ONE)
    }

    /// How many neighbouring sums are one outcome: few enough that each comes up often.
    fn width(&self) -> i64 {
        (self.noise.scale().to_f64() / 4.0).ceil() as i64
    }

    /// The stretches begin between 0 and 1, where the ratio of the two laws changes.
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

    /// Single values around 0, and tails at parts and multiples of the scale.
    fn fit(&self, drawn: &BTreeMap<i64, u64>) -> Fit {
        const VALUES: i64 = 8;
        const TAILS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
        let trials = drawn.values().sum();
        let mut fitting = Fitting::new();
        for value in -VALUES..=VALUES {
            let hits = drawn.get(&value).copied().unwrap_or(0);
            fitting.test(Hits { hits, trials }, self.noise.probability(value), || format!("noise of {value}"));
        }
        for part in TAILS {
            let from = (part * self.noise.scale().to_f64()).ceil() as i64;
            let stated = self.noise.upper_tail(from);
            let hits = count_within(drawn, from..);
            fitting.test(Hits { hits, trials }, stated, || format!("noise of at least {from}"));
            let hits = count_within(drawn, ..=-from);
            fitting.test(Hits { hits, trials }, stated, || format!("noise of at most {}", -from));
        }
        fitting.conclude(self.miss)
    }
}

fn merge(all: &mut Counts, part: Counts) {
    let add = |sums: &mut BTreeMap<i64, u64>, others: BTreeMap<i64, u64>| {
        others.into_iter().for_each(|(value, count)| *sums.entry(value).or_default() += count);
    };
    for (all, part) in all.sums.iter_mut().flatten().zip(part.sums.into_iter().flatten()) {
        add(all, part);
    }
    add(&mut all.noise, part.noise);
}

fn count_within(counts: &BTreeMap<i64, u64>, range: impl std::ops::RangeBounds<i64>) -> u64 {
    counts.range(range).map(|(_, count)| count).sum()
}
