//! Moments on a card: RFC 3339 in UTC with whole seconds, the one form `2026-11-15T08:30:00Z`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A moment from 1970 to the end of the year 9999, to the second.
///
/// Any other form of the same moment is refused, so that a card has one form.
///
/// ```
/// use uptack::card::Timestamp;
/// assert_eq!(Timestamp::from_seconds(1_000_000_000)?.to_string(), "2001-09-09T01:46:40Z");
/// assert_eq!("2001-09-09T01:46:40Z".parse::<Timestamp>()?.seconds(), 1_000_000_000);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(u64);

impl Timestamp {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self(0);

    /// The moment this many seconds after the epoch.
    pub fn from_seconds(seconds: u64) -> Result<Self> {
        if seconds > LATEST {
            return Err(Error::request("a moment beyond the year 9999 cannot be written"));
        }
        Ok(Self(seconds))
    }

    /// Seconds since the epoch.
    pub fn seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / DAY, self.0 % DAY);
        let (year, month, day) = civil(days);
        let (hour, minute) = (second / 3600, second / 60 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        read(text).ok_or_else(|| {
            Error::syntax(format!("`{text}` is not a moment")).with_hint("write it as 2026-11-15T08:30:00Z")
        })
    }
}

impl TryFrom<String> for Timestamp {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> Self {
        moment.to_string()
    }
}

const DAY: u64 = 24 * 3600;
/// The end of the year 9999.
const LATEST: u64 = 253_402_300_799;
/// Days from the first of March of year 0 to the epoch.
const TO_EPOCH: u64 = 719_468;
/// Days of 400 years.
const ERA: u64 = 146_097;

/// Days since the epoch of a date in the Gregorian calendar, whose years are taken to begin in March.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let of_era = year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + of_year;
    year / 400 * ERA + of_era - TO_EPOCH
}

/// The date of a day since the epoch: the inverse of [`days`].
fn civil(days: u64) -> (u64, u64, u64) {
    let (era, of_era) = ((days + TO_EPOCH) / ERA, (days + TO_EPOCH) % ERA);
    // Leap days are taken out before dividing by the days of a common year.
    let of_cycle = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_cycle + of_cycle / 4 - of_cycle / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + of_cycle + turn, month, day)
}

/// Reads a moment as it is printed, and in no other form.
fn read(text: &str) -> Option<Timestamp> {
    let number = |range| digits(text, range);
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    // Anything out of range, or in another form, is not printed the same way again.
    Timestamp::from_seconds(seconds).ok().filter(|moment| moment.to_string() == text)
}

/// The number at these places of a text.
fn digits(text: &str, range: Range<usize>) -> Option<u64> {
    text.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: u64) -> String {
        Timestamp::from_seconds(seconds).unwrap().to_string()
    }

    #[test]
    fn every_day_of_eight_centuries_comes_back() {
        for day in 0..(2 * ERA) {
            let moment = day * DAY + day * 7919 % DAY;
            assert_eq!(text(moment).parse::<Timestamp>().unwrap().seconds(), moment);
        }
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(text(LATEST), "9999-12-31T23:59:59Z");
        assert!(Timestamp::from_seconds(LATEST + 1).is_err());
    }

    #[test]
    fn other_forms_are_refused() {
        for bad in [
            "",
            "2026-11-15",
            "2026-11-15T08:30:00",
            "2026-11-15T08:30:00+00:00",
            "2026-11-15 08:30:00Z",
            "2026-11-15T08:30:00.0Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-15T24:00:00Z",
            "2026-11-15T08:60:00Z",
            "1969-12-31T23:59:59Z",
            "２026-11-15T08:30:00Z",
        ] {
            assert!(bad.parse::<Timestamp>().unwrap_err().is_syntax(), "{bad}");
        }
    }
}
