//! An owner's true choice, which nothing prints.

use std::fmt;

use super::Contributions;
use crate::error::{Error, Result};

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

impl Contributions {
    /// The truths of all contributions of an owner who truly belongs to these counts, or has this option of a choice: the
    /// first [`Contributions::most`] of them, and *none* for every contribution that is left. A count that is given twice
    /// counts once.
    ///
    /// An index that is not an option is refused, and so is any number but one for a choice. The error does not repeat the truth.
    ///
    /// ```
    /// use uptack::contribution::Contributions;
    /// let asked: Contributions = "contributions(counts=12,most=2,r=0.001)".parse()?;
    /// assert_eq!(asked.choices_of(&[])?.len(), 2);
    /// assert_eq!(asked.choices_of(&[3, 4, 5])?.len(), 2);
    /// assert!(asked.choices_of(&[12]).is_err());
    /// # Ok::<(), uptack::Error>(())
    /// ```
    pub fn choices_of(&self, counts: &[usize]) -> Result<Vec<Choice>> {
        let options = self.options();
        if counts.iter().any(|&count| count >= options) {
            return Err(Error::input("an owner's truth is not an option")
                .with_hint(format!("options are numbered from 0 to {}", options - 1)));
        }
        if self.is_choice() {
            let [option] = counts else {
                return Err(Error::input("an owner has exactly one option of a choice"));
            };
            return Ok(vec![Choice(*option as u32)]);
        }
        let none = options as u32;
        let distinct = (0..counts.len()).filter(|&index| !counts[..index].contains(&counts[index]));
        let truths = distinct.map(|index| counts[index] as u32).chain(std::iter::repeat(none));
        Ok(truths.take(self.most() as usize).map(Choice).collect())
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

    /// One by one.
    #[cfg(debug_assertions)]
    pub(crate) fn to_vec(&self) -> Vec<Choice> {
        self.0.iter().copied().map(Choice).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn possibilities(text: &str, counts: &[usize]) -> Result<Vec<u32>> {
        let asked: Contributions = text.parse()?;
        Ok(asked.choices_of(counts)?.into_iter().map(Choice::possibility).collect())
    }

    #[test]
    fn the_first_counts_are_kept_and_the_rest_is_none() {
        let text = "contributions(counts=5,most=3,r=0.01)";
        for (counts, truths) in
            [(vec![], [5, 5, 5]), (vec![4], [4, 5, 5]), (vec![3, 1, 0, 2], [3, 1, 0]), (vec![2, 2, 1], [2, 1, 5])]
        {
            assert_eq!(possibilities(text, &counts).unwrap(), truths, "{counts:?}");
        }
        assert_eq!(possibilities("choice(k=3,r=0.01)", &[2]).unwrap(), [2]);
        assert_eq!(possibilities("choice(k=2,r=0.01)", &[1]).unwrap(), [1]);
    }

    #[test]
    fn bad_truths_are_refused_and_not_repeated() {
        for (text, counts) in [
            ("choice(k=3,r=0.01)", vec![]),
            ("choice(k=3,r=0.01)", vec![0, 1]),
            ("choice(k=3,r=0.01)", vec![31_337]),
            ("contributions(counts=5,most=3,r=0.01)", vec![0, 31_337]),
            ("contributions(counts=5,most=3,r=0.01)", vec![5]),
        ] {
            let error = possibilities(text, &counts).unwrap_err();
            assert!(error.is_input() && !format!("{error:?}").contains("31337"), "{error:?}");
        }
    }

    #[test]
    fn nothing_prints_a_truth() {
        let choices: Choices = [Choice::new(7), Choice::new(1)].into_iter().collect();
        assert_eq!(format!("{:?} {choices:?}", Choice::new(7)), "Choice(…) Choices(2 …)");
    }
}
