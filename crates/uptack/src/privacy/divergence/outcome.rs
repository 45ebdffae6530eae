//! One outcome in one crowd: the choice between the formulas for up to three classes (`docs/accounting.md`, "The divergence of one
//! crowd").

use super::averaged::expected;
use super::many_classes::{self, Fineness, refined};
use super::one_truth::{self, OneTruthClass};
use super::question::{Divergences, Question};
use super::three_classes::three_classes;
use super::two_classes::two_classes;
use crate::certified::binomial::Binomial;
use crate::certified::enclosure::Enclosure;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Crowd, CrowdLaws, PerDirection, PerTruth, Weight};
use crate::privacy::threads::joined;
use crate::privacy::views::Outcome;
use crate::truth::Truth;

/// From this many owners on, a crowd takes long enough for one thread per direction.
const MANY_OWNERS: u64 = 5_000_000;

impl Outcome {
    /// A crowd of one truth, in both directions.
    pub(super) fn one_truth(&self, truth: Truth, others: u64, question: Question, work: &Work) -> Divergences {
        let weights = self.weights(question.growth);
        let Some(law) = self.law(truth).filter(|_| self.classes.len() > 1) else {
            return weights.map(|weights| Weight::positive_parts(&weights));
        };
        let classes = weights.map(|weights| OneTruthClass::all(&weights, &law));
        let divergence = |others| {
            PerDirection::each(|direction| one_truth::divergence(&classes[direction], others, question.log_cut, work))
        };
        if self.counts_outside() || self.outside[truth] == 0.0 {
            return divergence(others);
        }
        expected(Binomial::new(others, self.inside(truth)), question, work, divergence)
    }

    /// The same where all others are inside.
    fn one_truth_inside(&self, truth: Truth, others: u64, question: Question, work: &Work) -> Divergences {
        if self.counts_outside() {
            return self.one_truth(truth, others, question, work);
        }
        self.without_outside().one_truth(truth, others, question, work)
    }

    /// A crowd of both truths, in both directions, whose owners are all inside, or where the outside is a class like any other.
    pub(super) fn both_truths(&self, crowd: Crowd, question: Question, work: &Work) -> Divergences {
        if self.classes.len() == 1 {
            return self.one_truth(Truth::Yes, 0, question, work);
        }
        let laws = match PerTruth::each(|truth| self.law(truth)) {
            PerTruth { yes: Some(yes), no: Some(no) } => PerTruth { yes, no },
            // Owners of the truth that is never inside tell nothing.
            laws => {
                let truth = Truth::from_bool(laws.yes.is_some());
                return self.one_truth_inside(truth, crowd[truth], question, work);
            }
        };
        if let Some((truth, owners)) = crowd.one_truth() {
            return self.one_truth_inside(truth, owners, question, work);
        }
        let weights = self.weights(question.growth);
        if laws.yes.len() == 2 {
            let crowd = CrowdLaws { owners: crowd, laws: laws.map(first) };
            return two_classes(weights.map(first), crowd, question.log_cut, work);
        }
        let crowd = CrowdLaws { owners: crowd, laws: laws.map(first) };
        self.as_precisely_as_wanted(weights.map(first), crowd, question, work)
    }

    /// Three classes in a crowd of both truths by the cheapest method that is precise enough.
    fn as_precisely_as_wanted(
        &self,
        weights: PerDirection<[Weight; 3]>,
        crowd: CrowdLaws<3>,
        question: Question,
        work: &Work,
    ) -> Divergences {
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
    fn three_classes(
        &self,
        weights: PerDirection<[Weight; 3]>,
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
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let work = Work::apart();
                (divergence(weights.no_over_yes, &work), work.spent())
            });
            let yes_over_no = divergence(weights.yes_over_no, work);
            let (no_over_yes, spent) = joined(other);
            work.spend(spent);
            PerDirection { yes_over_no, no_over_yes }
        })
    }

    /// Where the formulas for three classes hit an edge of what is possible: the owners of the commoner truth alone are a bound,
    /// and so are labels that are told.
    fn bounded_otherwise(&self, exact: Divergences, crowd: Crowd, question: Question, work: &Work) -> Divergences {
        let common = Truth::from_bool(crowd.yes > crowd.no);
        let fewer = self.one_truth_inside(common, crowd.yes.max(crowd.no), question, work);
        let bounded = exact.with(fewer, |exact, fewer| exact.at_most(fewer.upper()));
        // Sums of scores are costly: they are for a goal that is missed. Without one (a profile is read, often where the
        // divergence is next to nothing) the enclosure is what it is.
        let missed = bounded.iter().any(|value| value.upper() > question.goal);
        if question.goal <= 0.0 || !missed || work.exhausted() {
            return bounded;
        }
        let bound = |fineness| self.with_labels_told(crowd, question, fineness, work);
        bounded.with(refined(crowd.size(), question.goal, work, bound), Enclosure::at_most)
    }

    /// The bound for any number of classes, in both directions (`docs/accounting.md`, "Labels").
    fn with_labels_told(&self, crowd: Crowd, question: Question, fineness: Fineness, work: &Work) -> PerDirection<f64> {
        PerDirection::each(|direction| {
            let classes = self.weighted(direction, question.growth);
            many_classes::upper(&classes, crowd, question.log_cut, fineness, work)
        })
    }
}

/// The first values, of which there are at least so many.
fn first<T: Copy, const N: usize>(values: Vec<T>) -> [T; N] {
    std::array::from_fn(|index| values[index])
}

/// Three classes where one is so rare that it may be given away: then there are two (`docs/accounting.md`, "A class that hardly
/// anybody is in"). Nobody of the crowd is in it but for a small probability; the target's own mass there is added. None where
/// that is too much.
fn without_the_rarest(
    weights: PerDirection<[Weight; 3]>,
    crowd: CrowdLaws<3>,
    question: Question,
    work: &Work,
) -> Option<Divergences> {
    let given_away = GivenAway::rarest(&crowd);
    let price = weights.map(|weights| given_away.price(&weights));
    if price.largest() > question.tolerance(1e-3) {
        return None;
    }
    let left = CrowdLaws { owners: crowd.owners, laws: crowd.laws.map(|law| given_away.left(law)) };
    if left.each().iter().any(|(_, law)| law[0] + law[1] <= 0.0) {
        return None;
    }
    let values = two_classes(weights.map(|weights| given_away.left(weights)), left, question.log_cut, work);
    let enough = values.with(price, |value, price| price <= question.tolerance(value.lower()));
    enough.iter().all(|enough| *enough).then(|| values.with(price, |value, price| given_away.paid(value, price)))
}

/// A class of three that the adversary is told about, and a bound on the probability that anybody of the crowd is in it.
struct GivenAway {
    class: usize,
    somebody: f64,
}

impl GivenAway {
    fn rarest(crowd: &CrowdLaws<3>) -> Self {
        let class = crowd.rarest();
        Self { class, somebody: crowd.expected(class) * (1.0 + 1e-12) }
    }

    /// What is left of one value for each class.
    fn left<T: Copy>(&self, values: [T; 3]) -> [T; 2] {
        [values[(self.class + 1) % 3], values[(self.class + 2) % 3]]
    }

    /// How much more the divergence may be than that of the other two classes.
    fn price(&self, weights: &[Weight; 3]) -> f64 {
        self.somebody + weights[self.class].first
    }

    /// The divergence of three classes from that of two and the price.
    fn paid(&self, value: Enclosure, price: f64) -> Enclosure {
        let lower = value.lower() * (1.0 - self.somebody).max(0.0);
        Enclosure::of_probability(lower, (value.upper() + price) * (1.0 + 1e-12))
    }
}
