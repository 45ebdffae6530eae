//! An owner's truth, which nothing prints, and values that depend on a truth.

use std::fmt;
use std::hint::black_box;
use std::ops::Index;

/// An owner's truth. It has no readable debug form, so that it cannot end up in a log.
#[derive(Clone, Copy)]
pub enum Truth {
    /// The true answer to the question is yes.
    Yes,
    /// The true answer is no.
    No,
}

impl Truth {
    /// *yes* if `truth`.
    pub fn from_bool(truth: bool) -> Self {
        if truth { Self::Yes } else { Self::No }
    }

    /// Itself while `left` is above zero, and *no* from then on. A *yes* that is kept lowers `left` by one. Nothing branches on the
    /// truth.
    pub fn up_to(self, left: &mut usize) -> Self {
        let kept = black_box(usize::from(matches!(self, Self::Yes)) & usize::from(*left > 0));
        *left -= kept;
        Self::from_bool(kept == 1)
    }

    /// The other truth. It branches, and so is only for hypothetical truths, such as those that the accountant compares.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
        }
    }

    /// All ones for *yes*, all zeros for *no*.
    pub(crate) fn mask(self) -> u64 {
        spread(u64::from(matches!(self, Self::Yes)))
    }
}

impl fmt::Debug for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Truth(…)")
    }
}

/// One value for each truth.
///
/// Code that does the same for either truth goes through [`PerTruth::each`], [`PerTruth::map`], [`PerTruth::with`] and indices
/// by [`Truth`], and names a field only where *yes* and *no* differ: so most of it does not know how many truths there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PerTruth<T> {
    /// The value if the truth is *yes*.
    pub yes: T,
    /// The value if the truth is *no*.
    pub no: T,
}

impl<T> PerTruth<T> {
    /// The value of a function for each truth.
    pub fn each(mut value: impl FnMut(Truth) -> T) -> Self {
        Self { yes: value(Truth::Yes), no: value(Truth::No) }
    }

    /// The image of both values.
    pub fn map<U>(self, mut function: impl FnMut(T) -> U) -> PerTruth<U> {
        PerTruth { yes: function(self.yes), no: function(self.no) }
    }

    /// Combines two values truth by truth.
    pub fn with<U, V>(self, other: PerTruth<U>, mut combine: impl FnMut(T, U) -> V) -> PerTruth<V> {
        PerTruth { yes: combine(self.yes, other.yes), no: combine(self.no, other.no) }
    }

    /// The same values, borrowed.
    pub fn each_ref(&self) -> PerTruth<&T> {
        PerTruth { yes: &self.yes, no: &self.no }
    }

    /// The same with the truths exchanged.
    #[must_use]
    pub fn exchanged(self) -> Self {
        Self { yes: self.no, no: self.yes }
    }
}

impl<T> Index<Truth> for PerTruth<T> {
    type Output = T;

    fn index(&self, truth: Truth) -> &T {
        match truth {
            Truth::Yes => &self.yes,
            Truth::No => &self.no,
        }
    }
}

/// All ones for 1, zero for 0, hidden from the compiler, so that it cannot turn the choice into a branch.
#[inline]
pub(crate) fn spread(bit: u64) -> u64 {
    0u64.wrapping_sub(black_box(bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_yes_are_kept() {
        let mut left = 2;
        let kept = [true, false, true, true, false].map(|truth| Truth::from_bool(truth).up_to(&mut left).mask() != 0);
        assert_eq!((kept, left), ([true, false, true, false, false], 0));
    }
}
