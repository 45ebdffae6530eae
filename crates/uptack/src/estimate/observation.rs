//! What tallies show of a channel: its visible statistics, exactly.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

use crate::channel::{Bin, Cell, Channel, Class, Output};
use crate::error::{Error, Result};
use crate::linear;
use crate::noise::NoiseLaw;
use crate::probability::Probability;
use crate::sums::check_owners;
use crate::tally::Tally;
use crate::truth::PerTruth;

/// A count that can be read off the tallies and is a sum of two binomials: that of a class of cells, or of a bin.
#[derive(Clone, Debug)]
pub(super) struct Statistic {
    /// The probability that an owner is counted.
    pub(super) probability: PerTruth<Probability>,
    /// Which cells it counts.
    pub(super) cells: Vec<bool>,
    /// How it is read off the bins.
    reading: Reading,
}

/// Σ coefficientᵢ·binᵢ / denominator.
#[derive(Clone, Debug)]
struct Reading {
    coefficients: Vec<i128>,
    denominator: i128,
}

/// A sum of numerators of probabilities, as a double.
pub(super) fn probability_of(numerator: u128) -> f64 {
    numerator as f64 / Probability::ONE.numerator() as f64
}

impl Statistic {
    pub(super) fn p(&self) -> f64 {
        self.probability.yes.to_f64()
    }

    pub(super) fn q(&self) -> f64 {
        self.probability.no.to_f64()
    }

    /// p − q, exact before it is rounded.
    pub(super) fn difference(&self) -> f64 {
        self.probability.difference()
    }

    /// Whether the count depends on the truth.
    pub(super) fn is_informative(&self) -> bool {
        self.probability.yes != self.probability.no
    }

    /// count − owners·q, exact before it is rounded.
    pub(super) fn excess(&self, count: i128, owners: u64) -> f64 {
        let expected = u128::from(owners) * self.probability.no.numerator();
        if count < 0 {
            // Only noise makes a count negative, and then nothing cancels.
            return count as f64 - probability_of(expected);
        }
        // Both products are at most 2^127; i128 holds one less, and their difference always.
        let counted = count.unsigned_abs() << Probability::BITS;
        let size = probability_of(counted.abs_diff(expected));
        if counted >= expected { size } else { -size }
    }

    /// The variance of the estimate from this count alone, at `yes` of `owners`.
    pub(super) fn variance(&self, owners: f64, yes: f64) -> f64 {
        let d = self.difference();
        self.count_variance(owners, yes) / (d * d)
    }

    /// The variance of the count at `yes` of `owners`.
    pub(super) fn count_variance(&self, owners: f64, yes: f64) -> f64 {
        let p = self.p();
        let q = self.q();
        yes * p * (1.0 - p) + (owners - yes) * q * (1.0 - q)
    }

    /// Whether it counts the yes-owners and nobody else.
    pub(super) fn counts_yes(&self) -> bool {
        self.probability.yes == Probability::ONE && self.probability.no == Probability::ZERO
    }

    /// The count, given the counts of all cells.
    fn count_in(&self, cells: &[u64]) -> i128 {
        self.cells.iter().zip(cells).map(|(&is_counted, &count)| i128::from(is_counted) * i128::from(count)).sum()
    }
}

/// How the tallies of a channel are read and checked.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) channel: Channel,
    /// One for each bin that is shown.
    pub(super) bins: Vec<Statistic>,
    /// One for each class of equal ratio whose count the tallies show, by falling ratio.
    pub(super) classes: Vec<Statistic>,
    /// Whether the counts of all classes are visible; then they say all that the cells say about the truth.
    pub(super) classes_visible: bool,
    /// Combinations of bins that are 0 whatever the owners wrote.
    identities: Vec<Reading>,
    /// The name and the count of each cell, if the tallies fix them.
    cells: Vec<(String, Reading)>,
}

impl Reader {
    pub(super) fn new(channel: &Channel) -> Self {
        let bins = bin_statistics(channel);
        if channel.noise().is_some() {
            return Self::of_sum(channel, bins);
        }
        let matrix = PossibleMatrix::new(channel);
        let all = channel.classes();
        let classes: Vec<Statistic> = all.iter().filter_map(|class| class_statistic(channel, &matrix, class)).collect();
        Self {
            channel: channel.clone(),
            bins,
            classes_visible: classes.len() == all.len(),
            classes,
            identities: matrix.identities(),
            cells: if channel.determined() { cell_readings(channel, &matrix) } else { Vec::new() },
        }
    }

    /// If aggregators add noise, the number of answers `1` is all that is shown.
    fn of_sum(channel: &Channel, bins: Vec<Statistic>) -> Self {
        let shown = bins.into_iter().zip(channel.bins()).filter(|(_, bin)| bin.output == Output::ONE);
        Self {
            channel: channel.clone(),
            bins: shown.map(|(statistic, _)| statistic).collect(),
            classes: Vec::new(),
            classes_visible: false,
            identities: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Reads a published sum; one that noise cannot explain is refused.
    pub(super) fn read_sum(&self, owners: u64, sum: i64) -> Result<Observation> {
        let Some(noise) = self.channel.noise() else {
            return Err(Error::counts("this mechanism publishes all tallies, not a sum with noise")
                .with_hint("give the tally, or name the noise that was added, as in `… + laplace(scale=2)`"));
        };
        check_owners(owners)?;
        check_sum(noise, owners, sum)?;
        Ok(Observation { owners, bins: vec![i128::from(sum)], classes: Vec::new() })
    }

    /// The number of answers `1` of a channel with one answer, with noise or without; of owners who answer `1` or `0` alone.
    pub(super) fn read_checked(&self, owners: u64, ones: i128) -> Observation {
        if self.channel.noise().is_some() {
            return Observation { owners, bins: vec![ones], classes: Vec::new() };
        }
        let ones = u64::try_from(ones).unwrap_or(0).min(owners);
        self.read_cells(&[ones, owners - ones])
    }

    /// Reads a tally; one that no owners of this channel can have written is refused.
    pub(super) fn read(&self, tally: &Tally) -> Result<Observation> {
        if let Some(noise) = self.channel.noise() {
            return Err(Error::counts(format!("with {noise} a sum is published, not a tally"))
                .with_hint("give the sum with its noise; a tally without noise belongs to the mechanism without it"));
        }
        let bins = tally.bin_counts(&self.channel)?;
        let classes = self
            .class_counts(&bins, tally.owners())
            .map_err(|message| Error::counts(message).with_hint("was the tally made by another mechanism?"))?;
        let bins = bins.into_iter().map(i128::from).collect();
        Ok(Observation { owners: tally.owners(), bins, classes })
    }

    /// The counts of the classes, or how the counts of the bins contradict each other.
    fn class_counts(&self, bins: &[u64], owners: u64) -> Result<Vec<i128>, String> {
        self.check_bins(bins)?;
        let count = |class: &Statistic| class.reading.count(bins).filter(|count| *count <= i128::from(owners));
        let counts = self.classes.iter().map(count).collect::<Option<_>>();
        counts.ok_or_else(|| "the answers contradict each other".to_owned())
    }

    fn check_bins(&self, bins: &[u64]) -> Result<(), String> {
        if let Some(identity) = self.identities.iter().find(|identity| identity.apply(bins) != Some(0)) {
            return Err(self.contradiction(identity));
        }
        match self.cells.iter().find(|(_, cell)| cell.count(bins).is_none()) {
            None => Ok(()),
            Some((name, _)) => {
                Err(format!("the answers contradict each other: the cell {name} would be counted less than 0 times"))
            }
        }
    }

    /// From the counts of the cells themselves.
    pub(super) fn read_cells(&self, cells: &[u64]) -> Observation {
        let counts = |statistics: &[Statistic]| statistics.iter().map(|statistic| statistic.count_in(cells)).collect();
        Observation { owners: cells.iter().sum(), bins: counts(&self.bins), classes: counts(&self.classes) }
    }

    fn contradiction(&self, identity: &Reading) -> String {
        let bins = self.channel.bins();
        let named = bins.iter().zip(&identity.coefficients).filter(|(_, coefficient)| **coefficient != 0);
        let names: Vec<String> = named.map(|(bin, _)| bin.name()).collect();
        format!("the answers contradict each other: the counts {} do not go together", names.join(", "))
    }
}

/// Refuses a sum that noise cannot explain.
fn check_sum(noise: &NoiseLaw, owners: u64, sum: i64) -> Result<()> {
    let reach = i128::from(noise.plausible_reach());
    if (-reach..=i128::from(owners) + reach).contains(&i128::from(sum)) {
        return Ok(());
    }
    let scale = noise.scale();
    Err(Error::counts(format!("a sum of {sum} for {owners} owners cannot be explained by noise of scale {scale}"))
        .with_hint(format!("the noise is within ±{reach}; was the sum made by another mechanism?")))
}

/// The counts read off a tally, or a published sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub(super) owners: u64,
    pub(super) bins: Vec<i128>,
    pub(super) classes: Vec<i128>,
}

impl Observation {
    /// How many owners were counted.
    pub fn owners(&self) -> u64 {
        self.owners
    }

    /// The same after noise was added to the sum.
    pub(crate) fn with_noise(mut self, added: i64) -> Self {
        self.bins.iter_mut().for_each(|sum| *sum += i128::from(added));
        self
    }

    /// The published sum of a channel with noise.
    pub(crate) fn sum(&self) -> i64 {
        i64::try_from(self.bins[0]).unwrap_or(i64::MAX)
    }

    /// The counts of the channel's bins; with noise, the sum alone.
    pub fn bins(&self) -> &[i128] {
        &self.bins
    }
}

impl Reading {
    fn of(coefficients: &[BigRational]) -> Self {
        let denominator = coefficients.iter().fold(BigInt::one(), |lcm, c| lcm.lcm(c.denom()));
        let scaled = |c: &BigRational| (c * &denominator).to_integer().to_i128().unwrap_or(0);
        Self {
            coefficients: coefficients.iter().map(scaled).collect(),
            denominator: denominator.to_i128().unwrap_or(1),
        }
    }

    /// The count of one of `bins` bins.
    fn of_bin(index: usize, bins: usize) -> Self {
        Self { coefficients: (0..bins).map(|other| i128::from(other == index)).collect(), denominator: 1 }
    }

    /// The value, if it is a whole number.
    fn apply(&self, bins: &[u64]) -> Option<i128> {
        let sum: i128 = self.coefficients.iter().zip(bins).map(|(c, &count)| c * i128::from(count)).sum();
        (sum % self.denominator == 0).then_some(sum / self.denominator)
    }

    /// The value, if it is a whole number and not negative.
    fn count(&self, bins: &[u64]) -> Option<i128> {
        self.apply(bins).filter(|count| *count >= 0)
    }
}

/// [`Channel::matrix`] without the columns of impossible cells.
struct PossibleMatrix {
    /// Indices of the cells that can occur.
    cells: Vec<usize>,
    /// One row for each bin, one column for each of these cells.
    rows: Vec<Vec<BigRational>>,
}

impl PossibleMatrix {
    fn new(channel: &Channel) -> Self {
        Self { cells: channel.possible_cells(), rows: channel.matrix_of_possible_cells() }
    }

    /// How the count of some cells is read off the bins, if they show it.
    fn reading(&self, is_counted: impl Fn(usize) -> bool) -> Option<Reading> {
        let entry = |&cell: &usize| if is_counted(cell) { BigRational::one() } else { BigRational::zero() };
        let target: Vec<BigRational> = self.cells.iter().map(entry).collect();
        linear::combination(&self.rows, &target).map(|coefficients| Reading::of(&coefficients))
    }

    /// For each bin that is a combination of those before it, the difference of the two.
    fn identities(&self) -> Vec<Reading> {
        let mut identities = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            let Some(mut coefficients) = linear::combination(&self.rows[..index], row) else { continue };
            coefficients.push(-BigRational::one());
            coefficients.resize(self.rows.len(), BigRational::zero());
            identities.push(Reading::of(&coefficients));
        }
        identities
    }
}

fn bin_statistics(channel: &Channel) -> Vec<Statistic> {
    let matrix = channel.matrix();
    let statistic = |(index, bin): (usize, Bin)| {
        let cells = matrix[index].iter().map(|&entry| entry == 1).collect();
        Statistic { probability: channel.bin_law(bin), cells, reading: Reading::of_bin(index, matrix.len()) }
    };
    channel.bins().into_iter().enumerate().map(statistic).collect()
}

/// The count of a class, if the bins show it.
fn class_statistic(channel: &Channel, matrix: &PossibleMatrix, class: &Class) -> Option<Statistic> {
    let is_counted = |cell: usize| class.cells.contains(&cell);
    let cells = (0..channel.cells().len()).map(is_counted).collect();
    Some(Statistic { probability: class.probability, cells, reading: matrix.reading(is_counted)? })
}

/// The names and the counts of the cells that the bins show; impossible ones are shown to be 0.
fn cell_readings(channel: &Channel, matrix: &PossibleMatrix) -> Vec<(String, Reading)> {
    let reading = |(index, cell): (usize, &Cell)| Some((cell.name(), matrix.reading(|other| other == index)?));
    channel.cells().iter().enumerate().filter_map(reading).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;

    fn reader(text: &str) -> Reader {
        Reader::new(&text.parse::<Mechanism>().unwrap().channel())
    }

    #[test]
    fn tallies_and_cells_give_the_same_observation() {
        for text in [
            "randomized-response(0.8)",
            "noisy-sampling(0.05,0.01)",
            "paired(0.5,0.2,0.05)",
            "cancelling(0.3,0.3,0.3,0.1)",
            "blended(0.05,0.25,0.25,0.05,0.4,1e-4,1e-4)",
            "spread(2,0.5,1e-4)",
            "spread(3,1,1e-4)",
        ] {
            let reader = reader(text);
            let possible = |cell: &crate::Cell| cell.yes() != Probability::ZERO || cell.no() != Probability::ZERO;
            let counts: Vec<u64> = reader
                .channel
                .cells()
                .iter()
                .enumerate()
                .map(|(i, c)| if possible(c) { 3 + i as u64 } else { 0 })
                .collect();
            let tally = Tally::from_cells(&reader.channel, &counts).unwrap();
            assert_eq!(reader.read(&tally).unwrap(), reader.read_cells(&counts), "{text}");
            assert!(reader.classes_visible, "{text}");
        }
    }

    #[test]
    fn contradicting_answers_are_refused() {
        let reader = reader("cancelling(0.3,0.3,0.3,0.1)");
        let read = |json: &str| reader.read(&serde_json::from_str(json).unwrap());
        assert!(read(r#"{"answers":[{"1":4,"2":3,"3":3},{"1":3,"2":3,"3":4}]}"#).is_ok());
        let error = read(r#"{"answers":[{"1":3,"2":3,"3":4},{"1":4,"2":3,"3":3}]}"#).unwrap_err();
        assert!(error.is_counts() && error.to_string().contains("cell"), "{error}");
        let never = Reader::new(&"noisy-sampling(0.05,0.01)".parse::<Mechanism>().unwrap().channel());
        let error = never.read(&serde_json::from_str(r#"{"answers":[{"1":3,"0":1,"⊥":9}]}"#).unwrap()).unwrap_err();
        assert!(error.to_string().contains("A0"), "{error}");
    }

    #[test]
    fn excess_is_exact_for_the_largest_counts() {
        let statistic = &reader("randomized-response(0.8)").bins[0];
        let owners = 1u64 << 62;
        let expected = (u128::from(owners) * statistic.probability.no.numerator()) >> 64;
        let excess = statistic.excess(expected as i128 + 10, owners);
        assert!((excess - 10.0).abs() <= 1.0, "{excess}");
    }
}
