use super::{Family, at_most};
use crate::channel::{Cell, Channel, Output};
use crate::error::Error;
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Pairs of answers (reference, signal), of which an owner carries its shift in one drawn at random.
///
/// **Guarantee.** A signal alone is randomized response at participation f/J; the release is that of
/// [`NormalForm`](super::NormalForm) or better, because the tallies do not fix the cells. It is worth something only
/// where different parties, who do not collude, hold the answers.
///
/// **Algorithm.** Our own addition to the family. With probability f one uniformly drawn pair of the J reads 13 (with
/// probability (f−r)/f if yes, r/f if no) or else 12; every other pair reads 22 or 33, half each.
///
/// **Utility.** The sum over the pairs loses nothing against [`NormalForm`](super::NormalForm), up to the coins of the
/// idle pairs, which cancel between reference and signal.
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
/// let (yes, no) = channel.bin_law(signal);
/// assert_eq!((yes.to_f64(), no.to_f64()), (0.75, 0.25));
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
    pub fn new(pairs: usize, part: Fraction, flip: Fraction) -> Result<Self, Error> {
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
        outputs(&name)
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

fn outputs(symbols: &str) -> Vec<Output> {
    symbols.chars().map(|symbol| Output::new(symbol).expect("digits are outputs")).collect()
}

fn on_grid(numerator: u128) -> Probability {
    Probability::from_numerator(numerator).expect("a part of one")
}

impl Family for Spread {
    const NAME: &'static str = "spread";
    const KEYS: &'static [&'static str] = &["f", "r"];

    fn from_values(values: Vec<Fraction>) -> Result<Self, Error> {
        let [part, flip] = super::exactly(values);
        Self::new(1, part, flip)
    }

    fn values(&self) -> Vec<&Fraction> {
        vec![&self.part, &self.flip]
    }

    /// The rest is the cell in which every pair reads 22.
    fn channel(&self) -> Channel {
        let idle_patterns = 1usize << (self.pairs - 1);
        let carriers = (self.pairs * idle_patterns) as u128;
        let part = self.part.round().numerator() / carriers;
        let flip = (self.flip.round().numerator() / carriers).min(part);
        let (truth, flipped) = (on_grid(part - flip), on_grid(flip));
        let mut cells = Vec::new();
        for pair in 0..self.pairs {
            for idle in 0..idle_patterns {
                cells.push(Cell::new(self.cell(Some((pair, "13")), idle), truth, flipped));
                cells.push(Cell::new(self.cell(Some((pair, "12")), idle), flipped, truth));
            }
        }
        cells.extend(self.idle_cells(Probability::ONE.numerator() - part * carriers));
        // A reference reads 1 where its pair carries; a signal never does.
        let answers = (0..self.pairs).flat_map(|_| [outputs("123"), outputs("23")]).collect();
        Channel::new(answers, cells).expect("the parts sum to one")
    }
}
