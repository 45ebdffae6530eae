//! Three classes of which one is so rare that it may be given away (`docs/accounting.md`, "A rare class").

use super::question::{Divergences, Question};
use super::two_classes::two_classes;
use crate::certified::enclosure::Enclosure;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Bounds, Crowd, CrowdLaws, Weight, Weights};

/// The divergence of three classes by way of the two that are left when the rarest is given away. Hardly anybody of the crowd is
/// in it but for a small probability; the target's own mass there is added. None where that is too much.
pub(super) fn without_the_rarest(
    weights: Weights<3>,
    crowd: CrowdLaws<3>,
    question: Question,
    work: &Work,
) -> Option<Divergences> {
    let given_away = GivenAway::rarest(&crowd, question);
    let price = weights.map(|weights| given_away.price(&weights));
    if price.largest() > question.tolerance(1e-3) {
        return None;
    }
    let crowd = given_away.left_of_crowd(&crowd)?;
    let weights = weights.map(|weights| given_away.left(weights));
    let divergence = |owners| two_classes(weights, CrowdLaws { owners, ..crowd }, question.log_cut, work);
    let whole = divergence(crowd.owners);
    let fewer = if given_away.few == 0 { whole } else { divergence(given_away.rest(crowd.owners)) };
    let upper = fewer.with(price, |fewer, price| (fewer.upper() + price) * (1.0 + 1e-12));
    given_away.enclosures(whole, upper, question)
}

/// How many of a crowd may be in a class that is given away, tried in this order.
const FEW: [u64; 3] = [0, 1, 4];
/// The share of the allowed loss that the chance of more of them may cost.
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

    /// The crowd over the other two classes; none where owners of some truth are in neither.
    fn left_of_crowd(&self, crowd: &CrowdLaws<3>) -> Option<CrowdLaws<2>> {
        let left = CrowdLaws { owners: crowd.owners, laws: crowd.laws.map(|law| self.left(law)) };
        left.each().iter().all(|(_, law)| law[0] + law[1] > 0.0).then_some(left)
    }

    /// The owners who are certainly left: nobody knows the truth of those who are taken out.
    fn rest(&self, owners: Crowd) -> Crowd {
        Crowd { yes: owners.yes.saturating_sub(self.few), no: owners.no.saturating_sub(self.few) }
    }

    /// How much more the divergence may be than that of the other two classes among the rest.
    fn price(&self, weights: &[Weight; 3]) -> f64 {
        more_than(self.few, self.expected) + weights[self.class].first
    }

    /// The divergence of three classes, given that of two among all owners and an upper bound; none where these are too far apart.
    fn enclosures(&self, whole: Divergences, upper: Bounds, question: Question) -> Option<Divergences> {
        let close = whole.with(upper, |whole, upper| upper - whole.upper() <= question.tolerance(whole.lower()));
        close.iter().all(|close| *close).then(|| {
            whole.with(upper, |whole, upper| Enclosure::of_probability(self.lower(whole), upper.max(whole.lower())))
        })
    }

    /// The divergence of three classes from that of two, from below: where nobody is in the third.
    fn lower(&self, whole: Enclosure) -> f64 {
        whole.lower() * (1.0 - self.expected).max(0.0)
    }
}

/// An upper bound on the probability that more than `few` of some independent events happen, `expected` on average: k of them
/// happen with a probability of at most expectedᵏ/k!, the sum of the products of any k probabilities.
fn more_than(few: u64, expected: f64) -> f64 {
    (1..=few + 1).map(|k| expected / k as f64).product::<f64>() * (1.0 + 1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::divergence::outcome::first;
    use crate::privacy::effort::WorkLimit;
    use crate::privacy::likelihood::Likelihood;
    use crate::privacy::views::Outcome;

    /// Three classes, the middle one rare, with a goal of about the divergence itself.
    fn with_a_rare_class(rare: f64, precision: f64) -> (Outcome, Question) {
        let class = |yes: f64, no: f64| Likelihood { yes, no };
        let classes = vec![class(0.7 - rare, 0.3), class(rare, 0.5 * rare), class(0.3, 0.7 - 0.5 * rare)];
        let question = Question { precision, ..Question::new(0.05, -60.0, 1e-2) };
        (Outcome { classes, outside: Likelihood::NONE }, question)
    }

    /// Told who is in a rare class, and with a few taken out, crowds give bounds around what the formulas for three classes give,
    /// and around what enumeration does.
    #[test]
    fn a_rare_class_may_be_given_away() {
        for (rare, crowd) in [(1e-4, Crowd { yes: 300, no: 700 }), (1e-3, Crowd { yes: 3, no: 40 })] {
            let (outcome, question) = with_a_rare_class(rare, 0.9);
            let work = Work::within(WorkLimit::default(), 1001);
            let laws = CrowdLaws { owners: crowd, laws: outcome.laws().expect("three classes").map(first) };
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
