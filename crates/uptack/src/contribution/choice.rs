//! An owner's true choice, which nothing prints.

use std::fmt;

/// The possibility to which one contribution truly goes. It has no readable form, so that it cannot end up in a log.
///
/// Possibilities are numbered from 0 in the order of the options; the last one of counts is *none*.
#[derive(Clone, Copy)]
pub struct Choice(u32);

impl Choice {
    /// The possibility of this number.
    pub fn new(possibility: u32) -> Self {
        Self(possibility)
    }

    #[inline]
    pub(super) fn possibility(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Choice(…)")
    }
}

/// The choices of many contributions.
#[derive(Clone, Default)]
pub struct Choices(Vec<u32>);

impl Choices {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn possibilities(&self) -> &[u32] {
        &self.0
    }
}

impl FromIterator<Choice> for Choices {
    fn from_iter<I: IntoIterator<Item = Choice>>(choices: I) -> Self {
        Self(choices.into_iter().map(Choice::possibility).collect())
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choices({} …)", self.0.len())
    }
}
