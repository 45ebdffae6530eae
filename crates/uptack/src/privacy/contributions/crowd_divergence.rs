//! The divergence of one contribution that moves from one possibility to another, in a crowd whose owners are alike
//! (`docs/accounting.md`, "One of K options by owners' coins alone").
//!
//! Two crowds matter, and one function serves both. Of n owners, A and B are in the possibilities that the target leaves and
//! joins, each with probability r. The others, M = n − A − B of them, split in two, and X ~ Binomial(M, θ) are those that weigh
//! fully against the evidence:
//!
//! ```text
//! D = (1/n)·E[(A·(g − e^ε·r)/r − B·(e^ε·g − r)/r − (e^ε − 1)·(b·M + (1 − b)·X))₊]
//! ```
//!
//! Given A and B the bracket is linear in X, so its positive part is a tail of a binomial law. That is exact, and quick unless
//! n·r is large; then the same expectation is that of a sum of scores, from above and from below.

use crate::certified::binomial::{Approximate, Binomial, BinomialTail, Coin, real, window};
use crate::certified::rounding::{Enclosure, ROUNDOFF};
use crate::contribution::ContributionLaw;
use crate::privacy::divergence::many_classes::{self, Fineness};
use crate::privacy::divergence::one_truth::{self, OneTruthClass};
use crate::privacy::likelihood::{Crowd, Likelihood, Weight, WeightedClass};
use crate::privacy::work::WorkBudget;
use crate::probability::Probability;

/// The crowds for which the divergence is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlikeCrowd {
    /// Nobody, but owners who draw whatever their truth hide the target, as they do in every crowd: an upper bound for all.
    EveryCrowd,
    /// All others have one possibility that the target neither leaves nor joins.
    ThirdPossibility,
}

/// The law of one contribution in such a crowd. There are at least three possibilities, and r is above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct CrowdDivergence {
    owners: u64,
    /// g and r.
    told: f64,
    other: f64,
    /// The probabilities of the two parts of the rest: those that weigh fully, and those that weigh b times that.
    full: f64,
    part: f64,
    /// b.
    share: f64,
    /// An owner is in one of the two possibilities, or in the rest.
    pair: Coin,
    /// An owner of the rest weighs fully, or in part.
    rest: Coin,
}

/// The steps of an evaluation by rows beyond which sums of scores are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct MostSteps(pub(super) u64);

impl CrowdDivergence {
    pub(super) fn new(law: ContributionLaw, owners: u64, crowd: AlikeCrowd) -> Self {
        let (g, r) = (law.told().numerator(), law.other().numerator());
        let others = u128::from(law.possibilities()) - 2;
        let unmoved = law.silent().numerator() + others * r;
        let (full, part, share) = match crowd {
            AlikeCrowd::EveryCrowd => (unmoved, g - r, 0.0),
            AlikeCrowd::ThirdPossibility => (unmoved - r, g, real_part(r) / real_part(g)),
        };
        let rest = real_part(full + part);
        let coin = Coin { success: real_part(full) / rest, failure: real_part(part) / rest };
        Self {
            owners,
            told: real_part(g),
            other: real_part(r),
            full: real_part(full),
            part: real_part(part),
            share,
            pair: Coin { success: real_part(2 * r), failure: rest },
            rest: coin,
        }
    }

    /// The divergence, leaving out a mass of at most e^`log_cut` five times.
    pub(super) fn at(&self, epsilon: f64, log_cut: f64, most: MostSteps) -> Enclosure {
        let scores = Scores::new(self, epsilon);
        if scores.gain <= -16.0 * ROUNDOFF * scores.gain_size {
            return Enclosure::ZERO;
        }
        let rows = Rows::new(self, scores, log_cut);
        if rows.steps() <= most.0 as f64 { rows.sum() } else { self.by_scores(epsilon.exp(), log_cut) }
    }

    /// Whether the divergence at `epsilon` is exact up to rounding, and not only bounded from both sides.
    pub(super) fn is_exact_at(&self, epsilon: f64, log_cut: f64, most: MostSteps) -> bool {
        Rows::new(self, Scores::new(self, epsilon), log_cut).steps() <= most.0 as f64
    }

    /// The same as a sum of scores of independent owners.
    fn by_scores(&self, growth: f64, log_cut: f64) -> Enclosure {
        let class = |mass: f64, first: f64, second: f64| WeightedClass {
            likelihood: Likelihood::of_either(mass),
            weight: Weight { first, second: growth * second },
        };
        let Self { told, other, full, part, share, .. } = *self;
        let classes = [
            class(other, told, other),
            class(other, other, told),
            class(full, full, full),
            class(part, share * part, share * part),
        ];
        let crowd = Crowd { yes: 0, no: self.owners - 1 };
        let work = WorkBudget::unlimited();
        let occupied: Vec<WeightedClass> = classes.into_iter().filter(|class| class.likelihood.no > 0.0).collect();
        let upper = many_classes::upper(&occupied, crowd, log_cut, Fineness::FINE, &work);
        let lower = many_classes::lower(&occupied, crowd, log_cut, &work).max(self.merged(growth, log_cut, &work));
        Enclosure::of_probability(lower.min(upper), upper)
    }

    /// A lower bound: the divergence of an observer who counts the rest as one class. In a very large crowd, where ε is small and
    /// the rest hardly matters, it is sharp, and more precise than a transform.
    fn merged(&self, growth: f64, log_cut: f64, work: &WorkBudget) -> f64 {
        let Self { told, other, full, part, share, .. } = *self;
        let rest = full + share * part;
        let weight = |first: f64, second: f64| Weight { first, second: growth * second };
        let weights = [weight(told, other), weight(other, told), weight(rest, rest)];
        let classes = OneTruthClass::all(&weights, &[other, other, self.pair.failure]);
        one_truth::divergence(&classes, self.owners - 1, log_cut, work).lower()
    }
}

/// A numerator over 2⁶⁴ as a double.
fn real_part(numerator: u128) -> f64 {
    numerator as f64 / Probability::ONE.numerator() as f64
}

/// What an owner adds to the bracket, by where it is.
#[derive(Clone, Copy, Debug)]
struct Scores {
    /// (g − e^ε·r)/r, and the same without cancellation, which scales its rounding error.
    gain: f64,
    gain_size: f64,
    /// (e^ε·g − r)/r, and likewise.
    loss: f64,
    loss_size: f64,
    /// (e^ε − 1)·b and (e^ε − 1)·(1 − b).
    all_rest: f64,
    full_rest: f64,
}

impl Scores {
    fn new(law: &CrowdDivergence, epsilon: f64) -> Self {
        let (growth, excess) = (epsilon.exp(), epsilon.exp_m1());
        let ratio = law.told / law.other;
        Self {
            gain: ratio - growth,
            gain_size: ratio + growth,
            loss: growth * ratio - 1.0,
            loss_size: growth * ratio + 1.0,
            all_rest: excess * law.share,
            full_rest: excess * (1.0 - law.share),
        }
    }

    /// The bracket where X = 0.
    fn at(&self, split: Split) -> f64 {
        self.gain * real(split.left) - self.loss * real(split.joined) - self.all_rest * real(split.rest)
    }

    /// The same with plus signs.
    fn size_at(&self, split: Split) -> f64 {
        self.gain_size * real(split.left) + self.loss_size * real(split.joined) + self.all_rest * real(split.rest)
    }
}

/// How many owners are in the possibility that the target leaves (A), in the one that it joins (B), and in the others (M).
#[derive(Clone, Copy, Debug)]
struct Split {
    left: u64,
    joined: u64,
    rest: u64,
}

/// The sum over A and B, row by row: a row is a value of A + B.
struct Rows<'a> {
    law: &'a CrowdDivergence,
    scores: Scores,
    log_cut: f64,
    /// The first and the last row.
    window: (u64, u64),
    /// X is at least this, and M − X at least that, in every row, but for a negligible mass.
    least_full: u64,
    least_part: u64,
    /// How many values of X have more than a negligible mass, about.
    values_of_full: u64,
}

impl<'a> Rows<'a> {
    fn new(law: &'a CrowdDivergence, scores: Scores, log_cut: f64) -> Self {
        // Where a tail is taken to be one, up to n times this mass is left out.
        let deep_cut = log_cut - (law.owners as f64 + 2.0).ln() - scores.full_rest.ln_1p();
        // Under the first law the target is in the first possibility, so the others fill a row but for one.
        let (first, last) = window(&[Binomial::new(law.owners - 1, law.pair)], deep_cut);
        let shortest = Binomial::new(law.owners - 1 - last, law.rest);
        let (least, most) = if law.full > 0.0 { window(&[shortest], deep_cut) } else { (0, 0) };
        Self {
            law,
            scores,
            log_cut,
            window: (first, last + 1),
            least_full: least,
            least_part: shortest.trials - most,
            values_of_full: most - least,
        }
    }

    /// About how many steps the sum takes.
    fn steps(&self) -> f64 {
        let (first, last) = self.window;
        let counts = (40.0 * last as f64).sqrt().min(last as f64) + 4.0;
        let values = self.values_of_full as f64;
        // Neighbouring counts A are this many values of X apart, and most rows may meet none that is in doubt.
        let apart = (self.scores.gain + self.scores.loss) / self.scores.full_rest;
        let met = if self.scores.full_rest > 0.0 { (values / apart).min(1.0) } else { 0.0 };
        (last - first + 1) as f64 * (counts + values * met)
    }

    fn sum(&self) -> Enclosure {
        let mut total = PositiveSum::default();
        for row in self.window.0..=self.window.1 {
            self.add_row(row, &mut total);
        }
        let rows = (self.window.1 - self.window.0 + 1) as f64;
        total.enclosure(self.law.owners, 4.0 * ROUNDOFF * rows, 5.0 * self.log_cut.exp())
    }

    /// Adds the expectation over A of the row A + B = `row`, from the first A whose bracket can be positive.
    fn add_row(&self, row: u64, total: &mut PositiveSum) {
        let counts = Binomial::new(row, Coin::of(0.5));
        let first = self.first_count(row);
        if first > row {
            return;
        }
        let (of_row, start) =
            (Binomial::new(self.law.owners, self.law.pair).probability(row), counts.probability(first));
        let mut weight = Approximate {
            value: of_row.value * start.value,
            relative_error: of_row.relative_error + start.relative_error,
        };
        let (mut tails, mut added) = (RestTails::new(self, row), 0.0);
        for left in first..=row {
            added += self.add_count(left, weight, &mut tails, total);
            if weight.value == 0.0 || self.is_negligible_beyond(left, row, weight.value, added) {
                break;
            }
            weight.value *= counts.ratio_up(left);
            weight.relative_error += 8.0 * ROUNDOFF;
        }
    }

    /// The largest A below which the bracket is certainly not positive where X is at least its smallest value.
    fn first_count(&self, row: u64) -> u64 {
        let Scores { gain, loss, all_rest, full_rest, .. } = self.scores;
        let against = loss * real(row) + all_rest * real(self.law.owners - row) + full_rest * real(self.least_full);
        // Two counts more than rounding can hide.
        ((against / (gain + loss) * (1.0 - 64.0 * ROUNDOFF)).floor() - 2.0).max(0.0) as u64
    }

    /// Adds one A, and returns what it adds.
    fn add_count(&self, left: u64, weight: Approximate, tails: &mut RestTails<'_>, total: &mut PositiveSum) -> f64 {
        let split = Split { left, joined: tails.row - left, rest: tails.law.trials };
        let (score, size) = (self.scores.at(split), self.scores.size_at(split));
        if score <= -16.0 * ROUNDOFF * size {
            return 0.0;
        }
        let tail = tails.positive_part(score.max(0.0));
        let added = weight.value * tail.expectation;
        total.value += added;
        total.absolute += weight.value * size * tail.mass;
        total.error += added * (weight.relative_error + tail.relative_error);
        added
    }

    /// Whether the counts A beyond this one add less than one rounding: the bracket is at most A times its score, and from half
    /// the row on A·P(A) falls at least geometrically.
    fn is_negligible_beyond(&self, left: u64, row: u64, weight: f64, added: f64) -> bool {
        let ratio = real(row - left) / real(left.max(1));
        let beyond = self.scores.gain * real(left) * weight * ratio / (1.0 - ratio);
        left > 0 && ratio < 1.0 && beyond <= ROUNDOFF * added
    }
}

/// A sum of expectations of positive parts, along with the same sum without cancellation, which scales its rounding error.
#[derive(Default)]
struct PositiveSum {
    value: f64,
    absolute: f64,
    error: f64,
}

impl PositiveSum {
    /// D = E[S₊]/n.
    fn enclosure(&self, owners: u64, relative_error: f64, truncated: f64) -> Enclosure {
        let scale = 1.0 / owners as f64;
        let error = self.error + (relative_error + 8.0 * ROUNDOFF) * self.value + 32.0 * ROUNDOFF * self.absolute;
        Enclosure::around(self.value * scale, error * scale, truncated)
    }
}

/// E[(score − full_rest·X)₊] and P(X ≤ score/full_rest).
struct PositivePart {
    expectation: f64,
    mass: f64,
    relative_error: f64,
}

impl PositivePart {
    /// Where X is certain, or certainly small enough.
    fn certain(expectation: f64) -> Self {
        Self { expectation, mass: 1.0, relative_error: 0.0 }
    }
}

/// A tail that starts below this would lose digits when it is carried along.
const UNDERFLOW: f64 = 1e-250;

/// The tails of M − X in one row, for larger and larger scores. The events X ≤ x are upper tails of M − X.
struct RestTails<'a> {
    rows: &'a Rows<'a>,
    row: u64,
    /// The law of M − X.
    law: Binomial,
    carried: Option<(u64, BinomialTail)>,
}

impl<'a> RestTails<'a> {
    fn new(rows: &'a Rows<'a>, row: u64) -> Self {
        let law = Binomial::new(rows.law.owners - row, rows.law.rest.reversed());
        Self { rows, row, law, carried: None }
    }

    /// E[(score − full_rest·X)₊] for a score that is not below the one before.
    fn positive_part(&mut self, score: f64) -> PositivePart {
        let unit = self.rows.scores.full_rest;
        if unit <= 0.0 || self.law.coin.failure == 0.0 {
            return PositivePart::certain(score);
        }
        let largest = score / unit;
        let whole = largest.floor().min(self.law.trials as f64);
        let threshold = self.law.trials - whole as u64;
        if threshold <= self.rows.least_part {
            let mean = self.law.trials as f64 * self.law.coin.failure;
            return PositivePart::certain((score - unit * mean).max(0.0));
        }
        let tail = self.tail(threshold);
        let expectation = unit * ((largest - whole) * tail.mass + tail.excess);
        PositivePart { expectation, mass: tail.mass, relative_error: tail.relative_error + 8.0 * ROUNDOFF }
    }

    fn tail(&mut self, threshold: u64) -> BinomialTail {
        let tail = match self.carried {
            Some((from, tail)) if tail.at >= UNDERFLOW && self.is_near(from, threshold) => {
                self.law.lower_threshold(tail, from, threshold)
            }
            _ => self.law.tail(threshold, 0),
        };
        self.carried = Some((threshold, tail));
        tail
    }

    /// Whether the walk from one threshold down to another is shorter than a new tail.
    fn is_near(&self, from: u64, to: u64) -> bool {
        from >= to && from - to <= self.rows.values_of_full
    }
}
