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
use crate::privacy::views::Outcome;
use crate::threads::joined;
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
/// anybody is in"). Hardly anybody of the crowd is in it but for a small probability; the target's own mass there is added. None
/// where that is too much.
fn without_the_rarest(
    weights: PerDirection<[Weight; 3]>,
    crowd: CrowdLaws<3>,
    question: Question,
    work: &Work,
) -> Option<Divergences> {
    let given_away = GivenAway::rarest(&crowd, question);
    let price = weights.map(|weights| given_away.price(&weights));
    if price.largest() > question.tolerance(1e-3) {
        return None;
    }
    let left = CrowdLaws { owners: crowd.owners, laws: crowd.laws.map(|law| given_away.left(law)) };
    if left.each().iter().any(|(_, law)| law[0] + law[1] <= 0.0) {
        return None;
    }
    let weights = weights.map(|weights| given_away.left(weights));
    let divergence = |owners| two_classes(weights, CrowdLaws { owners, ..left }, question.log_cut, work);
    let whole = divergence(crowd.owners);
    let fewer = if given_away.few == 0 { whole } else { divergence(given_away.rest(crowd.owners)) };
    let upper = fewer.with(price, |fewer, price| (fewer.upper() + price) * (1.0 + 1e-12));
    let close = whole.with(upper, |whole, upper| upper - whole.upper() <= question.tolerance(whole.lower()));
    close.iter().all(|close| *close).then(|| {
        whole.with(upper, |whole, upper| Enclosure::of_probability(given_away.lower(whole), upper.max(whole.lower())))
    })
}

/// How many of a crowd may be in a class that is given away, from the fewest on.
const FEW: [u64; 3] = [0, 1, 4];
/// The share of what is allowed to be lost that more of them may cost.
const SHARE_OF_MORE: f64 = 0.1;

/// A class of three that the adversary is told about, the expected number of owners who are in it, from above, and how many of
/// them are taken out of the crowd.
struct GivenAway {
    class: usize,
    expected: f64,
    few: u64,
}

impl GivenAway {
    fn rarest(crowd: &CrowdLaws<3>, question: Question) -> Self {
        let class = crowd.rarest();
        let expected = crowd.expected(class) * (1.0 + 1e-12);
        let negligible = |few: &u64| more_than(*few, expected) <= SHARE_OF_MORE * question.tolerance(0.0);
        let few = FEW.into_iter().find(negligible).unwrap_or(FEW[FEW.len() - 1]);
        Self { class, expected, few }
    }

    /// What is left of one value for each class.
    fn left<T: Copy>(&self, values: [T; 3]) -> [T; 2] {
        [values[(self.class + 1) % 3], values[(self.class + 2) % 3]]
    }

    /// The owners who are certainly left: nobody knows the truth of those who are taken out.
    fn rest(&self, owners: Crowd) -> Crowd {
        Crowd { yes: owners.yes.saturating_sub(self.few), no: owners.no.saturating_sub(self.few) }
    }

    /// How much more the divergence may be than that of the other two classes among the rest.
    fn price(&self, weights: &[Weight; 3]) -> f64 {
        more_than(self.few, self.expected) + weights[self.class].first
    }

    /// The divergence of three classes from that of two, from below: where nobody is in the third.
    fn lower(&self, whole: Enclosure) -> f64 {
        whole.lower() * (1.0 - self.expected).max(0.0)
    }
}

/// The probability that more than `few` of independent events happen, of which `expected` do on average, from above: k of them
/// happen with a probability of at most expectedᵏ/k!, the sum of the products of any k probabilities.
fn more_than(few: u64, expected: f64) -> f64 {
    (1..=few + 1).map(|k| expected / k as f64).product::<f64>() * (1.0 + 1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::effort::WorkLimit;
    use crate::privacy::likelihood::Likelihood;

    /// Three classes, the middle one rare, with a goal of about the divergence itself.
    fn with_a_rare_class(rare: f64, precision: f64) -> (Outcome, Question) {
        let class = |yes: f64, no: f64| Likelihood { yes, no };
        let classes = vec![class(0.7 - rare, 0.3), class(rare, 0.5 * rare), class(0.3, 0.7 - 0.5 * rare)];
        let question = Question { precision, ..Question::new(0.05_f64.exp(), -60.0, 1e-2) };
        (Outcome { classes, outside: Likelihood::NONE }, question)
    }

    /// Told who is in a rare class, and with a few taken out, crowds give bounds around what the formulas for three classes give,
    /// and around what enumeration does.
    #[test]
    fn a_rare_class_may_be_given_away() {
        for (rare, crowd) in [(1e-4, Crowd { yes: 300, no: 700 }), (1e-3, Crowd { yes: 3, no: 40 })] {
            let (outcome, question) = with_a_rare_class(rare, 0.9);
            let work = Work::within(WorkLimit::default(), 1001);
            let laws = PerTruth::each(|truth| first(outcome.law(truth).expect("three classes")));
            let laws = CrowdLaws { owners: crowd, laws };
            let weights = outcome.weights(question.growth).map(first);
            let told = without_the_rarest(weights, laws, question, &work).expect("hardly anybody is in the class");
            let exact = outcome.three_classes(weights, laws, Question { precision: 1e-6, ..question }, &work);
            let contains = told.with(exact, |told, exact| {
                told.upper() >= exact.lower() && told.lower() <= exact.upper() && told.upper() <= 1.9 * exact.upper()
            });
            assert!(contains.iter().all(|contains| *contains), "{crowd:?}: {told:?} and {exact:?}");
        }
    }

    #[test]
    fn more_than_a_few_are_rare() {
        assert!((more_than(0, 0.1) - 0.1).abs() < 1e-12);
        assert!((more_than(2, 0.1) - 1e-3 / 6.0).abs() < 1e-15);
        // Of a hundred with one in a hundred each, more than one happen with 0.264.
        assert!(more_than(1, 1.0) >= 0.264);
    }
}
