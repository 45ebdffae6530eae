//! The laws of a family as a plane of two numbers, ordered by what they give away.

use super::family::Family;
use super::law::Law;
use super::request::Request;

/// How the two numbers make a law: how many take part, and how much doubt an answer leaves.
///
/// Taking part more often and leaving less doubt each give more away: the law with less participation or more doubt is
/// a garbling of the other one, made from it report by report. So every divergence falls, and the error of the estimate
/// grows, along either number (`docs/choosing-parameters.md`, "How near the best a plan is").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    /// law(yes) = (x(1−y), xy, 1−x), law(no) = (xy, x(1−y), 1−x).
    Symmetric,
    /// Two classes: y is law(no)/law(yes) of the answer, 1−x is law(yes)/law(no) of no answer.
    OneSided {
        /// Whether owners of *no* are those who speak.
        of_no: bool,
    },
}

impl Curve {
    /// The curve of a family; `tuned` has none, because its laws have more than two numbers.
    pub(super) fn of(family: Family, request: &Request) -> Option<Self> {
        match family {
            Family::Tuned => None,
            // Who is rarer speaks.
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
                let rarely = y * often;
                match of_no {
                    false => Law { part: [often, rarely], flip: [0.0, rarely] },
                    true => Law { part: [rarely, often], flip: [0.0, often] },
                }
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

    /// The least doubt that the local bounds of a request leave at participation `x`; none where no doubt is enough.
    pub(super) fn least_doubt(self, family: Family, request: &Request, x: f64) -> Option<f64> {
        let whole = match (request.linked_epsilon, request.answer_epsilon.filter(|_| family.is_one_answer())) {
            (Some(linked), Some(answer)) => Some(linked.min(answer)),
            (linked, answer) => linked.or(answer),
        };
        let by_cell = whole.map_or(Some(0.0), |epsilon| match self {
            Self::Symmetric => Some(1.0 / (1.0 + epsilon.exp())),
            Self::OneSided { .. } => (1.0 - x >= (-epsilon).exp()).then(|| (-epsilon).exp()),
        })?;
        // One answer of several is a coin that leans by x(1 − 2y)/pairs.
        let pairs = match family {
            Family::Spread(pairs) => pairs as f64,
            _ => 1.0,
        };
        let by_answer = request.answer_epsilon.filter(|_| !family.is_one_answer());
        let by_answer = by_answer.map_or(0.0, |epsilon| 0.5 * (1.0 - pairs * (0.5 * epsilon).tanh() / x));
        // A trace more, so that the rounding of the mechanism keeps the bound.
        let least = by_cell.max(by_answer) * (1.0 + 1e-9);
        (least < self.most_doubt()).then_some(least)
    }

    /// Whether anybody would take part more often than `most`.
    pub(super) fn exceeds(self, x: f64, y: f64, most: f64) -> bool {
        self.law(x, y).part.into_iter().fold(0.0, f64::max) > most * (1.0 + 1e-12)
    }
}
