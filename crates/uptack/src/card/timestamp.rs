//! Moments on a card: RFC 3339 in UTC with whole seconds, the one form `2026-11-15T08:30:00Z`.

use crate::error::Error;

/// Seconds since the epoch as text.
///
/// ```
/// use uptack::card::timestamp;
/// assert_eq!(timestamp::text(1_000_000_000)?, "2001-09-09T01:46:40Z");
/// assert_eq!(timestamp::seconds("2001-09-09T01:46:40Z")?, 1_000_000_000);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn text(seconds: u64) -> Result<String, Error> {
    if seconds > LATEST {
        return Err(Error::request("a moment beyond the year 9999 cannot be written"));
    }
    let (days, second) = (seconds / DAY, seconds % DAY);
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    Ok(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60))
}

/// Seconds since the epoch from text; any other form of the same moment is refused, so that a card has one form.
pub fn seconds(text: &str) -> Result<u64, Error> {
    let refuse = || Error::syntax(format!("`{text}` is not a moment")).with_hint("write it as 2026-11-15T08:30:00Z");
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse::<u64>().ok()).ok_or_else(refuse)
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(refuse());
    }
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    // Whatever is out of range, or written otherwise, does not come back as it was.
    if self::text(seconds).is_ok_and(|again| again == text) { Ok(seconds) } else { Err(refuse()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_comes_back() {
        for day in 0..(2 * ERA) {
            let moment = day * DAY + day * 7919 % DAY;
            assert_eq!(seconds(&text(moment).unwrap()).unwrap(), moment);
        }
        assert_eq!(text(0).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(text(951_782_400).unwrap(), "2000-02-29T00:00:00Z");
        assert_eq!(text(LATEST).unwrap(), "9999-12-31T23:59:59Z");
        assert!(text(LATEST + 1).is_err());
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
            assert!(seconds(bad).unwrap_err().is_syntax(), "{bad}");
        }
    }
}
