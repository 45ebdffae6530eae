//! The one error type of this crate.

use std::{error::Error as StdError, fmt, path::Path, time::Duration};

/// What went wrong: predicates for callers that decide by it, and a message for people.
///
/// No variant carries a token, a key or anything of a report.
#[derive(Debug)]
pub enum Error {
    /// What can also go wrong without a store.
    Dap(uptack_dap::Error),
    /// The database failed.
    Storage(Box<dyn StdError + Send + Sync>),
}

impl Error {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Dap(uptack_dap::Error::input(message))
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::Dap(uptack_dap::Error::unreachable(message))
    }

    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::Dap(uptack_dap::Error::environment(message))
    }

    pub(crate) fn file(path: &Path, cause: std::io::Error) -> Self {
        Self::Dap(uptack_dap::Error::file(path, cause))
    }

    pub(crate) fn named_file(path: &Path, cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Dap(uptack_dap::Error::named_file(path, cause))
    }

    fn dap(&self) -> Option<&uptack_dap::Error> {
        match self {
            Self::Dap(error) => Some(error),
            Self::Storage(_) => None,
        }
    }

    /// What can be done about it, if that is known.
    pub fn hint(&self) -> Option<uptack_dap::Hint> {
        self.dap()?.hint()
    }

    /// How long the other server asked us to wait before the next request.
    pub fn retry_after(&self) -> Option<Duration> {
        self.dap()?.retry_after()
    }

    /// The caller's input is at fault: a malformed file, an impossible setting.
    pub fn is_input(&self) -> bool {
        self.dap().is_some_and(uptack_dap::Error::is_input)
    }

    /// Another server answered with a refusal.
    pub fn is_refused(&self) -> bool {
        self.dap().is_some_and(|error| error.is_refused() || error.is_batch_too_small())
    }

    /// No usable answer from another server yet: it is down, overloaded or not done. Sending the same again is safe.
    pub fn is_unreachable(&self) -> bool {
        self.dap().is_some_and(|error| error.is_unreachable() || error.is_not_ready())
    }

    /// This program or its environment failed.
    pub fn is_environment(&self) -> bool {
        self.dap().is_none_or(uptack_dap::Error::is_environment)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dap(error) => error.fmt(formatter),
            Self::Storage(error) => write!(formatter, "storage: {error}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Dap(error) => error.source(),
            Self::Storage(error) => Some(&**error),
        }
    }
}

impl From<uptack_dap::Error> for Error {
    fn from(error: uptack_dap::Error) -> Self {
        Self::Dap(error)
    }
}

impl From<uptack::Error> for Error {
    fn from(error: uptack::Error) -> Self {
        Self::Dap(error.into())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Dap(uptack_dap::Error::environment(error.to_string()).because(error))
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
