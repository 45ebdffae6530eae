//! The frame around every page.

use axum::response::Response;
use maud::{DOCTYPE, Markup, html};

use super::{
    HOME,
    visitor::{FORM_TOKEN, Visitor},
};
use crate::base::http::document;

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
