//! Reads `name(key=value, …)`.

use crate::error::{Error, Result};
use crate::fraction::{Fraction, rational};
use crate::output::shortened;

use super::{Family, RandomizedResponse, Spread};

/// The names of mechanisms of contributions, which are not of a yes/no question.
pub(crate) const CONTRIBUTIONS: [&str; 2] = ["choice", "contributions"];

/// Splits `name(arguments)`.
pub(crate) fn call(text: &str) -> Result<(&str, &str)> {
    let text = text.trim();
    let malformed = || {
        Error::syntax(format!("`{}` is not a mechanism", shortened(text)))
            .with_hint("a mechanism is written name(key=value, …), as in normal-form(f=0.5,r=8.2e-5)")
    };
    let (name, rest) = text.split_once('(').ok_or_else(malformed)?;
    let arguments = rest.strip_suffix(')').ok_or_else(malformed)?;
    Ok((name.trim(), arguments))
}

/// The texts before and after the `+` that joins a mechanism and its noise; a sign within a number is not such a `+`.
pub(crate) fn sum(text: &str) -> Option<(&str, &str)> {
    let (at, _) = text.match_indices('+').find(|&(at, _)| text[..at].trim_end().ends_with(')'))?;
    Some((&text[..at], &text[at + 1..]))
}

/// A mechanism whose parameters are all fractions.
pub(super) fn family<F: Family>(arguments: &str) -> Result<F> {
    let texts = by_key(arguments, F::KEYS)?;
    let values = texts.into_iter().zip(F::KEYS).map(|(text, key)| fraction(text, key));
    F::from_values(values.collect::<Result<_>>()?)
}

/// `randomized-response`, which takes an ε in place of its t.
pub(super) fn randomized_response(arguments: &str) -> Result<RandomizedResponse> {
    let given = || arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    let epsilon = given().find_map(|argument| argument.strip_prefix("epsilon")?.trim_start().strip_prefix('='));
    let Some(text) = epsilon.map(str::trim) else { return family(arguments) };
    if given().count() > 1 {
        return Err(Error::syntax("t and epsilon are both given").with_hint("give one of them: t follows from epsilon"));
    }
    let malformed =
        || Error::syntax(format!("epsilon: `{}` is not a number", shortened(text))).with_hint("write epsilon=1");
    RandomizedResponse::for_epsilon(&rational(text).ok_or_else(malformed)?)
}

/// `spread`, whose first parameter is a count.
pub(super) fn spread(arguments: &str) -> Result<Spread> {
    let texts = by_key(arguments, &["pairs", "f", "r"])?;
    let pairs = texts[0].parse().map_err(|_| {
        Error::syntax(format!("pairs: `{}` is not a number of pairs", shortened(texts[0]))).with_hint("write pairs=2")
    })?;
    Spread::new(pairs, fraction(texts[1], "f")?, fraction(texts[2], "r")?)
}

pub(crate) fn fraction(text: &str, key: &str) -> Result<Fraction> {
    text.parse().map_err(|error: Error| error.at(key))
}

/// A whole number.
pub(crate) fn whole(text: &str, key: &str) -> Result<u32> {
    text.parse().map_err(|_| {
        Error::syntax(format!("{key}: `{}` is not a whole number", shortened(text))).with_hint(format!("write {key}=4"))
    })
}

/// The text for each key; keys may be left out if the values are in the keys' order.
fn by_key<'a>(arguments: &'a str, keys: &[&str]) -> Result<Vec<&'a str>> {
    let needed: Vec<_> = keys.iter().map(|&key| (key, None)).collect();
    by_key_or(arguments, &needed)
}

/// The same where some keys have a text that stands for them if they are left out.
pub(crate) fn by_key_or<'a>(arguments: &'a str, keys: &[(&str, Option<&'a str>)]) -> Result<Vec<&'a str>> {
    let defaults = keys.iter().map(|&(_, default)| default);
    let keys: &[&str] = &keys.iter().map(|&(key, _)| key).collect::<Vec<_>>();
    let mut found: Vec<Option<&str>> = vec![None; keys.len()];
    let given = arguments.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    for (position, argument) in given.enumerate() {
        let (index, value) = keyed(argument, position, keys)?;
        let too_many = || wrong(format!("`{}` is one value too many", shortened(argument)), keys);
        if found.get_mut(index).ok_or_else(too_many)?.replace(value).is_some() {
            return Err(wrong(format!("{} is given twice", keys[index]), keys));
        }
    }
    let texts = found.into_iter().zip(defaults).map(|(text, default)| text.or(default)).zip(keys);
    texts.map(|(text, key)| text.ok_or_else(|| wrong(format!("{key} is missing"), keys))).collect()
}

fn wrong(message: String, keys: &[&str]) -> Error {
    Error::syntax(message).with_hint(format!("it takes {}", keys.join(", ")))
}

/// The index of an argument's key and the argument's value; without a key, its position counts.
fn keyed<'a>(argument: &'a str, position: usize, keys: &[&str]) -> Result<(usize, &'a str)> {
    match argument.split_once('=') {
        Some((key, value)) => Ok((position_of(key.trim(), keys)?, value.trim())),
        None => Ok((position, argument)),
    }
}

fn position_of(key: &str, keys: &[&str]) -> Result<usize> {
    keys.iter().position(|&known| known == key).ok_or_else(|| unknown("key", key, keys))
}

/// The error for an unknown name, with the nearest name that is known.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    Error::syntax(format!("unknown {what} `{}`", shortened(name))).with_hint(match nearest_name(name, known) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("known names: {}", known.join(", ")),
    })
}

/// The known name that was probably meant by an unknown one: a few letters differ, or only upper and lower case.
///
/// ```
/// use uptack::mechanism::nearest_name;
/// assert_eq!(nearest_name("station", &["Station", "speed"]), Some("Station"));
/// assert_eq!(nearest_name("station", &["lane", "speed"]), None);
/// ```
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance_to = |candidate: &str| distance(&name, &candidate.to_lowercase());
    let nearest = known.iter().copied().min_by_key(|candidate| distance_to(candidate))?;
    (distance_to(nearest) * 2 < nearest.len()).then_some(nearest)
}

/// The number of letters to change, insert or drop to turn one word into the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use crate::Mechanism;
    use proptest::prelude::*;

    fn error_of(text: &str) -> (String, String) {
        let error = text.parse::<Mechanism>().unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default().to_owned())
    }

    #[test]
    fn bad_mechanisms_say_what_and_where() {
        for (text, message, hint) in [
            ("nothing", "`nothing` is not a mechanism", "a mechanism is written"),
            ("blendet(f=1)", "unknown mechanism `blendet`", "did you mean `blended`?"),
            ("zzz(f=1)", "unknown mechanism `zzz`", "known names: randomized-response"),
            ("normal-form(f=0.5)", "normal-form: r is missing", "it takes f, r"),
            ("normal-form(f=0.5,q=0.1)", "normal-form: unknown key `q`", "known names: f, r"),
            ("normal-form(f=0.5,r=1,f=0.5)", "normal-form: f is given twice", "it takes f, r"),
            ("normal-form(0.5,0.1,0.2)", "normal-form: `0.2` is one value too many", "it takes f, r"),
            ("normal-form(f=1.5,r=0.1)", "normal-form: f: 1.5 is not between 0 and 1", "a probability"),
            ("normal-form(f=half,r=0.1)", "normal-form: f: `half` is not a number", "a probability"),
            ("tuned(sy1=1,syy2=1)", "tuned: unknown key `syy2`", "did you mean `sy2`?"),
            ("spread(pairs=x,f=1,r=0)", "spread: pairs: `x` is not a number of pairs", "write pairs=2"),
        ] {
            let (found, advice) = error_of(text);
            assert_eq!(found, message);
            assert!(advice.starts_with(hint), "{text}: {advice}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z-]{0,20}\\(?[a-z0-9=.,/%:⊥ ]{0,40}\\)?") {
            let _ = text.parse::<Mechanism>();
        }
    }
}
