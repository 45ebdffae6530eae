//! How a command fails.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// A message, what to do about it, and whose fault it is.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
    /// Nobody reads our output any more: not worth a word.
    silent: bool,
}

impl Failure {
    /// The exit code where the input or the request is at fault.
    pub(crate) const REQUEST: u8 = 1;
    /// The exit code of a failure of the program or its environment.
    const ENVIRONMENT: u8 = 2;

    /// The user can mend it.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self { code: Self::REQUEST, message: message.into(), hint: None, silent: false }
    }

    /// The program or its environment is at fault.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self { code: Self::ENVIRONMENT, ..Self::request(message) }
    }

    /// Somebody asked to stop before the end.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::environment(message)
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Puts the place, such as a file's name, before the message.
    pub(crate) fn at(self, place: impl Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// A file that cannot be opened or read is the user's to mend.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        Self::request(format!("{}: {}", path.display(), read_words(error)))
    }

    /// Standard input broke off.
    pub(crate) fn reading_input(error: &io::Error) -> Self {
        Self::environment(format!("standard input: {error}"))
    }

    /// Output that cannot be written.
    pub(crate) fn writing(place: impl Display, error: &io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::environment(format!("{place}: {error}")) }
    }

    /// Says it on stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.silent {
            return ExitCode::SUCCESS;
        }
        let mut stderr = io::stderr().lock();
        // There is nowhere left to complain to if this fails.
        let _ = writeln!(stderr, "error: {}", self.message);
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}

impl Failure {
    /// Says it on stderr, for those who have more to do; the failure itself if nobody listens any more.
    pub(crate) fn report_and_go_on(self) -> Result<(), Self> {
        if self.silent {
            return Err(self);
        }
        self.report();
        Ok(())
    }
}

/// Why a file cannot be read, in words; the system's own where there are no better ones.
fn read_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder, not a file".to_owned(),
        io::ErrorKind::PermissionDenied => "you may not read it".to_owned(),
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

impl From<uptack::Error> for Failure {
    fn from(error: uptack::Error) -> Self {
        let code = if error.is_coins() { Self::ENVIRONMENT } else { Self::REQUEST };
        Self { code, message: error.to_string(), hint: error.hint().map(str::to_owned), silent: false }
    }
}

impl From<uptack_document::Error> for Failure {
    fn from(error: uptack_document::Error) -> Self {
        match error {
            uptack_document::Error::Library(error) => error.into(),
            other => Self { hint: other.hint().map(str::to_owned), ..Self::request(other.to_string()) },
        }
    }
}

impl From<uptack_dap::Error> for Failure {
    fn from(error: uptack_dap::Error) -> Self {
        let code = if error.is_input() || error.is_refused() { Self::REQUEST } else { Self::ENVIRONMENT };
        let failure = Self { code, ..Self::request(error.to_string()) };
        // The one cause of a failed call that an option of every command that calls others mends.
        match failure.message.contains("name the root certificate") {
            true => failure.with_hint("--root FILE names it, as PEM"),
            false => failure,
        }
    }
}

impl From<uptack_owner::Error> for Failure {
    fn from(error: uptack_owner::Error) -> Self {
        match error {
            uptack_owner::Error::Input(message) => Self::request(message),
            uptack_owner::Error::Environment(message) => Self::environment(message),
            uptack_owner::Error::Ledger(_) => Self::environment(error.to_string()),
            // A desk or a leader that refuses is not the owner's fault.
            uptack_owner::Error::Network(error) if error.is_refused() => Self::environment(error.to_string()),
            uptack_owner::Error::Network(error) => error.into(),
        }
    }
}

impl From<uptack_server::Error> for Failure {
    fn from(error: uptack_server::Error) -> Self {
        let code = if error.is_input() || error.is_refused() { Self::REQUEST } else { Self::ENVIRONMENT };
        Self { code, ..Self::request(error.to_string()) }
    }
}
