//! The one error type of this crate.

use std::fmt;

/// What went wrong. No variant carries a truth, a cell or an attribute's value.
#[derive(Debug)]
pub enum Error {
    /// The caller's input is at fault: a policy, a file of attributes, an address.
    Input(String),
    /// This program or its environment failed: disk, randomness.
    Environment(String),
    /// The ledger's file could not be read or written.
    Ledger(Box<dyn std::error::Error + Send + Sync>),
    /// The desk or an aggregator did not answer as it should.
    Network(uptack_dap::Error),
}

impl Error {
    /// A failure of the environment, in the words of its cause.
    pub(crate) fn environment(cause: impl fmt::Display) -> Self {
        Self::Environment(cause.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Environment(text) => formatter.write_str(text),
            Self::Ledger(error) => write!(formatter, "ledger: {error}"),
            Self::Network(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Input(_) | Self::Environment(_) => None,
            Self::Ledger(error) => Some(&**error),
            Self::Network(error) => Some(error),
        }
    }
}

impl From<uptack_dap::Error> for Error {
    fn from(error: uptack_dap::Error) -> Self {
        Self::Network(error)
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
