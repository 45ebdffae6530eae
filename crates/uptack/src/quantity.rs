//! Quantities as people write them: numbers, counts, ranges, spans of time. The command line, the desk's form and every other
//! reader use these functions, so that the same text means the same everywhere.
//!
//! A comma is refused, because it separates decimals for some people and thousands for others: read the wrong way, an ε of
//! `0,5` would be 5.

/// A number with or without decimals: `0.5`, `1e-6`, `1 000`.
///
/// ```
/// use uptack::quantity::number;
/// assert_eq!(number("1e-6"), Ok(1e-6));
/// assert!(number("0,5").unwrap_err().starts_with("`0,5` is not a number: write decimals with a point"));
/// ```
pub fn number(text: &str) -> Result<f64, String> {
    let value = ungrouped(text).parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| refusal(text, "a number"))
}

/// A span of time in seconds: `300`, `300s`, `5m`, `1h` or `1d`.
pub fn seconds(text: &str) -> Result<u64, String> {
    let with_unit = UNITS.into_iter().find_map(|(letter, unit)| Some((text.strip_suffix(letter)?, unit)));
    let (digits, unit) = with_unit.unwrap_or((text, 1));
    let span = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).filter(|&span| span > 0);
    span.ok_or_else(|| format!("`{text}` is not a span of time such as 300s, 5m or 1h"))
}

/// Units of time and their seconds.
const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];

/// One number, or a range such as `0..500`.
pub fn range(text: &str) -> Result<(u64, u64), String> {
    match text.split_once("..") {
        Some((low, high)) => Ok((count(low)?, count(high.trim_start_matches('='))?)),
        None => count(text).map(|yes| (yes, yes)).map_err(|reason| range_advice(text).unwrap_or(reason)),
    }
}

/// How a number or a range is written, for a share or a range that is written in another way.
fn range_advice(text: &str) -> Option<String> {
    if text.ends_with('%') {
        return Some(format!("`{text}` is a share; give a number, as in 500, or a range of numbers, as in 100..500"));
    }
    let ends = ["-", "–", "—", ":", "…", " to "].iter().find_map(|sign| text.split_once(sign));
    let (low, high) = ends.and_then(|(low, high)| Some((count(low.trim()).ok()?, count(high.trim()).ok()?)))?;
    Some(format!("`{text}` is not a number; write the range as {low}..{high}"))
}

/// A whole number, which may be written as `50_000`, `50 000` or `1e9`.
pub fn count(text: &str) -> Result<u64, String> {
    let digits = ungrouped(text);
    let value = digits.parse().ok().or_else(|| scientific(&digits));
    value.ok_or_else(|| refusal(text, "a whole number between 0 and 2^63"))
}

/// Why a text is refused; if it has a comma, how to write it without one.
pub(crate) fn refusal(text: &str, expected: &str) -> String {
    let advice = ": write decimals with a point and thousands without a comma, as in 0.5 or 50000";
    format!("`{text}` is not {expected}{}", if text.contains(',') { advice } else { "" })
}

/// The text without what may stand between the thousands: `_` anywhere, or a space before every group of three digits.
fn ungrouped(text: &str) -> String {
    let text = text.trim().replace('_', "");
    let groups: Vec<&str> = text.split(char::is_whitespace).collect();
    let are_digits = |group: &&str| group.bytes().all(|byte| byte.is_ascii_digit());
    let (first, rest) = (groups[0], &groups[1..]);
    let is_grouped = are_digits(&first)
        && (1..=3).contains(&first.len())
        && rest.iter().all(|group| are_digits(group) && group.len() == 3);
    if is_grouped { groups.concat() } else { text }
}

fn scientific(text: &str) -> Option<u64> {
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let exponent: u32 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = exponent.checked_sub(u32::try_from(part.len()).ok()?)?;
    format!("{whole}{part}").parse::<u64>().ok()?.checked_mul(10u64.checked_pow(zeros)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers() {
        assert_eq!(count("1e9"), Ok(1_000_000_000));
        assert_eq!(count("50_000"), Ok(50_000));
        assert_eq!(count("2.5e3"), Ok(2500));
        for bad in ["-1", "1.5", "1e-3", "1e99", "", "x", "2.55e1", "18446744073709551616"] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_have_points_and_thousands_may_have_spaces() {
        let read = [" 7 ", "0.5", "1e-6", "1 000", "12 345 678", "1_000.5", "-1"].map(number);
        assert_eq!(read, [7.0, 0.5, 1e-6, 1000.0, 12_345_678.0, 1000.5, -1.0].map(Ok));
        assert_eq!([" 7 ", "1 000", "50\u{202f}000", "50\u{a0}000"].map(count), [7, 1000, 50_000, 50_000].map(Ok));
        for bad in ["", "nan", "inf", "5%", "1/3", "1.000.000", "1 00", "1000 000", "0 .5", "1 000.5", "1  000"] {
            assert!(number(bad).is_err(), "{bad}");
        }
        for bad in ["0,5", "1,000", "50,000"] {
            let [number, count] = [number(bad).unwrap_err(), count(bad).unwrap_err()];
            assert!(number.contains("decimals with a point") && count.contains("without a comma"), "{number} {count}");
        }
    }

    #[test]
    fn a_share_or_a_range_with_another_sign_is_answered_with_how_to_write_it() {
        assert_eq!(range("0..500"), Ok((0, 500)));
        assert!(range("10%").unwrap_err().contains("as in 100..500"));
        for text in ["100-200", "100 - 200", "100–200", "100:200", "100 to 200"] {
            assert!(range(text).unwrap_err().ends_with("write the range as 100..200"), "{text}");
        }
        for bad in ["-1", "ten", "100-", "a-b"] {
            assert!(range(bad).unwrap_err().contains("is not a whole number"), "{bad}");
        }
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(["90", "300s", "5m", "1h", "1d"].map(seconds), [Ok(90), Ok(300), Ok(300), Ok(3600), Ok(86_400)]);
        for bad in ["", "m", "0s", "-5m", "5w", "99999999999999999999d"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
