//! The names of options.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::mechanism::nearest_name;
use crate::output::shortened;

/// The most options that one question can have.
pub const MOST_OPTIONS: u32 = 1 << 16;

/// The names of a question's options, in their order. Without names, options are numbered from 1.
///
/// ```
/// use uptack::contribution::OptionNames;
/// let names = OptionNames::new(["car", "bus", "bike"])?;
/// assert_eq!((names.index("bus")?, names.index("3")?), (1, 2));
/// assert_eq!(names.index("bas").unwrap_err().hint(), Some("did you mean `bus`?"));
/// assert_eq!(OptionNames::numbered(3).name(1), "2");
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionNames {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl OptionNames {
    /// Refuses an empty name, a name that is given twice, and more than [`MOST_OPTIONS`].
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(|name| name.into().trim().to_owned()).collect();
        let mut by_name = HashMap::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(Error::parameter(format!("option {} has an empty name", index + 1))
                    .with_hint("give every option a name"));
            }
            if let Some(first) = by_name.insert(name.clone(), index) {
                return Err(Error::parameter(format!(
                    "options {} and {} are both called `{}`",
                    first + 1,
                    index + 1,
                    shortened(name)
                ))
                .with_hint("give every option a name of its own"));
            }
        }
        if names.len() > MOST_OPTIONS as usize {
            return Err(Error::parameter(format!("{} options are more than {MOST_OPTIONS}", names.len()))
                .with_hint("merge rare options into one"));
        }
        Ok(Self { names, by_name })
    }

    /// `1`, `2`, …, for options or counts without names.
    pub fn numbered(options: usize) -> Self {
        Self { names: (1..=options).map(|number| number.to_string()).collect(), by_name: HashMap::new() }
    }

    /// How many options there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of the option at this index.
    pub fn name(&self, index: usize) -> &str {
        &self.names[index]
    }

    /// The index of the option that a text names, or numbers from 1. A name takes precedence over a number.
    pub fn index(&self, text: &str) -> Result<usize> {
        let text = text.trim();
        if let Some(&index) = self.by_name.get(text) {
            return Ok(index);
        }
        let number = text.parse::<usize>().ok().filter(|number| (1..=self.len()).contains(number));
        number.map(|number| number - 1).ok_or_else(|| self.unknown(text))
    }

    /// The error for a text that is not an option, with the nearest one.
    fn unknown(&self, text: &str) -> Error {
        let named: Vec<&str> =
            if self.by_name.is_empty() { Vec::new() } else { self.names.iter().map(String::as_str).collect() };
        let hint = match nearest_name(text, &named) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None if named.is_empty() => format!("options are numbered from 1 to {}", self.len()),
            None if named.len() <= 12 => format!("the options are {}", named.join(", ")),
            None => format!("there are {} options, from `{}` to `{}`", named.len(), named[0], named[named.len() - 1]),
        };
        Error::syntax(format!("`{}` is not an option", shortened(text))).with_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_say_which_option() {
        for (names, message) in [
            (vec!["car", " "], "option 2 has an empty name"),
            (vec!["car", "bus", "car"], "options 1 and 3 are both called `car`"),
        ] {
            assert_eq!(OptionNames::new(names).unwrap_err().to_string(), message);
        }
        assert!(OptionNames::new((0..=MOST_OPTIONS).map(|number| number.to_string())).is_err());
    }

    #[test]
    fn a_name_takes_precedence_over_a_number() {
        let names = OptionNames::new(["2", "1"]).unwrap();
        assert_eq!((names.index("2").unwrap(), names.index("1").unwrap()), (0, 1));
        let numbered = OptionNames::numbered(5);
        assert_eq!(numbered.index(" 5 ").unwrap(), 4);
        for text in ["0", "6", "-1", "x", ""] {
            assert_eq!(numbered.index(text).unwrap_err().hint(), Some("options are numbered from 1 to 5"), "{text}");
        }
    }
}
