//! How a command fails.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use uptack_dap::Hint;

/// The result of what a command does.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// A message, a hint, and an exit code that says whose fault it is.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
    /// Nobody reads our output any more, so nothing needs to be said.
    silent: bool,
}

impl Failure {
    /// The exit code where the input or the request is at fault.
    pub(crate) const REQUEST: u8 = 1;
    /// The exit code of a failure of the program or its environment.
    const ENVIRONMENT: u8 = 2;

    fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, silent: false }
    }

    /// The user can fix it.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(Self::REQUEST, message)
    }

    /// The program or its environment is at fault.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::new(Self::ENVIRONMENT, message)
    }

    /// Somebody asked to stop before the end.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self::environment(message)
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Gives it a hint, unless it has one.
    fn or_hint(self, hint: &str) -> Self {
        if self.hint.is_some() { self } else { self.with_hint(hint) }
    }

    /// Puts the place, such as a file's name, before the message.
    pub(crate) fn at(self, place: impl Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// A file that cannot be opened or read; the user can fix that.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Self {
        Self::request(read_words(error)).at(path.display())
    }

    /// Standard input broke off.
    pub(crate) fn reading_input(error: &io::Error) -> Self {
        Self::environment(error.to_string()).at("standard input")
    }

    /// Output that cannot be written.
    pub(crate) fn writing(place: impl Display, error: &io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { silent, ..Self::environment(error.to_string()).at(place) }
    }

    /// Prints it to stderr and returns the exit code.
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

    /// Prints it to stderr, for commands that have more to do; returns the failure itself if nobody reads our output.
    pub(crate) fn report_and_go_on(self) -> Result<()> {
        if self.silent {
            return Err(self);
        }
        self.report();
        Ok(())
    }

    /// A failure with the hint that its error gives, if any.
    fn hinted(self, hint: Option<&str>) -> Self {
        Self { hint: hint.map(str::to_owned), ..self }
    }
}

/// Says more about a failed result, as the methods of [`Failure`] of the same names do.
pub(crate) trait ResultExt<T> {
    fn at(self, place: impl Display) -> Result<T>;

    fn with_hint(self, hint: &str) -> Result<T>;

    fn or_hint(self, hint: &str) -> Result<T>;
}

impl<T, E: Into<Failure>> ResultExt<T> for Result<T, E> {
    fn at(self, place: impl Display) -> Result<T> {
        self.map_err(|error| error.into().at(place))
    }

    fn with_hint(self, hint: &str) -> Result<T> {
        self.map_err(|error| error.into().with_hint(hint))
    }

    fn or_hint(self, hint: &str) -> Result<T> {
        self.map_err(|error| error.into().or_hint(hint))
    }
}

/// Turns an error of the operating system into a failure to read or to write something.
pub(crate) trait IoResultExt<T> {
    fn while_reading(self, path: &Path) -> Result<T>;

    fn while_writing(self, place: impl Display) -> Result<T>;
}

impl<T> IoResultExt<T> for io::Result<T> {
    fn while_reading(self, path: &Path) -> Result<T> {
        self.map_err(|error| Failure::reading(path, &error))
    }

    fn while_writing(self, place: impl Display) -> Result<T> {
        self.map_err(|error| Failure::writing(place, &error))
    }
}

/// Why a file cannot be read; the system's own words if there are no better ones.
fn read_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder, not a file".to_owned(),
        io::ErrorKind::PermissionDenied => "you do not have permission to read it".to_owned(),
        io::ErrorKind::InvalidData => "not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

impl From<uptack::Error> for Failure {
    fn from(error: uptack::Error) -> Self {
        let code = if error.is_coins() { Self::ENVIRONMENT } else { Self::REQUEST };
        Self::new(code, error.to_string()).hinted(error.hint())
    }
}

impl From<uptack_document::Error> for Failure {
    fn from(error: uptack_document::Error) -> Self {
        match error {
            uptack_document::Error::Library(error) => error.into(),
            other => Self::request(other.to_string()).hinted(other.hint()),
        }
    }
}

impl From<uptack_eval::Error> for Failure {
    fn from(error: uptack_eval::Error) -> Self {
        Self::request(error.to_string()).hinted(error.hint())
    }
}

impl From<uptack_dap::Error> for Failure {
    fn from(error: uptack_dap::Error) -> Self {
        let code = if error.is_input() || error.is_refused() { Self::REQUEST } else { Self::ENVIRONMENT };
        let unknown_token = (error.refused_with() == Some(UNAUTHORIZED)).then_some(UNKNOWN_TOKEN);
        Self::new(code, error.to_string()).hinted(error.hint().map(words_for).or(unknown_token))
    }
}

/// The HTTP status for a token that a desk does not know.
const UNAUTHORIZED: u16 = 401;
const UNKNOWN_TOKEN: &str = "--token names the file of a token of this desk; `uptack serve` writes the first one to \
                             DATA/tokens/analyst";

/// The advice where what a document states does not hold.
pub(crate) const DO_NOT_RELY: &str = "do not rely on this document: what it states does not follow from it";

/// What a hint means on the command line.
fn words_for(hint: Hint) -> &'static str {
    match hint {
        // Every command that can fail this way has the option.
        Hint::NameRootCertificate => "--root FILE names it, as PEM",
        Hint::DistrustDocument => DO_NOT_RELY,
    }
}

impl From<uptack_owner::Error> for Failure {
    fn from(error: uptack_owner::Error) -> Self {
        match error {
            uptack_owner::Error::Input(message) => Self::request(message),
            uptack_owner::Error::Environment(message) => Self::environment(message),
            uptack_owner::Error::Ledger(_) => Self::environment(error.to_string()),
            // If a desk or a leader refuses, that is not the owner's fault.
            uptack_owner::Error::Network(error) if error.is_refused() => Self::environment(error.to_string()),
            uptack_owner::Error::Network(error) => error.into(),
        }
    }
}

impl From<uptack_server::Error> for Failure {
    fn from(error: uptack_server::Error) -> Self {
        let code = if error.is_input() || error.is_refused() { Self::REQUEST } else { Self::ENVIRONMENT };
        Self::new(code, error.to_string()).hinted(error.hint().map(words_for))
    }
}
