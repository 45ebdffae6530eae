//! The text of a card: numbers whose digits are kept as a card states them, and the one byte form of the whole card.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::display::Decimal;
use crate::error::{Error, Result};
use crate::privacy::Epsilon;

/// A number of at least zero, in the decimal digits in which it is stated.
///
/// The digits are signed and compared; the value is the closest double, checked by `T`. Two of them are
/// equal if their digits are.
///
/// ```
/// use uptack::{card::Stated, privacy::Delta};
/// let delta: Stated<Delta> = "1e-6".parse()?;
/// assert_eq!((delta.to_string().as_str(), delta.value().value()), ("1e-6", 1e-6));
/// assert!("0".parse::<Stated<Delta>>().is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    try_from = "String",
    into = "String",
    bound(serialize = "T: Clone", deserialize = "T: TryFrom<f64, Error: fmt::Display>")
)]
pub struct Stated<T> {
    text: String,
    value: T,
}

impl<T: Copy> Stated<T> {
    /// The number.
    pub fn value(&self) -> T {
        self.value
    }
}

impl<T> Stated<T> {
    /// The digits.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn decimal(&self) -> Decimal {
        Decimal::read(&self.text).expect("the text was read as a decimal before")
    }
}

impl<T: TryFrom<f64, Error: fmt::Display>> TryFrom<f64> for Stated<T> {
    type Error = Error;

    /// A number in the fewest digits that read back as the same number.
    fn try_from(value: f64) -> Result<Self> {
        value.to_string().parse()
    }
}

impl<T: TryFrom<f64, Error: fmt::Display>> FromStr for Stated<T> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |why: &dyn fmt::Display| Error::syntax(format!("expected {why}, as a string; found {text:?}"));
        let number = read(text).ok_or_else(|| refuse(&"a number of at least 0 in decimal digits"))?;
        let value = T::try_from(number).map_err(|error| refuse(&format!("another number ({error})")))?;
        Ok(Self { text: text.to_owned(), value })
    }
}

/// A finite number in decimal digits. A sign is refused even for zero: no such number has one.
fn read(text: &str) -> Option<f64> {
    Decimal::read(text).filter(|_| !text.starts_with('-'))?;
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

impl<T: TryFrom<f64, Error: fmt::Display>> TryFrom<String> for Stated<T> {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl<T> From<Stated<T>> for String {
    fn from(stated: Stated<T>) -> Self {
        stated.text
    }
}

impl<T> fmt::Display for Stated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T> PartialEq for Stated<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<T> Eq for Stated<T> {}

/// A claim of privacy: an ε in the digits in which it is stated, or `none` if nothing is promised.
///
/// ```
/// use uptack::card::Claim;
/// let claim: Claim = "0.99982".parse()?;
/// assert!(claim.is_below(&"0.999820001".parse()?) && claim.is_below(&Claim::NoGuarantee));
/// assert_eq!(claim.epsilon(), Some(0.99982));
/// assert!("NaN".parse::<Claim>().is_err());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Claim {
    /// At most this ε.
    Epsilon(Stated<Epsilon>),
    /// No guarantee.
    NoGuarantee,
}

/// How a card says that there is no guarantee.
const NONE: &str = "none";

impl Claim {
    /// The claim that an upper bound supports: no guarantee if there is no bound, or it is not finite.
    pub fn at_most(epsilon: Option<f64>) -> Self {
        let stated = epsilon.and_then(|epsilon| Stated::try_from(epsilon).ok());
        stated.map_or(Self::NoGuarantee, Self::Epsilon)
    }

    /// The ε as a number; `None` if there is no guarantee.
    pub fn epsilon(&self) -> Option<f64> {
        match self {
            Self::Epsilon(stated) => Some(stated.value().value()),
            Self::NoGuarantee => None,
        }
    }

    /// Whether it promises more than another claim, to the last digit.
    pub fn is_below(&self, other: &Self) -> bool {
        match (self.decimal(), other.decimal()) {
            (Some(one), Some(other)) => one.is_below(&other),
            (one, None) => one.is_some(),
            (None, Some(_)) => false,
        }
    }

    /// The digits as a decimal; `None` if there is no guarantee.
    pub(super) fn decimal(&self) -> Option<Decimal> {
        match self {
            Self::Epsilon(stated) => Some(stated.decimal()),
            Self::NoGuarantee => None,
        }
    }
}

impl FromStr for Claim {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == NONE {
            return Ok(Self::NoGuarantee);
        }
        text.parse()
            .map(Self::Epsilon)
            .map_err(|_| Error::syntax(format!("expected an epsilon in decimal digits or `none`; found {text:?}")))
    }
}

impl TryFrom<String> for Claim {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Claim> for String {
    fn from(claim: Claim) -> Self {
        claim.to_string()
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epsilon(stated) => stated.fmt(f),
            Self::NoGuarantee => f.write_str(NONE),
        }
    }
}

/// Writes the canonical form of RFC 8785 for values without numbers: keys sorted, no blanks, the shortest escapes.
pub(super) fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => write_object(fields, text),
        Value::Array(items) => write_list(text, ['[', ']'], items, write_canonical),
        // Strings, true, false and null are written by serde_json as the RFC wants them.
        other => text.push_str(&other.to_string()),
    }
}

fn write_object(fields: &Map<String, Value>, text: &mut String) {
    let mut keys: Vec<&String> = fields.keys().collect();
    keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    write_list(text, ['{', '}'], keys, |key, text| {
        write_canonical(&Value::String(key.clone()), text);
        text.push(':');
        write_canonical(&fields[key], text);
    });
}

fn write_list<T>(
    text: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    text.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(close);
}

/// Whole numbers on a card: decimal digits in a string, in one form, for fields of type `u64` (`#[serde(with = "decimal")]`).
pub(super) mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Digits without sign or leading zeros: each number has one form, and so does each card.
    fn read<E: de::Error>(text: &str) -> Result<u64, E> {
        text.parse().ok().filter(|number: &u64| number.to_string() == text).ok_or_else(|| {
            E::custom(format!("expected a whole number below 2^64 in decimal digits, as a string; found {text:?}"))
        })
    }

    pub(in crate::card) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(in crate::card) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        read(&String::deserialize(deserializer)?)
    }

    /// A number that a draft leaves open: the empty string.
    pub(in crate::card) mod or_open {
        use super::{Deserialize, Deserializer, Serializer, read};

        pub(in crate::card) fn serialize<S: Serializer>(
            number: &Option<u64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match number {
                Some(number) => serializer.collect_str(number),
                None => serializer.serialize_str(""),
            }
        }

        pub(in crate::card) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<u64>, D::Error> {
            let text = String::deserialize(deserializer)?;
            if text.is_empty() { Ok(None) } else { read(&text).map(Some) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_epsilon_is_refused_in_words() {
        for bad in ["NaN", "inf", "-1", "-0", "+1", "", "1e400", "1e400x", "1e99999999999", "None", "0x1", " 1"] {
            let told = bad.parse::<Claim>().unwrap_err();
            assert!(told.is_syntax() && told.to_string().contains(&format!("{bad:?}")), "{told}");
        }
        for good in ["0", "1", "0.5", "1.50", "1e-300", "9.9e3", "none"] {
            assert_eq!(good.parse::<Claim>().unwrap().to_string(), good);
        }
    }

    #[test]
    fn claims_are_compared_by_their_digits() {
        let below = |one: &str, other: &str| one.parse::<Claim>().unwrap().is_below(&other.parse().unwrap());
        // The same double, and still not the same claim.
        assert!(below("0.99981606527353459", "0.9998160652735346"));
        assert!(below("0", "1e-300") && below("5", "none") && below("9.9e-1", "1"));
        assert!(!below("none", "5") && !below("none", "none") && !below("1.0", "1") && !below("2", "1"));
        assert_eq!(Claim::at_most(Some(f64::INFINITY)), Claim::NoGuarantee);
        assert_eq!(Claim::at_most(Some(0.1 + 0.2)).to_string(), "0.30000000000000004");
    }

    #[test]
    fn the_form_is_sorted_and_bare() {
        let value: Value = serde_json::from_str(r#"{"b": ["x", "\u0001é\n"], "a": {"d": "1", "c": "⊥"}}"#).unwrap();
        let mut text = String::new();
        write_canonical(&value, &mut text);
        assert_eq!(text, "{\"a\":{\"c\":\"⊥\",\"d\":\"1\"},\"b\":[\"x\",\"\\u0001é\\n\"]}");
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super::decimal")]
        one: u64,
        #[serde(with = "super::decimal::or_open")]
        open: Option<u64>,
    }

    fn numbers(one: &str, open: &str) -> std::result::Result<Numbers, serde_json::Error> {
        serde_json::from_value(serde_json::json!({"one": one, "open": open}))
    }

    #[test]
    fn a_number_has_one_form() {
        for (one, open) in [("0", ""), ("18446744073709551615", "7")] {
            let read = numbers(one, open).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), format!("{{\"one\":\"{one}\",\"open\":\"{open}\"}}"));
        }
        for bad in ["", "00", "01", "+1", "-1", " 1", "1.0", "1e3", "18446744073709551616", "١"] {
            let told = numbers(bad, "").unwrap_err().to_string();
            assert!(told.contains("whole number") && told.contains(&format!("{bad:?}")), "{told}");
            assert!(bad.is_empty() || numbers("1", bad).is_err(), "{bad}");
        }
    }
}
