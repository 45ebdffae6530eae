//! Why a document cannot be read.

use std::fmt;

/// A document that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The document breaks a rule of the library, which this error states.
    Library(uptack::Error),
    /// It is not the document that it should be.
    Document {
        /// What is wrong with it.
        message: String,
        /// What to do about it, in one sentence.
        hint: Option<&'static str>,
        /// The error of the JSON reader.
        cause: Option<serde_json::Error>,
    },
}

impl Error {
    pub(crate) fn new(message: impl Into<String>, hint: Option<&'static str>) -> Self {
        Self::Document { message: message.into(), hint, cause: None }
    }

    /// What the caller can do about it, in one sentence.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Library(error) => error.hint(),
            Self::Document { hint, .. } => *hint,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Document { message, cause: None, .. } => f.write_str(message),
            Self::Document { message, cause: Some(cause), .. } => write!(f, "{message}: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Library(error) => error.source(),
            Self::Document { cause, .. } => cause.as_ref().map(|cause| cause as _),
        }
    }
}

impl From<uptack::Error> for Error {
    fn from(error: uptack::Error) -> Self {
        Self::Library(error)
    }
}
