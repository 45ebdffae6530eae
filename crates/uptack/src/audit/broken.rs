//! Samplers that are broken on purpose, so that the auditor can be seen to catch them.
//!
//! They exist only where debug assertions are on: in tests and in builds for development, never in a release.

use std::str::FromStr;

use super::subject::Subject;
use crate::channel::{Bin, Cell, Channel, Output};
use crate::coins::Coins;
use crate::display::separated;
use crate::error::{Error, Result};
use crate::noise::{NoiseLaw, Scale};
use crate::output::shortened;
use crate::packed::{LANES, MOST_PLANES, PackedCells, Truths};
use crate::probability::Probability;
use crate::sampler::Sampler;
use crate::truth::{PerTruth, Truth};

/// How a sampler is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenControl {
    /// The last answer says the plain truth; the answers before it are drawn as they should be.
    LastOutputUnprotected,
    /// One threshold of one law is off by 2^−`bits`, or by as much as its neighbour leaves room for: the one that harms
    /// the linked view most.
    BiasedThreshold {
        /// The size of the bias.
        bits: u32,
    },
    /// In a batch every second owner is given the coin of the one before.
    ReusedCoin,
    /// Where the truth is *yes*, eight bytes more are read for each owner; the cells are drawn as they should be.
    TruthDependentLength,
    /// One time in 64 the branch for the coin is not taken, and the cell that speaks most for the truth is written.
    WrongBranch,
    /// An aggregator's noise is drawn twice and averaged, as anybody can do who gets two results of one batch.
    NoiseAveraged,
    /// The scale of the noise is a tenth too small.
    NoiseScale,
    /// Noise is never negative.
    NoiseOneSided,
    /// The one honest aggregator adds nothing.
    NoiseMissing,
}

impl BrokenControl {
    /// One of each kind that concerns the noise of aggregators.
    pub const NOISE: [Self; 4] = [Self::NoiseAveraged, Self::NoiseScale, Self::NoiseOneSided, Self::NoiseMissing];

    /// One of each kind that concerns the sampler.
    pub const ALL: [Self; 5] = [
        Self::LastOutputUnprotected,
        Self::BiasedThreshold { bits: 8 },
        Self::ReusedCoin,
        Self::TruthDependentLength,
        Self::WrongBranch,
    ];

    fn concerns_noise(self) -> bool {
        Self::NOISE.contains(&self)
    }

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LastOutputUnprotected => "last-output-unprotected",
            Self::BiasedThreshold { .. } => "biased-threshold",
            Self::ReusedCoin => "reused-coin",
            Self::TruthDependentLength => "truth-dependent-length",
            Self::WrongBranch => "wrong-branch",
            Self::NoiseAveraged => "noise-averaged",
            Self::NoiseScale => "noise-scale",
            Self::NoiseOneSided => "noise-one-sided",
            Self::NoiseMissing => "noise-missing",
        }
    }
}

impl FromStr for BrokenControl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = || Self::ALL.into_iter().chain(Self::NOISE);
        all().find(|control| control.name() == text).ok_or_else(|| {
            let names = separated(all().map(Self::name), ", ");
            Error::syntax(format!("`{}` is not a broken control", shortened(text)))
                .with_hint(format!("the controls are {names}"))
        })
    }
}

/// Draws a channel's cells wrongly.
pub(super) struct BrokenSampler {
    control: BrokenControl,
    sampler: Sampler,
    cells: usize,
    /// For each truth (no, yes) and cell the cell whose last answer is that truth's.
    unprotected: [Vec<usize>; 2],
    /// For each truth the cell that speaks most for it.
    loudest: [usize; 2],
}

impl BrokenSampler {
    pub(super) fn new(channel: &Channel, control: BrokenControl) -> Result<Self> {
        if control.concerns_noise() && channel.noise().is_none() {
            return Err(Error::request(format!("{} needs a mechanism with noise", control.name()))
                .with_hint("as in randomized-response(t=0.999) + laplace(scale=1)"));
        }
        let sampler = match control {
            BrokenControl::BiasedThreshold { bits } => Sampler::new(&biased(channel, bits)?),
            _ => Sampler::new(channel),
        };
        let (cells, unprotected, loudest) = (channel.cells().len(), unprotected(channel), loudest(channel));
        Ok(Self { control, sampler, cells, unprotected, loudest })
    }

    /// One time in 64 the loudest cell, otherwise the right one.
    fn draw_by_wrong_branch(&self, truth: Truth, mut coin: Coin) -> Result<usize> {
        if coin.0[0].is_multiple_of(64) {
            Ok(self.loudest[index(truth)])
        } else {
            self.sampler.draw_from(truth, &mut coin)
        }
    }

    /// Every second owner is given the coin of the one before.
    fn draw_with_reused_coins(&self, truths: &Truths, coins: &mut impl Coins) -> Result<Vec<usize>> {
        let mut cells = Vec::with_capacity(truths.len());
        let mut reused = Coin([0; 8]);
        for owner in 0..truths.len() {
            if owner % 2 == 0 {
                reused = Coin::toss(coins)?;
            }
            cells.push(self.sampler.draw_from(truth_of(truths, owner), &mut reused)?);
        }
        Ok(cells)
    }
}

impl Subject for BrokenSampler {
    fn draw<C: Coins>(&self, truth: Truth, coins: &mut C) -> Result<usize> {
        match self.control {
            BrokenControl::LastOutputUnprotected => {
                Ok(self.unprotected[index(truth)][self.sampler.draw_from(truth, coins)?])
            }
            BrokenControl::TruthDependentLength => {
                if matches!(truth, Truth::Yes) {
                    coins.fill(&mut [0; 8])?;
                }
                self.sampler.draw_from(truth, coins)
            }
            BrokenControl::WrongBranch => self.draw_by_wrong_branch(truth, Coin::toss(coins)?),
            BrokenControl::BiasedThreshold { .. }
            | BrokenControl::ReusedCoin
            | BrokenControl::NoiseAveraged
            | BrokenControl::NoiseScale
            | BrokenControl::NoiseOneSided
            | BrokenControl::NoiseMissing => self.sampler.draw_from(truth, coins),
        }
    }

    fn draw_noise<C: Coins>(&self, noise: &NoiseLaw, count: usize, coins: &mut C) -> Result<Vec<i64>> {
        let mut drawn = |noise: &NoiseLaw| noise.draw_many_from(count, coins);
        match self.control {
            BrokenControl::NoiseAveraged => {
                let (first, second) = (drawn(noise)?, drawn(noise)?);
                Ok(first.iter().zip(second).map(|(first, second)| (first + second) / 2).collect())
            }
            BrokenControl::NoiseScale => drawn(&a_tenth_smaller(noise)?),
            BrokenControl::NoiseOneSided => Ok(drawn(noise)?.into_iter().map(i64::abs).collect()),
            BrokenControl::NoiseMissing => Ok(vec![0; count]),
            _ => drawn(noise),
        }
    }

    fn draw_many<C: Coins>(&self, truths: &Truths, coins: &mut C) -> Result<PackedCells> {
        let cells = match self.control {
            BrokenControl::BiasedThreshold { .. } => return self.sampler.draw_many_from(truths, coins),
            control if control.concerns_noise() => return self.sampler.draw_many_from(truths, coins),
            BrokenControl::ReusedCoin => self.draw_with_reused_coins(truths, coins)?,
            _ => (0..truths.len()).map(|owner| self.draw(truth_of(truths, owner), coins)).collect::<Result<_>>()?,
        };
        Ok(pack(self.cells, &cells))
    }
}

/// A truth as an index of (no, yes).
fn index(truth: Truth) -> usize {
    usize::from(matches!(truth, Truth::Yes))
}

fn truth_of(truths: &Truths, owner: usize) -> Truth {
    Truth::from_bool((truths.words()[owner / LANES] >> (owner % LANES)) & 1 == 1)
}

/// The cells that speak most for no and most for yes.
fn loudest(channel: &Channel) -> [usize; 2] {
    let classes = channel.classes();
    [classes.last(), classes.first()].map(|class| class.map_or(0, |class| class.cells[0]))
}

/// Eight bytes that can be read again and again.
#[derive(Clone, Copy)]
pub(super) struct Coin(pub(super) [u8; 8]);

impl Coin {
    pub(super) fn toss(coins: &mut impl Coins) -> Result<Self> {
        let mut bytes = [0; 8];
        coins.fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl Coins for Coin {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(&self.0);
        Ok(())
    }
}

fn pack(cells: usize, drawn: &[usize]) -> PackedCells {
    let mut packed = PackedCells::with_capacity(cells, drawn.len());
    for block in drawn.chunks(LANES) {
        let plane = |plane: usize| (0..).zip(block).map(|(lane, cell)| ((cell >> plane) as u64 & 1) << lane).sum();
        packed.push((0..MOST_PLANES).map(plane));
    }
    packed.set_len(drawn.len());
    packed
}

fn a_tenth_smaller(noise: &NoiseLaw) -> Result<NoiseLaw> {
    let scale = noise.scale();
    Scale::new(scale.numerator().saturating_mul(9), scale.denominator().saturating_mul(10))
        .map(|scale| noise.with_scale(scale))
}

/// For each truth (no, yes) and each cell drawn, the cell whose last answer says the truth plainly and which agrees with
/// the cell drawn in most of the other answers.
fn unprotected(channel: &Channel) -> [Vec<usize>; 2] {
    let cells = channel.cells();
    let last = channel.answers().len() - 1;
    plain_outputs(channel, last).map(|output| {
        let candidates = channel.cells_in(Bin { answer: last, output });
        (0..cells.len()).map(|drawn| nearest(cells, drawn, &candidates)).collect()
    })
}

/// The candidate that agrees with a cell in most answers.
fn nearest(cells: &[Cell], drawn: usize, candidates: &[usize]) -> usize {
    *candidates.iter().max_by_key(|&&cell| agreement(&cells[cell], &cells[drawn])).unwrap_or(&drawn)
}

/// The outputs of an answer that speak most for no and most for yes.
fn plain_outputs(channel: &Channel, answer: usize) -> [Output; 2] {
    let lead = |output| {
        let PerTruth { yes, no } = channel.bin_law(Bin { answer, output });
        yes.numerator() as i128 - no.numerator() as i128
    };
    let mut order = channel.answers()[answer].clone();
    order.sort_by_key(|&output| lead(output));
    [order[0], order[order.len() - 1]]
}

/// In how many answers two cells have the same output.
fn agreement(a: &Cell, b: &Cell) -> usize {
    a.outputs().iter().zip(b.outputs()).filter(|(a, b)| a == b).count()
}

/// The channel with one threshold moved: of all thresholds, laws and directions the one after which the linked ε is
/// largest, and among equals the one that moves most.
fn biased(channel: &Channel, bits: u32) -> Result<Channel> {
    let bias = Probability::ONE.numerator() >> bits.min(64);
    let mut best: Option<(f64, u128, Vec<Cell>)> = None;
    for shift in shifts(channel.cells().len()) {
        let (moved, biased) = shift.apply(channel.cells(), bias)?;
        let epsilon = linked_epsilon(&biased);
        if moved > 0 && best.as_ref().is_none_or(|best| (epsilon, moved) > (best.0, best.1)) {
            best = Some((epsilon, moved, biased));
        }
    }
    let (.., biased) = best.ok_or_else(|| Error::request("a channel of one cell has no threshold to bias"))?;
    Channel::new(channel.answers().to_vec(), biased)
}

/// Some probability of one law moves from a cell to a neighbour.
struct Shift {
    from: usize,
    to: usize,
    /// Whether it is the law of *yes*.
    yes: bool,
}

/// All shifts between neighbours.
fn shifts(cells: usize) -> impl Iterator<Item = Shift> {
    let neighbours = (1..cells).flat_map(|upper| [(upper - 1, upper), (upper, upper - 1)]);
    neighbours.flat_map(|(from, to)| [false, true].map(|yes| Shift { from, to, yes }))
}

impl Shift {
    /// Moves up to `bias`; returns how much moved and the cells after it.
    fn apply(&self, cells: &[Cell], bias: u128) -> Result<(u128, Vec<Cell>)> {
        let moved = bias.min(self.law(&cells[self.from]));
        let mut shifted = cells.to_vec();
        shifted[self.from] = self.with_law(&cells[self.from], self.law(&cells[self.from]) - moved)?;
        shifted[self.to] = self.with_law(&cells[self.to], self.law(&cells[self.to]) + moved)?;
        Ok((moved, shifted))
    }

    fn law(&self, cell: &Cell) -> u128 {
        if self.yes { cell.yes() } else { cell.no() }.numerator()
    }

    fn with_law(&self, cell: &Cell, numerator: u128) -> Result<Cell> {
        let law = Probability::from_numerator(numerator)?;
        let (yes, no) = if self.yes { (law, cell.no()) } else { (cell.yes(), law) };
        Ok(Cell::new(cell.outputs().to_vec(), yes, no))
    }
}

fn linked_epsilon(cells: &[Cell]) -> f64 {
    let possible = cells.iter().filter(|cell| cell.yes().numerator() + cell.no().numerator() > 0);
    possible.map(|cell| (cell.yes().to_f64() / cell.no().to_f64()).ln().abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mechanism, SeededCoins};

    fn channel(text: &str) -> Channel {
        text.parse::<Mechanism>().unwrap().channel()
    }

    #[test]
    fn names_are_read_back() {
        for control in BrokenControl::ALL.into_iter().chain(BrokenControl::NOISE) {
            assert_eq!(control.name().parse::<BrokenControl>().unwrap(), control);
        }
        assert!("sound".parse::<BrokenControl>().unwrap_err().hint().unwrap().contains("wrong-branch"));
    }

    #[test]
    fn packed_as_drawn() {
        let cells: Vec<usize> = (0..200).map(|owner| owner % 5).collect();
        assert_eq!(pack(5, &cells).iter().collect::<Vec<_>>(), cells);
    }

    #[test]
    fn the_last_answer_is_the_plain_truth() {
        let channel = channel("blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.01,rn=0.01)");
        let sampler = BrokenSampler::new(&channel, BrokenControl::LastOutputUnprotected).unwrap();
        let mut coins = SeededCoins::new(2);
        for (truth, last) in [(Truth::Yes, '3'), (Truth::No, '2')] {
            for _ in 0..1000 {
                let cell = sampler.draw(truth, &mut coins).unwrap();
                assert_eq!(channel.cells()[cell].outputs()[2].symbol(), last);
            }
        }
    }

    #[test]
    fn the_bias_is_the_stated_one() {
        let channel = channel("randomized-response(t=0.75)");
        let biased = biased(&channel, 8).unwrap();
        let moved: u128 = channel
            .cells()
            .iter()
            .zip(biased.cells())
            .map(|(a, b)| {
                a.yes().numerator().abs_diff(b.yes().numerator()) + a.no().numerator().abs_diff(b.no().numerator())
            })
            .sum();
        assert_eq!(moved, 2 << 56);
        assert!(linked_epsilon(biased.cells()) > 3f64.ln());
    }
}
