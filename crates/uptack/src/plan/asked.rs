//! What a request asks: a yes/no question, one of several options, or contributions to several counts.

use crate::contribution::{MOST_COUNTS, MOST_OPTIONS};
use crate::error::{Error, Result};

/// What a request asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// A yes/no question.
    #[default]
    YesNo,
    /// Which one of this many options (K).
    Options(u32),
    /// Up to `most` contributions to `counts` counts: the questions of a ballot, or the windows of a series.
    Counts {
        /// How many counts are published (C).
        counts: u32,
        /// To how many of them an owner adds at most (k).
        most: u32,
    },
}

impl Asked {
    /// Whether it is a yes/no question: two options and a single count are one.
    ///
    /// ```
    /// use uptack::plan::Asked;
    /// assert!(Asked::Options(2).is_yes_no() && Asked::Counts { counts: 1, most: 1 }.is_yes_no());
    /// assert!(!Asked::Options(3).is_yes_no());
    /// ```
    pub fn is_yes_no(self) -> bool {
        matches!(self, Self::YesNo | Self::Options(2) | Self::Counts { counts: 1, most: 1 })
    }

    /// How many counts are published.
    pub fn counts(self) -> u32 {
        match self {
            Self::Options(options) if options > 2 => options,
            Self::Counts { counts, .. } => counts,
            _ => 1,
        }
    }

    /// How many contributions an owner makes.
    pub fn most(self) -> u32 {
        match self {
            Self::Counts { most, .. } => most,
            _ => 1,
        }
    }

    /// How many possibilities one contribution has: the options, or the counts and *none*.
    pub fn possibilities(self) -> u32 {
        match self {
            Self::YesNo => 2,
            Self::Options(options) => options,
            Self::Counts { counts, .. } => counts.saturating_add(1),
        }
    }

    /// Whether this bound on the linked ε leaves a poor estimate whatever the encoding: several contributions among more than
    /// 3·e^(L/k) counts. Independent answers to every count have up to half the error there, which is still large.
    pub fn is_poor_at(self, linked: f64) -> bool {
        let (counts, most) = (f64::from(self.counts()), f64::from(self.most()));
        most > 1.0 && counts > 3.0 * (linked / most).exp()
    }

    /// Refuses numbers of options, counts or contributions that are out of range.
    pub(super) fn check(self) -> Result<()> {
        match self {
            Self::YesNo => Ok(()),
            Self::Options(options) => check_range("options", "options", options, (2, MOST_OPTIONS)),
            Self::Counts { counts, most } => {
                check_range("counts", "counts", counts, (1, MOST_COUNTS))?;
                check_range("most_yes", "contributions of one owner", most, (1, counts))
            }
        }
    }
}

fn check_range(field: &'static str, of: &str, value: u32, (least, most): (u32, u32)) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::request(format!("{value} {of} cannot be planned for"))
        .with_hint(format!("give a number from {least} to {most}"))
        .about(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_by_their_field() {
        let field = |asked: Asked| asked.check().err().and_then(|error| error.field());
        assert_eq!(field(Asked::Options(1)), Some("options"));
        assert_eq!(field(Asked::Options(MOST_OPTIONS + 1)), Some("options"));
        assert_eq!(field(Asked::Counts { counts: 0, most: 1 }), Some("counts"));
        assert_eq!(field(Asked::Counts { counts: MOST_COUNTS + 1, most: 1 }), Some("counts"));
        assert_eq!(field(Asked::Counts { counts: 5, most: 0 }), Some("most_yes"));
        assert_eq!(field(Asked::Counts { counts: 5, most: 6 }), Some("most_yes"));
        assert_eq!(field(Asked::Counts { counts: MOST_COUNTS, most: 1 }), None);
        assert_eq!(field(Asked::Options(2)), None);
    }
}
