//! The library's errors as Python's exceptions.

use std::fmt::Display;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The result of what Python calls.
pub(crate) type Result<T, E = PyFailure> = std::result::Result<T, E>;

/// An error, in the terms of `uptack.UptackError`.
pub(crate) struct PyFailure {
    kind: &'static str,
    message: String,
    hint: Option<String>,
}

impl PyFailure {
    /// An argument or a request at fault.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self { kind: "request", message: message.into(), hint: None }
    }

    /// A failure of this kind.
    pub(crate) fn of_kind(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    fn new(kind: &'static str, error: impl Display, hint: Option<&str>) -> Self {
        Self { kind, message: error.to_string(), hint: hint.map(str::to_owned) }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl From<uptack::Error> for PyFailure {
    fn from(error: uptack::Error) -> Self {
        let kind = match () {
            () if error.is_syntax() => "syntax",
            () if error.is_parameter() => "parameter",
            () if error.is_law() => "law",
            () if error.is_card() => "card",
            () if error.is_input() => "input",
            () if error.is_counts() => "counts",
            () if error.is_coins() => "coins",
            () => "request",
        };
        Self::new(kind, &error, error.hint())
    }
}

impl From<uptack_document::Error> for PyFailure {
    fn from(error: uptack_document::Error) -> Self {
        match error {
            uptack_document::Error::Library(error) => error.into(),
            other => Self::new("input", &other, other.hint()),
        }
    }
}

impl From<uptack_dap::Error> for PyFailure {
    fn from(error: uptack_dap::Error) -> Self {
        Self::new("card", error, None)
    }
}

impl From<uptack_eval::Error> for PyFailure {
    fn from(error: uptack_eval::Error) -> Self {
        Self::new("input", &error, error.hint())
    }
}

impl From<PyFailure> for PyErr {
    fn from(failure: PyFailure) -> Self {
        Python::attach(|py| {
            let raised = py
                .import("uptack._errors")
                .and_then(|module| module.getattr("UptackError"))
                .and_then(|class| class.call1((failure.message.as_str(), failure.kind, failure.hint)));
            raised.map_or_else(|error| error, PyErr::from_value)
        })
    }
}

/// An error that no caller can have caused.
pub(crate) fn internal(words: &str) -> PyErr {
    PyRuntimeError::new_err(format!("{words}; this is a fault of Uptack, please report it"))
}

/// A document as text.
pub(crate) fn to_text(document: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(|error| internal(&error.to_string()))
}
