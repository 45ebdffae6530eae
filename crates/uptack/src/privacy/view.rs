//! The divergence of a whole view: the sum over what the adversary may see of the target.

use super::binomial::{Binomial, window};
use super::bracket::Bracket;
use super::classes::{Class, merge_to_three, one_sided, reduce, split_to_three, total};
use super::enumerate::Detail;
use super::homogeneous;
use super::mixed::{Group, three_classes_above, two_classes};
use super::mixture::{Counts, sum_of_two};
use super::piece::{Direction, Piece, Share, Weight};
use super::work::Work;

/// A view in the form the accounting needs: pieces that bound it from above and from below, and all detail for enumeration.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    above: Vec<Piece>,
    /// Each of these is a garbling of the view; the largest counts.
    below: Vec<Vec<Piece>>,
    /// None where the tallies do not fix the cells, so that enumerating cells is not exact.
    detail: Option<Vec<Detail>>,
    floor: Class,
    ratios: Vec<Class>,
}

/// A question about a view: the divergence at e^ε = `growth`, leaving out mass of at most e^`log_cut`. Bounds need not be
/// sharp far below `goal`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) growth: f64,
    pub(crate) log_cut: f64,
    pub(crate) goal: f64,
}

impl Observation {
    /// The view of all tallies, where the cells fall into groups by what is seen of the target. `exact` says whether the
    /// tallies fix the cells; if not, `garblings` are coarser views that they do fix.
    pub(crate) fn new(groups: &[Vec<Class>], exact: bool, garblings: &[Vec<Class>]) -> Self {
        let cells: Vec<Class> = groups.concat();
        let pieces = |simplify: fn(&[Class]) -> Vec<Class>| -> Vec<Piece> {
            let piece = |(index, group): (usize, &Vec<Class>)| {
                let others: Vec<Class> = without(groups, index);
                Piece::new(&simplify(group), total(&others))
            };
            groups
                .iter()
                .enumerate()
                .filter(|(_, group)| !reduce(group.iter().copied()).is_empty())
                .map(piece)
                .collect()
        };
        let whole = |classes: &Vec<Class>| vec![Piece::new(&merge_to_three(classes), Class::default())];
        Self {
            above: pieces(split_to_three),
            below: if exact { vec![pieces(merge_to_three)] } else { garblings.iter().map(whole).collect() },
            detail: exact.then(|| detail(groups)),
            floor: one_sided(&cells),
            ratios: reduce(cells),
        }
    }

    /// Mass that one truth alone can show, for *yes* and for *no*.
    pub(crate) fn floor(&self) -> Class {
        self.floor
    }

    /// All classes of cells, by falling ratio.
    pub(crate) fn ratios(&self) -> &[Class] {
        &self.ratios
    }

    /// Whether the values from below are those of the very same view as the values from above.
    pub(crate) fn is_exact(&self) -> bool {
        self.detail.is_some() && self.below.len() == 1 && self.below[0] == self.above
    }

    /// Whether the tallies fix the cells.
    pub(crate) fn is_determined(&self) -> bool {
        self.detail.is_some()
    }

    /// Elementary steps to enumerate all crowds; none where enumeration is not exact.
    pub(crate) fn enumeration_cost(&self, others: u64) -> Option<u64> {
        let details = self.detail.as_ref()?;
        Some(details.iter().map(|detail| detail.cost(others)).fold(0, u64::saturating_add).saturating_mul(others + 1))
    }

    /// Both directions, exactly, in one crowd of a view that can be enumerated.
    pub(crate) fn enumerated(&self, yes: u64, no: u64, growth: f64) -> [Bracket; 2] {
        let details = self.detail.iter().flatten();
        details.map(|detail| detail.divergence(yes, no, growth)).fold([Bracket::ZERO; 2], add)
    }

    /// Whether [`Observation::both_truths`] is exact: two classes at most, and nothing outside.
    pub(crate) fn is_two_classes(&self) -> bool {
        let simple = |piece: &Piece| piece.classes.len() == 1 || piece.classes.len() == 2 && !piece.has_outside();
        self.is_exact() && self.above.iter().all(simple)
    }

    /// A crowd of one truth, in both directions. The upper end bounds the view, the lower end what the tallies show.
    pub(crate) fn one_truth(&self, yes: bool, others: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let sum = |pieces: &[Piece]| {
            pieces.iter().map(|piece| piece.one_truth(yes, others, question, work)).fold([Bracket::ZERO; 2], add)
        };
        let above = sum(&self.above);
        if self.is_exact() {
            return above;
        }
        let below: Vec<[Bracket; 2]> = self.below.iter().map(|pieces| sum(pieces)).collect();
        [0, 1].map(|direction: usize| {
            let lower = below.iter().map(|value| value[direction].lower()).fold(0.0, f64::max);
            Bracket::new(lower.min(above[direction].upper()), above[direction].upper())
        })
    }

    /// A crowd of both truths, in both directions: exact where [`Observation::is_two_classes`], else from above with a lower
    /// end of zero. `side` limits how many owners of the rarer truth are made use of.
    pub(crate) fn both_truths(&self, yes: u64, no: u64, side: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let exact = self.is_two_classes();
        let values = self
            .above
            .iter()
            .map(|piece| piece.both_truths(yes, no, side, question, work))
            .fold([Bracket::ZERO; 2], add);
        if exact { values } else { values.map(|value| Bracket::new(0.0, value.upper())) }
    }

    /// Whether any piece has three classes, so that the side limit matters.
    pub(crate) fn has_three_classes(&self) -> bool {
        self.above.iter().any(|piece| piece.classes.len() > 2)
    }
}

fn add(a: [Bracket; 2], b: [Bracket; 2]) -> [Bracket; 2] {
    [a[0].plus(b[0]), a[1].plus(b[1])]
}

fn without(groups: &[Vec<Class>], index: usize) -> Vec<Class> {
    groups
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index)
        .flat_map(|(_, group)| group.iter().copied())
        .collect()
}

fn detail(groups: &[Vec<Class>]) -> Vec<Detail> {
    let shares = |classes: Vec<Class>| Piece::new(&reduce(classes), Class::default()).classes;
    let detail = |(index, group): (usize, &Vec<Class>)| Detail {
        inside: shares(group.clone()),
        outside: shares(without(groups, index)),
    };
    groups.iter().enumerate().map(detail).filter(|detail| !detail.inside.is_empty()).collect()
}

/// Blocks of the number of others that are inside: the smallest number of each (and the largest of all), and how likely each
/// block is.
struct Blocks {
    starts: Vec<u64>,
    probability: Vec<f64>,
    error: f64,
}

/// Blocks get finer until the two ends of an expectation are this close, or [`FINEST`] to a standard deviation.
const CLOSE: f64 = 1.003;
const FINEST: f64 = 128.0;

impl Blocks {
    /// Blocks for which probability times width is about the same, `fineness` to a standard deviation in the middle.
    fn of(counts: &Counts, deviation: f64, fineness: f64) -> Self {
        let most = deviation / (2.5 * fineness * fineness);
        let (mut starts, mut probability) = (vec![counts.first], vec![0.0]);
        let mut width = 0.0;
        for (number, mass) in (counts.first..).zip(&counts.probability) {
            let last = probability.len() - 1;
            if width > 0.0 && (probability[last] + mass) * width > most {
                starts.push(number);
                probability.push(*mass);
                width = 1.0;
            } else {
                probability[last] += mass;
                width += 1.0;
            }
        }
        starts.push(counts.first + counts.probability.len() as u64 - 1);
        let error = counts.relative_error + counts.probability.len() as f64 * f64::EPSILON;
        Self { starts, probability, error }
    }

    /// The expectation of two falling functions of the number.
    fn expectation(&self, cut: f64, function: &impl Fn(u64) -> [Bracket; 2]) -> [Bracket; 2] {
        let values: Vec<[Bracket; 2]> = self.starts.iter().map(|&start| function(start)).collect();
        [0, 1].map(|which| {
            let (mut lower, mut upper) = (0.0, 0.0);
            for (index, (probability, pair)) in self.probability.iter().zip(values.windows(2)).enumerate() {
                let last = index + 1 == self.probability.len();
                let single = self.starts[index + 1] - self.starts[index] == u64::from(!last);
                // A block's largest number is below the next block's smallest; a block of one number is that number.
                let end = if single { pair[0][which] } else { pair[1][which] };
                lower += probability * end.lower().min(pair[0][which].lower());
                upper += probability * pair[0][which].upper();
            }
            Bracket::new(lower * (1.0 - self.error), (upper * (1.0 + self.error) + 2.0 * cut).max(lower))
        })
    }
}

/// The expectation of falling functions of a binomial number. `exact` asks for close ends; otherwise the upper one is enough,
/// and only as good as the goal needs it.
fn expected(
    law: Binomial,
    exact: bool,
    question: Question,
    work: &Work,
    function: impl Fn(u64) -> [Bracket; 2],
) -> [Bracket; 2] {
    let cut = question.log_cut.exp();
    let (low, high) = window(&[law], question.log_cut);
    let counts = sum_of_two(law, Binomial::new(0, law.coin), low, high);
    let deviation = (law.mean() * law.coin.failure).sqrt();
    // Few numbers are taken one by one, which is exact.
    let mut fineness = if counts.probability.len() <= 64 { f64::INFINITY } else { 2.0 };
    loop {
        work.spend(counts.steps);
        let values = Blocks::of(&counts, deviation, fineness).expectation(cut, &function);
        let close = |value: &Bracket| value.upper() <= CLOSE * value.lower() || value.upper() <= 2.0 * cut;
        let largest = values[0].upper().max(values[1].upper());
        let enough = if exact {
            values.iter().all(|value| close(value) || value.upper() <= 0.5 * largest && fineness > 8.0)
        } else {
            largest <= question.goal || largest > 1.5 * question.goal && fineness > 4.0 || fineness > 24.0
        };
        if enough || fineness >= FINEST {
            return values;
        }
        fineness *= 4.0;
    }
}

impl Piece {
    pub(crate) fn has_outside(&self) -> bool {
        self.outside.yes > 0.0 || self.outside.no > 0.0
    }

    /// A crowd of one truth, in both directions.
    fn one_truth(&self, yes: bool, others: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let targets = Direction::BOTH.map(|direction| self.weights(direction, question.growth));
        let Some(law) = self.conditional(yes) else {
            return targets.map(|weights| weights.iter().map(Weight::positive_part).fold(Bracket::ZERO, Bracket::plus));
        };
        let classes = targets.map(|weights| weights.into_iter().zip(law.iter().copied()).collect::<Vec<_>>());
        let divergence = |others| {
            [0, 1].map(|direction: usize| homogeneous::divergence(&classes[direction], others, question.log_cut, work))
        };
        if law.len() == 1 || self.outside.of(yes) == 0.0 {
            return divergence(others);
        }
        expected(Binomial::new(others, self.inside(yes)), true, question, work, divergence)
    }

    fn both_truths(&self, yes: u64, no: u64, side: u64, question: Question, work: &Work) -> [Bracket; 2] {
        if self.classes.len() == 1 {
            return self.one_truth(true, 0, question, work);
        }
        if !self.has_outside() {
            return self.inside_crowd(yes, no, side, question, work);
        }
        // The adversary is told who of the others is outside. The commoner truth's number inside is averaged over, the rarer
        // one's taken at its smallest.
        let common_is_yes = yes >= no;
        let (common, rare) = if common_is_yes { (yes, no) } else { (no, yes) };
        let (kept, _) = window(&[Binomial::new(rare, self.inside(!common_is_yes))], question.log_cut);
        let cut = Bracket::new(0.0, 2.0 * question.log_cut.exp());
        let law = Binomial::new(common, self.inside(common_is_yes));
        let values = expected(law, false, question, work, |count| {
            let (yes, no) = if common_is_yes { (count, kept) } else { (kept, count) };
            self.inside_crowd(yes, no, side, question, work)
        });
        values.map(|value| value.plus(cut))
    }

    /// A crowd whose owners are all inside.
    fn inside_crowd(&self, yes: u64, no: u64, side: u64, question: Question, work: &Work) -> [Bracket; 2] {
        work.spend(200);
        if yes.min(no).min(side) == 0 {
            return self.simpler_crowd(yes, no, question, work);
        }
        let (Some(yes_law), Some(no_law)) = (self.conditional(true), self.conditional(false)) else {
            return self.simpler_crowd(yes, no, question, work);
        };
        let groups = [Group { owners: yes, law: &yes_law }, Group { owners: no, law: &no_law }];
        let targets = Direction::BOTH.map(|direction| self.weights(direction, question.growth));
        if self.classes.len() == 2 {
            return two_classes(targets.map(|target| [target[0], target[1]]), groups, question.log_cut, work);
        }
        let (main, mut rare) = if yes >= no { (groups[0], groups[1]) } else { (groups[1], groups[0]) };
        rare.owners = rare.owners.min(side);
        let targets = targets.map(|target| [target[0], target[1], target[2]]);
        let (only_yes, only_no) = if yes >= no { (yes, 0) } else { (0, no) };
        let alone = self.simpler_crowd(only_yes, only_no, question, work).map(|value| value.upper());
        let told = |outer| three_classes_above(targets, main, rare, outer, question, work, alone);
        let [by_main, by_all] = [0.0, 1.0].map(|part| outer_class(&self.classes, main, rare, part));
        let mut upper = told(by_main);
        if by_all != by_main && upper[0].max(upper[1]) > question.goal {
            let other = told(by_all);
            upper = [upper[0].min(other[0]), upper[1].min(other[1])];
        }
        upper.map(|upper| Bracket::new(0.0, upper))
    }

    /// The better of the two crowds that remain when one truth's owners are dropped.
    fn simpler_crowd(&self, yes: u64, no: u64, question: Question, work: &Work) -> [Bracket; 2] {
        let inside = Piece { classes: self.classes.clone(), outside: Share { yes: 0.0, no: 0.0 } };
        let of = |truth, others| inside.one_truth(truth, others, question, work);
        match (yes, no) {
            (0, no) => of(false, no),
            (yes, 0) => of(true, yes),
            (yes, no) => {
                let (one, other) = (of(true, yes), of(false, no));
                [0, 1].map(|direction: usize| Bracket::new(0.0, one[direction].upper().min(other[direction].upper())))
            }
        }
    }
}

/// The class to tell the adversary about: the one whose telling leaves the side group most variance between the other two,
/// in the direction in which the evidence moves in a crowd of the main group and a `part` of the side.
fn outer_class(classes: &[Share], main: Group<'_>, side: Group<'_>, part: f64) -> usize {
    let part = part * side.owners as f64 / (main.owners + side.owners) as f64;
    let crowd = |class: usize| part * side.law[class] + (1.0 - part) * main.law[class];
    let evidence = |class: usize| (classes[class].yes - classes[class].no) / crowd(class).max(1e-30);
    let left = |outer: usize| {
        let [a, b] = [(outer + 1) % 3, (outer + 2) % 3];
        let (p, q) = (side.law[a], side.law[b]);
        if p + q > 0.0 { p * q / (p + q) * (evidence(a) - evidence(b)).powi(2) } else { 0.0 }
    };
    (0..3).max_by(|a, b| left(*a).total_cmp(&left(*b))).unwrap_or(0)
}
