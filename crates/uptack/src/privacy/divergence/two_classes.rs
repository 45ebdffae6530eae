//! The divergence of two classes in a crowd of both truths, exactly (`docs/accounting.md`, "Two classes").
//!
//! The count of the first class is a sum of two binomials. The noise of one aggregator may be added to it ("One honest
//! aggregator"): the count's law is then convolved with the noise by two passes over its support, and beyond the support the
//! convolved law is geometric, so that both tails are closed forms, however large the scale. And three classes become two if one
//! of them is so rare that it may be revealed ("A rare class").

use super::many_classes::PairLaw;
use super::{DivergenceRequest, Divergences};
use crate::certified::binomial::{Binomial, Coin, window};
use crate::certified::binomial_sum::{SumLaw, sum_of_two};
use crate::certified::rounding::{Enclosure, ROUNDOFF, down, up};
use crate::privacy::likelihood::{
    ClassWeights, Crowd, CrowdLaws, Direction, DirectionBounds, Likelihood, PerDirection, PerTruth, Weight,
};
use crate::privacy::views::{AddedNoise, TargetOutcome};
use crate::privacy::work::WorkBudget;
use crate::truth::Truth;

/// The divergence for a target with these weights, exactly: the count of the first class is a sum of two binomials.
pub(crate) fn two_classes(
    weights: ClassWeights<2>,
    crowd: CrowdLaws<2>,
    log_cut: f64,
    work: &WorkBudget,
) -> Divergences {
    let parts = crowd.counts_of_first();
    let (low, high) = window(&parts, log_cut);
    let counts = sum_of_two(parts[0], parts[1], low, high);
    work.spend(counts.steps);
    weights.map(|[first, second]| positive_part(first, second, &counts, log_cut))
}

impl CrowdLaws<2> {
    /// How many owners of each truth are in the first class.
    pub(super) fn counts_of_first(&self) -> [Binomial; 2] {
        self.each().map(|(owners, [first, second])| Binomial::new(owners, Coin::between(first, second)))
    }
}

/// Σ over a of (first·g(a−1) + second·g(a))₊, g the law of the count.
fn positive_part(first: Weight, second: Weight, counts: &SumLaw, log_cut: f64) -> Enclosure {
    // The ratio of neighbours may be off, and so may each weight.
    let one = Coefficient::new(first, 16.0);
    let other = Coefficient::new(second, 16.0).with_ratio_error(counts.ratio_error);
    let sum = positive_sum(one, other, LogConcaveLaw { values: &counts.probability, decay: 0.0, gap: 1.0 });
    let error = sum.error + (counts.relative_error + 2.0 * log_cut.exp()) * (sum.value + sum.error);
    Enclosure::around(sum.value, error, 3.0 * log_cut.exp() * (first.first + second.first))
}

/// A coefficient, and how far it may be off.
#[derive(Clone, Copy)]
pub(super) struct Coefficient {
    pub(super) value: f64,
    pub(super) slack: f64,
}

/// A log-concave law g on consecutive numbers, which beyond both ends falls by the factor `decay` from one number to the next:
/// a = 0 where there is nothing beyond. `gap` is 1 − a.
#[derive(Clone, Copy)]
pub(super) struct LogConcaveLaw<'a> {
    pub(super) values: &'a [f64],
    pub(super) decay: f64,
    pub(super) gap: f64,
}

impl LogConcaveLaw<'_> {
    /// Σ of g(k−1) and Σ of g(k) over all k up to the first number, and over all k above the last one.
    pub(super) fn ends(&self) -> [(f64, f64); 2] {
        let [first, last] = [self.values[0], self.values[self.values.len() - 1]].map(|value| value / self.gap);
        [(first * self.decay, first), (last, last * self.decay)]
    }

    /// The pairs (g(k−1), g(k)) with both numbers on the window, by growing k.
    pub(super) fn inner(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        self.values.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// All pairs (g(k−1), g(k)) by growing k, where those beyond each end are added up to one.
    fn neighbours(&self) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        let [below, above] = self.ends();
        std::iter::once(below).chain(self.inner()).chain([above])
    }
}

impl Coefficient {
    /// The value of a weight that is off by at most this many roundings of its magnitude.
    pub(super) fn new(weight: Weight, roundings: f64) -> Self {
        Self { value: weight.value(), slack: roundings * ROUNDOFF * weight.magnitude() }
    }

    /// The same where the value of the law that it multiplies may be off by `ratio_error` relative to the neighbouring one.
    pub(super) fn with_ratio_error(self, ratio_error: f64) -> Self {
        Self { slack: self.slack + 2.0 * ratio_error * self.value.abs(), ..self }
    }

    fn is_certainly_not_positive(self) -> bool {
        self.value <= -self.slack
    }
}

/// Adds up Σ (difference)₊ together with what rounding may have moved or hidden.
#[derive(Clone, Copy, Default)]
pub(super) struct Positive {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl Positive {
    /// `slack` is how far the difference may be off; one that is negative by more counts for nothing.
    #[inline]
    pub(super) fn add(&mut self, difference: f64, slack: f64) {
        if difference > -slack {
            self.value += difference.max(0.0);
            self.error += slack;
        }
    }
}

/// Σ over a of (one·g(a−1) + other·g(a))₊. The law g is log-concave, so the terms change sign at most once, and the sum starts
/// at the end where they are positive.
pub(super) fn positive_sum(one: Coefficient, other: Coefficient, law: LogConcaveLaw<'_>) -> Positive {
    let mut terms = PositiveTerms { one, other, sum: Positive::default() };
    if one.is_certainly_not_positive() && other.is_certainly_not_positive() {
        return terms.sum;
    }
    let mut neighbours = law.neighbours();
    let _ = if one.value > 0.0 {
        neighbours.rev().any(|pair| terms.add(pair))
    } else {
        neighbours.any(|pair| terms.add(pair))
    };
    terms.sum
}

/// The terms (one·g(k−1) + other·g(k))₊, and their sum so far.
struct PositiveTerms {
    one: Coefficient,
    other: Coefficient,
    sum: Positive,
}

impl PositiveTerms {
    /// Adds the term of g(k−1) and g(k); returns whether it is certainly negative, after which all are.
    #[inline]
    fn add(&mut self, (below, at): (f64, f64)) -> bool {
        let difference = self.one.value * below + self.other.value * at;
        let slack = self.one.slack * below + self.other.slack * at;
        self.sum.add(difference, slack);
        difference < -slack
    }
}

/// A crowd in both directions, for a view of at most two classes with nothing outside.
pub(super) fn noisy_divergence(
    outcome: &TargetOutcome,
    noise: &AddedNoise,
    crowd: Crowd,
    request: DivergenceRequest,
    work: &WorkBudget,
) -> Divergences {
    let weights = outcome.weights(request.growth);
    let [first, second] = outcome.classes[..] else {
        // Both truths write the same.
        return weights.map(|weights| Weight::positive_parts(&weights));
    };
    // The mass that is cut may belong to the second law, which carries the factor e^ε.
    let law = NoisyCount::new([first, second], noise, crowd, request.log_cut - request.growth.ln(), work);
    weights.map(|weights| law.positive_part(weights[0], weights[1], request.growth))
}

/// The evidence about the target in a crowd, from below.
pub(super) fn noisy_pair_laws(
    outcome: &TargetOutcome,
    noise: &AddedNoise,
    crowd: Crowd,
    work: &WorkBudget,
) -> PerDirection<PairLaw> {
    let [first, second] = outcome.classes[..] else {
        return PerDirection::each(|_| PairLaw { losses: vec![(0.0, 1.0)], infinite: 0.0 });
    };
    let law = NoisyCount::new([first, second], noise, crowd, PAIR_CUT, work);
    PerDirection::each(|direction| law.pair_law([first, second], direction))
}

/// The logarithm of the mass that is cut if no request specifies it. A deeper cut makes the law longer and the lower end of
/// a composition no better.
const PAIR_CUT: f64 = -100.0;

/// Up to this many owners are added one by one, which is precise even where a class is very rare.
const FEW_OWNERS: u64 = 64;

/// The law of the crowd's count of the first class plus noise, on the window of the count.
struct NoisyCount {
    values: Vec<f64>,
    noise: AddedNoise,
    /// Of each value, and of the ratio of two neighbours.
    relative_error: f64,
    /// The mass of the crowd's count beyond the window at most.
    cut: f64,
}

impl NoisyCount {
    fn new(classes: [Likelihood; 2], noise: &AddedNoise, crowd: Crowd, log_cut: f64, work: &WorkBudget) -> Self {
        let laws = PerTruth::each(|truth| classes.map(|class| class[truth]));
        let count = PlainCount::new(CrowdLaws { owners: crowd, laws }.counts_of_first(), log_cut);
        let length = count.values.len();
        work.spend(4 * length as u64);
        let relative_error = count.relative_error + ROUNDOFF * (8.0 * length as f64 + 16.0);
        Self { values: convolved(&count.values, noise), noise: *noise, relative_error, cut: count.cut }
    }

    fn law(&self) -> LogConcaveLaw<'_> {
        LogConcaveLaw { values: &self.values, decay: self.noise.decay, gap: self.noise.gap }
    }

    /// Σ over k of (first·g(k−1) + second·g(k))₊.
    fn positive_part(&self, first: Weight, second: Weight, growth: f64) -> Enclosure {
        let one = Coefficient::new(first, 32.0);
        let other = Coefficient::new(second, 32.0).with_ratio_error(self.relative_error);
        let sum = positive_sum(one, other, self.law());
        let error = sum.error + (self.relative_error + self.cut) * (sum.value + sum.error) + growth * self.cut;
        Enclosure::around(sum.value, error, 2.0 * self.cut)
    }

    /// The losses and masses of all sums in one direction; each tail is one outcome, as the loss is the same all over it.
    fn pair_law(&self, [one, zero]: [Likelihood; 2], direction: Direction) -> PairLaw {
        let (first, second) = direction.truths();
        let loss = |(below, at): (f64, f64)| {
            let probability = |truth: Truth| one[truth] * below + zero[truth] * at;
            self.loss(probability(first), probability(second))
        };
        let law = self.law();
        PairLaw { losses: law.ends().into_iter().chain(law.inner()).filter_map(loss).collect(), infinite: 0.0 }
    }

    /// The loss of an outcome of these two probabilities and its mass, both from below; `None` if there is no mass.
    fn loss(&self, first: f64, second: f64) -> Option<(f64, f64)> {
        let relative = self.relative_error + self.cut + 8.0 * ROUNDOFF;
        let (likely, other) = (down(first, relative), up(second, relative) + self.cut);
        // A thousand roundings less: the logarithm and the quotient are a few.
        (likely > 0.0).then(|| ((likely / other).ln() - 1e3 * ROUNDOFF, likely))
    }
}

/// The law of the crowd's count of the first class without noise, on a window.
struct PlainCount {
    values: Vec<f64>,
    relative_error: f64,
    /// The mass beyond the window at most.
    cut: f64,
}

impl PlainCount {
    fn new(parts: [Binomial; 2], log_cut: f64) -> Self {
        let owners = parts[0].trials + parts[1].trials;
        if owners <= FEW_OWNERS {
            return Self::one_by_one(parts);
        }
        let (low, high) = window(&parts, log_cut);
        let counts = sum_of_two(parts[0], parts[1], low, high);
        let cut = if (low, high) == (0, owners) { 0.0 } else { 2.0 * log_cut.exp() };
        Self { values: counts.probability, relative_error: counts.relative_error, cut }
    }

    /// The law of few owners, who are added one by one.
    fn one_by_one(parts: [Binomial; 2]) -> Self {
        let coins = parts.into_iter().flat_map(|part| (0..part.trials).map(move |_| part.coin));
        let values = coins.fold(vec![1.0], with_one_trial);
        Self { relative_error: 8.0 * ROUNDOFF * values.len() as f64, values, cut: 0.0 }
    }
}

/// The law of one more trial added.
fn with_one_trial(mut law: Vec<f64>, coin: Coin) -> Vec<f64> {
    let mut before = 0.0;
    law.push(0.0);
    for value in &mut law {
        let here = *value;
        *value = coin.failure * here + coin.success * before;
        before = here;
    }
    law
}

/// g(k) = (1−a)/(1+a)·Σ f(x)·a^|k−x| on the numbers of f: what comes from below, and what comes from above.
fn convolved(law: &[f64], noise: &AddedNoise) -> Vec<f64> {
    let (decay, scale) = (noise.decay, noise.gap / (1.0 + noise.decay));
    let mut sums = vec![0.0; law.len()];
    let mut above = 0.0;
    for (sum, mass) in sums.iter_mut().zip(law).rev() {
        *sum = above;
        above = decay * (above + mass);
    }
    let mut below = 0.0;
    for (sum, mass) in sums.iter_mut().zip(law) {
        below = decay * below + mass;
        *sum = scale * (*sum + below);
    }
    sums
}

/// The divergence of three classes from that of two, if the rarest class is revealed to the adversary. Except with a small
/// probability at most a few owners of the crowd are in it; the target's own mass there is added. `None` if that is too much.
pub(super) fn without_the_rarest(
    weights: ClassWeights<3>,
    crowd: CrowdLaws<3>,
    request: DivergenceRequest,
    work: &WorkBudget,
) -> Option<Divergences> {
    let given_away = RevealedClass::rarest(&crowd, request);
    let price = weights.map(|weights| given_away.price(&weights));
    if price.largest() > request.tolerance(1e-3) {
        return None;
    }
    let crowd = given_away.left_of_crowd(&crowd)?;
    let weights = weights.map(|weights| given_away.left(weights));
    let divergence = |owners| two_classes(weights, CrowdLaws { owners, ..crowd }, request.log_cut, work);
    let whole = divergence(crowd.owners);
    let fewer = if given_away.few == 0 { whole } else { divergence(given_away.rest(crowd.owners)) };
    let upper = fewer.with(price, |fewer, price| (fewer.upper() + price) * (1.0 + 1e-12));
    given_away.enclosures(whole, upper, request)
}

/// How many owners of a crowd may be in a revealed class, tried in this order.
const FEW: [u64; 3] = [0, 1, 4];
/// The share of the allowed loss that the chance of more of them may cost.
const SHARE_OF_MORE: f64 = 0.1;

/// A class of three that the adversary is told about, the expected number of owners who are in it, from above, and how many of
/// them are taken out of the crowd.
struct RevealedClass {
    class: usize,
    expected: f64,
    few: u64,
}

impl RevealedClass {
    fn rarest(crowd: &CrowdLaws<3>, request: DivergenceRequest) -> Self {
        let class = crowd.rarest();
        let expected = crowd.expected(class) * (1.0 + 1e-12);
        let negligible = |few: &u64| more_than(*few, expected) <= SHARE_OF_MORE * request.tolerance(0.0);
        let few = FEW.into_iter().find(negligible).unwrap_or(FEW[FEW.len() - 1]);
        Self { class, expected, few }
    }

    /// The values of the other two classes.
    fn left<T: Copy>(&self, values: [T; 3]) -> [T; 2] {
        [values[(self.class + 1) % 3], values[(self.class + 2) % 3]]
    }

    /// The crowd over the other two classes; `None` if owners of some truth are in neither.
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

    /// The divergence of three classes, given that of two among all owners and an upper bound; `None` if these are too far apart.
    fn enclosures(
        &self,
        whole: Divergences,
        upper: DirectionBounds,
        request: DivergenceRequest,
    ) -> Option<Divergences> {
        let close = whole.with(upper, |whole, upper| upper - whole.upper() <= request.tolerance(whole.lower()));
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
    use crate::privacy::likelihood::Likelihood;
    use crate::privacy::views::TargetOutcome;
    use crate::privacy::work::WorkLimit;

    /// Three classes, the middle one rare, with a goal of about the divergence itself.
    fn with_a_rare_class(rare: f64, precision: f64) -> (TargetOutcome, DivergenceRequest) {
        let class = |yes: f64, no: f64| Likelihood { yes, no };
        let classes = vec![class(0.7 - rare, 0.3), class(rare, 0.5 * rare), class(0.3, 0.7 - 0.5 * rare)];
        let request = DivergenceRequest { precision, ..DivergenceRequest::new(0.05, -60.0, 1e-2) };
        (TargetOutcome { classes, outside: Likelihood::NONE }, request)
    }

    /// Told who is in a rare class, and with a few taken out, crowds give bounds around what the formulas for three classes give,
    /// and around what enumeration does.
    #[test]
    fn a_rare_class_may_be_given_away() {
        for (rare, crowd) in [(1e-4, Crowd { yes: 300, no: 700 }), (1e-3, Crowd { yes: 3, no: 40 })] {
            let (outcome, request) = with_a_rare_class(rare, 0.9);
            let work = WorkBudget::within(WorkLimit::default(), 1001);
            let laws = CrowdLaws { owners: crowd, laws: outcome.laws().expect("three classes").map(first) };
            let weights = outcome.weights(request.growth).map(first);
            let told = without_the_rarest(weights, laws, request, &work).expect("hardly anybody is in the class");
            let exact = outcome.three_classes(weights, laws, DivergenceRequest { precision: 1e-6, ..request }, &work);
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
