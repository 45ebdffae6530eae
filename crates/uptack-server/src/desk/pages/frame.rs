//! The frame around every page, the parts that many pages have, and refusals as people read them.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use maud::{DOCTYPE, Markup, html};

use super::HOME;
use crate::{
    base::{http::document, problem::Problem},
    desk::tokens::TokenHolder,
    error::Error,
};

/// The name of the field that proves that a form is ours.
pub(super) const FORM_TOKEN: &str = "form_token";

/// Somebody who is signed in.
pub(super) struct Visitor {
    pub(super) caller: TokenHolder,
    /// The value of that field in this visitor's forms.
    pub(super) form_token: String,
}

/// The pages that every page leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Questions,
    Ask,
    Spending,
    Verify,
}

const TABS: [(Tab, &str, &str); 4] = [
    (Tab::Questions, "Questions", HOME),
    (Tab::Ask, "Ask", "/pages/ask"),
    (Tab::Spending, "Spending", "/pages/spending"),
    (Tab::Verify, "Verify", "/pages/verify"),
];

/// A page for somebody who is signed in.
pub(super) fn page(title: &str, tab: Tab, visitor: &Visitor, body: Markup) -> Response {
    whole(title, html! { (navigation(tab)) (sign_out_form(visitor)) }, body)
}

fn navigation(tab: Tab) -> Markup {
    html! {
        nav aria-label="Pages" {
            @for (other, name, path) in TABS {
                a href=(path) aria-current=[(other == tab).then_some("page")] { (name) }
            }
        }
    }
}

fn sign_out_form(visitor: &Visitor) -> Markup {
    html! {
        form.sign-out method="post" action="/pages/sign-out" {
            (form_token(visitor))
            span.who { (visitor.caller.name) }
            button type="submit" { "Sign out" }
        }
    }
}

/// A page for anybody.
pub(super) fn bare(title: &str, body: Markup) -> Response {
    whole(title, html! {}, body)
}

/// A part of a page, for the script to put in its place.
pub(super) fn fragment(body: Markup) -> Response {
    document("text/html; charset=utf-8", body.into_string())
}

/// The field that every form carries.
pub(super) fn form_token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name=(FORM_TOKEN) value=(visitor.form_token); }
}

fn whole(title: &str, header: Markup, body: Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href=(HOME) { span aria-hidden="true" { "⊥" } "uptack" }
                    (header)
                }
                main #main tabindex="-1" { (body) }
            }
        }
    };
    fragment(page)
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " – uptack" }
            link rel="icon" href="/pages/icon.svg";
            link rel="stylesheet" href="/pages/style.css";
            script src="/pages/script.js" defer {}
        }
    }
}

/// The first row, with a heading for each column.
pub(super) fn table_head(columns: &[&str]) -> Markup {
    html! {
        thead { tr { @for column in columns { th scope="col" { (column) } } } }
    }
}

/// A table that scrolls by itself where the page is narrow.
pub(super) fn scrolling_table(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="group" aria-label=(label) { (table) } }
}

/// A refusal.
#[derive(Debug)]
pub(super) enum PageError {
    /// The visitor has to sign in first.
    SignIn,
    /// A page that says why.
    Page(StatusCode, String),
}

/// A value for a visitor, or the refusal.
pub(super) type PageResult<T> = Result<T, PageError>;

impl PageError {
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

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self::page(problem.status(), problem.words())
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<uptack::Error> for PageError {
    fn from(error: uptack::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<uptack_dap::Error> for PageError {
    fn from(error: uptack_dap::Error) -> Self {
        Error::from(error).into()
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let Self::Page(status, words) = self else { return Redirect::to("/pages/sign-in").into_response() };
        let title = status.canonical_reason().unwrap_or("Error");
        let body = html! {
            h1 { (title) }
            p.lead { (words) }
            p { a.button href=(HOME) { "Back to the questions" } }
        };
        (status, bare(title, body)).into_response()
    }
}
