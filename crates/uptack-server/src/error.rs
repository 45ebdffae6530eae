//! The one error type of this crate.

use std::{error::Error as StdError, fmt, path::Path, time::Duration};

/// What went wrong, for callers who want to decide and for people who want to know.
///
/// No variant carries a token, a key or anything of a report.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    retry_after: Option<Duration>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Input,
    Refused,
    Unreachable,
    Environment,
}

impl Error {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::of(Kind::Input, message)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::of(Kind::Unreachable, message)
    }

    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::of(Kind::Environment, message)
    }

    /// A file or folder that the program itself cannot write or read.
    pub(crate) fn file(path: &Path, cause: std::io::Error) -> Self {
        Self::environment(format!("{}: {cause}", path.display())).because(cause)
    }

    /// A file that the caller named and that cannot be used.
    pub(crate) fn named_file(path: &Path, cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::input(format!("{}: {cause}", path.display())).because(cause)
    }

    fn of(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, cause: None }
    }

    /// Keeps what brought it about. It must not carry what this type promises not to.
    pub(crate) fn because(self, cause: impl StdError + Send + Sync + 'static) -> Self {
        Self { cause: Some(Box::new(cause)), ..self }
    }

    /// The server asked to be left alone for so long.
    pub(crate) fn with_retry_after(self, pause: Option<Duration>) -> Self {
        Self { retry_after: pause, ..self }
    }

    /// How long the server asked to be left alone before it is asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The caller's input is at fault: a malformed file, an impossible setting.
    pub fn is_input(&self) -> bool {
        self.kind == Kind::Input
    }

    /// A server answered and said no.
    pub fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// No usable answer: the server is away or overloaded. Sending the same again is safe.
    pub fn is_unreachable(&self) -> bool {
        self.kind == Kind::Unreachable
    }

    /// This program or its environment failed.
    pub fn is_environment(&self) -> bool {
        self.kind == Kind::Environment
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as &(dyn StdError + 'static))
    }
}

impl From<uptack_dap::Error> for Error {
    fn from(error: uptack_dap::Error) -> Self {
        let kind = if error.is_input() {
            Kind::Input
        } else if error.is_unreachable() || error.is_not_ready() {
            Kind::Unreachable
        } else if error.is_environment() {
            Kind::Environment
        } else {
            Kind::Refused
        };
        Self::of(kind, error.to_string()).with_retry_after(error.retry_after()).because(error)
    }
}

impl From<uptack::Error> for Error {
    fn from(error: uptack::Error) -> Self {
        let hint = error.hint().map_or(String::new(), |hint| format!(" ({hint})"));
        Self::input(format!("{error}{hint}")).because(error)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::environment(format!("storage: {error}")).because(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::environment(error.to_string()).because(error)
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
