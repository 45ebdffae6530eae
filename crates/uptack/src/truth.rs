//! An owner's truth, which nothing prints.

use std::fmt;
use std::hint::black_box;

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

/// All ones for 1, zero for 0, hidden from the compiler, so that it cannot turn the choice into a branch.
#[inline]
pub(crate) fn spread(bit: u64) -> u64 {
    0u64.wrapping_sub(black_box(bit))
}
