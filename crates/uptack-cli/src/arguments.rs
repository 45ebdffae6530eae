//! Arguments that several commands take.

use clap::ValueEnum;
use uptack::Fraction;
use uptack::estimate::{Confidence, IntervalKind};
use url::{Host, Url};

/// How an interval is made
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum IntervalArgument {
    /// Close to the stated confidence: misses at most a tenth more often, and half a point more
    Auto,
    /// Inversion of an exact test: never misses more often than it says
    Exact,
    /// As exact, but the outcome itself weighs half: nearest to the stated confidence, on either side
    MidP,
    /// Inversion of the standardized residual: an approximation for large counts
    Score,
}

impl From<IntervalArgument> for IntervalKind {
    fn from(argument: IntervalArgument) -> Self {
        match argument {
            IntervalArgument::Auto => Self::Auto,
            IntervalArgument::Exact => Self::Exact,
            IntervalArgument::MidP => Self::MidP,
            IntervalArgument::Score => Self::Score,
        }
    }
}

/// `0.95`, `95%` or `19/20`. What is left to one is formed exactly, so that 99.9999 % means what it says.
pub(crate) fn confidence(text: &str) -> Result<Confidence, String> {
    let level: Fraction = text.parse().map_err(|error: uptack::Error| error.to_string())?;
    Confidence::of_miss(level.complement().to_f64())
        .map_err(|_| format!("a confidence of {level} is not between 0 and 1 - 1e-12"))
}

/// A share of one: `0.9`, `9/10` or `90%`.
pub(crate) fn fraction(text: &str) -> Result<Fraction, String> {
    text.parse().map_err(|error: uptack::Error| error.to_string())
}

/// A span of time in seconds: `300`, `300s`, `5m`, `1h` or `1d`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((end, 's')) => (&text[..end], 1),
        Some((end, 'm')) => (&text[..end], 60),
        Some((end, 'h')) => (&text[..end], 3600),
        Some((end, 'd')) => (&text[..end], 86_400),
        _ => (text, 1),
    };
    let span = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).filter(|&span| span > 0);
    span.ok_or_else(|| format!("`{text}` is not a span of time such as 300s, 5m or 1h"))
}

/// The address of a server: `http://…` or `https://…`.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    if let Ok(url) = text.parse::<Url>()
        && matches!(url.scheme(), "http" | "https")
    {
        return Ok(url);
    }
    let needed = "an address begins with http:// or https://";
    // Whoever left it out meant this machine in plaintext, or another one with TLS.
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let meant = format!("https://{bare}").parse::<Url>().ok().filter(|_| !bare.starts_with('/'));
    Err(match meant.as_ref().and_then(Url::host) {
        Some(host) if is_this_machine(&host) => format!("{needed}; write http://{bare}"),
        Some(_) => format!("{needed}; write https://{bare}"),
        None => format!("{needed}, as in http://127.0.0.1:8080"),
    })
}

fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// One number, or a range such as `0..500`.
pub(crate) fn range(text: &str) -> Result<(u64, u64), String> {
    match text.split_once("..") {
        Some((low, high)) => Ok((count(low)?, count(high.trim_start_matches('='))?)),
        None => count(text).map(|yes| (yes, yes)),
    }
}

/// A whole number, also as `50_000` or `1e9`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let plain = digits.parse().ok();
    let value = plain.or_else(|| scientific(&digits));
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
    fn addresses_begin_with_their_scheme() {
        assert_eq!(address("http://127.0.0.1:8080").unwrap().as_str(), "http://127.0.0.1:8080/");
        for (bad, advice) in [
            ("127.0.0.1:8571", "write http://127.0.0.1:8571"),
            ("localhost:8571", "write http://localhost:8571"),
            ("[::1]:8571", "write http://[::1]:8571"),
            ("desk.example", "write https://desk.example"),
            ("ftp://desk.example", "write https://desk.example"),
            ("", "as in http://127.0.0.1:8080"),
            ("http://", "as in http://127.0.0.1:8080"),
            ("/a/path", "as in http://127.0.0.1:8080"),
        ] {
            let told = address(bad).unwrap_err();
            assert!(told.contains("begins with http://") && told.ends_with(advice), "{bad}: {told}");
        }
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(["90", "300s", "5m", "1h", "1d"].map(seconds), [Ok(90), Ok(300), Ok(300), Ok(3600), Ok(86_400)]);
        for bad in ["", "m", "0s", "-5m", "5w", "99999999999999999999d"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn confidences_keep_their_nines() {
        assert!((confidence("99.9999%").unwrap().miss() - 1e-6).abs() < 1e-20);
        assert!(confidence("1").is_err() && confidence("0").is_err() && confidence("high").is_err());
    }
}
