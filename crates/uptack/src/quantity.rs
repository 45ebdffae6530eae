//! Quantities as people write them: counts, ranges, spans of time.

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
        None => count(text).map(|yes| (yes, yes)),
    }
}

/// A whole number, which may be written as `50_000` or `1e9`.
pub fn count(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let value = digits.parse().ok().or_else(|| scientific(&digits));
    value.ok_or_else(|| format!("`{text}` is not a whole number between 0 and 2^63"))
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
    fn spans_have_units() {
        assert_eq!(["90", "300s", "5m", "1h", "1d"].map(seconds), [Ok(90), Ok(300), Ok(300), Ok(3600), Ok(86_400)]);
        for bad in ["", "m", "0s", "-5m", "5w", "99999999999999999999d"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
