use super::{Family, at_most, outputs_of};
use crate::channel::{Cell, Channel, Output};
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Pairs of answers (reference, signal); an owner's shift is carried by one pair drawn at random.
///
/// **Guarantee.** A signal alone is randomized response at participation f/J; the release is that of
/// [`NormalForm`](super::NormalForm) or better, because the tallies do not determine the cells. It is worth something only
/// if different parties, who do not collude, hold the answers.
///
/// **Algorithm.** Our own addition to the family. With probability f one uniformly drawn pair of the J reads 13 (with
/// probability (f−r)/f if yes, r/f if no) or else 12; every other pair reads 22 or 33, half each.
///
/// **Utility.** The sum over the pairs is as good as [`NormalForm`](super::NormalForm), up to the coins of the idle pairs,
/// which cancel between reference and signal.
///
/// **Cost.** 2·J answers of three outputs and (J + 1)·2ᴶ cells.
///
/// ```
/// use uptack::Mechanism;
/// let channel = "spread(pairs=2, f=1, r=0)".parse::<Mechanism>()?.channel();
/// assert_eq!(channel.cells().len(), 12);
/// assert!(!channel.determined());
/// // At f = 1 a signal alone has ε = ln 3: it reads 3 with probability 3/4 or 1/4.
/// let signal = uptack::Bin { answer: 1, output: uptack::Output::new('3')? };
/// let law = channel.bin_law(signal);
/// assert_eq!((law.yes.to_f64(), law.no.to_f64()), (0.75, 0.25));
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    pairs: usize,
    part: Fraction,
    flip: Fraction,
}

impl Spread {
    /// The most pairs for which the cells are still few.
    pub const MOST_PAIRS: usize = 3;

    /// `pairs` (J) pairs; `part` (f) and `flip` (r) as in [`NormalForm`](super::NormalForm).
    pub fn new(pairs: usize, part: Fraction, flip: Fraction) -> Result<Self> {
        if pairs == 0 || pairs > Self::MOST_PAIRS {
            return Err(Error::parameter(format!("pairs = {pairs} is not between 1 and {}", Self::MOST_PAIRS)));
        }
        at_most(("r", &flip), ("f", &part))?;
        Ok(Self { pairs, part, flip })
    }

    /// The number of pairs (J).
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// The outputs of a cell: `carrier` is the pair that carries and what it reads, and the bits of `idle` are the coins of the
    /// other pairs.
    fn cell(&self, carrier: Option<(usize, &str)>, idle: usize) -> Vec<Output> {
        let mut coins = idle;
        let mut name = String::new();
        for pair in 0..self.pairs {
            match carrier {
                Some((carrying, written)) if carrying == pair => name.push_str(written),
                _ => {
                    name.push_str(if coins.is_multiple_of(2) { "22" } else { "33" });
                    coins /= 2;
                }
            }
        }
        outputs_of(&name)
    }

    /// The cells in which a pair carries: 13 with probability `truth` if yes, and `flipped` if no, and 12 the other way round.
    fn carrying_cells(&self, truth: Probability, flipped: Probability) -> impl Iterator<Item = Cell> {
        let carriers = (0..self.pairs).flat_map(move |pair| (0..self.idle_patterns()).map(move |idle| (pair, idle)));
        carriers.flat_map(move |(pair, idle)| {
            [
                Cell::new(self.cell(Some((pair, "13")), idle), truth, flipped),
                Cell::new(self.cell(Some((pair, "12")), idle), flipped, truth),
            ]
        })
    }

    /// What the other pairs can read while one carries.
    fn idle_patterns(&self) -> usize {
        1 << (self.pairs - 1)
    }

    /// The cells in which no pair carries; what cannot be shared evenly goes to the first.
    fn idle_cells(&self, left: u128) -> impl Iterator<Item = Cell> {
        let count = 1u128 << self.pairs;
        (0..count).map(move |idle| {
            let share = on_grid(left / count + if idle == 0 { left % count } else { 0 });
            Cell::new(self.cell(None, idle as usize), share, share)
        })
    }
}

fn on_grid(numerator: u128) -> Probability {
    Probability::from_numerator(numerator).expect("a part of one")
}

impl Family for Spread {
    const NAME: &'static str = "spread";
    const KEYS: &'static [&'static str] = &["f", "r"];

    fn from_values(values: Vec<Fraction>) -> Result<Self> {
        let [part, flip] = super::exactly(values);
        Self::new(1, part, flip)
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.part, &self.flip]
    }

    /// The rest is the cell in which every pair reads 22.
    fn channel(&self) -> Channel {
        let carriers = (self.pairs * self.idle_patterns()) as u128;
        let part = self.part.round().numerator() / carriers;
        let flip = (self.flip.round().numerator() / carriers).min(part);
        let mut cells: Vec<Cell> = self.carrying_cells(on_grid(part - flip), on_grid(flip)).collect();
        cells.extend(self.idle_cells(Probability::ONE.numerator() - part * carriers));
        // A reference reads 1 if its pair carries; a signal never does.
        let answers = (0..self.pairs).flat_map(|_| [outputs_of("123"), outputs_of("23")]).collect();
        Channel::new(answers, cells).expect("the parts sum to one")
    }
}
