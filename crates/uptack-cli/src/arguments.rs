//! Arguments that several commands take.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use uptack::Fraction;
use uptack::estimate::{Confidence, IntervalKind};
use uptack::plan::{Noise, Trust};
pub(crate) use uptack::quantity::{count, number, range, seconds};
use uptack_dap::address::Origin;
use uptack_document::{LinkedLimit, TrustWanted};
use uptack_owner::attributes::SEPARATORS;
use url::{Host, Url};

/// The confidence of intervals, and how they are computed.
#[derive(Args, Clone, Copy)]
pub(crate) struct IntervalArguments {
    /// The probability that the interval contains the truth
    #[arg(long, default_value = "0.95", value_parser = confidence)]
    pub(crate) confidence: Confidence,
    /// How the interval is computed
    #[arg(long, value_enum, default_value = "auto")]
    interval: IntervalArgument,
}

impl IntervalArguments {
    pub(crate) fn kind(self) -> IntervalKind {
        match self.interval {
            IntervalArgument::Auto => IntervalKind::Auto,
            IntervalArgument::Exact => IntervalKind::Exact,
            IntervalArgument::MidP => IntervalKind::MidP,
            IntervalArgument::Score => IntervalKind::Score,
        }
    }
}

/// How an interval is computed
#[derive(Clone, Copy, Debug, ValueEnum)]
enum IntervalArgument {
    /// Close to the stated confidence: misses at most a tenth more often, and half a point more
    Auto,
    /// Inversion of an exact test: never misses more often than stated
    Exact,
    /// Like exact, but the observed outcome counts half: closest to the stated confidence, above or below it
    MidP,
    /// Inversion of the standardized residual: an approximation for large counts
    Score,
}

/// `0.95`, `95%` or `19/20`. The complement is computed exactly, so 99.9999 % means what it says.
pub(crate) fn confidence(text: &str) -> Result<Confidence, String> {
    let level = fraction(text)?;
    Confidence::of_miss(level.complement().to_f64())
        .map_err(|_| format!("a confidence of {level} is not between 0 and 1 - 1e-12"))
}

/// The origin of a web page: `https://page.example`.
pub(crate) fn origin(text: &str) -> Result<Origin, String> {
    text.parse().map_err(|error: uptack_dap::Error| error.to_string())
}

/// A whole number of things in memory.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    count(text).and_then(|size| usize::try_from(size).map_err(|_| format!("`{text}` is too large for this machine")))
}

/// Where to listen: `127.0.0.1:8080`.
pub(crate) fn socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an address and a port in numbers, as in 127.0.0.1:8080"))
}

/// The sign between the fields of a CSV file, or its name.
pub(crate) fn separator(text: &str) -> Result<char, String> {
    let is_meant =
        |(sign, name): &(char, &str)| text == *name || text.chars().eq([*sign]) || (*sign == '\t' && text == "\\t");
    let known = || SEPARATORS.map(|(_, name)| name).join(", ");
    let found = SEPARATORS.into_iter().find(is_meant).map(|(sign, _)| sign);
    found.ok_or_else(|| format!("`{text}` does not separate fields; give the sign or its name: {}", known()))
}

/// How to say which sign separates the fields.
pub(crate) fn separator_advice(sign: char) -> String {
    let name = SEPARATORS.into_iter().find(|(known, _)| *known == sign).map_or("comma", |(_, name)| name);
    format!("--separator {name} reads it so; --separator comma takes the header as it is")
}

/// A share of one: `0.9`, `9/10` or `90%`.
pub(crate) fn fraction(text: &str) -> Result<Fraction, String> {
    text.parse().map_err(|error: uptack::Error| error.to_string())
}

/// The address of a server: `http://…` or `https://…`.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    uptack_dap::address::parse(text).map_err(|error| match with_scheme(text) {
        Some(meant) => format!("{error}; write {meant}"),
        None => format!("{error}, as in http://127.0.0.1:8080"),
    })
}

/// The address that was meant if only its scheme is missing or wrong: this machine in plaintext, or another one with TLS.
fn with_scheme(text: &str) -> Option<String> {
    let (_, bare) = text.split_once("://").unwrap_or(("", text));
    let bare =
        ["http:", "https:"].iter().find_map(|scheme| bare.strip_prefix(scheme)).unwrap_or(bare).trim_start_matches('/');
    let meant = uptack_dap::address::parse(&format!("https://{bare}")).ok()?;
    let scheme = if is_this_machine(&meant.host()?) { "http" } else { "https" };
    Some(format!("{scheme}://{bare}"))
}

fn is_this_machine(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Bounds on an owner's answers, noise and trust; omitted ones follow from the rest.
#[derive(Args)]
pub(crate) struct TrustArguments {
    /// The largest ε of a single answer
    #[arg(long, value_parser = number)]
    pub(crate) answer_epsilon: Option<f64>,
    /// Whether the aggregators add noise to the published count
    #[arg(long, value_enum)]
    noise: Option<NoiseArgument>,
    /// Whose honesty the ε of the published count rests on
    #[arg(long, value_enum)]
    trust: Option<TrustArgument>,
    /// The largest ε of all answers of an owner, or `none`; by default, if the aggregators add noise, the smallest that
    /// costs at most 10 % of the error, and at most 8, else none
    #[arg(long, value_name = "X|none")]
    linked_epsilon: Option<LinkedLimit>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NoiseArgument {
    /// Each of the two adds discrete Laplace noise
    Aggregators,
    /// Only the owners' coins hide anyone
    None,
    /// Whichever has the smaller error
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TrustArgument {
    /// One honest aggregator is enough, even if everyone else is dishonest
    OneAggregator,
    /// The honest owners, and one aggregator if noise is added
    Owners,
}

impl From<NoiseArgument> for Noise {
    fn from(argument: NoiseArgument) -> Self {
        match argument {
            NoiseArgument::Aggregators => Self::Aggregators,
            NoiseArgument::None => Self::None,
            NoiseArgument::Any => Self::Any,
        }
    }
}

impl From<TrustArgument> for Trust {
    fn from(argument: TrustArgument) -> Self {
        match argument {
            TrustArgument::OneAggregator => Self::OneAggregator,
            TrustArgument::Owners => Self::Owners,
        }
    }
}

impl TrustArguments {
    /// The arguments that were given.
    pub(crate) fn wanted(&self) -> TrustWanted {
        TrustWanted {
            noise: self.noise.map(Noise::from),
            trust: self.trust.map(Trust::from),
            linked: self.linked_epsilon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_begin_with_their_scheme() {
        assert_eq!(address("http://127.0.0.1:8080").unwrap().as_str(), "http://127.0.0.1:8080/");
        for (bad, advice) in [
            ("127.0.0.1:8571", "write http://127.0.0.1:8571"),
            ("localhost:8571", "write http://localhost:8571"),
            ("[::1]:8571", "write http://[::1]:8571"),
            ("desk.example", "write https://desk.example"),
            ("ftp://desk.example", "write https://desk.example"),
            ("http:/127.0.0.1:8571", "write http://127.0.0.1:8571"),
            ("https:desk.example", "write https://desk.example"),
            ("", "as in http://127.0.0.1:8080"),
        ] {
            let told = address(bad).unwrap_err();
            assert!(told.contains("begins with http://") && told.ends_with(advice), "{bad}: {told}");
        }
        for (bad, reason) in
            [("http://", "a host after"), ("http://büro.example", "xn--"), ("https://a b", "no spaces")]
        {
            let told = address(bad).unwrap_err();
            assert!(told.contains(reason) && told.ends_with("as in http://127.0.0.1:8080"), "{bad}: {told}");
        }
    }

    #[test]
    fn a_separator_is_a_sign_or_its_name() {
        for (text, sign) in [(";", ';'), ("semicolon", ';'), ("tab", '\t'), ("\\t", '\t'), ("\t", '\t'), (",", ',')] {
            assert_eq!(separator(text), Ok(sign));
        }
        assert!(separator("x").unwrap_err().contains("comma, semicolon, tab, bar"));
    }

    #[test]
    fn confidences_keep_their_nines() {
        assert!((confidence("99.9999%").unwrap().miss() - 1e-6).abs() < 1e-20);
        assert!(confidence("1").is_err() && confidence("0").is_err() && confidence("high").is_err());
    }
}
