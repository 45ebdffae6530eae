//! What tallies show of a channel: its visible statistics, exactly.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

use crate::channel::{Channel, Output};
use crate::error::Error;
use crate::linear;
use crate::probability::Probability;
use crate::sums::check_owners;
use crate::tally::Tally;

/// A count that can be read off the tallies and is a sum of two binomials: that of a class of cells, or of a bin.
#[derive(Clone, Debug)]
pub(super) struct Statistic {
    /// The probability that an owner is counted, by truth.
    pub(super) yes: Probability,
    pub(super) no: Probability,
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

impl Statistic {
    pub(super) fn p(&self) -> f64 {
        self.yes.to_f64()
    }

    pub(super) fn q(&self) -> f64 {
        self.no.to_f64()
    }

    /// p − q, exact before it is rounded.
    pub(super) fn difference(&self) -> f64 {
        (self.yes.numerator() as i128 - self.no.numerator() as i128) as f64 / Probability::ONE.numerator() as f64
    }

    /// count − owners·q, exact before it is rounded.
    pub(super) fn excess(&self, count: i128, owners: u64) -> f64 {
        let expected = u128::from(owners) * self.no.numerator();
        if count < 0 {
            // Only noise makes a count negative, and then nothing cancels.
            return count as f64 - expected as f64 / Probability::ONE.numerator() as f64;
        }
        // Both products are at most 2^127; i128 holds one less, and their difference always.
        let counted = count.unsigned_abs() << Probability::BITS;
        let size = counted.abs_diff(expected) as f64 / Probability::ONE.numerator() as f64;
        if counted >= expected { size } else { -size }
    }

    /// The variance of the estimate from this count alone, at `yes` of `owners`.
    pub(super) fn variance(&self, owners: f64, yes: f64) -> f64 {
        let d = self.difference();
        self.count_variance(owners, yes) / (d * d)
    }

    /// The variance of the count at `yes` of `owners`.
    pub(super) fn count_variance(&self, owners: f64, yes: f64) -> f64 {
        let (p, q) = (self.p(), self.q());
        yes * p * (1.0 - p) + (owners - yes) * q * (1.0 - q)
    }

    /// Whether it counts the yes-owners and nobody else.
    pub(super) fn counts_yes(&self) -> bool {
        self.yes == Probability::ONE && self.no == Probability::ZERO
    }
}

/// How the tallies of a channel are read and checked.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) channel: Channel,
    /// One for each bin that is shown.
    pub(super) bins: Vec<Statistic>,
    /// One a class of equal ratio, where the tallies show its count; the class's place in the falling ratios beside it.
    pub(super) classes: Vec<Statistic>,
    /// Whether the counts of all classes are visible; then they say all that the cells say about the truth.
    pub(super) classes_visible: bool,
    /// Combinations of bins that are 0 whatever the owners wrote.
    identities: Vec<Reading>,
    /// The count of each cell, where the tallies fix it.
    cells: Vec<(String, Reading)>,
}

impl Reader {
    pub(super) fn new(channel: &Channel) -> Self {
        let matrix = channel.matrix();
        let bins = (0..matrix.len()).map(|bin| bin_statistic(channel, &matrix, bin)).collect();
        if channel.noise().is_some() {
            return Self::of_sum(channel, bins);
        }
        let rows: Vec<Vec<BigRational>> = matrix.iter().map(|row| row.iter().map(|&e| rational(e)).collect()).collect();
        let all = channel.classes();
        let classes: Vec<Statistic> = all.iter().filter_map(|class| class_statistic(channel, &rows, class)).collect();
        Self {
            channel: channel.clone(),
            bins,
            classes_visible: classes.len() == all.len(),
            classes,
            identities: identities(&rows, channel),
            cells: if channel.determined() { cell_readings(channel, &rows) } else { Vec::new() },
        }
    }

    /// Where aggregators add noise, the number of answers `1` is all that is shown.
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
    pub(super) fn read_sum(&self, owners: u64, sum: i64) -> Result<Observation, Error> {
        let Some(noise) = self.channel.noise() else {
            return Err(Error::counts("this mechanism publishes all tallies, not a sum with noise")
                .with_hint("give the tally, or name the noise that was added, as in `… + laplace(scale=2)`"));
        };
        check_owners(owners)?;
        let (reach, sum) = (i128::from(noise.plausible_reach()), i128::from(sum));
        if sum < -reach || sum > i128::from(owners) + reach {
            return Err(Error::counts(format!(
                "a sum of {sum} for {owners} owners cannot be explained by noise of scale {}",
                noise.scale()
            ))
            .with_hint(format!("the noise is within ±{reach}; was the sum made by another mechanism?")));
        }
        Ok(Observation { owners, bins: vec![sum], classes: Vec::new() })
    }

    /// Reads a tally; one that no owners of this channel can have written is refused.
    pub(super) fn read(&self, tally: &Tally) -> Result<Observation, Error> {
        if let Some(noise) = self.channel.noise() {
            return Err(Error::counts(format!("with {noise} a sum is published, not a tally"))
                .with_hint("give the sum with its noise; a tally without noise belongs to the mechanism without it"));
        }
        let bins = tally.bin_counts(&self.channel)?;
        let classes = self
            .class_counts(&bins, tally.owners())
            .map_err(|message| Error::counts(message).with_hint("was the tally made by another mechanism?"))?;
        let signed = |counts: Vec<u64>| counts.into_iter().map(i128::from).collect();
        Ok(Observation { owners: tally.owners(), bins: signed(bins), classes: signed(classes) })
    }

    /// The counts of the classes, or how the counts of the bins contradict each other.
    fn class_counts(&self, bins: &[u64], owners: u64) -> Result<Vec<u64>, String> {
        if let Some(identity) = self.identities.iter().find(|identity| identity.apply(bins) != Some(0)) {
            return Err(self.contradiction(identity));
        }
        let negative = |cell: &Reading| cell.apply(bins).is_none_or(|count| count < 0);
        if let Some((name, _)) = self.cells.iter().find(|(_, cell)| negative(cell)) {
            return Err(format!(
                "the answers contradict each other: the cell {name} would be counted less than 0 times"
            ));
        }
        let count = |class: &Statistic| class.reading.apply(bins).and_then(|count| u64::try_from(count).ok());
        let classes = self.classes.iter().map(count).collect::<Option<Vec<u64>>>();
        let classes = classes.filter(|counts| counts.iter().all(|&count| count <= owners));
        classes.ok_or_else(|| "the answers contradict each other".to_owned())
    }

    /// From the counts of the cells themselves.
    pub(super) fn read_cells(&self, cells: &[u64]) -> Observation {
        let count = |statistic: &Statistic| {
            statistic
                .cells
                .iter()
                .zip(cells)
                .filter(|(counted, _)| **counted)
                .map(|(_, &count)| i128::from(count))
                .sum()
        };
        Observation {
            owners: cells.iter().sum(),
            bins: self.bins.iter().map(count).collect(),
            classes: self.classes.iter().map(count).collect(),
        }
    }

    fn contradiction(&self, identity: &Reading) -> String {
        let bins = self.channel.bins();
        let named = bins.iter().zip(&identity.coefficients).filter(|(_, coefficient)| **coefficient != 0);
        let names: Vec<String> = named.map(|(bin, _)| bin.name()).collect();
        format!("the answers contradict each other: the counts {} do not go together", names.join(", "))
    }
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

    /// The value, if it is a whole number.
    fn apply(&self, bins: &[u64]) -> Option<i128> {
        let sum: i128 = self.coefficients.iter().zip(bins).map(|(c, &count)| c * i128::from(count)).sum();
        (sum % self.denominator == 0).then_some(sum / self.denominator)
    }
}

fn rational(entry: i64) -> BigRational {
    BigRational::from_integer(entry.into())
}

fn bin_statistic(channel: &Channel, matrix: &[Vec<i64>], bin: usize) -> Statistic {
    let (yes, no) = channel.bin_law(channel.bins()[bin]);
    let coefficients = (0..matrix.len()).map(|other| i128::from(other == bin)).collect();
    let cells = matrix[bin].iter().map(|&entry| entry == 1).collect();
    Statistic { yes, no, cells, reading: Reading { coefficients, denominator: 1 } }
}

fn class_statistic(channel: &Channel, rows: &[Vec<BigRational>], class: &crate::channel::Class) -> Option<Statistic> {
    let cells: Vec<bool> = (0..channel.cells().len()).map(|cell| class.cells.contains(&cell)).collect();
    let target: Vec<BigRational> = cells.iter().map(|&counted| rational(i64::from(counted))).collect();
    let reading = Reading::of(&over_possible(channel, rows, &target)?);
    Some(Statistic { yes: class.yes, no: class.no, cells, reading })
}

/// The combination of bins that equals `target` on every cell that can occur.
fn over_possible(channel: &Channel, rows: &[Vec<BigRational>], target: &[BigRational]) -> Option<Vec<BigRational>> {
    let possible = |row: &[BigRational]| -> Vec<BigRational> {
        channel.possible_cells().into_iter().map(|cell| row[cell].clone()).collect()
    };
    let rows: Vec<_> = rows.iter().map(|row| possible(row)).collect();
    linear::combination(&rows, &possible(target))
}

fn identities(rows: &[Vec<BigRational>], channel: &Channel) -> Vec<Reading> {
    let mut identities = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(mut coefficients) = over_possible(channel, &rows[..index], row) else { continue };
        coefficients.push(-BigRational::one());
        coefficients.resize(rows.len(), BigRational::zero());
        identities.push(Reading::of(&coefficients));
    }
    identities
}

fn cell_readings(channel: &Channel, rows: &[Vec<BigRational>]) -> Vec<(String, Reading)> {
    let unit = |cell: usize| (0..channel.cells().len()).map(|other| rational(i64::from(other == cell))).collect();
    let reading = |cell: usize| {
        let target: Vec<BigRational> = unit(cell);
        let coefficients = over_possible(channel, rows, &target)?;
        Some((channel.cells()[cell].name(), Reading::of(&coefficients)))
    };
    (0..channel.cells().len()).filter_map(reading).collect()
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
        let expected = (u128::from(owners) * statistic.no.numerator()) >> 64;
        let excess = statistic.excess(expected as i128 + 10, owners);
        assert!((excess - 10.0).abs() <= 1.0, "{excess}");
    }
}
