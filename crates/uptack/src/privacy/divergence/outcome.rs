//! One outcome in one crowd: the choice between the formulas for up to three classes (`docs/accounting.md`, "The divergence of one
//! crowd").

use super::averaged::expected;
use super::many_classes::{self, Fineness, refined};
use super::one_truth::{self, OneTruthClass};
use super::question::{Divergences, Question};
use super::rare_class::without_the_rarest;
use super::three_classes::three_classes;
use super::two_classes::two_classes;
use crate::certified::binomial::Binomial;
use crate::certified::enclosure::Enclosure;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Bounds, Crowd, CrowdLaws, OneTruth, PerDirection, PerTruth, Weight, Weights};
use crate::privacy::views::Outcome;
use crate::threads::joined;
use crate::truth::Truth;

/// From this many owners on, a crowd takes so long that one thread per direction pays.
const MANY_OWNERS: u64 = 5_000_000;

impl Outcome {
    /// A crowd of one truth, in both directions.
    pub(super) fn one_truth(&self, crowd: OneTruth, question: Question, work: &Work) -> Divergences {
        let OneTruth { truth, owners } = crowd;
        let weights = self.weights(question.growth);
        let Some(law) = self.law(truth).filter(|_| self.classes.len() > 1) else {
            return weights.map(|weights| Weight::positive_parts(&weights));
        };
        let classes = weights.map(|weights| OneTruthClass::all(&weights, &law));
        let divergence = |others| {
            PerDirection::each(|direction| one_truth::divergence(&classes[direction], others, question.log_cut, work))
        };
        if self.counts_outside() || self.outside[truth] == 0.0 {
            return divergence(owners);
        }
        expected(Binomial::new(owners, self.inside(truth)), question, work, divergence)
    }

    /// The same where all others are inside.
    fn one_truth_inside(&self, crowd: OneTruth, question: Question, work: &Work) -> Divergences {
        if self.counts_outside() {
            return self.one_truth(crowd, question, work);
        }
        self.without_outside().one_truth(crowd, question, work)
    }

    /// A crowd of both truths, in both directions, whose owners are all inside, or where the outside is a class like any other.
    pub(super) fn both_truths(&self, crowd: Crowd, question: Question, work: &Work) -> Divergences {
        if self.classes.len() == 1 {
            return self.one_truth(OneTruth { truth: Truth::Yes, owners: 0 }, question, work);
        }
        let Some(laws) = self.laws() else {
            // Owners of the truth that is never inside reveal nothing.
            let truth = Truth::from_bool(self.law(Truth::Yes).is_some());
            return self.one_truth_inside(OneTruth { truth, owners: crowd[truth] }, question, work);
        };
        if let Some(crowd) = crowd.one_truth() {
            return self.one_truth_inside(crowd, question, work);
        }
        self.with_laws(laws, crowd, question, work)
    }

    /// The same where the owners have these laws over two or three classes.
    fn with_laws(&self, laws: PerTruth<Vec<f64>>, owners: Crowd, question: Question, work: &Work) -> Divergences {
        let weights = self.weights(question.growth);
        if laws.yes.len() == 2 {
            let crowd = CrowdLaws { owners, laws: laws.map(first) };
            return two_classes(weights.map(first), crowd, question.log_cut, work);
        }
        let crowd = CrowdLaws { owners, laws: laws.map(first) };
        self.sharp_enough(weights.map(first), crowd, question, work)
    }

    /// Three classes in a crowd of both truths by the cheapest method that is precise enough.
    fn sharp_enough(&self, weights: Weights<3>, crowd: CrowdLaws<3>, question: Question, work: &Work) -> Divergences {
        if let Some(value) = without_the_rarest(weights, crowd, question, work) {
            return value;
        }
        let exact = self.three_classes(weights, crowd, question, work);
        if exact.iter().all(|value| value.upper() <= question.goal.max(1.01 * value.lower())) {
            return exact;
        }
        self.bounded_otherwise(exact, crowd.owners, question, work)
    }

    /// Three classes in a crowd of both truths, each direction on a thread of its own where that is worth it.
    pub(super) fn three_classes(
        &self,
        weights: Weights<3>,
        crowd: CrowdLaws<3>,
        question: Question,
        work: &Work,
    ) -> Divergences {
        // Rows are counts of the class between the others by ratio, or of the outside.
        let row = if self.counts_outside() { 2 } else { 1 };
        let divergence = |weights: [Weight; 3], work: &Work| three_classes(weights, row, crowd, question, work);
        if crowd.owners.size() < MANY_OWNERS {
            return weights.map(|weights| divergence(weights, work));
        }
        each_on_its_thread(weights, work, divergence)
    }

    /// Where the formulas for three classes are not sharp, at the edge of what can occur: the owners of the commoner truth alone
    /// give a bound, and so does revealing the labels.
    fn bounded_otherwise(&self, exact: Divergences, crowd: Crowd, question: Question, work: &Work) -> Divergences {
        let common = OneTruth { truth: Truth::from_bool(crowd.yes > crowd.no), owners: crowd.yes.max(crowd.no) };
        let fewer = self.one_truth_inside(common, question, work);
        let bounded = exact.with(fewer, |exact, fewer| exact.at_most(fewer.upper()));
        // Sums of scores are costly: they are for a goal that is missed. Without a goal (a profile is read, often where the
        // divergence is next to nothing) the enclosure stays as wide as it is.
        let missed = bounded.iter().any(|value| value.upper() > question.goal);
        if question.goal <= 0.0 || !missed || work.exhausted() {
            return bounded;
        }
        let bound = |fineness| self.with_labels_revealed(crowd, question, fineness, work);
        bounded.with(refined(crowd.size(), question.goal, work, bound), Enclosure::at_most)
    }

    /// The bound for any number of classes, in both directions (`docs/accounting.md`, "Labels").
    fn with_labels_revealed(&self, crowd: Crowd, question: Question, fineness: Fineness, work: &Work) -> Bounds {
        PerDirection::each(|direction| {
            let classes = self.weighted(direction, question.growth);
            many_classes::upper(&classes, crowd, question.log_cut, fineness, work)
        })
    }
}

/// The first N of at least N values.
pub(super) fn first<T: Copy, const N: usize>(values: Vec<T>) -> [T; N] {
    std::array::from_fn(|index| values[index])
}

/// A function of both directions' weights, computed on two threads.
fn each_on_its_thread<const N: usize>(
    weights: Weights<N>,
    work: &Work,
    function: impl Fn([Weight; N], &Work) -> Enclosure + Sync,
) -> Divergences {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let work = Work::apart();
            (function(weights.no_over_yes, &work), work.spent())
        });
        let yes_over_no = function(weights.yes_over_no, work);
        let (no_over_yes, spent) = joined(other);
        work.spend(spent);
        PerDirection { yes_over_no, no_over_yes }
    })
}
