//! What a text of the algebra says: definitions of terms, and equations of outputs.

use super::fault::Span;
use crate::channel::Bin;
use crate::fraction::Fraction;
use crate::noise::NoiseLaw;

/// Whose share a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Population {
    Total,
    Yes,
    No,
}

impl Population {
    const ALL: [Self; 3] = [Self::Total, Self::Yes, Self::No];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Total => "TOTAL",
            Self::Yes => "YES",
            Self::No => "NO",
        }
    }

    /// Whether a term of this population has a share of `other`.
    pub(super) fn covers(self, other: Self) -> bool {
        self == Self::Total || self == other
    }

    /// The population of this name.
    pub(super) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|population| population.name() == word)
    }

    /// The population of a term's name: `NO_f2` is a share of NO.
    pub(super) fn of_term(word: &str) -> Option<Self> {
        word.split_once('_').and_then(|(population, _)| Self::named(population))
    }
}

/// Whether a word names people: a population or a term.
pub(super) fn names_people(word: &str) -> bool {
    Population::named(word).is_some() || Population::of_term(word).is_some()
}

/// A term: a share of a population.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) population: Population,
    /// The share of the whole population, also where it was written as a share of another term.
    pub(super) share: Fraction,
    /// The term that this one is said to be part of.
    pub(super) inside: Option<(String, Span)>,
}

impl Definition {
    /// What stands after the population: `f2` of `NO_f2`.
    pub(super) fn subscript(&self) -> &str {
        &self.name[self.population.name().len() + 1..]
    }

    /// Its share of a population, which is zero for a term of the other one.
    pub(super) fn share_of(&self, population: Population) -> Fraction {
        if self.population.covers(population) { self.share.clone() } else { Fraction::zero() }
    }
}

/// What one output of one answer holds.
#[derive(Debug)]
pub(super) struct Equation {
    pub(super) bin: Bin,
    pub(super) span: Span,
    pub(super) mentions: Vec<Mention>,
}

/// A term with its sign.
#[derive(Debug)]
pub(super) struct Mention {
    pub(super) plus: bool,
    pub(super) name: String,
    pub(super) span: Span,
}

/// Everything that a text says.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) definitions: Vec<Definition>,
    pub(super) equations: Vec<Equation>,
    /// What the aggregators add to the count of `1`, and where it stands.
    pub(super) noise: Option<(NoiseLaw, Span)>,
}
