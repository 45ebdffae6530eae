//! Whole numbers on a card: decimal digits in a string, in one form, read once.
//!
//! For fields of type `u64`: `#[serde(with = "decimal")]`.

use serde::{Deserialize, Deserializer, Serializer, de};

/// Digits without sign or leading zeros: each number has one form, and so does each card.
fn read<E: de::Error>(text: &str) -> Result<u64, E> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text).ok_or_else(|| {
        E::custom(format!("expected a whole number below 2^64 in decimal digits, as a string; found {text:?}"))
    })
}

pub(super) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    read(&String::deserialize(deserializer)?)
}

/// A number that a draft leaves open: the empty string.
pub(super) mod or_open {
    use super::{Deserialize, Deserializer, Serializer, read};

    pub(in crate::card) fn serialize<S: Serializer>(number: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match number {
            Some(number) => serializer.collect_str(number),
            None => serializer.serialize_str(""),
        }
    }

    pub(in crate::card) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() { Ok(None) } else { read(&text).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super")]
        one: u64,
        #[serde(with = "super::or_open")]
        open: Option<u64>,
    }

    fn numbers(one: &str, open: &str) -> Result<Numbers, serde_json::Error> {
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
