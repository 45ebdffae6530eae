//! Refusals as people read them.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use maud::html;

use super::{HOME, frame};
use crate::{base::problem::Problem, error::Error};

/// A refusal.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The visitor has to sign in first.
    SignIn,
    /// A page that says why.
    Page(StatusCode, String),
}

/// What a visitor asked for, or the refusal.
pub(super) type Granted<T> = Result<T, Refusal>;

impl Refusal {
    pub(super) fn page(status: StatusCode, words: impl Into<String>) -> Self {
        Self::Page(status, words.into())
    }

    /// Not now, but perhaps in a moment.
    pub(super) fn busy(words: impl Into<String>) -> Self {
        Self::page(StatusCode::SERVICE_UNAVAILABLE, words)
    }

    pub(super) fn forbidden(words: impl Into<String>) -> Self {
        Self::page(StatusCode::FORBIDDEN, words)
    }

    pub(super) fn not_found(words: impl Into<String>) -> Self {
        Self::page(StatusCode::NOT_FOUND, words)
    }

    pub(super) fn input(words: impl Into<String>) -> Self {
        Self::page(StatusCode::BAD_REQUEST, words)
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::page(problem.status(), problem.words())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<uptack::Error> for Refusal {
    fn from(error: uptack::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<uptack_dap::Error> for Refusal {
    fn from(error: uptack_dap::Error) -> Self {
        Error::from(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self::Page(status, words) = self else { return Redirect::to("/pages/sign-in").into_response() };
        let title = status.canonical_reason().unwrap_or("Error");
        let body = html! {
            h1 { (title) }
            p.lead { (words) }
            p { a.button href=(HOME) { "Back to the questions" } }
        };
        (status, frame::bare(title, body)).into_response()
    }
}
