//! What a crowd shows when the target is *yes* against *no*, from below: losses and masses that compose
//! (`docs/composition.md`, "The lower value").

use super::lattice::RealLaw;
use super::oriented::{OrientedCrowd, commoner};
use crate::certified::score_sum::{Draws, LONGEST, ScoreSum, TiltedLaw};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Crowd, Direction, Likelihood, PerDirection, WeightedClass};
use crate::truth::Truth;

/// Outcomes of one query in a pair of worlds, coarsened as one likes: losses from below with their masses from below.
#[derive(Debug, Clone)]
pub(crate) struct PairLaw {
    /// (ln of the ratio of the two laws, mass under the first).
    pub(crate) losses: Vec<(f64, f64)>,
    /// Mass of outcomes that the second law does not have.
    pub(crate) infinite: f64,
}

/// What a sum of scores shows in a crowd when the target is *yes* against *no*: the losses and masses of its outcomes, from
/// below, in both directions. None where it cannot be told.
pub(crate) fn pair_laws(classes: &[Likelihood], crowd: Crowd, work: &Work) -> Option<PerDirection<PairLaw>> {
    let scores = integer_scores(classes, crowd)?;
    let is_alone = |class: &Likelihood| {
        let unreached = |truth: Truth| crowd[truth] > 0 && class[truth] <= 0.0;
        unreached(Truth::Yes) || unreached(Truth::No) || crowd.size() == 0 && class.no <= 0.0
    };
    // The target in a class that nobody else reaches shows by itself.
    let alone: Vec<bool> = classes.iter().map(is_alone).collect();
    if alone.contains(&true) && crowd.one_truth().is_none() {
        return None;
    }
    let atoms = |truth: Truth| -> Vec<(i64, f64)> {
        classes
            .iter()
            .zip(&scores)
            .map(|(class, score)| (*score, class[truth]))
            .filter(|(_, mass)| *mass > 0.0)
            .collect()
    };
    let present = [Truth::Yes, Truth::No].into_iter().filter(|truth| crowd[*truth] > 0);
    let groups = present.map(|truth| Draws { owners: crowd[truth], atoms: atoms(truth) });
    let sum = ScoreSum { groups: groups.collect() };
    let window = sum.window(0.0, -60.0);
    if window.high - window.low > LONGEST / 2 {
        return None;
    }
    work.spend(20 * (window.high - window.low) as u64);
    let outside = window.log_outside.exp();
    let shown = Shown { classes, scores: &scores, alone: &alone, law: sum.law(0.0, window), outside };
    let reach = scores.iter().map(|score| score.abs()).max().unwrap_or(0);
    let range = window.low - reach..=window.high + reach;
    Some(PerDirection::each(|direction| shown.pair_law(direction, range.clone())))
}

/// The law of the sum of all scores, the target's included.
struct Shown<'a> {
    classes: &'a [Likelihood],
    scores: &'a [i64],
    /// Whether the target is alone in each class.
    alone: &'a [bool],
    /// The law of the others' sum, and the mass beyond it on either side.
    law: TiltedLaw,
    outside: f64,
}

impl Shown<'_> {
    fn pair_law(&self, direction: Direction, range: std::ops::RangeInclusive<i64>) -> PairLaw {
        let (first, second) = match direction {
            Direction::YesOverNo => (Truth::Yes, Truth::No),
            Direction::NoOverYes => (Truth::No, Truth::Yes),
        };
        let mut pair = PairLaw { losses: Vec::new(), infinite: 0.0 };
        let relative = 1.0 - 4.0 * self.law.relative_error - 1e-12;
        for j in range {
            let (one, other) = (self.below(j, first) * relative, self.above(j, second) / relative);
            if one > 0.0 && other > 0.0 {
                pair.losses.push(((one / other).ln(), one));
            }
        }
        for (class, alone) in self.classes.iter().zip(self.alone) {
            let (one, other) = (class[first] * (1.0 - 1e-14), class[second] * (1.0 + 1e-14));
            match (*alone, other > 0.0) {
                (true, true) if one > 0.0 => pair.losses.push(((one / other).ln(), one)),
                (true, false) => pair.infinite += one,
                _ => {}
            }
        }
        pair
    }

    /// The probability that all scores sum to `j` if the target has this truth, from below.
    fn below(&self, j: i64, truth: Truth) -> f64 {
        let crowd = |value: Option<f64>| value.map_or(0.0, |value| (value - self.law.error - self.law.folded).max(0.0));
        self.sum(j, truth, crowd) * (1.0 - 1e-14)
    }

    /// The same from above.
    fn above(&self, j: i64, truth: Truth) -> f64 {
        let crowd = |value: Option<f64>| value.map_or(self.outside, |value| value.max(0.0) + self.law.error);
        self.sum(j, truth, crowd) * (1.0 + 1e-14) + 2.0 * self.outside
    }

    /// Σ over the classes in which the target is not alone of its probability times what a bound says of the others' law.
    fn sum(&self, j: i64, truth: Truth, bound: impl Fn(Option<f64>) -> f64) -> f64 {
        let part = |((class, score), alone): ((&Likelihood, &i64), &bool)| {
            let crowd = bound(self.law.values.get(usize::try_from(j - score - self.law.first).ok()?).copied());
            (!alone).then_some(class[truth] * crowd)
        };
        self.classes.iter().zip(self.scores).zip(self.alone).filter_map(part).sum()
    }
}

/// Integer scores for all classes, in the order given, by what they add to the evidence.
fn integer_scores(classes: &[Likelihood], crowd: Crowd) -> Option<Vec<i64>> {
    if crowd.size() == 0 {
        return Some((0..classes.len() as i64).collect());
    }
    let weighted: Vec<WeightedClass> = classes.iter().map(|class| class.weighted(Direction::YesOverNo, 1.0)).collect();
    let (_, oriented) = OrientedCrowd::split(&weighted, crowd);
    let oriented = oriented.filter(|oriented| !oriented.dropped)?;
    let (influences, _) = oriented.influences();
    let masses = oriented.classes.iter().map(|class| class.common);
    let law: Vec<(f64, f64)> = influences.iter().copied().zip(masses).collect();
    let zero = law.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let deviation = RealLaw(&law).moments(0.0).1.sqrt();
    // So many cells per owner, but not more than a transform has room for.
    let cells = (2e4 / (crowd.size() as f64).sqrt()).clamp(0.5, 8.0);
    let spacing = if law.len() == 2 { (law[0].0 - law[1].0).abs() } else { deviation / cells };
    let mut places = influences.iter().map(|influence| ((influence - zero) / spacing).round());
    let place = |class: &Likelihood| -> Option<i64> {
        if class[commoner(crowd)] == 0.0 {
            return Some(0);
        }
        places.next().filter(|place| place.abs() < 1e9).map(|place| place as i64)
    };
    classes.iter().map(place).collect()
}
