//! The crate's one error type.

use std::fmt;

/// What went wrong, where, and what to do about it.
///
/// The message names the parameter, cell, line or output at fault; [`Error::hint`] says what to do. Neither ever holds
/// an owner's truth.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

/// The question that a caller may ask of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Syntax,
    Parameter,
    Law,
    Input,
    Counts,
    Request,
    Coins,
}

impl Error {
    pub(crate) fn syntax(message: impl Into<String>) -> Self {
        Self::of(Kind::Syntax, message)
    }

    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self::of(Kind::Parameter, message)
    }

    pub(crate) fn law(message: impl Into<String>) -> Self {
        Self::of(Kind::Law, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::of(Kind::Input, message)
    }

    pub(crate) fn counts(message: impl Into<String>) -> Self {
        Self::of(Kind::Counts, message)
    }

    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::of(Kind::Request, message)
    }

    pub(crate) fn coins(message: impl Into<String>) -> Self {
        Self::of(Kind::Coins, message)
    }

    fn of(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
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

    /// A text that does not parse: a mechanism, a fraction, an output.
    pub fn is_syntax(&self) -> bool {
        self.kind == Kind::Syntax
    }

    /// A parameter that is out of range, or parameters that do not fit together.
    pub fn is_parameter(&self) -> bool {
        self.kind == Kind::Parameter
    }

    /// A law that is no law: it does not sum to one, or a part of it is negative.
    pub fn is_law(&self) -> bool {
        self.kind == Kind::Law
    }

    /// A row that cannot be read; the message names its line.
    pub fn is_input(&self) -> bool {
        self.kind == Kind::Input
    }

    /// Counts that no run of the mechanism can have produced.
    pub fn is_counts(&self) -> bool {
        self.kind == Kind::Counts
    }

    /// A request that makes no sense, such as more yes-owners than owners.
    pub fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }

    /// The source of randomness failed; nothing was drawn.
    pub fn is_coins(&self) -> bool {
        self.kind == Kind::Coins
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

impl std::error::Error for Error {}
