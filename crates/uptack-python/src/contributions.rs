//! Mechanisms with options: their numbers, their sampler, their estimates.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use serde_json::{Value, json};
use uptack::contribution::{
    AnyMechanism, Bins, Choice, Choices, Contributed, ContributionSampler, Contributions, OptionNames, RowHeader,
};
use uptack::estimate::options::OptionEstimator;
use uptack::estimate::{Confidence, Interval};
use uptack::privacy::contributions::linked_epsilon;
use uptack::{
    Mechanism, NoiseLaw, OptionCounts, OsCoins, Output, Published, Sampler, SeededCoins, Sums, Truth, Truths,
};
use uptack_document::{EstimatedOptions, OptionScale, OptionTally, any_mechanism_from_json, contributions_json};

use crate::channel::{PyChannel, Tossed, read_confidence, read_interval, with_capacity};
use crate::failure::{PyFailure, Result, to_text};

/// A mechanism with options, and what the options are called.
#[pyclass(name = "Contributions", module = "uptack._core", frozen)]
pub(crate) struct PyContributions {
    pub(crate) asked: Contributions,
    pub(crate) names: OptionNames,
    /// Whether the options have names of their own, and are not only numbered.
    is_named: bool,
    bins: Option<Bins>,
    sampler: OptionSampler,
}

/// Contributions drawn between two checks for signals.
const CHUNK: usize = 1 << 20;
/// No contribution, in arrays.
const NONE: i32 = -1;

impl PyContributions {
    fn new(asked: Contributions, options: Option<Vec<String>>, bins: Option<Vec<f64>>) -> Result<Self> {
        let bins = bins.map(|edges| checked_bins(&asked, edges)).transpose()?;
        let given = match (&bins, options) {
            (Some(bins), _) => Some(bins.names()),
            (None, Some(names)) => Some(OptionNames::new(names).map_err(|error| error.at("options"))?),
            (None, None) => None,
        };
        let is_named = given.is_some();
        let names = given.unwrap_or_else(|| OptionNames::numbered(asked.options()));
        check_number(&asked, &names)?;
        let sampler = OptionSampler::new(&asked);
        Ok(Self { asked, names, is_named, bins, sampler })
    }

    /// A mechanism whose options are numbered.
    pub(crate) fn unnamed(asked: Contributions) -> Self {
        let (names, sampler) = (OptionNames::numbered(asked.options()), OptionSampler::new(&asked));
        Self { asked, names, is_named: false, bins: None, sampler }
    }

    fn read_tally(&self, text: &str) -> Result<OptionTally> {
        OptionTally::from_json(text).map_err(|message| {
            PyFailure::of_kind("counts", format!("not counts of options: {message}"))
                .with_hint("such as {\"owners\": 1000, \"counts\": [260, 740]}, or with noise \"sums\"")
        })
    }

    /// The options' names: our own, or else those of the counts.
    fn names_of(&self, tally: &OptionTally) -> Result<OptionNames> {
        let Some(stated) = tally.options() else { return Ok(self.names.clone()) };
        let stated = OptionNames::new(stated.iter().cloned())?;
        check_number(&self.asked, &stated)?;
        if self.is_named && stated.names() != self.names.names() {
            return Err(other_options(&self.names, &stated));
        }
        Ok(stated)
    }

    fn scale(&self, values: Option<Vec<Option<f64>>>) -> OptionScale {
        match (values, &self.bins) {
            (Some(values), _) => OptionScale::Values(values),
            (None, Some(bins)) => OptionScale::Bins(bins.clone()),
            (None, None) => OptionScale::None,
        }
    }

    fn read_options(&self, options: &[usize]) -> Result<()> {
        match options.iter().find(|&&option| option >= self.asked.options()) {
            None => Ok(()),
            Some(option) => Err(PyFailure::request(format!("{option} is not the index of an option"))
                .with_hint(format!("indices are from 0 to {}", self.asked.options() - 1))),
        }
    }
}

/// The mechanism of a text: a channel, or one with options.
#[pyfunction]
pub(crate) fn mechanism(py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
    match text.parse().map_err(PyFailure::from)? {
        AnyMechanism::YesNo(mechanism) => Ok(Py::new(py, PyChannel::new(*mechanism))?.into_any()),
        AnyMechanism::Contributions(asked) => Ok(Py::new(py, PyContributions::unnamed(*asked))?.into_any()),
    }
}

fn checked_bins(asked: &Contributions, edges: Vec<f64>) -> Result<Bins> {
    let bins = Bins::new(edges).map_err(|error| error.at("bins"))?;
    let (has, wants) = (bins.options(), asked.options());
    if has == wants {
        return Ok(bins);
    }
    Err(PyFailure::request(format!("bins: {} edges make {has} options, but {asked} has {wants}", bins.edges().len()))
        .with_hint("below the first edge, from the last edge on and no value are options of their own"))
}

fn check_number(asked: &Contributions, names: &OptionNames) -> Result<()> {
    let (has, wants) = (names.len(), asked.options());
    if has == wants {
        return Ok(());
    }
    Err(PyFailure::request(format!("options: {has} are named, but {asked} has {wants}"))
        .with_hint("name every option of the mechanism"))
}

fn no_options(mechanism: &Mechanism) -> PyFailure {
    PyFailure::request(format!("{mechanism} is about a yes/no question, which has no options")).with_hint(format!(
        "Channel(\"{mechanism}\"); options belong to choice(k=…,r=…) and contributions(counts=…,most=…,r=…)"
    ))
}

fn other_options(ours: &OptionNames, theirs: &OptionNames) -> PyFailure {
    let index = (0..ours.len()).find(|&index| ours.name(index) != theirs.name(index)).unwrap_or(0);
    let (ours, theirs) = (ours.name(index), theirs.name(index));
    PyFailure::of_kind("counts", format!("counts of other options: option {} is `{theirs}`, not `{ours}`", index + 1))
        .with_hint("were they made from another question?")
}

#[pymethods]
impl PyContributions {
    /// From a text such as `choice(k=4,r=0.001)`, with the names of the options or the edges of bins.
    #[staticmethod]
    fn parse(text: &str, options: Option<Vec<String>>, bins: Option<Vec<f64>>) -> Result<Self> {
        match text.parse()? {
            AnyMechanism::Contributions(asked) => Self::new(*asked, options, bins),
            AnyMechanism::YesNo(mechanism) => Err(no_options(&mechanism)),
        }
    }

    /// From the JSON that `uptack channel --json` prints.
    #[staticmethod]
    fn from_json(text: &str) -> Result<Self> {
        match any_mechanism_from_json(text)? {
            AnyMechanism::Contributions(asked) => Ok(Self::unnamed(*asked)),
            AnyMechanism::YesNo(mechanism) => Err(no_options(&mechanism)),
        }
    }

    /// The mechanism as text that every command takes.
    #[getter]
    fn mechanism(&self) -> String {
        self.asked.to_string()
    }

    /// The names of the options; none if they are numbered.
    #[getter]
    fn given_names(&self) -> Option<Vec<String>> {
        self.is_named.then(|| self.names.names().to_vec())
    }

    /// The names of the options, which are numbers if they have none.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.names().to_vec()
    }

    /// The edges of the bins that the options are.
    #[getter]
    fn bins(&self) -> Option<Vec<f64>> {
        self.bins.as_ref().map(|bins| bins.edges().to_vec())
    }

    /// How many counts are published.
    #[getter]
    fn counts(&self) -> usize {
        self.asked.counts()
    }

    /// How many contributions an owner makes.
    #[getter]
    fn most(&self) -> u32 {
        self.asked.most()
    }

    /// Whether every owner has exactly one option.
    #[getter]
    fn is_choice(&self) -> bool {
        self.asked.is_choice()
    }

    /// Whether an owner can fail to name any option.
    #[getter]
    fn has_silence(&self) -> bool {
        self.asked.law().silent().numerator() > 0
    }

    /// The noise that each aggregator adds, as text.
    #[getter]
    fn noise(&self) -> Option<String> {
        self.asked.noise().map(ToString::to_string)
    }

    /// The yes/no channel that this is, if it is one.
    fn yes_no(&self) -> Option<PyChannel> {
        self.asked.yes_no().map(PyChannel::new)
    }

    /// The output of `uptack channel --json`.
    fn document(&self) -> PyResult<String> {
        to_text(&contributions_json(&self.asked))
    }

    /// Local ε of everything that one owner sends.
    fn linked_epsilon(&self) -> Option<f64> {
        linked_epsilon(&self.asked)
    }

    /// The predicted standard deviation of the estimate of one option.
    fn sd(&self, owners: u64, holders: f64) -> Result<f64> {
        Ok(OptionEstimator::new(&self.asked)?.sd(owners, holders)?)
    }

    /// The index of the option that a text names. The error does not repeat the text.
    fn index(&self, text: &str) -> Result<usize> {
        self.names.index(text).map_err(|error| {
            PyFailure::of_kind("input", "not an option").with_hint(error.hint().unwrap_or("name one of the options"))
        })
    }

    /// The options of numbers, by the bins; NaN is no value.
    fn binned(&self, values: PyReadonlyArray1<'_, f64>) -> Result<Vec<i64>> {
        let bins = self.bins.as_ref().ok_or_else(|| PyFailure::request("the options are not bins of numbers"))?;
        Ok(values.as_array().iter().map(|&value| bins.index(Some(value)) as i64).collect())
    }

    /// The reports of owners, each of whom has `width` truths, of which −1 is none; each report is as many options as an owner
    /// can name, of which −1 is none as well.
    fn privatize<'py>(
        &self,
        py: Python<'py>,
        truths: PyReadonlyArray1<'py, i64>,
        width: usize,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let (truths, width, most) = (truths.as_array(), width.max(1), self.asked.most() as usize);
        let (mut coins, mut drawn) = (Tossed::new(seed), with_capacity(truths.len() / width * most)?);
        let owners_at_once = (CHUNK / width.max(most)).max(1);
        for chunk in truths.axis_chunks_iter(numpy::ndarray::Axis(0), owners_at_once * width) {
            let prepared = self.sampler.prepare(&self.asked, &chunk.to_vec(), width)?;
            let (sampler, coins) = (&self.sampler, &mut coins);
            let reports = py.detach(move || sampler.draw(&prepared, most, coins)).map_err(PyFailure::from)?;
            drawn.extend_from_slice(&reports);
            py.check_signals()?;
        }
        Ok(drawn.into_pyarray(py))
    }

    /// What two aggregators publish of counts, of every option: sums with both draws of noise.
    fn publish(&self, owners: u64, counts: Vec<u64>, seed: Option<u64>) -> Result<Vec<i64>> {
        let noise = self
            .asked
            .noise()
            .ok_or_else(|| PyFailure::request("this mechanism has no noise: all counts are published as they are"))?;
        let header = RowHeader::new(&self.asked, self.names.clone())?;
        let counted = OptionCounts::new(owners, counts[..header.noisy_counts().min(counts.len())].to_vec())?;
        let sums = match seed {
            None => counted.with_noise(noise, &mut OsCoins)?,
            Some(seed) => seeded_sums(&counted, noise, seed)?,
        };
        Ok(sums.sums().to_vec())
    }

    /// The estimate of every option from counts or sums as JSON, as `uptack estimate --json` prints it.
    fn estimate(
        &self,
        py: Python<'_>,
        tally: &str,
        values: Option<Vec<Option<f64>>>,
        quantiles: Vec<f64>,
        confidence: &str,
        interval: &str,
    ) -> PyResult<String> {
        let (level, kind) = (read_confidence(confidence)?, read_interval(interval)?);
        let tally = self.read_tally(tally)?;
        let (names, scale) = (self.names_of(&tally)?, self.scale(values));
        let solve = || {
            let found = EstimatedOptions::of(&self.asked, names, &tally, level, kind)?;
            let found = found.with_mean(&self.asked, &tally, &scale)?;
            if quantiles.is_empty() {
                return Ok(found);
            }
            let found = found.with_quantiles(&self.asked, &tally, &scale, &quantiles);
            found.map_err(|error: uptack::Error| error.at("quantiles"))
        };
        let found = py.detach(solve).map_err(PyFailure::from)?;
        to_text(&found.json(&self.asked.to_string()))
    }

    /// How many owners have any of some options.
    fn union(&self, py: Python<'_>, tally: &str, options: Vec<usize>, confidence: &str) -> PyResult<String> {
        self.read_options(&options)?;
        self.combined(py, tally, confidence, |estimator, published, level| {
            let found = estimator.union(published, &options, level)?;
            Ok(combined_json(found.estimate, found.sd, found.interval))
        })
    }

    /// By how many more owners have one option than another one.
    fn difference(&self, py: Python<'_>, tally: &str, pair: (usize, usize), confidence: &str) -> PyResult<String> {
        self.read_options(&[pair.0, pair.1])?;
        self.combined(py, tally, confidence, |estimator, published, level| {
            let found = estimator.difference(published, pair.0, pair.1, level)?;
            Ok(combined_json(found.estimate, found.sd, found.interval))
        })
    }
}

impl PyContributions {
    /// A number that follows from several options.
    fn combined(
        &self,
        py: Python<'_>,
        tally: &str,
        confidence: &str,
        solve: impl FnOnce(&OptionEstimator, &Published, Confidence) -> Result<Value, uptack::Error> + Send,
    ) -> PyResult<String> {
        let (level, tally) = (read_confidence(confidence)?, self.read_tally(tally)?);
        let solved = py.detach(|| {
            let estimator = OptionEstimator::new(&self.asked)?;
            solve(&estimator, &tally.published(&self.asked)?, level)
        });
        let mut document = solved.map_err(PyFailure::from)?;
        document["confidence"] = json!(level.level());
        to_text(&document)
    }
}

fn combined_json(estimate: f64, sd: f64, interval: Interval) -> Value {
    json!({
        "estimate": estimate,
        "sd": sd,
        "interval": [interval.low, interval.high],
        "interval_kind": uptack_document::interval_name(interval.kind),
    })
}

/// The published sums with both aggregators' noise from one seed.
fn seeded_sums(counts: &OptionCounts, noise: &NoiseLaw, seed: u64) -> Result<Sums, uptack::Error> {
    let mut coins = SeededCoins::new(seed);
    let mut sum = |&count: &u64| {
        let added = noise.draw_seeded(&mut coins).saturating_add(noise.draw_seeded(&mut coins));
        i64::try_from(count).unwrap_or(i64::MAX).saturating_add(added)
    };
    let sums = counts.counts().iter().map(&mut sum).collect();
    Sums::new(counts.owners(), sums)
}

/// Draws the reports of owners.
enum OptionSampler {
    /// Two options, or a single count: a yes/no question, whose report also tells *no* from ⊥. The option of each cell.
    YesNo(Box<Sampler>, Vec<i32>),
    Contributions(Box<ContributionSampler>),
}

/// Truths that the sampler reads.
enum Prepared {
    YesNo(Truths),
    Contributions(Choices),
}

impl OptionSampler {
    fn new(asked: &Contributions) -> Self {
        let Some(yes_no) = asked.yes_no() else {
            return Self::Contributions(Box::new(ContributionSampler::new(asked)));
        };
        let channel = yes_no.channel();
        let option = |output: Output| match output {
            Output::ONE => 0,
            Output::ZERO if asked.is_choice() => 1,
            _ => NONE,
        };
        let options = channel.cells().iter().map(|cell| option(cell.outputs()[0])).collect();
        Self::YesNo(Box::new(Sampler::new(&channel)), options)
    }

    /// Reads `width` truths of each owner; a truth that is not an option is refused, and not repeated.
    fn prepare(&self, asked: &Contributions, truths: &[i64], width: usize) -> Result<Prepared> {
        let owners = truths.chunks(width);
        match self {
            Self::YesNo(..) => {
                let mut packed = Truths::new();
                for owner in owners {
                    let options = options_of(owner);
                    asked.choices_of(&options)?;
                    packed.push(Truth::from_bool(options == [0]));
                }
                Ok(Prepared::YesNo(packed))
            }
            Self::Contributions(_) if (width, asked.most()) == (1, 1) => {
                let choice = |&truth: &i64| one_choice(asked, truth);
                truths.iter().map(choice).collect::<Result<Choices, _>>().map(Prepared::Contributions)
            }
            Self::Contributions(_) => {
                let choices = owners.map(|owner| asked.choices_of(&options_of(owner)));
                let all = choices.collect::<Result<Vec<_>, _>>()?;
                Ok(Prepared::Contributions(all.into_iter().flatten().collect()))
            }
        }
    }

    fn draw(&self, truths: &Prepared, most: usize, coins: &mut Tossed) -> Result<Vec<i32>, uptack::Error> {
        match (self, truths) {
            (Self::YesNo(sampler, options), Prepared::YesNo(truths)) => {
                let cells = match coins {
                    Tossed::System => sampler.draw_many(truths, &mut OsCoins)?,
                    Tossed::Seeded(coins) => sampler.draw_many_seeded(truths, coins),
                };
                Ok(cells.iter().map(|cell| options[cell]).collect())
            }
            (Self::Contributions(sampler), Prepared::Contributions(truths)) => {
                let drawn = match coins {
                    Tossed::System => sampler.draw_many(truths, &mut OsCoins)?,
                    Tossed::Seeded(coins) => sampler.draw_many_seeded(truths, coins),
                };
                Ok(drawn.chunks(most).flat_map(report).collect())
            }
            _ => unreachable!("truths are prepared for this sampler"),
        }
    }
}

/// The options among an owner's truths; what is negative is none.
fn options_of(owner: &[i64]) -> Vec<usize> {
    owner.iter().filter_map(|&truth| usize::try_from(truth).ok()).collect()
}

/// The only contribution of an owner, as [`Contributions::choices_of`] has it, without a vector for each owner.
fn one_choice(asked: &Contributions, truth: i64) -> Result<Choice> {
    let none = asked.possibilities() - 1;
    match u32::try_from(truth) {
        Ok(option) if (option as usize) < asked.options() => Ok(Choice::new(option)),
        Err(_) if !asked.is_choice() => Ok(Choice::new(none)),
        _ => Err(PyFailure::of_kind("input", "an owner's truth is not an option")),
    }
}

/// One owner's report: the options to which its contributions go, in ascending order, each of them once, and then none.
fn report(drawn: &[Contributed]) -> Vec<i32> {
    // A mechanism has at most 2²⁴ counts.
    let mut options: Vec<i32> = drawn.iter().filter_map(|one| one.count()).map(|count| count as i32).collect();
    options.sort_unstable();
    options.dedup();
    options.resize(drawn.len(), NONE);
    options
}
