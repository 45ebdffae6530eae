//! The one error type of this crate.

use std::{error::Error as StdError, fmt, io, path::Path, time::Duration};

/// What went wrong, for callers that have to decide and for people who want to know.
///
/// No variant carries a report's content, a share, a key or a token.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    retry_after: Option<Duration>,
    status: Option<u16>,
    reports: Option<u64>,
    hint: Option<Hint>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

/// What a caller can do about an error. Whoever shows it says how: a library knows no options of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Trust the root certificate from which the server's was issued.
    NameRootCertificate,
    /// Do not rely on the document, which contradicts itself.
    DistrustDocument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorKind {
    Input,
    Refused,
    Unreachable,
    NotReady,
    TooSmall,
    OutdatedKey,
    Environment,
}

#[cfg_attr(not(feature = "network"), allow(dead_code, reason = "some are of calls only"))]
impl Error {
    /// An error of [this kind](Error::is_input).
    pub fn input(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Input, message)
    }

    /// An error of that kind in the words of its cause, which it keeps.
    pub(crate) fn input_because(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::input(cause.to_string()).because(cause)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Refused, message)
    }

    /// An error of [this kind](Error::is_unreachable).
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Unreachable, message)
    }

    pub(crate) fn not_ready(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::NotReady, message)
    }

    pub(crate) fn too_small(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::TooSmall, message)
    }

    pub(crate) fn outdated_key(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::OutdatedKey, message)
    }

    /// An error of [this kind](Error::is_environment).
    pub fn environment(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Environment, message)
    }

    /// A file or folder that the program itself cannot write or read.
    pub fn file(path: &Path, cause: io::Error) -> Self {
        Self::environment(format!("{}: {cause}", path.display())).because(cause)
    }

    /// A file that the caller named and that cannot be used.
    pub fn named_file(path: &Path, cause: impl StdError + Send + Sync + 'static) -> Self {
        let cause: Box<dyn StdError + Send + Sync> = Box::new(cause);
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let words = kind.and_then(unusable_because).map_or_else(|| cause.to_string(), str::to_owned);
        Self { cause: Some(cause), ..Self::input(format!("{}: {words}", path.display())) }
    }

    fn of(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None, status: None, reports: None, hint: None, cause: None }
    }

    /// Keeps the cause, which must not carry what this type promises not to carry.
    pub fn because(self, cause: impl StdError + Send + Sync + 'static) -> Self {
        Self { cause: Some(Box::new(cause)), ..self }
    }

    pub(crate) fn with_retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    pub(crate) fn with_reports(self, reports: Option<u64>) -> Self {
        Self { reports, ..self }
    }

    pub(crate) fn with_hint(self, hint: Option<Hint>) -> Self {
        Self { hint, ..self }
    }

    /// What can be done about it, if that is known.
    pub fn hint(&self) -> Option<Hint> {
        self.hint
    }

    /// How many reports a [batch that is too small](Error::is_batch_too_small) holds, if the leader says so.
    pub fn batch_reports(&self) -> Option<u64> {
        self.reports
    }

    /// The HTTP status with which a desk refused.
    pub fn refused_with(&self) -> Option<u16> {
        self.status
    }

    /// How long the server asks to be left alone; bounded, whatever it asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The caller's input is at fault: a malformed file, an impossible parameter.
    pub fn is_input(&self) -> bool {
        self.kind == ErrorKind::Input
    }

    /// A server answered and refused for good; sending the same again will not help.
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, ErrorKind::Refused | ErrorKind::OutdatedKey)
    }

    /// No usable answer: the server is away or overloaded. Sending the same bytes again is safe.
    pub fn is_unreachable(&self) -> bool {
        self.kind == ErrorKind::Unreachable
    }

    /// The collection is still under way.
    pub fn is_not_ready(&self) -> bool {
        self.kind == ErrorKind::NotReady
    }

    /// The batch holds fewer reports than its minimum; nothing is released.
    pub fn is_batch_too_small(&self) -> bool {
        self.kind == ErrorKind::TooSmall
    }

    /// The report was sealed under a key that the aggregator no longer knows.
    pub fn is_outdated_key(&self) -> bool {
        self.kind == ErrorKind::OutdatedKey
    }

    /// This program or its environment failed: disk, socket, a bug.
    pub fn is_environment(&self) -> bool {
        self.kind == ErrorKind::Environment
    }
}

/// Why a file cannot be used, if there are plain words for it.
fn unusable_because(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::NotFound => Some("there is no such file"),
        io::ErrorKind::IsADirectory => Some("it is a folder, not a file"),
        io::ErrorKind::PermissionDenied => Some("it may not be read by this user"),
        _ => None,
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

impl From<uptack::Error> for Error {
    fn from(error: uptack::Error) -> Self {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        Self::input(format!("{error}{hint}")).because(error)
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;
