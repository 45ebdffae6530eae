//! Channels: their numbers, their sampler, their estimates.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use uptack::contribution::{AnyMechanism, Contributions};
use uptack::estimate::{Confidence, Estimator, IntervalKind};
use uptack::{
    Cell, Channel, Coins, Fraction, Mechanism, NoiseLaw, OsCoins, Output, Sampler, SeededCoins, Sums, Tally, Truth,
    Truths, algebra, mechanism::Custom, privacy, simulate,
};
use uptack_document::{ChannelDocument, Estimates, any_mechanism_from_json};

use crate::failure::{PyFailure, Result, to_text};

/// A mechanism with its channel.
#[pyclass(name = "Channel", module = "uptack._core", frozen)]
pub(crate) struct PyChannel {
    pub(crate) mechanism: Mechanism,
    pub(crate) channel: Channel,
    sampler: Sampler,
}

/// A cell's outputs, and its probabilities as fractions, yes first.
type WrittenCell = (String, String, String);

/// Owners drawn between two checks for signals.
const CHUNK: usize = 1 << 20;

impl PyChannel {
    pub(crate) fn new(mechanism: Mechanism) -> Self {
        let channel = mechanism.channel();
        let sampler = Sampler::new(&channel);
        Self { mechanism, channel, sampler }
    }

    fn tally(&self, cells: &[u64]) -> Result<Tally> {
        Ok(Tally::from_cells(&self.channel, cells)?)
    }

    fn draw_chunk(&self, truths: &Truths, coins: &mut Tossed) -> Result<Vec<u8>, uptack::Error> {
        let cells = match coins {
            Tossed::System => self.sampler.draw_many(truths, &mut OsCoins)?,
            Tossed::Seeded(coins) => self.sampler.draw_many_seeded(truths, coins),
        };
        // A channel has at most 64 cells.
        Ok(cells.iter().map(|cell| cell as u8).collect())
    }
}

/// Where coins come from.
pub(crate) enum Tossed {
    System,
    Seeded(Box<SeededCoins>),
}

impl Tossed {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::System, |seed| Self::Seeded(Box::new(SeededCoins::new(seed))))
    }
}

#[pymethods]
impl PyChannel {
    /// From a text such as `randomized-response(t=0.8)`.
    #[staticmethod]
    fn parse(text: &str) -> Result<Self> {
        match text.parse()? {
            AnyMechanism::YesNo(mechanism) => Ok(Self::new(*mechanism)),
            AnyMechanism::Contributions(asked) => Err(has_options(&asked)),
        }
    }

    /// From the JSON of a channel.
    #[staticmethod]
    fn from_json(text: &str) -> Result<Self> {
        match any_mechanism_from_json(text)? {
            AnyMechanism::YesNo(mechanism) => Ok(Self::new(*mechanism)),
            AnyMechanism::Contributions(asked) => Err(has_options(&asked)),
        }
    }

    /// From cells, each with its name and its two probabilities as text.
    #[staticmethod]
    fn from_cells(cells: Vec<WrittenCell>) -> Result<Self> {
        let cells = cells.iter().map(read_cell).collect::<Result<Vec<_>, _>>()?;
        let custom = Custom::new(Channel::from_fractions(cells)?)?;
        Ok(Self::new(Mechanism::Custom(custom)))
    }

    /// The mechanism as text that every command takes.
    #[getter]
    fn mechanism(&self) -> String {
        self.mechanism.to_string()
    }

    /// The noise that each aggregator adds, as text.
    #[getter]
    fn noise(&self) -> Option<String> {
        self.channel.noise().map(ToString::to_string)
    }

    /// Whether the tallies fix the count of every cell.
    #[getter]
    fn determined(&self) -> bool {
        self.channel.determined()
    }

    /// The outputs of each answer.
    #[getter]
    fn answers(&self) -> Vec<Vec<String>> {
        self.channel.answers().iter().map(|outputs| outputs.iter().map(Output::to_string).collect()).collect()
    }

    /// Each cell's name and its integers over 2⁶⁴, yes first.
    #[getter]
    fn cells(&self) -> Vec<(String, u128, u128)> {
        let cell = |cell: &Cell| (cell.name(), cell.yes().numerator(), cell.no().numerator());
        self.channel.cells().iter().map(cell).collect()
    }

    /// The output of `uptack channel --json`.
    fn document(&self) -> PyResult<String> {
        to_text(&ChannelDocument::new(self.mechanism.to_string(), &self.channel))
    }

    /// The channel in the notation of the privacy algebra.
    fn algebra(&self) -> String {
        algebra::to_text(&self.channel)
    }

    /// Local ε of the whole cell.
    fn linked_epsilon(&self) -> Option<f64> {
        privacy::linked_epsilon(&self.channel)
    }

    /// Local ε of one answer.
    fn answer_epsilon(&self, answer: usize) -> Result<Option<f64>> {
        Ok(privacy::answer_epsilon(&self.channel, answer)?)
    }

    /// The predicted standard deviation of the estimate.
    fn sd(&self, owners: u64, yes: f64) -> Result<f64> {
        Ok(Estimator::new(&self.channel)?.sd(owners, yes)?)
    }

    /// One cell per owner.
    fn privatize<'py>(
        &self,
        py: Python<'py>,
        truths: PyReadonlyArray1<'py, bool>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let truths = truths.as_array();
        let (mut coins, mut drawn) = (Tossed::new(seed), with_capacity(truths.len())?);
        let mut packed = Truths::new();
        for chunk in truths.axis_chunks_iter(numpy::ndarray::Axis(0), CHUNK) {
            packed.clear();
            chunk.iter().for_each(|&truth| packed.push(Truth::from_bool(truth)));
            let (truths, coins) = (&packed, &mut coins);
            let cells = py.detach(move || self.draw_chunk(truths, coins)).map_err(PyFailure::from)?;
            drawn.extend_from_slice(&cells);
            py.check_signals()?;
        }
        Ok(drawn.into_pyarray(py))
    }

    /// How many owners of a crowd are in each cell.
    fn draw_counts(&self, owners: u64, yes: u64, seed: Option<u64>) -> Result<Vec<u64>> {
        Ok(simulate::draw_counts(&self.channel, owners, yes, &mut SeededCoins::new(seed_or_random(seed)?))?)
    }

    /// The tally of counted cells, as `uptack tally --json` prints it.
    fn tally_of_cells(&self, cells: Vec<u64>) -> PyResult<String> {
        to_text(&self.tally(&cells)?)
    }

    /// The release of two aggregators from counted cells: the owners, and the number of answers 1 with both draws of noise.
    fn publish(&self, cells: Vec<u64>, seed: Option<u64>) -> Result<(u64, i64)> {
        let tally = self.tally(&cells)?;
        let noise = self
            .channel
            .noise()
            .ok_or_else(|| PyFailure::request("this mechanism has no noise: all tallies are published as they are"))?;
        let sums = match seed {
            None => Sums::of_tally(&tally, noise, &mut OsCoins)?,
            Some(seed) => seeded_sums(&tally, noise, seed)?,
        };
        Ok((sums.owners(), sums.sums()[0]))
    }

    /// The estimate from counted cells.
    fn estimate_cells(&self, py: Python<'_>, cells: Vec<u64>, confidence: &str, interval: &str) -> PyResult<String> {
        self.estimate_from(py, &self.tally(&cells)?, confidence, interval)
    }

    /// The estimate from a tally as JSON.
    fn estimate_tally(&self, py: Python<'_>, tally: &str, confidence: &str, interval: &str) -> PyResult<String> {
        self.estimate_from(py, &read_tally(tally)?, confidence, interval)
    }

    /// The estimate from a published sum.
    fn estimate_sum(
        &self,
        py: Python<'_>,
        owners: u64,
        sum: i64,
        confidence: &str,
        interval: &str,
    ) -> PyResult<String> {
        let solve = |level, kind| Estimates::of_sum(&self.channel, (owners, sum), level, kind);
        self.estimate(py, confidence, interval, solve)
    }
}

impl PyChannel {
    fn estimate_from(&self, py: Python<'_>, tally: &Tally, confidence: &str, interval: &str) -> PyResult<String> {
        self.estimate(py, confidence, interval, |level, kind| Estimates::of_tally(&self.channel, tally, level, kind))
    }

    /// An estimate at the confidence and with the interval that are asked for.
    fn estimate(
        &self,
        py: Python<'_>,
        confidence: &str,
        interval: &str,
        solve: impl FnOnce(Confidence, IntervalKind) -> Result<Estimates, uptack::Error> + Send,
    ) -> PyResult<String> {
        let (level, kind) = (read_confidence(confidence)?, read_interval(interval)?);
        let solved = py.detach(|| solve(level, kind)).map_err(PyFailure::from)?;
        to_text(&solved.document(self.mechanism.to_string(), level))
    }
}

fn has_options(asked: &Contributions) -> PyFailure {
    PyFailure::request(format!("{asked} has options, and a channel is about a yes/no question"))
        .with_hint(format!("Contributions(\"{asked}\")"))
}

fn read_cell((name, yes, no): &WrittenCell) -> Result<(Vec<Output>, Fraction, Fraction), uptack::Error> {
    let outputs = name.replace("bottom", "⊥").chars().map(Output::new).collect::<Result<_, _>>()?;
    let probability =
        |truth: &str, text: &str| text.parse::<Fraction>().map_err(|error| error.at(format!("cell {name}, {truth}")));
    Ok((outputs, probability("yes", yes)?, probability("no", no)?))
}

/// An empty vector with room for `length` items, or Python's own exception if there is not enough memory.
pub(crate) fn with_capacity<T>(length: usize) -> PyResult<Vec<T>> {
    let mut cells = Vec::new();
    cells.try_reserve_exact(length).map_err(|error| pyo3::exceptions::PyMemoryError::new_err(error.to_string()))?;
    Ok(cells)
}

/// The published sums with both aggregators' noise from one seed.
fn seeded_sums(tally: &Tally, noise: &NoiseLaw, seed: u64) -> Result<Sums, uptack::Error> {
    let mut coins = SeededCoins::new(seed);
    let added = noise.draw_seeded(&mut coins).saturating_add(noise.draw_seeded(&mut coins));
    let ones = i64::try_from(tally.count(0, Output::ONE)).unwrap_or(i64::MAX);
    Sums::new(tally.owners(), vec![ones.saturating_add(added)])
}

fn read_tally(text: &str) -> Result<Tally> {
    serde_json::from_str(text).map_err(|error| {
        PyFailure::request(format!("not a tally: {error}"))
            .with_hint("a tally is a dict such as {\"answers\": [{\"1\": 260, \"0\": 240, \"⊥\": 500}]}")
    })
}

/// The seed that is given, or else a random one.
pub(crate) fn seed_or_random(seed: Option<u64>) -> Result<u64> {
    Ok(seed.map_or_else(new_seed, Ok)?)
}

/// A random seed, small enough to be typed again.
fn new_seed() -> Result<u64, uptack::Error> {
    let mut bytes = [0; 4];
    OsCoins.fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes).into())
}

/// A confidence from text. Its complement is computed exactly, so 99.9999 % means what it says.
pub(crate) fn read_confidence(text: &str) -> Result<Confidence> {
    let level: Fraction = text.parse()?;
    Confidence::of_miss(level.complement().to_f64()).map_err(|_| {
        PyFailure::request(format!("confidence: {level} is not between 0 and 1 - 1e-12"))
            .with_hint("write 0.95 or \"95%\"")
    })
}

/// A kind of interval by its name.
pub(crate) fn read_interval(name: &str) -> Result<IntervalKind> {
    let kinds: BTreeMap<&str, IntervalKind> =
        [IntervalKind::Auto, IntervalKind::Exact, IntervalKind::MidP, IntervalKind::Score]
            .map(|kind| (uptack_document::interval_name(kind), kind))
            .into();
    kinds.get(name).copied().ok_or_else(|| {
        PyFailure::request(format!("interval: `{}` is not a kind of interval", name.escape_debug()))
            .with_hint("it is auto, exact, mid-p or score")
    })
}
