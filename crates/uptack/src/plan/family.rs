//! The families that the planner chooses among: the law of each, how it is written as a mechanism, and for the families with two
//! parameters how its members are ordered by what they reveal.

use super::request::{Objective, Request};
use crate::channel::{Cell, Channel, Output};
use crate::error::Result;
use crate::fraction::Fraction;
use crate::mechanism::{Blended, Mechanism, NoisySampling, NormalForm, RandomizedResponse, Spread, Tuned};
use crate::probability::Probability;
use crate::truth::PerTruth;

/// One family of mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanFamily {
    RandomizedResponse,
    NormalForm,
    NoisySampling,
    Tuned,
    Blended,
    /// `spread` with this many pairs.
    Spread(usize),
}

impl PlanFamily {
    pub(super) const ALL: [Self; 7] = [
        Self::RandomizedResponse,
        Self::NormalForm,
        Self::NoisySampling,
        Self::Tuned,
        Self::Blended,
        Self::Spread(2),
        Self::Spread(3),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::RandomizedResponse => "randomized-response",
            Self::NormalForm => "normal-form",
            Self::NoisySampling => "noisy-sampling",
            Self::Tuned => "tuned",
            Self::Blended => "blended",
            Self::Spread(_) => "spread",
        }
    }

    /// Its name if the aggregators add noise.
    pub(super) fn noisy_name(self) -> &'static str {
        match self {
            Self::RandomizedResponse => "randomized-response + laplace",
            Self::NormalForm => "normal-form + laplace",
            Self::NoisySampling => "noisy-sampling + laplace",
            Self::Tuned => "tuned + laplace",
            Self::Blended | Self::Spread(_) => unreachable!("noise is added to one answer"),
        }
    }

    /// Whether the owner gives one answer.
    pub(super) fn is_one_answer(self) -> bool {
        !matches!(self, Self::Blended | Self::Spread(_))
    }

    /// The mechanism of a law. Its parameters have few digits, rounded towards the law that reveals less.
    pub(super) fn mechanism(self, law: &ThreeClassLaw) -> Result<Mechanism> {
        let part = fewer(law.participation.yes);
        // The flips keep their share of those who take part.
        let flip = up(law.flips.yes * (part / law.participation.yes));
        let (part, flip) = (Fraction::from_f64(part), Fraction::from_f64(flip));
        Ok(match self {
            Self::RandomizedResponse => Mechanism::RandomizedResponse(RandomizedResponse::new(flip?.complement())),
            Self::NormalForm => Mechanism::NormalForm(NormalForm::new(part?, flip?)?),
            Self::NoisySampling => Mechanism::NoisySampling(noisy_sampling(law)?),
            Self::Tuned => Mechanism::Tuned(tuned(law)?),
            Self::Blended => Mechanism::Blended(blended(part?, flip?)?),
            Self::Spread(pairs) => Mechanism::Spread(Spread::new(pairs, part?, flip?)?),
        })
    }
}

/// Owners of the truth that answers more often answer a little less often, and those of the other a little more.
fn noisy_sampling(law: &ThreeClassLaw) -> Result<NoisySampling> {
    let [yes, no] = [law.yes()[0], law.no()[0]];
    let sy = if yes < no { up(yes) } else { fewer(yes) };
    let sn = if no < yes { up(no) } else { fewer(no) };
    Ok(NoisySampling::new(Fraction::from_f64(sy)?, Fraction::from_f64(sn)?))
}

/// sy2 = 0; the flips as shares of those who take part.
fn tuned(law: &ThreeClassLaw) -> Result<Tuned> {
    let PerTruth { yes: sy, no: sn } = law.participation.map(|part| digits(part, 7, f64::round));
    // Rounded away from the truth: fewer yes-owners say 1, and more no-owners.
    let truthful = 1.0 - up(law.flips.yes / sy).min(1.0);
    // Where all of them do, the digits of their participation must not make it more than all.
    let forced = up(law.flips.no / sn).min(1.0);
    let [sy, truthful, sn, forced] = [sy, digits(truthful, 12, f64::floor), sn, forced].map(Fraction::from_f64);
    Tuned::new(sy?, Fraction::zero(), truthful?, Fraction::zero(), sn?, forced?)
}

/// b1 = f1 = 0; who does not take part is shared out evenly between b2 and b3.
fn blended(part: Fraction, flip: Fraction) -> Result<Blended> {
    let base = part.complement().times(&Fraction::new(1, 2)?);
    Blended::new(Fraction::zero(), base.clone(), base, Fraction::zero(), part, flip.clone(), flip)
}

/// A participation with few digits, rounded down; near one, few digits of its complement.
pub(super) fn fewer(part: f64) -> f64 {
    if part >= 1.0 {
        return 1.0;
    }
    if part <= 0.5 {
        return digits(part, 7, f64::floor);
    }
    let places = 10f64.powi(5 - (1.0 - part).log10().floor() as i32).min(1e15);
    (part * places).floor() / places
}

/// A probability with few digits, rounded up.
pub(super) fn up(value: f64) -> f64 {
    digits(value, 6, f64::ceil)
}

/// `value` with this many significant digits.
fn digits(value: f64, count: i32, round: fn(f64) -> f64) -> f64 {
    if value <= 0.0 || value >= 1.0 {
        return value;
    }
    let scale = 10f64.powi(count - 1 - value.log10().floor() as i32);
    round(value * scale) / scale
}

/// The law over the three classes that are evidence for yes, for no and for neither: law(yes) = (sy − ry, ry, 1 − sy) and
/// law(no) = (rn, sn − rn, 1 − sn), given how many take part and how many answer the opposite of the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThreeClassLaw {
    /// The participation: sy and sn.
    pub(super) participation: PerTruth<f64>,
    /// The probability of answering the opposite: ry and rn.
    pub(super) flips: PerTruth<f64>,
}

impl ThreeClassLaw {
    /// The symmetric law of `normal-form`.
    pub(super) fn symmetric(part: f64, flip: f64) -> Self {
        Self { participation: PerTruth::each(|_| part), flips: PerTruth::each(|_| flip) }
    }

    /// The law in which nobody says 0: owners of one truth say 1 `often`, those of the other one `rarely`. With `of_no` it is
    /// the no-owners who do so often.
    pub(super) fn one_sided(often: f64, rarely: f64, of_no: bool) -> Self {
        let (yes, no) = if of_no { (rarely, often) } else { (often, rarely) };
        Self { participation: PerTruth { yes, no }, flips: PerTruth { yes: 0.0, no } }
    }

    pub(super) fn yes(&self) -> [f64; 3] {
        let (participation, flips) = (self.participation.yes, self.flips.yes);
        [(participation - flips).max(0.0), flips, 1.0 - participation]
    }

    pub(super) fn no(&self) -> [f64; 3] {
        let (participation, flips) = (self.participation.no, self.flips.no);
        [flips, (participation - flips).max(0.0), 1.0 - participation]
    }

    /// The classes that an owner of either truth can reach.
    pub(super) fn occurring_classes(&self) -> Vec<usize> {
        (0..3).filter(|&class| self.yes()[class] > 0.0 || self.no()[class] > 0.0).collect()
    }

    /// A channel with this law, for the accounting.
    pub(super) fn channel(&self) -> Result<Channel> {
        let laws = rounded(self.yes())?.into_iter().zip(rounded(self.no())?);
        let cells = [Output::ONE, Output::ZERO, Output::BOTTOM].into_iter().zip(laws);
        Channel::from_cells(cells.map(|(output, (yes, no))| Cell::new(vec![output], yes, no)).collect())
    }

    /// The local ε of the cell: max |ln(p/q)|; infinite if one is 0 and the other is not.
    pub(super) fn linked_epsilon(&self) -> f64 {
        let log_ratio = |(p, q): (f64, f64)| if p <= 0.0 && q <= 0.0 { 0.0 } else { (p / q).ln().abs() };
        self.yes().into_iter().zip(self.no()).map(log_ratio).fold(0.0, f64::max)
    }

    /// The variance of the combined estimator with `yes` yes-owners among `owners`.
    pub(super) fn variance(&self, owners: f64, yes: f64) -> f64 {
        // As the estimator: at the very ends a one-sided class has no variance, and the limit counts.
        let edge = 1e-18 * owners.min(1.0);
        self.combined_variance(yes.clamp(edge, owners), (owners - yes).clamp(edge, owners))
    }

    /// 1 / dᵀS⁻¹d over the classes that occur, except the likeliest.
    fn combined_variance(&self, yes: f64, no: f64) -> f64 {
        let (p, q) = (self.yes(), self.no());
        let variance = |c: usize| yes * p[c] * (1.0 - p[c]) + no * q[c] * (1.0 - q[c]);
        let difference = |c: usize| p[c] - q[c];
        let information = match self.all_but_likeliest()[..] {
            [a] => difference(a).powi(2) / variance(a),
            [a, b] => {
                let covariance = -(yes * p[a] * p[b] + no * q[a] * q[b]);
                let (da, db) = (difference(a), difference(b));
                let determinant = variance(a) * variance(b) - covariance * covariance;
                (da * da * variance(b) - 2.0 * da * db * covariance + db * db * variance(a)) / determinant
            }
            _ => 0.0,
        };
        1.0 / information
    }

    /// The classes that occur without the likeliest of them, the least likely first.
    fn all_but_likeliest(&self) -> Vec<usize> {
        let (yes, no) = (self.yes(), self.no());
        let mut classes = self.occurring_classes();
        classes.sort_by(|&a, &b| (yes[a] + no[a]).total_cmp(&(yes[b] + no[b])));
        classes.pop();
        classes
    }
}

impl Request {
    /// The error of a law, as the prior weighs it.
    pub(super) fn sd(&self, law: &ThreeClassLaw) -> f64 {
        let owners = self.owners as f64;
        let points = self.yes.points().into_iter();
        self.yes.summarize(points.map(|point| (point.weight, law.variance(owners, point.yes).sqrt())))
    }

    /// The objective of the search; infinite if the law carries no information.
    pub(super) fn cost(&self, law: &ThreeClassLaw) -> f64 {
        let sd = self.sd(law);
        match self.objective {
            Objective::Sd => sd,
            Objective::Paper { error } if sd <= error => {
                let (p, q) = (law.yes()[0], law.no()[0]);
                p * (1.0 - p) + q * (1.0 - q)
            }
            // Leads the search towards laws that are accurate enough.
            Objective::Paper { error } => 1.0 + sd / error,
        }
    }
}

/// One truth's law in the integers of a channel.
fn rounded(law: [f64; 3]) -> Result<[Probability; 3]> {
    let exact = |value: f64| Fraction::from_f64(value.clamp(0.0, 1.0)).map(|fraction| fraction.round());
    let (first, second) = (exact(law[0])?, exact(law[1])?);
    // Rounding must not put mass into a class that the law leaves empty.
    if law[2] <= 0.0 {
        return Ok([first, first.complement(), Probability::ZERO]);
    }
    let second = second.min(first.complement());
    Ok([first, second, first.complement().saturating_sub(second)])
}

/// How participation and flip rate determine a law.
///
/// A higher participation and a lower flip rate each reveal more: the law with the lower participation or the higher flip rate is
/// a garbling of the other one, made from it report by report. So every divergence falls, and the error of the estimate
/// grows, along either number (`docs/choosing-parameters.md`, "How close a plan is to the best").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TwoParameterFamily {
    /// law(yes) = (x(1−y), xy, 1−x), law(no) = (xy, x(1−y), 1−x).
    Symmetric,
    /// Two classes: y is law(no)/law(yes) of the answer, 1−x is law(yes)/law(no) of no answer.
    OneSided {
        /// Whether it is the no-owners who answer.
        of_no: bool,
    },
}

impl TwoParameterFamily {
    /// The parameters of a family; `None` for `tuned`, whose laws have more than two.
    pub(super) fn of(family: PlanFamily, request: &Request) -> Option<Self> {
        match family {
            PlanFamily::Tuned => None,
            // Owners of the rarer truth answer.
            PlanFamily::NoisySampling => {
                Some(Self::OneSided { of_no: request.yes.low + request.yes.high > request.owners })
            }
            _ => Some(Self::Symmetric),
        }
    }

    /// The law of participation `x` and flip rate `y`.
    pub(super) fn law(self, x: f64, y: f64) -> ThreeClassLaw {
        match self {
            Self::Symmetric => ThreeClassLaw::symmetric(x, x * y),
            Self::OneSided { of_no } => {
                let often = x / (1.0 - y * (1.0 - x));
                ThreeClassLaw::one_sided(often, y * often, of_no)
            }
        }
    }

    /// The flip rate at which the laws of both truths are equal.
    pub(super) fn most_flip_rate(self) -> f64 {
        match self {
            Self::Symmetric => 0.5,
            Self::OneSided { .. } => 1.0,
        }
    }

    /// The smallest flip rate that the local bounds of a request allow at participation `x`; `None` if no flip rate satisfies
    /// the bounds.
    pub(super) fn least_flip_rate(self, family: PlanFamily, request: &Request, x: f64) -> Option<f64> {
        let by_cell = self.least_flip_rate_of_cell(family, request, x)?;
        let by_answer = least_flip_rate_of_answers(family, request, x);
        // Slightly more, so that the bound survives the rounding of the parameters.
        let least = by_cell.max(by_answer) * (1.0 + 1e-9);
        (least < self.most_flip_rate()).then_some(least)
    }

    /// The smallest flip rate under the bounds on all answers of an owner together.
    fn least_flip_rate_of_cell(self, family: PlanFamily, request: &Request, x: f64) -> Option<f64> {
        let linked = request.linked_epsilon.unwrap_or(f64::INFINITY);
        let epsilon = if family.is_one_answer() { request.cell_epsilon() } else { linked };
        if epsilon.is_infinite() {
            return Some(0.0);
        }
        match self {
            Self::Symmetric => Some(1.0 / (1.0 + epsilon.exp())),
            Self::OneSided { .. } => (1.0 - x >= (-epsilon).exp()).then(|| (-epsilon).exp()),
        }
    }

    /// Whether owners of either truth would take part more often than `most`.
    pub(super) fn exceeds(self, x: f64, y: f64, most: f64) -> bool {
        let PerTruth { yes, no } = self.law(x, y).participation;
        yes.max(no) > most * (1.0 + 1e-12)
    }
}

/// The smallest flip rate under the bound on one answer of several, which is a coin with bias x(1 − 2y)/pairs.
fn least_flip_rate_of_answers(family: PlanFamily, request: &Request, x: f64) -> f64 {
    let Some(epsilon) = request.answer_epsilon.filter(|_| !family.is_one_answer()) else { return 0.0 };
    let pairs = match family {
        PlanFamily::Spread(pairs) => pairs as f64,
        _ => 1.0,
    };
    0.5 * (1.0 - pairs * (0.5 * epsilon).tanh() / x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimator;
    use crate::plan::request::{Prior, Request};
    use crate::privacy::{answer_epsilon, linked_epsilon};

    /// What the curve says of single answers is what the accounting says of the mechanism.
    #[test]
    fn the_least_flip_rate_keeps_the_local_bounds_and_no_less_does() {
        let mut tested = 0;
        for (answer, linked) in [(Some(0.9), None), (None, Some(2.0)), (Some(1.2), Some(3.0))] {
            let mut request = Request::new(1000, Prior::at(10));
            (request.answer_epsilon, request.linked_epsilon) = (answer, linked);
            for family in PlanFamily::ALL.into_iter().filter(|family| *family != PlanFamily::Tuned) {
                let curve = TwoParameterFamily::of(family, &request).unwrap();
                let place = if family == PlanFamily::RandomizedResponse { 1.0 } else { 0.5 };
                // Not every family can keep every bound at every participation.
                let Some(flip_rate) = curve.least_flip_rate(family, &request, place) else { continue };
                tested += 1;
                let worst = |flip_rate: f64| {
                    let channel = family.mechanism(&curve.law(place, flip_rate)).unwrap().channel();
                    let answers = (0..channel.answers().len())
                        .map(|k| answer_epsilon(&channel, k).unwrap().unwrap_or(f64::INFINITY));
                    let room = |epsilon: f64, most: Option<f64>| most.map_or(-1.0, |most| epsilon - most);
                    answers
                        .map(|epsilon| room(epsilon, answer))
                        .fold(room(linked_epsilon(&channel).unwrap_or(f64::INFINITY), linked), f64::max)
                };
                assert!(worst(flip_rate) <= 1e-12, "{family:?}: {}", worst(flip_rate));
                assert!(flip_rate == 0.0 || worst(0.999 * flip_rate) > 0.0, "{family:?}");
            }
        }
        assert!(tested >= 8, "{tested}");
    }

    #[test]
    fn parameters_have_few_digits_rounded_against_ourselves() {
        let text = PlanFamily::NormalForm
            .mechanism(&ThreeClassLaw::symmetric(0.626_123_456_789, 1.174_200_1e-4))
            .unwrap()
            .to_string();
        assert_eq!(text, "normal-form(f=0.626123,r=0.00011742)");
    }

    #[test]
    fn variance_is_that_of_the_estimator() {
        for law in [
            ThreeClassLaw::symmetric(0.5, 1e-4),
            ThreeClassLaw::symmetric(1.0, 1e-3),
            ThreeClassLaw { participation: PerTruth { yes: 0.6, no: 0.3 }, flips: PerTruth { yes: 1e-3, no: 2e-3 } },
            ThreeClassLaw { participation: PerTruth { yes: 0.6, no: 1e-3 }, flips: PerTruth { yes: 0.0, no: 1e-3 } },
        ] {
            let estimator = Estimator::new(&law.channel().unwrap()).unwrap();
            for yes in [0.0, 5.0, 500.0, 25_000.0] {
                let (ours, theirs) = (law.variance(50_000.0, yes).sqrt(), estimator.sd(50_000, yes).unwrap());
                assert!((ours / theirs - 1.0).abs() < 1e-9, "{law:?} {yes}: {ours} {theirs}");
            }
        }
    }
}
