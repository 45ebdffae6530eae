//! Channels from exact fractions, and as text.

use num_rational::BigRational;
use num_traits::{One, Zero};

use super::{Cell, Channel, Output, name_of};
use crate::display::separated;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::linear;
use crate::output::shortened;
use crate::probability::Probability;

/// A cell with its probability under *yes* and under *no*, before they are rounded.
type ExactCell = (Vec<Output>, Fraction, Fraction);

impl Channel {
    /// A channel from exact fractions. Each is rounded once; the most likely cell of each law takes the remainder.
    pub fn from_fractions(cells: Vec<(Vec<Output>, Fraction, Fraction)>) -> Result<Self> {
        let yes = round_law("yes", &cells, |(_, yes, _)| yes)?;
        let no = round_law("no", &cells, |(.., no)| no)?;
        let rounded = cells.into_iter().zip(yes.into_iter().zip(no));
        Self::from_cells(rounded.map(|((outputs, ..), (yes, no))| Cell::new(outputs, yes, no)).collect())
    }

    /// A channel from text: `11=0.3:0.45, 12=0.4:0.1, 22=0.3:0.45` gives each cell its two probabilities, yes first.
    pub fn parse_cells(text: &str) -> Result<Self> {
        let cells = text.split(',').map(parse_cell).collect::<Result<_>>()?;
        Self::from_fractions(cells)
    }

    /// This channel as text that [`Channel::parse_cells`] reads back with the identical integers.
    pub fn to_cells_text(&self) -> String {
        let cell = |cell: &Cell| {
            let [yes, no] = [cell.yes, cell.no].map(Fraction::from_probability);
            format!("{}={yes}:{no}", cell.name())
        };
        separated(self.cells.iter().map(cell), ", ")
    }
}

/// Rounds each probability of a law by itself and gives the remainder to the most likely cell, the first of several.
fn round_law(truth: &str, cells: &[ExactCell], law: fn(&ExactCell) -> &Fraction) -> Result<Vec<Probability>> {
    let sum: BigRational = cells.iter().map(|cell| law(cell).exact().clone()).sum();
    if !sum.is_one() {
        return Err(not_one(truth, cells, &sum));
    }
    let rounded = cells.iter().map(|cell| law(cell).round().numerator()).collect();
    with_remainder(rounded).into_iter().map(Probability::from_numerator).collect()
}

/// Gives what is left of one to the largest number, the first of several.
fn with_remainder(mut rounded: Vec<u128>) -> Vec<u128> {
    let most_likely = (0..rounded.len()).max_by_key(|&cell| (rounded[cell], usize::MAX - cell)).unwrap_or(0);
    let others = rounded.iter().sum::<u128>() - rounded[most_likely];
    rounded[most_likely] = Probability::ONE.numerator() - others;
    rounded
}

fn not_one(truth: &str, cells: &[ExactCell], sum: &BigRational) -> Error {
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

fn parse_cell(text: &str) -> Result<ExactCell> {
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
