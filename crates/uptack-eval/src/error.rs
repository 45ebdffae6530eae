//! The crate's one error type.

use std::fmt;

/// What most functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and what to do about it.
#[derive(Debug)]
pub struct Error {
    message: String,
    hint: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// An error in a field of a line; both are counted from 1.
    pub(crate) fn field(line: u64, field: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self::new(format!("line {line}, field {field}: {message}"))
    }

    pub(crate) fn line(line: u64, message: impl fmt::Display) -> Self {
        Self::new(format!("line {line}: {message}"))
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<uptack::Error> for Error {
    fn from(error: uptack::Error) -> Self {
        Self { message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

#[cfg(feature = "png")]
impl From<uptack_chart::RenderError> for Error {
    fn from(error: uptack_chart::RenderError) -> Self {
        Self::new(error.to_string())
    }
}
