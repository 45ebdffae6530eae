//! The crate's one error type.

use std::fmt;
use std::sync::Arc;

/// What most functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what to do about it.
///
/// The message names the parameter, cell, line or output at fault; [`Error::hint`] says what to do. Neither ever holds
/// an owner's truth. If another error is the cause, [`source`](std::error::Error::source) is that error.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    field: Option<&'static str>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Errors are equal if they say the same, whatever caused them.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.message, &self.hint) == (other.kind, &other.message, &other.hint)
    }
}

impl Eq for Error {}

/// The question that a caller may ask of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorKind {
    Syntax,
    Parameter,
    Law,
    Card,
    Input,
    Counts,
    Request,
    Coins,
}

impl Error {
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Syntax, message)
    }

    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Parameter, message)
    }

    pub(crate) fn law(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Law, message)
    }

    pub(crate) fn card(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Card, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Input, message)
    }

    pub(crate) fn counts(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Counts, message)
    }

    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Request, message)
    }

    pub(crate) fn coins(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Coins, message)
    }

    fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, field: None, source: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names the field of a request that has to change.
    pub(crate) fn about(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    pub(crate) fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Puts the place, such as a file's name or a parameter's key, before the message.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// What the caller can do about it, in one sentence.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The field of a [`Request`](crate::plan::Request) to the planner that has to change, by its name there (`epsilon` and
    /// `delta` for the release, `error` for the largest error); none if it may be any of them.
    pub fn field(&self) -> Option<&'static str> {
        self.field
    }

    /// A text that does not parse: a mechanism, a fraction, an output.
    pub fn is_syntax(&self) -> bool {
        self.kind == ErrorKind::Syntax
    }

    /// A parameter that is out of range, or parameters that do not fit together.
    pub fn is_parameter(&self) -> bool {
        self.kind == ErrorKind::Parameter
    }

    /// Not a probability law: it does not sum to one, or a part of it is more than one.
    pub fn is_law(&self) -> bool {
        self.kind == ErrorKind::Law
    }

    /// A card that contradicts itself, or claims what does not hold.
    pub fn is_card(&self) -> bool {
        self.kind == ErrorKind::Card
    }

    /// A row that cannot be read; the message names its line.
    pub fn is_input(&self) -> bool {
        self.kind == ErrorKind::Input
    }

    /// Counts that no run of the mechanism can have produced.
    pub fn is_counts(&self) -> bool {
        self.kind == ErrorKind::Counts
    }

    /// A request that makes no sense, such as more yes-owners than owners.
    pub fn is_request(&self) -> bool {
        self.kind == ErrorKind::Request
    }

    /// The source of randomness failed; nothing was drawn.
    pub fn is_coins(&self) -> bool {
        self.kind == ErrorKind::Coins
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, " (hint: {hint})"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn the_cause_is_kept_and_does_not_make_errors_differ() {
        let cause = "x".parse::<u8>().unwrap_err();
        let plain = Error::card("bad number").with_hint("write digits");
        let caused = plain.clone().with_source(cause.clone());
        assert_eq!(plain, caused);
        assert!(plain.source().is_none() && caused.is_card());
        assert_eq!(caused.at("here").source().unwrap().to_string(), cause.to_string());
    }
}
