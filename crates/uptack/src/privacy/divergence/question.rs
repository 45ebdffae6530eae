//! What is asked about a crowd, and how precisely the answer is needed (`docs/accounting.md`, "The divergence of one crowd").

use crate::certified::enclosure::Enclosure;
use crate::privacy::likelihood::PerDirection;

/// What is answered: the divergence in each direction.
pub(crate) type Divergences = PerDirection<Enclosure>;

/// Asks for the divergence at e^ε = `growth`, leaving out mass of at most e^`log_cut`. Bounds need not be sharp far below
/// `goal`, and above it need not be more precise than `precision`, relatively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) growth: f64,
    pub(crate) log_cut: f64,
    pub(crate) goal: f64,
    pub(crate) precision: f64,
    pub(crate) ends: Ends,
}

/// The precision of a glance. With a larger one, a glance costs less but decides less often.
const GLANCE: f64 = 0.25;

/// Which ends of an enclosure are asked for. Where both come from one computation, both are given in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Both,
    Upper,
    Lower,
}

impl Question {
    /// A question at one ε, with a precision that is enough for a value by itself.
    pub(crate) fn new(epsilon: f64, log_cut: f64, goal: f64) -> Self {
        Self { growth: epsilon.exp(), log_cut, goal, precision: 1e-4, ends: Ends::Both }
    }

    /// How far an answer of about `value` may be off: the precision of it or of the goal, whichever is larger.
    pub(crate) fn tolerance(&self, value: f64) -> f64 {
        self.precision * self.goal.max(value)
    }

    /// The same question about a crowd that a rough value may show not to be the worst one.
    pub(crate) fn glance(self) -> Self {
        Self { precision: GLANCE, ..self }
    }
}
