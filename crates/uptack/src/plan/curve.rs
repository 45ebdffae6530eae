//! The laws of a family as a plane of two numbers, ordered by what they give away.

use super::family::Family;
use super::law::Law;
use super::request::Request;

/// How the two numbers make a law: how many take part, and how much doubt an answer leaves.
///
/// Taking part more often and leaving less doubt each give more away: the law with less participation or more doubt is
/// a garbling of the other one, made from it report by report. So every divergence falls, and the error of the estimate
/// grows, along either number (`docs/choosing-parameters.md`, "How close a plan is to the best").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    /// law(yes) = (x(1−y), xy, 1−x), law(no) = (xy, x(1−y), 1−x).
    Symmetric,
    /// Two classes: y is law(no)/law(yes) of the answer, 1−x is law(yes)/law(no) of no answer.
    OneSided {
        /// Whether it is the no-owners who speak.
        of_no: bool,
    },
}

impl Curve {
    /// The curve of a family; `tuned` has none, because its laws have more than two numbers.
    pub(super) fn of(family: Family, request: &Request) -> Option<Self> {
        match family {
            Family::Tuned => None,
            // The rarer truth speaks.
            Family::NoisySampling => {
                Some(Self::OneSided { of_no: request.yes.low + request.yes.high > request.owners })
            }
            _ => Some(Self::Symmetric),
        }
    }

    /// The law of participation `x` and doubt `y`.
    pub(super) fn law(self, x: f64, y: f64) -> Law {
        match self {
            Self::Symmetric => Law::symmetric(x, x * y),
            Self::OneSided { of_no } => {
                let often = x / (1.0 - y * (1.0 - x));
                Law::one_sided(often, y * often, of_no)
            }
        }
    }

    /// The doubt at which the two laws are one.
    pub(super) fn most_doubt(self) -> f64 {
        match self {
            Self::Symmetric => 0.5,
            Self::OneSided { .. } => 1.0,
        }
    }

    /// The least doubt that the local bounds of a request leave at participation `x`; none if no doubt is enough.
    pub(super) fn least_doubt(self, family: Family, request: &Request, x: f64) -> Option<f64> {
        let by_cell = self.least_doubt_of_cell(family, request, x)?;
        let by_answer = least_doubt_of_answers(family, request, x);
        // A trace more, so that the rounding of the mechanism keeps the bound.
        let least = by_cell.max(by_answer) * (1.0 + 1e-9);
        (least < self.most_doubt()).then_some(least)
    }

    /// The least doubt under the bounds on all answers of an owner together.
    fn least_doubt_of_cell(self, family: Family, request: &Request, x: f64) -> Option<f64> {
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
        self.law(x, y).part.into_iter().fold(0.0, f64::max) > most * (1.0 + 1e-12)
    }
}

/// The least doubt under the bound on one answer of several, which is a coin that leans by x(1 − 2y)/pairs.
fn least_doubt_of_answers(family: Family, request: &Request, x: f64) -> f64 {
    let Some(epsilon) = request.answer_epsilon.filter(|_| !family.is_one_answer()) else { return 0.0 };
    let pairs = match family {
        Family::Spread(pairs) => pairs as f64,
        _ => 1.0,
    };
    0.5 * (1.0 - pairs * (0.5 * epsilon).tanh() / x)
}
