//! Reads `choice(k=K,f=F,r=R)` and `contributions(counts=C,most=k,r=R)`.

use super::Contributions;
use crate::error::{Error, Result};
use crate::fraction::Fraction;
use crate::mechanism::parse::{self, by_key_or, call, fraction, sum, whole};
use crate::noise::NoiseLaw;

pub(super) const CHOICE: &str = parse::CONTRIBUTIONS[0];
pub(super) const CONTRIBUTIONS: &str = parse::CONTRIBUTIONS[1];

/// Whether a text names one of the two.
pub(super) fn is_contributions(text: &str) -> bool {
    let name = text.split_once('(').map_or(text, |(name, _)| name).trim();
    Contributions::NAMES.contains(&name)
}

pub(super) fn contributions(text: &str) -> Result<Contributions> {
    if let Some((local, noise)) = sum(text) {
        let noise: NoiseLaw = noise.parse()?;
        return Ok(contributions(local)?.with_noise(Some(noise)));
    }
    let (name, arguments) = call(text)?;
    let parsed = match name {
        CHOICE => choice(arguments),
        CONTRIBUTIONS => counts(arguments),
        _ => return Err(Error::syntax(format!("`{name}` is not `{CHOICE}` or `{CONTRIBUTIONS}`"))),
    };
    parsed.map_err(|error| error.at(name))
}

fn choice(arguments: &str) -> Result<Contributions> {
    let texts = by_key_or(arguments, &[("k", None), ("f", Some("1")), ("r", None)])?;
    Contributions::choice(whole(texts[0], "k")?, fraction(texts[1], "f")?, other(texts[2])?)
}

fn counts(arguments: &str) -> Result<Contributions> {
    let texts = by_key_or(arguments, &[("counts", None), ("most", Some("1")), ("r", None)])?;
    Contributions::counts_of(whole(texts[0], "counts")?, whole(texts[1], "most")?, other(texts[2])?)
}

fn other(text: &str) -> Result<Fraction> {
    fraction(text, "r")
}

#[cfg(test)]
mod tests {
    use crate::contribution::AnyMechanism;
    use proptest::prelude::*;

    #[test]
    fn bad_texts_say_what_and_where() {
        for (text, message) in [
            ("choice(k=1,r=0.1)", "choice: k = 1 options are no choice"),
            ("choice(k=65537,r=0)", "choice: k = 65537 is more than 65536 options"),
            ("choice(k=4,r=0.3)", "choice: r = 0.3 is more than 1 divided by the 4 possibilities"),
            ("choice(k=4,f=0.5,r=0.2)", "choice: r = 0.2 is more than f = 0.5 divided by the 4 possibilities"),
            ("choice(k=four,r=0.1)", "choice: k: `four` is not a whole number"),
            ("choice(r=0.1)", "choice: k is missing"),
            ("choice(k=4)", "choice: r is missing"),
            ("choice(k=4,most=2,r=0.1)", "choice: unknown key `most`"),
            ("contributions(counts=0,r=0)", "contributions: counts = 0 is not between 1 and 16777216"),
            ("contributions(counts=3,most=0,r=0)", "contributions: most = 0 is not between 1 and the 3 counts"),
            ("contributions(counts=3,most=4,r=0)", "contributions: most = 4 is not between 1 and the 3 counts"),
            ("contributions(counts=3,r=0.3)", "contributions: r = 0.3 is more than 1 divided by the 4 possibilities"),
            ("choice(k=4,r=0.1) + gauss(scale=1)", "`gauss(scale=1)` is not a noise law"),
        ] {
            let error = text.parse::<AnyMechanism>().unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(choice|contributions)\\(?[a-z0-9=.,/% ]{0,40}\\)?( \\+ laplace\\(scale=[0-9./]{0,5}\\))?") {
            let _ = text.parse::<AnyMechanism>();
        }
    }
}
