//! What a mechanism is: for each truth a law over the cells.

use std::cmp::Ordering;

use num_rational::BigRational;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};

use crate::display::separated;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::law::{Law, ratio_order};
use crate::linear;
use crate::noise::NoiseLaw;
pub use crate::output::Output;
use crate::output::shortened;
use crate::probability::Probability;
use crate::truth::{PerTruth, Truth};

/// More cells than any sensible mechanism has, and few enough that everything computed from a channel stays quick.
pub const MOST_CELLS: usize = 64;
/// Answers are lettered A to Z.
pub const MOST_ANSWERS: usize = 26;

/// The tuple of outputs that one owner writes, and how likely it is under each truth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RawCell", into = "RawCell")]
pub struct Cell {
    outputs: Vec<Output>,
    probability: PerTruth<Probability>,
}

/// A cell as documents have it.
#[derive(Serialize, Deserialize)]
struct RawCell {
    outputs: Vec<Output>,
    yes: Probability,
    no: Probability,
}

impl From<RawCell> for Cell {
    fn from(RawCell { outputs, yes, no }: RawCell) -> Self {
        Self::new(outputs, yes, no)
    }
}

impl From<Cell> for RawCell {
    fn from(Cell { outputs, probability: PerTruth { yes, no } }: Cell) -> Self {
        Self { outputs, yes, no }
    }
}

impl Cell {
    /// A cell with its probability under the truth *yes* and under the truth *no*.
    pub fn new(outputs: Vec<Output>, yes: Probability, no: Probability) -> Self {
        Self { outputs, probability: PerTruth { yes, no } }
    }

    /// One output for each answer.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Its probability under each truth.
    pub fn probability(&self) -> PerTruth<Probability> {
        self.probability
    }

    /// Its probability for an owner whose truth is *yes*.
    pub fn yes(&self) -> Probability {
        self.probability.yes
    }

    /// Its probability for an owner whose truth is *no*.
    pub fn no(&self) -> Probability {
        self.probability.no
    }

    /// The outputs side by side, as in `132`.
    pub fn name(&self) -> String {
        name_of(&self.outputs)
    }

    /// Whether an owner who gives this cell is counted in the bin.
    fn is_in(&self, bin: Bin) -> bool {
        self.outputs[bin.answer] == bin.output
    }

    /// What an owner who gives this cell adds to Σ weight·bin.
    pub(crate) fn value_in(&self, combination: impl IntoIterator<Item = (Bin, i64)>) -> i64 {
        combination.into_iter().map(|(bin, weight)| weight * i64::from(self.is_in(bin))).sum()
    }

    /// Whether owners of either truth ever give it.
    pub(crate) fn is_possible(&self) -> bool {
        self.yes() != Probability::ZERO || self.no() != Probability::ZERO
    }
}

/// Outputs side by side, as in `132`.
pub(crate) fn name_of(outputs: &[Output]) -> String {
    outputs.iter().map(|output| output.symbol()).collect()
}

/// Cells with the same likelihood ratio, in integers: seeing one of them says what seeing another says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Indices into [`Channel::cells`].
    pub cells: Vec<usize>,
    /// The class's probability under each truth.
    pub probability: PerTruth<Probability>,
}

/// A visible count: how many owners gave `output` as their answer number `answer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The answer's index; 0 is A.
    pub answer: usize,
    /// The output counted.
    pub output: Output,
}

impl Bin {
    /// The answer's letter and the output, as in `C3`.
    pub(crate) fn name(self) -> String {
        format!("{}{}", answer_name(self.answer), self.output)
    }
}

/// The letter of an answer: A, B, C, …
pub fn answer_name(answer: usize) -> char {
    char::from(b'A' + u8::try_from(answer.min(MOST_ANSWERS - 1)).unwrap_or(0))
}

/// What one owner adds to the published sum: the probability of a one, by truth.
pub type SummedBit = PerTruth<Probability>;

/// For each truth a law over the cells: the whole of a mechanism, as data.
///
/// Both laws sum to exactly one in integers over 2⁶⁴. The sampler, the accounting and the estimators all use these integers.
///
/// A channel that is not of the paper's family is given as its cells. The end of the paper's *First Attempt* suggests
/// a third output that holds πN·TOTAL, so that it can be taken out of both answers. With πN = 0.05, πY = 0.2 and a
/// base of 0.4, every owner puts πN into the third output of both answers whatever its truth, and only yes-owners are
/// shifted:
///
/// ```
/// use uptack::Channel;
/// let channel = Channel::parse_cells("11=0.2:0.4, 12=0.4:0, 22=0.35:0.55, 33=0.05:0.05")?;
/// assert_eq!(channel.answers().len(), 2);
/// assert!(channel.determined());
/// // The noise is gone from the difference of the first outputs, and with it the privacy of the release:
/// // the cell 12 betrays its owner.
/// assert_eq!(channel.cells()[1].no().numerator(), 0);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawChannel")]
pub struct Channel {
    answers: Vec<Vec<Output>>,
    cells: Vec<Cell>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseLaw>,
    #[serde(skip)]
    determined: bool,
}

/// A channel as it is read, before its laws are checked.
#[derive(Deserialize)]
struct RawChannel {
    answers: Vec<Vec<Output>>,
    cells: Vec<Cell>,
    noise: Option<NoiseLaw>,
}

impl Channel {
    /// A channel from its cells; `answers` lists the outputs that each answer may have, in the order of its tallies.
    pub fn new(answers: Vec<Vec<Output>>, cells: Vec<Cell>) -> Result<Self> {
        check_shape(&answers, &cells)?;
        law_of(&cells, Truth::Yes)?;
        law_of(&cells, Truth::No)?;
        let mut channel = Self { answers, cells, noise: None, determined: false };
        channel.determined = linear::has_full_column_rank(&channel.matrix_of_possible_cells());
        Ok(channel)
    }

    /// A channel from its cells alone; the outputs of each answer are those that occur, in their order of appearance.
    pub fn from_cells(cells: Vec<Cell>) -> Result<Self> {
        let count = cells.first().map_or(0, |cell| cell.outputs.len());
        let mut answers = vec![Vec::new(); count];
        for cell in &cells {
            for (outputs, &output) in answers.iter_mut().zip(&cell.outputs) {
                if !outputs.contains(&output) {
                    outputs.push(output);
                }
            }
        }
        Self::new(answers, cells)
    }

    /// The same channel, but all that is published is the number of answers `1`, to which each aggregator adds `noise`.
    ///
    /// Refused for several answers, and if no owner can answer `1`: then there is no such number.
    pub fn with_noise(self, noise: NoiseLaw) -> Result<Self> {
        let refused = |message: &str| {
            Err(Error::parameter(message)
                .with_hint("noise is added to the number of answers 1 of a mechanism with one answer"))
        };
        match self.answers.as_slice() {
            [outputs] if outputs.contains(&Output::ONE) => Ok(Self { noise: Some(noise), ..self }),
            [_] => refused("there is no answer 1 whose number could be published"),
            _ => refused("noise cannot be added to the tallies of several answers"),
        }
    }

    /// The same channel, with noise if there is any.
    pub(crate) fn with_optional_noise(self, noise: Option<NoiseLaw>) -> Result<Self> {
        match noise {
            Some(noise) => self.with_noise(noise),
            None => Ok(self),
        }
    }

    /// The same channel without noise: all tallies are published as they are.
    #[must_use]
    pub fn without_noise(self) -> Self {
        Self { noise: None, ..self }
    }

    /// What each aggregator adds to the published sum; `None` if all tallies are published as they are.
    pub fn noise(&self) -> Option<&NoiseLaw> {
        self.noise.as_ref()
    }

    /// What one owner adds to the number of answers `1`; `None` if there is no such output, or several answers.
    pub fn summed_bit(&self) -> Option<SummedBit> {
        let [outputs] = self.answers.as_slice() else { return None };
        if !outputs.contains(&Output::ONE) {
            return None;
        }
        Some(self.bin_law(Bin { answer: 0, output: Output::ONE }))
    }

    /// The outputs of each answer.
    pub fn answers(&self) -> &[Vec<Output>] {
        &self.answers
    }

    /// The indices of the cells that owners of one truth or the other can give.
    pub(crate) fn possible_cells(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|&cell| self.cells[cell].is_possible()).collect()
    }

    /// The indices of the cells that count in a bin.
    pub fn cells_in(&self, bin: Bin) -> Vec<usize> {
        (0..self.cells.len()).filter(|&cell| self.cells[cell].is_in(bin)).collect()
    }

    /// The bins whose counts are published: with noise, only the number of answers `1`.
    pub(crate) fn published_bins(&self) -> Vec<Bin> {
        let published = |bin: &Bin| self.noise.is_none() || bin.output == Output::ONE;
        self.bins().into_iter().filter(published).collect()
    }

    /// All cells, including impossible ones.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The index of the cell with these outputs.
    pub fn cell_index(&self, outputs: &[Output]) -> Option<usize> {
        self.cells.iter().position(|cell| cell.outputs == outputs)
    }

    /// Whether the tallies determine the count of every cell: then seeing the tallies is seeing the shuffled cells.
    pub fn determined(&self) -> bool {
        self.determined
    }

    /// Whether the tallies determine the count of every class of equal ratio.
    ///
    /// Then they say as much about anybody's truth as the shuffled cells would, though they may not determine the cells.
    pub fn shows_classes(&self) -> bool {
        let rows = self.matrix_of_possible_cells();
        self.determined
            || self.classes().iter().all(|class| linear::combination(&rows, &self.indicator(class)).is_some())
    }

    /// For each possible cell, 1 if it belongs to the class and 0 if not.
    fn indicator(&self, class: &Class) -> Vec<BigRational> {
        self.possible_cells().iter().map(|cell| BigRational::from_integer(class.cells.contains(cell).into())).collect()
    }

    /// All visible counts, answer by answer.
    pub fn bins(&self) -> Vec<Bin> {
        let numbered = self.answers.iter().enumerate();
        numbered.flat_map(|(answer, outputs)| outputs.iter().map(move |&output| Bin { answer, output })).collect()
    }

    /// The matrix from cells to bins: one row per bin, one column per cell, 1 where the cell counts in the bin.
    ///
    /// Estimation needs no more than that the visible numbers are integer combinations of the cell counts.
    pub fn matrix(&self) -> Vec<Vec<i64>> {
        self.bins().into_iter().map(|bin| self.cells.iter().map(|cell| cell.is_in(bin).into()).collect()).collect()
    }

    /// The classes of equal likelihood ratio, in falling order of the ratio yes : no; impossible cells are in none.
    pub fn classes(&self) -> Vec<Class> {
        let mut order = self.possible_cells();
        order.sort_by(|&a, &b| self.compare_ratios(b, a));
        let same_ratio = |&a: &usize, &b: &usize| self.compare_ratios(a, b) == Ordering::Equal;
        order.chunk_by(same_ratio).map(|cells| self.class(cells)).collect()
    }

    fn class(&self, cells: &[usize]) -> Class {
        Class { cells: cells.to_vec(), probability: sum(cells.iter().map(|&cell| &self.cells[cell])) }
    }

    /// The probability of a bin under each truth.
    pub fn bin_law(&self, bin: Bin) -> PerTruth<Probability> {
        sum(self.cells.iter().filter(|cell| cell.is_in(bin)))
    }

    fn compare_ratios(&self, a: usize, b: usize) -> Ordering {
        let numerators = |cell: usize| self.cells[cell].probability.numerators();
        ratio_order(&numerators(a), &numerators(b))
    }

    /// The law over the cells under each truth.
    pub fn laws(&self) -> PerTruth<Law> {
        PerTruth::each(|truth| law_of(&self.cells, truth).expect("checked when the channel was made"))
    }

    /// [`matrix`](Self::matrix) without the columns of impossible cells.
    pub(crate) fn matrix_of_possible_cells(&self) -> Vec<Vec<BigRational>> {
        let possible = |row: Vec<i64>| {
            let columns = row.into_iter().zip(&self.cells).filter(|(_, cell)| cell.is_possible());
            columns.map(|(entry, _)| BigRational::from_integer(entry.into())).collect()
        };
        self.matrix().into_iter().map(possible).collect()
    }
}

impl TryFrom<RawChannel> for Channel {
    type Error = Error;

    fn try_from(raw: RawChannel) -> Result<Self> {
        Self::new(raw.answers, raw.cells)?.with_optional_noise(raw.noise)
    }
}

fn check_shape(answers: &[Vec<Output>], cells: &[Cell]) -> Result<()> {
    let (cell_count, answer_count) = (cells.len(), answers.len());
    if cell_count == 0 || answer_count == 0 {
        return Err(Error::law("a channel needs at least one answer and one cell"));
    }
    if cell_count > MOST_CELLS || answer_count > MOST_ANSWERS {
        return Err(Error::law(format!(
            "{cell_count} cells of {answer_count} answers are more than the {MOST_CELLS} cells of {MOST_ANSWERS} \
             answers supported"
        )));
    }
    for (index, cell) in cells.iter().enumerate() {
        check_outputs(cell, answers)?;
        if cells[..index].iter().any(|other| other.outputs == cell.outputs) {
            return Err(Error::law(format!("cell {} is listed twice", cell.name())));
        }
    }
    Ok(())
}

/// A cell must have one output for each answer, among those of the answer.
fn check_outputs(cell: &Cell, answers: &[Vec<Output>]) -> Result<()> {
    let (has, wants) = (cell.outputs.len(), answers.len());
    if has != wants {
        return Err(Error::law(format!("cell {} has {has} outputs where there are {wants} answers", cell.name())));
    }
    for (answer, (output, allowed)) in cell.outputs.iter().zip(answers).enumerate() {
        if !allowed.contains(output) {
            let (cell, letter) = (cell.name(), answer_name(answer));
            return Err(Error::law(format!("cell {cell}: answer {letter} has no output {output}")));
        }
    }
    Ok(())
}

/// The probabilities of several cells together.
fn sum<'a>(cells: impl Iterator<Item = &'a Cell>) -> PerTruth<Probability> {
    let none = PerTruth { yes: Probability::ZERO, no: Probability::ZERO };
    cells.fold(none, |sum, cell| sum.plus(cell.probability))
}

/// The law over the cells under one truth; refused if it does not sum to one.
fn law_of(cells: &[Cell], truth: Truth) -> Result<Law> {
    let name = PerTruth { yes: "yes", no: "no" }[truth];
    Law::new(name, cells.iter().map(|cell| cell.probability[truth]).collect())
}

/// A cell with its probability under *yes* and under *no*, before they are rounded.
type FractionCell = (Vec<Output>, Fraction, Fraction);

impl Channel {
    /// A channel from exact fractions. Each is rounded once; the most likely cell of each law takes the remainder.
    pub fn from_fractions(cells: Vec<(Vec<Output>, Fraction, Fraction)>) -> Result<Self> {
        let yes = round_law("yes", &cells, |(_, yes, _)| yes)?;
        let no = round_law("no", &cells, |(.., no)| no)?;
        let rounded = cells.into_iter().zip(yes.probabilities().iter().zip(no.probabilities()));
        Self::from_cells(rounded.map(|((outputs, ..), (&yes, &no))| Cell::new(outputs, yes, no)).collect())
    }

    /// A channel from text: `11=0.3:0.45, 12=0.4:0.1, 22=0.3:0.45` gives each cell its two probabilities, yes first.
    pub fn parse_cells(text: &str) -> Result<Self> {
        let cells = text.split(',').map(parse_cell).collect::<Result<_>>()?;
        Self::from_fractions(cells)
    }

    /// This channel as text that [`Channel::parse_cells`] reads back with the identical integers.
    pub fn to_cells_text(&self) -> String {
        let cell = |cell: &Cell| {
            let PerTruth { yes, no } = cell.probability.map(Fraction::from_probability);
            format!("{}={yes}:{no}", cell.name())
        };
        separated(self.cells.iter().map(cell), ", ")
    }
}

/// Rounds a law of exact fractions.
fn round_law(truth: &str, cells: &[FractionCell], part: fn(&FractionCell) -> &Fraction) -> Result<Law> {
    let parts: Vec<&Fraction> = cells.iter().map(part).collect();
    Law::from_fractions(&parts).ok_or_else(|| {
        let sum = parts.iter().map(|part| part.exact().clone()).sum();
        not_one(truth, cells, &sum)
    })
}

fn not_one(truth: &str, cells: &[FractionCell], sum: &BigRational) -> Error {
    let names = separated(cells.iter().map(|(outputs, ..)| name_of(outputs)), ", ");
    let excess = sum - BigRational::one();
    let way = if excess > BigRational::zero() { "much" } else { "little" };
    Error::law(format!(
        "law({truth}) over the cells {names} sums to {}, {} too {way}",
        linear::to_f64(sum),
        linear::to_f64(&excess).abs()
    ))
    .with_hint("write thirds and the like as fractions (1/3), so that they sum exactly")
}

fn parse_cell(text: &str) -> Result<FractionCell> {
    let malformed = || malformed_cell(text.trim());
    let (name, laws) = text.trim().split_once('=').ok_or_else(malformed)?;
    let (yes, no) = laws.split_once(':').ok_or_else(malformed)?;
    let name = name.trim().replace("bottom", "⊥");
    let outputs = name.chars().map(Output::new).collect::<Result<Vec<_>>>()?;
    if outputs.is_empty() {
        return Err(malformed());
    }
    let probability =
        |text: &str, truth: &str| text.parse::<Fraction>().map_err(|error| error.at(format!("cell {name}, {truth}")));
    Ok((outputs, probability(yes, "yes")?, probability(no, "no")?))
}

fn malformed_cell(text: &str) -> Error {
    Error::syntax(format!("`{}` is not a cell with its laws", shortened(text)))
        .with_hint("a cell is written 12=0.4:0.1: its outputs, its probability for yes, and for no")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_that_do_not_sum_to_one_are_refused_with_the_amount() {
        let error = Channel::parse_cells("1=0.5:0.2, 0=0.5:0.7").unwrap_err();
        assert!(error.is_law());
        assert_eq!(error.to_string(), "law(no) over the cells 1, 0 sums to 0.9, 0.1 too little");
        let cells = vec![Cell::new(vec![Output::ONE], Probability::ONE, Probability::ZERO)];
        assert!(Channel::from_cells(cells).unwrap_err().is_law());
    }

    #[test]
    fn bad_cells_are_refused_and_named() {
        for (text, part) in [
            ("1=0.5:0.5, 1=0.5:0.5", "cell 1 is listed twice"),
            ("11=0.5:0.5, 1=0.5:0.5", "cell 1 has 1 outputs"),
            ("1=-0.5:0.5, 0=0.5:0.5", "cell 1, yes: -0.5"),
            ("1=0.5:1.5, 0=0.5:0.5", "cell 1, no: 1.5"),
            ("x=1:1", "`x` is not an output"),
            ("1=1", "`1=1` is not a cell"),
            ("", "is not a cell"),
            ("=1:1", "is not a cell"),
        ] {
            let error = Channel::parse_cells(text).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn thirds_sum_to_one_in_integers() {
        let channel = Channel::parse_cells("1=1/3:1/7, 0=1/3:5/7, ⊥=1/3:1/7").unwrap();
        let sum: u128 = channel.cells().iter().map(|cell| cell.yes().numerator()).sum();
        assert_eq!(sum, 1 << 64);
        assert_eq!(Channel::parse_cells(&channel.to_cells_text()).unwrap(), channel);
    }

    #[test]
    fn classes_are_sorted_by_ratio_and_skip_impossible_cells() {
        let channel = Channel::parse_cells("1=0.125:0.0625, 2=0.5:0.25, 3=0:0, 4=0:0.3125, 5=0.375:0.375").unwrap();
        let members: Vec<_> = channel.classes().into_iter().map(|class| class.cells).collect();
        assert_eq!(members, [vec![0, 1], vec![4], vec![3]]);
        let certain = Channel::parse_cells("1=1:0, 0=0:1").unwrap();
        assert_eq!(certain.classes().len(), 2);
        assert_eq!(Channel::parse_cells("1=1:1").unwrap().classes().len(), 1);
    }

    #[test]
    fn rank_tells_whether_tallies_fix_the_cells() {
        assert!(Channel::parse_cells("11=0.3:0.45, 12=0.4:0.1, 22=0.3:0.45").unwrap().determined());
        let square = Channel::parse_cells("11=0.25:0.5, 12=0.25:0.25, 21=0.25:0.25, 22=0.25:0").unwrap();
        assert!(!square.determined() && !square.shows_classes());
        // Where the ratio depends on the first answer alone, its tally is all there is to see.
        let first = Channel::parse_cells("11=0.25:0.375, 12=0.25:0.375, 21=0.25:0.125, 22=0.25:0.125").unwrap();
        assert!(!first.determined() && first.shows_classes());
        // A cell that never occurs does not spoil it.
        assert!(Channel::parse_cells("11=0.5:0.25, 12=0.25:0.25, 21=0.25:0.5, 22=0:0").unwrap().determined());
    }

    #[test]
    fn serde_checks_the_laws() {
        let channel = Channel::parse_cells("1=0.5:0.25, 0=0.5:0.75").unwrap();
        let json = serde_json::to_string(&channel).unwrap();
        assert_eq!(serde_json::from_str::<Channel>(&json).unwrap(), channel);
        assert!(serde_json::from_str::<Channel>(&json.replace("4611686018427387904", "4611686018427387905")).is_err());
    }
}
