//! One outcome in one crowd: the choice between the formulas for up to three classes (`docs/accounting.md`, "The divergence of one
//! crowd").

use super::averaged::expected;
use super::many_classes::{self, refined};
use super::one_truth;
use super::question::{Divergences, Question};
use super::three_classes::three_classes;
use super::two_classes::two_classes;
use crate::certified::binomial::Binomial;
use crate::certified::enclosure::Enclosure;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Crowd, CrowdLaws, PerDirection, PerTruth, Weight};
use crate::privacy::views::Outcome;
use crate::truth::Truth;

/// From this many owners on, a crowd takes long enough for one thread per direction.
const MANY_OWNERS: u64 = 5_000_000;

impl Outcome {
    /// A crowd of one truth, in both directions.
    pub(super) fn one_truth(&self, truth: Truth, others: u64, question: Question, work: &Work) -> Divergences {
        let weights = PerDirection::each(|direction| self.weights(direction, question.growth));
        let Some(law) = self.law(truth).filter(|_| self.classes.len() > 1) else {
            return weights
                .map(|weights| weights.iter().map(Weight::positive_part).fold(Enclosure::ZERO, Enclosure::plus));
        };
        let classes = weights.map(|weights| weights.into_iter().zip(law.iter().copied()).collect::<Vec<_>>());
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
            PerTruth { yes: Some(_), .. } => return self.one_truth_inside(Truth::Yes, crowd.yes, question, work),
            PerTruth { .. } => return self.one_truth_inside(Truth::No, crowd.no, question, work),
        };
        if let Some((truth, owners)) = crowd.one_truth() {
            return self.one_truth_inside(truth, owners, question, work);
        }
        let weights = PerDirection::each(|direction| self.weights(direction, question.growth));
        if let ([_, _], [_, _]) = (&laws.yes[..], &laws.no[..]) {
            let crowd = CrowdLaws { owners: crowd, laws: laws.map(|law| [law[0], law[1]]) };
            return two_classes(weights.map(|weights| [weights[0], weights[1]]), crowd, question.log_cut, work);
        }
        let crowd_laws = CrowdLaws { owners: crowd, laws: laws.map(|law| [law[0], law[1], law[2]]) };
        let weights = weights.map(|weights| [weights[0], weights[1], weights[2]]);
        if let Some(value) = without_the_rarest(weights, crowd_laws, question, work) {
            return value;
        }
        let exact = self.three_classes(weights, crowd_laws, question, work);
        if exact.iter().all(|value| value.upper() <= question.goal.max(1.01 * value.lower())) {
            return exact;
        }
        self.bounded_otherwise(exact, crowd, question, work)
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
            let (no_over_yes, spent) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
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
        let labelled = refined(crowd.size(), question.goal, work, |fineness| {
            PerDirection::each(|direction| {
                let classes = self.weighted(direction, question.growth);
                many_classes::upper(&classes, crowd, question.log_cut, fineness, work)
            })
        });
        bounded.with(labelled, Enclosure::at_most)
    }
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
    let expected = |class: usize| crowd.each().map(|(owners, law)| owners as f64 * law[class]).iter().sum::<f64>();
    let rarest = (0..3).min_by(|a, b| expected(*a).total_cmp(&expected(*b)))?;
    let somebody = expected(rarest) * (1.0 + 1e-12);
    let price = weights.map(|weights| somebody + weights[rarest].first);
    if price.largest() > question.precision * question.goal.max(1e-3) {
        return None;
    }
    let [one, other] = [(rarest + 1) % 3, (rarest + 2) % 3];
    let left = CrowdLaws { owners: crowd.owners, laws: crowd.laws.map(|law| [law[one], law[other]]) };
    if left.each().iter().any(|(_, law)| law[0] + law[1] <= 0.0) {
        return None;
    }
    let values = two_classes(weights.map(|weights| [weights[one], weights[other]]), left, question.log_cut, work);
    let enough = values.with(price, |value, price| price <= question.precision * question.goal.max(value.lower()));
    let result = values.with(price, |value, price| {
        let lower = value.lower() * (1.0 - somebody).max(0.0);
        Enclosure::of_probability(lower, (value.upper() + price) * (1.0 + 1e-12))
    });
    enough.iter().all(|enough| *enough).then_some(result)
}
