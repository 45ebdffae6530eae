//! Any number of classes, in a crowd of one truth or of both: bounds from above and from below.
//!
//! From above: given the histogram, the divergence is a conditional expectation over which owners are *yes* of a mean over the
//! owners of the commoner truth, so that telling the labels bounds it (Jensen). Adding terms whose conditional expectation is
//! zero makes that bound sharp to second order. From below: any test on a sum of scores. See `docs/accounting.md`,
//! "Any number of classes".

mod labelled;
mod pair_law;

use crate::certified::binomial::ROUNDOFF;
use crate::certified::score_sum::{Draws, LONGEST, ScoreSum};
use crate::privacy::effort::Work;
use crate::privacy::likelihood::Weight;
use labelled::Labelled;
pub(crate) use pair_law::pair_laws;

/// A class that owners may be in: its probability under both truths, and the target's weight there, zero where the target never is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) yes: f64,
    pub(crate) no: f64,
    pub(crate) weight: Weight,
}

/// How finely scores are put on lattices: cells per standard deviation of one owner's score, and of the rarer truth's mean.
/// Twice as many cost about twice as much and lose a quarter as much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fineness {
    scores: f64,
    mean: f64,
    /// No lattice has more cells than this; where very rare classes would need more, it is coarser.
    most_cells: i64,
}

impl Fineness {
    /// Loses about one per cent of the variance.
    pub(crate) const COARSE: Self = Self { scores: 4.0, mean: 4.0, most_cells: 1 << 14 };
    /// The same for very large crowds, where a lattice has many cells.
    pub(crate) const LARGE: Self = Self { scores: 8.0, mean: 6.0, most_cells: 1 << 20 };
    /// For bounds by the thousand in tests: loose, and as sound as any.
    #[cfg(test)]
    pub(crate) const TINY: Self = Self { scores: 4.0, mean: 4.0, most_cells: 1 << 10 };
    /// Loses less than a thousandth of the variance.
    pub(crate) const FINE: Self = Self { scores: 24.0, mean: 16.0, most_cells: 1 << 18 };
}

/// No lattice of a test has many more cells than this: where very rare classes would need more, it is coarser, and the test a
/// little worse.
const MOST_CELLS_OF_A_TEST: i64 = 1 << 15;

/// What a node of a transform costs besides a step for each class: powers and exponentials.
const STEPS_PER_NODE: u64 = 6;

/// What finding a tilt and a window costs, in nodes.
const NODES_OF_A_TILT: u64 = 300;

/// The divergence of one direction in a crowd of so many *yes* and *no* others, from above.
pub(crate) fn upper(members: &[Member], yes: u64, no: u64, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
    let (alone, crowd) = split(members, yes, no);
    let value = match &crowd {
        None => 0.0,
        Some(crowd) => crowd.upper(log_cut, fineness, work),
    };
    ((alone + value) * (1.0 + 1e-12)).min(1.0)
}

/// The same from below, by the best test on a sum of scores.
pub(crate) fn lower(members: &[Member], yes: u64, no: u64, log_cut: f64, work: &Work) -> f64 {
    let (alone, crowd) = split(members, yes, no);
    match crowd {
        // Owners of the rarer truth may hide what seems to show by itself.
        Some(crowd) if crowd.dropped => 0.0,
        Some(crowd) => alone * (1.0 - 1e-12) + crowd.lower(log_cut, work),
        None => alone * (1.0 - 1e-12),
    }
}

/// The divergence of one direction in every crowd of `owners` with the target, from above, by the privacy blanket: each owner
/// draws, whatever its truth, from the law in proportion to min(p, q) with probability γ = Σ min(p, q), and the adversary is told
/// who does not and what they drew (Balle, Bell, Gascón, Nissim, *The privacy blanket of the shuffle model*, 2019). Evaluated
/// exactly, as Su et al. (2025) do: with B ~ Bernoulli(γ) for each owner it is (1/n)·E[(Σ B·x)₊], x = weight/min(p, q).
pub(crate) fn blanket(members: &[Member], owners: u64, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
    let common = |member: &Member| member.yes.min(member.no);
    let nothing = Weight { first: 0.0, second: 0.0 };
    let covered: f64 = members.iter().map(common).sum();
    let told = Member { yes: (1.0 - covered).max(0.0), no: (1.0 - covered).max(0.0), weight: nothing };
    let under = |member: &Member| Member { yes: common(member), no: common(member), weight: member.weight };
    let all: Vec<Member> = members.iter().map(under).chain((told.yes > 0.0).then_some(told)).collect();
    upper(&all, 0, owners - 1, log_cut, fineness, work)
}

/// A crowd as the commoner truth sees it: only classes that it reaches.
struct Crowd {
    classes: Vec<Seen>,
    common: u64,
    rare: u64,
    /// Owners of the rarer truth were left out, because there are classes that only one truth reaches.
    dropped: bool,
}

/// A class with its probability under the commoner and the rarer truth, the target's weight over the former, and its error.
#[derive(Clone, Copy)]
struct Seen {
    common: f64,
    rare: f64,
    weight: Weight,
    score: f64,
    slack: f64,
}

impl Seen {
    /// How much likelier the class is under the rarer truth.
    fn ratio(&self) -> f64 {
        self.rare / self.common
    }
}

/// Separates classes that nobody else is in, where the target shows by itself.
fn split(members: &[Member], yes: u64, no: u64) -> (f64, Option<Crowd>) {
    let common_is_no = no >= yes;
    let (common, mut rare) = if common_is_no { (no, yes) } else { (yes, no) };
    let one_sided = members.iter().any(|member| (member.yes == 0.0) != (member.no == 0.0));
    let dropped = rare > 0 && one_sided;
    if dropped {
        rare = 0;
    }
    let mut alone = 0.0;
    let mut classes = Vec::with_capacity(members.len());
    for member in members {
        let (own, other) = if common_is_no { (member.no, member.yes) } else { (member.yes, member.no) };
        if own == 0.0 || common == 0 {
            alone += member.weight.value().max(0.0)
                + if member.weight.value() > 0.0 { member.weight.value_error() } else { 0.0 };
            continue;
        }
        let score = member.weight.value() / own;
        let slack = (member.weight.value_error() + 8.0 * ROUNDOFF * member.weight.magnitude()) / own;
        classes.push(Seen { common: own, rare: other, weight: member.weight, score, slack });
    }
    let crowd = Crowd { classes, common, rare, dropped };
    (alone, (crowd.common > 0 && !crowd.classes.is_empty()).then_some(crowd))
}

impl Crowd {
    /// The owners of the commoner truth and the target, as if it were one of them.
    fn drawn(&self) -> f64 {
        (self.common + 1) as f64
    }

    /// Owners of the commoner truth for each of the rarer.
    fn balance(&self) -> f64 {
        self.drawn() / self.rare as f64
    }

    /// The constant that makes the influences average to zero.
    fn centre(&self) -> f64 {
        let share = |class: &Seen| class.common * class.ratio() / (class.ratio() + self.balance());
        let total: f64 = self.classes.iter().map(share).sum();
        self.classes.iter().map(|class| share(class) * class.score).sum::<f64>() / total
    }

    /// What an owner in each class adds to the evidence, whatever its truth, to first order.
    fn influences(&self) -> (Vec<f64>, f64) {
        if self.rare == 0 {
            return (self.classes.iter().map(|class| class.score).collect(), 0.0);
        }
        let (centre, balance) = (self.centre(), self.balance());
        (self.classes.iter().map(|class| (class.score - centre) / (class.ratio() + balance)).collect(), centre)
    }

    fn upper(&self, log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
        if self.rare == 0 {
            let plain: Vec<f64> = self.classes.iter().map(|class| class.score + class.slack).collect();
            return self.mean_of_positive_part(&plain, log_cut, fineness, work);
        }
        Labelled::new(self).bound(log_cut, fineness, work)
    }

    /// E[(mean of the values of all drawn)₊] from above.
    fn mean_of_positive_part(&self, values: &[f64], log_cut: f64, fineness: Fineness, work: &Work) -> f64 {
        if values.iter().all(|value| *value <= 0.0) {
            return 0.0;
        }
        let law: Vec<(f64, f64)> = values.iter().copied().zip(self.classes.iter().map(|class| class.common)).collect();
        let real = RealLaw(&law);
        let tilt = real.tilt_for_zero();
        let deviation = real.moments(tilt).1.sqrt();
        let (sum, spacing) = lattice_sum(&law, self.common + 1, deviation / fineness.scores, fineness, log_cut);
        let tilt = sum.tilt_for(0.0);
        let nodes = sum.nodes(tilt, sum.window(tilt, log_cut.max(-60.0)));
        work.spend((nodes + NODES_OF_A_TILT) * (self.classes.len() as u64 + STEPS_PER_NODE));
        let value = sum.positive_part(log_cut);
        // Without a guarantee from the transform there is still the sum of all positive values.
        let simple: f64 = law.iter().map(|(value, mass)| value.max(0.0) * mass).sum();
        (value * spacing / self.drawn()).min(simple) * (1.0 + 1e-12)
    }

    fn lower(&self, log_cut: f64, work: &Work) -> f64 {
        let (influences, centre) = self.influences();
        let reference = (0..self.classes.len()).max_by(|a, b| {
            let mass = |index: &usize| self.classes[*index].common;
            mass(a).total_cmp(&mass(b))
        });
        let zero = influences[reference.unwrap_or(0)];
        let law = |of: fn(&Seen) -> f64| -> Vec<(f64, f64)> {
            influences.iter().zip(&self.classes).map(|(value, class)| (*value - zero, of(class))).collect()
        };
        let (common, rare) = (law(|class| class.common), law(|class| class.rare));
        let owners = (self.common + self.rare) as f64;
        // Where the evidence is even.
        let turn =
            if self.rare == 0 { -self.drawn() * zero } else { -centre * self.rare as f64 - (owners + 1.0) * zero };
        let deviation = (RealLaw(&common).moments(0.0).1).sqrt();
        let mut spacing = deviation / if owners > 100_000.0 { 8.0 } else { 24.0 };
        if spacing <= 0.0 || !spacing.is_finite() {
            return 0.0;
        }
        let rounded = |law: &[(f64, f64)], spacing: f64| -> Vec<(i64, f64)> {
            law.iter().map(|(value, mass)| ((value / spacing).round() as i64, *mass)).collect()
        };
        let most = (MOST_CELLS_OF_A_TEST as f64).max(100.0 * owners.sqrt());
        let groups = loop {
            let mut groups = vec![Draws { owners: self.common, atoms: rounded(&common, spacing) }];
            if self.rare > 0 {
                groups.push(Draws { owners: self.rare, atoms: rounded(&rare, spacing) });
            }
            let sum = ScoreSum { groups };
            let window = sum.window(sum.tilt_for(turn / spacing), log_cut.max(-60.0));
            let excess = (window.high - window.low) as f64 / most;
            if excess <= 1.0 {
                break sum.groups;
            }
            spacing *= 1.1 * excess;
        };
        let scores: Vec<i64> = groups[0].atoms.iter().map(|(score, _)| *score).collect();
        best_test(&ScoreSum { groups }, &scores, &self.classes, turn / spacing, log_cut, work)
    }
}

/// Thresholds further away than this are not looked for.
const FURTHEST_TURN: f64 = 1e15;

/// The largest Σ weight·P(score + sum ≥ threshold) over all thresholds near `turn`, from below.
fn best_test(sum: &ScoreSum, scores: &[i64], classes: &[Seen], turn: f64, log_cut: f64, work: &Work) -> f64 {
    // Where nothing turns the evidence, no threshold is better than none.
    if turn.is_nan() || turn.abs() > FURTHEST_TURN {
        return 0.0;
    }
    let tilt = sum.tilt_for(turn);
    let window = sum.window(tilt, log_cut.max(-60.0));
    if window.high - window.low > LONGEST / 2 {
        return 0.0;
    }
    work.spend(20 * (window.high - window.low) as u64);
    let law = sum.law(tilt, window);
    let focus = turn.round() as i64;
    let deviation = sum.moments(tilt).1.sqrt();
    let reach = scores.iter().map(|score| score.abs()).max().unwrap_or(0);
    let from = window.low.max(focus - (3.0 * deviation) as i64 - 2 * reach);
    // Tails, but for the factor e^(log_scale − tilt·focus).
    let factor = |j: i64| (-tilt * (j - focus) as f64).exp();
    let size = (window.high - from + 2).max(1) as usize;
    let beyond = window.log_outside.exp() * factor(window.high);
    let mut tails = vec![(0.0, beyond); size];
    for index in (0..size - 1).rev() {
        let j = from + index as i64;
        let value = law.values[(j - law.first) as usize];
        let (low, high) = ((value - law.error - law.folded).max(0.0), value.max(0.0) + law.error);
        tails[index] = (tails[index + 1].0 + low * factor(j), tails[index + 1].1 + high * factor(j));
    }
    let rounding = 4.0 * ROUNDOFF * (size as f64 + 64.0 + tilt * size as f64);
    let at = |threshold: i64| -> f64 {
        let part = |(class, score): (&Seen, &i64)| {
            let place = (threshold - score - from).clamp(0, size as i64 - 1) as usize;
            let weight = class.weight.value() - class.weight.value_error();
            if weight > 0.0 {
                weight * tails[place].0 * (1.0 - rounding)
            } else {
                weight * tails[place].1 * (1.0 + rounding)
            }
        };
        classes.iter().zip(scores).map(part).sum()
    };
    let last = (focus + (3.0 * deviation) as i64 + reach).min(window.high);
    let first = (from + reach).min(last);
    let best = (first..=last).map(at).fold(0.0, f64::max);
    let scale = (law.log_scale - tilt * focus as f64).exp();
    let value = best * scale * (1.0 - 2.0 * law.relative_error - 1e-11).max(0.0);
    // A scale beyond all numbers goes with tails below all numbers, of which nothing is known.
    if value.is_finite() { value } else { 0.0 }
}

/// The sum of so many draws on a lattice of about the spacing wanted, and that spacing.
fn lattice_sum(law: &[(f64, f64)], owners: u64, wanted: f64, fineness: Fineness, log_cut: f64) -> (ScoreSum, f64) {
    let largest = law.iter().map(|(value, _)| value.abs()).fold(0.0, f64::max);
    let mut spacing = wanted.max(largest * 1e-9);
    loop {
        let sum = ScoreSum { groups: vec![Draws { owners, atoms: on_lattice(law, spacing) }] };
        let window = sum.window(sum.tilt_for(0.0), log_cut.max(-60.0));
        // In a large crowd the usual number of cells is larger, and no class is so rare.
        let most = (fineness.most_cells as f64).max(100.0 * (owners as f64).sqrt()).min(LONGEST as f64 / 2.0);
        let excess = (window.high - window.low) as f64 / most;
        if excess <= 1.0 {
            return (sum, spacing);
        }
        spacing *= 1.5 * excess;
    }
}

/// Values on a lattice: one between two cells is split so that its mean stays.
fn on_lattice(law: &[(f64, f64)], spacing: f64) -> Vec<(i64, f64)> {
    let mut atoms = Vec::with_capacity(2 * law.len());
    for (value, mass) in law {
        // A hair upwards covers the rounding of the place.
        let place = value / spacing + 4.0 * f64::EPSILON * (value / spacing).abs();
        let (below, part) = (place.floor(), place - place.floor());
        atoms.push((below as i64, mass * (1.0 - part)));
        if part > 0.0 {
            atoms.push((below as i64 + 1, mass * part));
        }
    }
    atoms
}

/// Values with their probabilities; what is computed from it chooses lattices and tilts and decides no claim.
struct RealLaw<'a>(&'a [(f64, f64)]);

impl RealLaw<'_> {
    fn log_normalizer(&self, tilt: f64) -> f64 {
        let peak = self.0.iter().filter(|(_, mass)| *mass > 0.0).map(|(value, _)| tilt * value);
        let peak = peak.fold(f64::NEG_INFINITY, f64::max);
        peak + self.0.iter().map(|(value, mass)| mass * (tilt * value - peak).exp()).sum::<f64>().ln()
    }

    /// Mean and variance of the tilted law.
    fn moments(&self, tilt: f64) -> (f64, f64) {
        let normalizer = self.log_normalizer(tilt);
        let weight = |value: f64, mass: f64| mass * (tilt * value - normalizer).exp();
        let mean: f64 = self.0.iter().map(|(value, mass)| weight(*value, *mass) * value).sum();
        (mean, self.0.iter().map(|(value, mass)| weight(*value, *mass) * (value - mean).powi(2)).sum())
    }

    /// The tilt, not negative, at which the mean is zero.
    fn tilt_for_zero(&self) -> f64 {
        if self.moments(0.0).0 >= 0.0 {
            return 0.0;
        }
        let largest = self.0.iter().map(|(value, _)| *value).fold(0.0, f64::max);
        if largest <= 0.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1e-3 / largest);
        while self.moments(high).0 < 0.0 {
            (low, high) = (high, 2.0 * high);
            if high * largest > 700.0 {
                return low;
            }
        }
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if self.moments(middle).0 < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
            if high - low < 1e-4 * high {
                break;
            }
        }
        low
    }
}
