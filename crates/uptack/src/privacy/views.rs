//! The adversary's views as classes (`docs/accounting.md`, "What is bounded" and "One answer together with the release").
//!
//! The observation of the target splits the cells into groups: one in the release view, one for each output of the answer in a
//! joint view. Each group is an [`TargetOutcome`]. With more than three classes, formulas for three need a view that bounds the
//! true one; so a [`ReducedView`] holds outcomes that bound it from above, outcomes that bound it from below, and every class.

use super::classes::{finite_epsilon, merge_to_three, one_sided, reduce, split_to_three, total};
use super::likelihood::{
    Direction, ExactLikelihood, Likelihood, PerDirection, PerTruth, Weight, WeightedClass, weighted, weights,
};
use super::one_aggregator::one_aggregator;
use crate::certified::binomial::Coin;
use crate::channel::{Cell, Channel, Output, SummedBit};
use crate::noise::NoiseLaw;
use crate::probability::Probability;
use crate::truth::Truth;

/// A view in the form that the accounting needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReducedView {
    pub(super) above: Vec<TargetOutcome>,
    /// Each of these is a garbling of the view; the largest counts.
    pub(super) below: Vec<Vec<TargetOutcome>>,
    /// All classes of each outcome. They bound the view from above, and from below if the tallies determine the cells.
    pub(super) detail: Vec<DetailedOutcome>,
    /// The same with every cell by itself and the tallies that it adds to; only where the tallies do not determine the cells.
    tallied: Vec<DetailedOutcome>,
    /// Whether the tallies determine the cells (or at least their classes, where these are all that counts).
    determined: bool,
    floor: ExactLikelihood,
    ratios: Vec<ExactLikelihood>,
    /// The noise that one aggregator adds to the number of owners in a class; only where there is one outcome of at most two
    /// classes.
    pub(super) noise: Option<AddedNoise>,
}

/// One draw of discrete Laplace noise Z: P(Z = k) = (1−a)/(1+a)·a^|k|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AddedNoise {
    /// a.
    pub(super) decay: f64,
    /// 1 − a, without cancellation.
    pub(super) gap: f64,
    /// ε of the target's bit plus Z, from above: no crowd is worse than nobody.
    largest_epsilon: f64,
}

/// One outcome of the observation of the target: at most three classes, by falling ratio, that the target may then be in, and the
/// probability that another owner is outside of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TargetOutcome {
    pub(super) classes: Vec<Likelihood>,
    pub(super) outside: Likelihood,
}

/// One outcome with all classes: those that the target may be in, and those that only others can be in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DetailedOutcome {
    pub(super) inside: Vec<Likelihood>,
    pub(super) outside: Vec<Likelihood>,
    /// Where tallies are counted and not classes: the ones that each class adds to, those inside first.
    tallies: Option<Vec<Vec<usize>>>,
}

/// The cells of a channel by the observation of the target, each with the tallies that it adds to.
type TalliedCells = Vec<Vec<(ExactLikelihood, Vec<usize>)>>;

/// All cells of a channel as classes.
pub(super) fn cells(channel: &Channel) -> Vec<ExactLikelihood> {
    channel.cells().iter().map(exact_likelihood).collect()
}

/// The law of one answer: its outputs as classes.
pub(super) fn marginal(channel: &Channel, answer: usize) -> Vec<ExactLikelihood> {
    reduce(outputs(channel, answer).map(|output| total(&cells_with(channel, answer, output))))
}

/// The laws of all answers, each by itself.
fn marginals(channel: &Channel) -> Vec<Vec<ExactLikelihood>> {
    (0..channel.answers().len()).map(|answer| marginal(channel, answer)).collect()
}

/// Both values of the bit that is summed, as classes.
fn bit_classes(SummedBit { yes, no }: SummedBit) -> Vec<ExactLikelihood> {
    let one = PerTruth { yes, no };
    [one, one.map(Probability::complement)].map(|class| class.map(Probability::numerator)).to_vec()
}

fn exact_likelihood(cell: &Cell) -> ExactLikelihood {
    ExactLikelihood { yes: cell.yes().numerator(), no: cell.no().numerator() }
}

fn outputs(channel: &Channel, answer: usize) -> impl Iterator<Item = Output> + '_ {
    channel.answers()[answer].iter().copied()
}

fn cells_with(channel: &Channel, answer: usize, output: Output) -> Vec<ExactLikelihood> {
    channel.cells().iter().filter(|cell| cell.outputs()[answer] == output).map(exact_likelihood).collect()
}

impl ReducedView {
    /// The published view: all tallies, or the number of answers `1` with the noise of one aggregator.
    pub(super) fn release(channel: &Channel) -> Self {
        let (Some(noise), Some(largest)) = (channel.noise(), one_aggregator(channel)) else {
            return Self::tallies(channel);
        };
        let NoiseLaw::Laplace(noise) = noise;
        let added = AddedNoise { decay: noise.decay(), gap: noise.gap(), largest_epsilon: largest.upper() };
        let bits = Self::owners_alone(channel);
        // Noise hides outputs that only one truth can write.
        Self { noise: Some(added), floor: ExactLikelihood::default(), ..bits }
    }

    /// The same without the noise of any aggregator.
    pub(super) fn owners_alone(channel: &Channel) -> Self {
        let Some(bit) = channel.noise().and(channel.summed_bit()) else { return Self::tallies(channel) };
        Self::new(&[bit_classes(bit)], true, &[])
    }

    fn tallies(channel: &Channel) -> Self {
        // The ratio of a cell histogram depends on its classes' counts alone: showing these is showing all.
        let tallied =
            vec![channel.cells().iter().map(|cell| (exact_likelihood(cell), tallies_of(channel, cell))).collect()];
        Self::new(&[cells(channel)], channel.shows_classes(), &marginals(channel)).with_tallied(tallied)
    }

    /// The same view, which can be enumerated by its tallies if these do not determine the cells.
    fn with_tallied(self, groups: TalliedCells) -> Self {
        let tallied = if self.determined { Vec::new() } else { tallied_outcomes(&groups) };
        Self { tallied, ..self }
    }

    /// The outcomes with what the adversary counts: classes if the tallies determine them, else the tallies themselves.
    pub(super) fn enumerated_outcomes(&self) -> &[DetailedOutcome] {
        if self.determined { &self.detail } else { &self.tallied }
    }

    /// The view of the target's answer of this number together with all tallies.
    pub(super) fn answer_with_release(channel: &Channel, answer: usize) -> Self {
        let groups: Vec<_> = outputs(channel, answer).map(|output| cells_with(channel, answer, output)).collect();
        let mut garblings = marginals(channel);
        if channel.shows_classes() {
            garblings.push(cells(channel));
        }
        let with_output = |output: Output| {
            let cells = channel.cells().iter().filter(move |cell| cell.outputs()[answer] == output);
            cells.map(|cell| (exact_likelihood(cell), tallies_of(channel, cell))).collect()
        };
        let tallied = outputs(channel, answer).map(with_output).collect();
        Self::new(&groups, channel.determined(), &garblings).with_tallied(tallied)
    }

    /// The view of all tallies, where the cells fall into groups by the observation of the target. Where the tallies do not
    /// determine the cells, `garblings` are coarser views that they do determine.
    fn new(groups: &[Vec<ExactLikelihood>], determined: bool, garblings: &[Vec<ExactLikelihood>]) -> Self {
        let cells: Vec<ExactLikelihood> = groups.concat();
        let below = if determined { vec![outcomes(groups, merge_to_three)] } else { coarser_views(groups, garblings) };
        Self {
            above: outcomes(groups, split_to_three),
            below,
            detail: detailed_outcomes(groups),
            tallied: Vec::new(),
            determined,
            floor: one_sided(&cells),
            ratios: reduce(cells),
            noise: None,
        }
    }

    /// The mass of the outputs that only one truth can write, for *yes* and for *no*.
    pub(crate) fn floor(&self) -> ExactLikelihood {
        self.floor
    }

    /// The ε beyond which only the floor is left: the largest finite |ln(p/q)|, or less where there is noise. Rounded up.
    pub(crate) fn largest_epsilon(&self) -> f64 {
        self.noise.map_or_else(|| finite_epsilon(&self.ratios), |noise| noise.largest_epsilon)
    }

    /// Whether the tallies determine the cells.
    pub(crate) fn is_determined(&self) -> bool {
        self.determined
    }

    /// Whether the bounds from below and from above are values of the same view.
    pub(crate) fn is_exact(&self) -> bool {
        self.determined && self.below.len() == 1 && self.below[0] == self.above && !self.needs_sums()
    }

    /// Whether both ends of a crowd of one truth are close to each other.
    pub(crate) fn is_sharp(&self) -> bool {
        self.is_exact() || self.is_determined()
    }

    /// Whether two classes are all there is, and nothing outside: then a crowd is cheap.
    pub(crate) fn is_two_classes(&self) -> bool {
        self.is_exact() && self.above.iter().all(TargetOutcome::is_two_classes)
    }

    /// Whether crowds of both truths have exact formulas: at most three classes, the outside being one of them.
    pub(crate) fn is_exact_in_every_crowd(&self) -> bool {
        self.is_exact() && self.has_few_classes() && self.above.iter().all(TargetOutcome::has_few_classes)
    }

    /// Whether at most three classes, those of the others included, carry all evidence in crowds of both truths.
    pub(super) fn has_few_classes(&self) -> bool {
        self.detail.iter().all(DetailedOutcome::has_few_classes)
    }

    /// Whether an outcome has more classes than the formulas for crowds of one truth take: sums of scores take any number.
    pub(super) fn needs_sums(&self) -> bool {
        self.detail.iter().any(DetailedOutcome::has_many_classes)
    }

    /// Whether the adversary sees something of the target besides the published counts.
    pub(super) fn is_joint(&self) -> bool {
        self.detail.len() > 1
    }

    /// Whether the two truths can be exchanged: then crowds of few yes-owners are like crowds of few no-owners.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.above.iter().all(|outcome| self.above.contains(&outcome.exchanged()))
            && self.detail.iter().all(|outcome| self.detail.contains(&outcome.exchanged()))
    }

    /// Views of all tallies as classes: the view itself if the tallies determine the cells, else the coarser views that they do
    /// determine. Each is a function of what the adversary sees, so it is a lower bound on what the adversary learns.
    pub(crate) fn shown(&self) -> Vec<&[Likelihood]> {
        if let ([outcome], true) = (self.detail.as_slice(), self.determined) {
            return vec![&outcome.inside];
        }
        self.below.iter().filter_map(|outcomes| only_outcome(outcomes)).map(|outcome| &outcome.classes[..]).collect()
    }

    /// For each truth, the largest probability with which an owner of the other truth can be said to draw from its law, and from
    /// some other law otherwise. Rounded down.
    pub(crate) fn in_common(&self) -> Likelihood {
        PerTruth::each(|truth| {
            let reached = self.ratios.iter().filter(|class| class[truth] > 0);
            let shares = reached.map(|class| class[truth.other()] as f64 / class[truth] as f64);
            shares.fold(1.0, f64::min) * (1.0 - 1e-12)
        })
    }
}

impl TargetOutcome {
    /// The outcome of the given classes, which are at most three.
    fn new(classes: Vec<ExactLikelihood>, outside: ExactLikelihood) -> Self {
        Self { classes: rounded_classes(classes), outside: outside.rounded() }
    }

    pub(super) fn has_outside(&self) -> bool {
        self.outside.yes > 0.0 || self.outside.no > 0.0
    }

    /// Whether there is one class, or two and nothing outside of them.
    fn is_two_classes(&self) -> bool {
        self.classes.len() == 1 || self.classes.len() == 2 && !self.has_outside()
    }

    /// Whether there are at most three classes, the outside being one of them if there is any.
    pub(super) fn has_few_classes(&self) -> bool {
        self.classes.len() < 3 || !self.has_outside()
    }

    /// Whether the outside is taken as one more class, in which the target never is.
    pub(super) fn counts_outside(&self) -> bool {
        self.has_outside() && self.classes.len() < 3
    }

    /// The probability that an owner of the given truth is inside, against that of being outside.
    pub(super) fn inside(&self, truth: Truth) -> Coin {
        let inside: f64 = self.classes.iter().map(|class| class[truth]).sum();
        Coin { success: inside, failure: self.outside[truth] }
    }

    /// The law of an owner over the classes: over all of them, or given that it is inside. `None` if it never is.
    pub(super) fn law(&self, truth: Truth) -> Option<Vec<f64>> {
        if self.counts_outside() {
            return Some(self.classes.iter().chain([&self.outside]).map(|class| class[truth]).collect());
        }
        let inside = self.inside(truth).success;
        (inside > 0.0).then(|| self.classes.iter().map(|class| class[truth] / inside).collect())
    }

    /// The laws of both truths; `None` if owners of one truth are never inside.
    pub(super) fn laws(&self) -> Option<PerTruth<Vec<f64>>> {
        Some(PerTruth { yes: self.law(Truth::Yes)?, no: self.law(Truth::No)? })
    }

    /// The target's weights in the same classes, in both directions.
    pub(super) fn weights(&self, growth: f64) -> PerDirection<Vec<Weight>> {
        let outside = self.counts_outside().then_some(Weight::ZERO);
        PerDirection::each(|direction| weights(&self.classes, direction, growth).chain(outside).collect())
    }

    /// The classes together with the target's weights; the outside, if it is taken as a class, is the last.
    pub(super) fn weighted(&self, direction: Direction, growth: f64) -> Vec<WeightedClass> {
        let outside = self.counts_outside().then(|| self.outside.without_target());
        weighted(&self.classes, direction, growth).chain(outside).collect()
    }

    /// The same where nobody is outside.
    pub(super) fn without_outside(&self) -> Self {
        Self { classes: self.classes.clone(), outside: Likelihood::NONE }
    }

    fn exchanged(&self) -> Self {
        Self { classes: exchanged(&self.classes), outside: self.outside.exchanged() }
    }
}

impl DetailedOutcome {
    /// Whether there are at most three classes and the target can be in all but at most one of them, or the target's class is
    /// certain, so that the others reveal nothing.
    fn has_few_classes(&self) -> bool {
        self.inside.len() <= 1 || self.count() <= 3 && self.outside.len() <= 1
    }

    /// Whether there are more classes than the formulas for crowds of one truth take.
    fn has_many_classes(&self) -> bool {
        self.inside.len() > if self.outside.is_empty() { 3 } else { 2 }
    }

    /// How many classes there are.
    pub(super) fn count(&self) -> usize {
        self.inside.len() + self.outside.len()
    }

    /// All classes with the target's weights, which are zero where only others are.
    pub(super) fn weighted(&self, direction: Direction, growth: f64) -> Vec<WeightedClass> {
        let outside = self.outside.iter().map(|class| class.without_target());
        weighted(&self.inside, direction, growth).chain(outside).collect()
    }

    /// How many numbers make a histogram.
    pub(super) fn axes(&self) -> usize {
        match &self.tallies {
            Some(tallies) => tallies.iter().flatten().max().map_or(0, |last| last + 1),
            None => self.count().saturating_sub(1),
        }
    }

    /// The numbers of the histogram that an owner in this class adds to.
    pub(super) fn axes_of(&self, class: usize) -> impl Iterator<Item = usize> {
        match &self.tallies {
            Some(tallies) => tallies[class].clone(),
            None => Vec::from_iter((class < self.axes()).then_some(class)),
        }
        .into_iter()
    }

    fn exchanged(&self) -> Self {
        Self { inside: exchanged(&self.inside), outside: exchanged(&self.outside), tallies: None }
    }
}

/// The classes with the truths exchanged, again by falling ratio.
fn exchanged(classes: &[Likelihood]) -> Vec<Likelihood> {
    classes.iter().rev().map(|class| class.exchanged()).collect()
}

/// The outcomes that can happen, with the classes of each simplified.
fn outcomes(
    groups: &[Vec<ExactLikelihood>],
    simplify: impl Fn(&[ExactLikelihood]) -> Vec<ExactLikelihood>,
) -> Vec<TargetOutcome> {
    let possible = groups.iter().enumerate().filter(|(_, group)| !group.iter().all(ExactLikelihood::is_empty));
    possible.map(|(index, group)| TargetOutcome::new(simplify(group), total(&without(groups, index)))).collect()
}

/// Lower bounds where the tallies do not determine the cells: the views that they do determine, and the observation of
/// the target without any tallies.
fn coarser_views(groups: &[Vec<ExactLikelihood>], garblings: &[Vec<ExactLikelihood>]) -> Vec<Vec<TargetOutcome>> {
    let whole = |classes: &Vec<_>| vec![TargetOutcome::new(merge_to_three(classes), ExactLikelihood::default())];
    let target_alone = outcomes(groups, |group| vec![total(group)]);
    garblings.iter().map(whole).chain([target_alone]).collect()
}

/// The outcome of a view in which nothing is seen of the target by itself.
fn only_outcome(outcomes: &[TargetOutcome]) -> Option<&TargetOutcome> {
    let [outcome] = outcomes else { return None };
    (!outcome.has_outside()).then_some(outcome)
}

/// The outcomes that can happen, with all their classes.
fn detailed_outcomes(groups: &[Vec<ExactLikelihood>]) -> Vec<DetailedOutcome> {
    let detailed = |(index, group): (usize, &Vec<ExactLikelihood>)| DetailedOutcome {
        inside: rounded_classes(group.iter().copied()),
        outside: rounded_classes(without(groups, index)),
        tallies: None,
    };
    groups.iter().enumerate().map(detailed).filter(|outcome| !outcome.inside.is_empty()).collect()
}

/// The tallies that a cell adds to, by number. The last output of an answer has none: its count follows from the others.
fn tallies_of(channel: &Channel, cell: &Cell) -> Vec<usize> {
    let mut first = 0;
    let mut tallies = Vec::new();
    for (outputs, output) in channel.answers().iter().zip(cell.outputs()) {
        let place = outputs.iter().position(|other| other == output).unwrap_or(0);
        if place + 1 < outputs.len() {
            tallies.push(first + place);
        }
        first += outputs.len() - 1;
    }
    tallies
}

/// The outcomes that can happen, with the tallies that each of their cells adds to.
fn tallied_outcomes(groups: &TalliedCells) -> Vec<DetailedOutcome> {
    let all = |group: &Vec<(ExactLikelihood, Vec<usize>)>| {
        group.iter().filter(|(cell, _)| !cell.is_empty()).cloned().collect::<Vec<_>>()
    };
    let outcome = |index: usize| {
        let inside = all(&groups[index]);
        let others = groups.iter().enumerate().filter(|(other, _)| *other != index);
        let outside: Vec<_> = others.flat_map(|(_, group)| all(group)).collect();
        let rounded = |cells: &[(ExactLikelihood, Vec<usize>)]| cells.iter().map(|(cell, _)| cell.rounded()).collect();
        let tallies = inside.iter().chain(&outside).map(|(_, tallies)| tallies.clone()).collect();
        DetailedOutcome { inside: rounded(&inside), outside: rounded(&outside), tallies: Some(tallies) }
    };
    (0..groups.len()).map(outcome).filter(|outcome| !outcome.inside.is_empty()).collect()
}

/// The classes of some cells, rounded once they are joined.
fn rounded_classes(cells: impl IntoIterator<Item = ExactLikelihood>) -> Vec<Likelihood> {
    reduce(cells).into_iter().map(ExactLikelihood::rounded).collect()
}

/// The cells of all groups but one.
fn without(groups: &[Vec<ExactLikelihood>], index: usize) -> Vec<ExactLikelihood> {
    [&groups[..index], &groups[index + 1..]].concat().concat()
}
