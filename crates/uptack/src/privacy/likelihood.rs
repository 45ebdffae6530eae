//! What an adversary can tell apart, in double precision.

use crate::certified::binomial::{Coin, ROUNDOFF};
use crate::certified::enclosure::Bracket;
use crate::privacy::classes::{Class, ratio_order};
use crate::privacy::divergence::many_classes::Member;

/// Which truth the event under study speaks for: the divergence is P(first) − e^ε·P(second).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// How much likelier an event can be when the target's truth is *yes*.
    YesOverNo,
    /// How much likelier an event can be when the target's truth is *no*.
    NoOverYes,
}

impl Direction {
    /// Both directions of the substitution.
    pub const BOTH: [Self; 2] = [Self::YesOverNo, Self::NoOverYes];
}

/// The target's weight in one class: `first` − `second`, where `second` carries the factor e^ε.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) first: f64,
    pub(crate) second: f64,
}

impl Weight {
    pub(crate) fn value(&self) -> f64 {
        self.first - self.second
    }

    /// How far the value may be off.
    pub(crate) fn value_error(&self) -> f64 {
        16.0 * ROUNDOFF * self.magnitude()
    }

    pub(crate) fn magnitude(&self) -> f64 {
        self.first + self.second
    }

    pub(crate) fn positive_part(&self) -> Bracket {
        if self.second == 0.0 {
            return Bracket::around(self.first, 2.0 * ROUNDOFF * self.first, 0.0);
        }
        // Rounding can hide a positive part of at most this size.
        let error = 8.0 * ROUNDOFF * self.magnitude();
        if self.value() < -error { Bracket::ZERO } else { Bracket::around(self.value().max(0.0), error, 0.0) }
    }
}

/// One class with its probability under both truths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) yes: f64,
    pub(crate) no: f64,
}

impl Share {
    pub(crate) fn of(self, yes: bool) -> f64 {
        if yes { self.yes } else { self.no }
    }

    /// A class of the crowd in which the target has this weight.
    pub(crate) fn member(self, weight: Weight) -> Member {
        Member { yes: self.yes, no: self.no, weight }
    }

    pub(crate) fn weight(self, direction: Direction, growth: f64) -> Weight {
        match direction {
            Direction::YesOverNo => Weight { first: self.yes, second: growth * self.no },
            Direction::NoOverYes => Weight { first: self.no, second: growth * self.yes },
        }
    }
}

/// One observation about the target (all of it in the release view, one output of the answer in a joint view): the classes
/// that the target may be in, by falling ratio, and the probability of an owner's being outside of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) classes: Vec<Share>,
    pub(crate) outside: Share,
}

impl Piece {
    /// The piece of the given classes, which are at most three.
    pub(crate) fn new(classes: &[Class], outside: Class) -> Self {
        let share = |class: &Class| Share { yes: class.yes_probability(), no: class.no_probability() };
        let mut sorted = classes.to_vec();
        sorted.sort_by(|a, b| ratio_order(b, a));
        Self { classes: sorted.iter().map(share).collect(), outside: share(&outside) }
    }

    /// Probability of an owner of the given truth to be inside, against outside.
    pub(crate) fn inside(&self, yes: bool) -> Coin {
        let inside: f64 = self.classes.iter().map(|class| class.of(yes)).sum();
        Coin { success: inside, failure: self.outside.of(yes) }
    }

    /// The classes' probabilities for an owner of the given truth, given that it is inside. None if it never is.
    pub(crate) fn conditional(&self, yes: bool) -> Option<Vec<f64>> {
        let inside = self.inside(yes).success;
        (inside > 0.0).then(|| self.classes.iter().map(|class| class.of(yes) / inside).collect())
    }

    pub(crate) fn weights(&self, direction: Direction, growth: f64) -> Vec<Weight> {
        self.classes.iter().map(|class| class.weight(direction, growth)).collect()
    }
}
