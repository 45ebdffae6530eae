//! Signing in, by a token or by a link that works once, and out.

use axum::{
    body::Body,
    extract::{Extension, State},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use maud::{Markup, html};
use uptack_dap::token::{Token, TokenHash};

use super::{
    HOME, PageResponse, Pages, Site,
    frame::{self, FORM_TOKEN},
    guard::{FormFields, SubmittedForm, check_form_token},
};
use crate::{
    base::{
        bodies::{LARGEST_OF_STRANGERS, Sender},
        listener::ClientAddress,
        problem::Answer,
    },
    desk::tokens,
};

/// The path of a link that works once.
pub(super) const ONCE: &str = "/pages/sign-in/once";
/// The field of that link.
pub(super) const LINK: &str = "link";

pub(super) async fn form(State(pages): Site, headers: HeaderMap) -> PageResponse {
    Ok(if pages.visitor(&headers).is_ok() {
        Redirect::to(HOME).into_response()
    } else {
        pages.sign_in_page(&headers, StatusCode::OK, None)
    })
}

pub(super) async fn submit(
    State(pages): Site,
    Extension(address): Extension<ClientAddress>,
    headers: HeaderMap,
    body: Body,
) -> PageResponse {
    let Some(visit) = pages.shown_visit(&headers) else {
        let words =
            "Your browser did not send the cookie that came with the form. Allow cookies of this page and try again.";
        return Ok(pages.sign_in_page(&headers, StatusCode::FORBIDDEN, Some(words)));
    };
    let fields = pages.read_form(&headers, body, LARGEST_OF_STRANGERS, Sender::Stranger(address)).await?;
    check_form_token(fields.get(FORM_TOKEN), &visit.hash().to_text())?;
    let Some(token) = pages.valid_token(address, fields.get("token"))? else {
        let words = "This is not the token of an analyst of this desk.";
        return Ok(pages.sign_in_page(&headers, StatusCode::UNAUTHORIZED, Some(words)));
    };
    Ok(pages.signed_in(&headers, token))
}

/// Exchanges a link for a session; the address that the browser keeps contains nothing of the link.
pub(super) async fn by_link(
    State(pages): Site,
    method: Method,
    headers: HeaderMap,
    fields: FormFields,
) -> PageResponse {
    // The link works only once, and nobody has opened it yet.
    if method != Method::GET || is_prefetch(&headers) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let Some(token) = pages.links.redeem(fields.get(LINK), pages.shared.now()) else {
        let words = "This link has already been used, or has expired. Sign in with your token.";
        return Ok(pages.sign_in_page(&headers, StatusCode::GONE, Some(words)));
    };
    tracing::info!("signed in by a link");
    Ok(pages.signed_in(&headers, token))
}

/// Whether a browser loads a page before anybody opens it.
fn is_prefetch(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose"].iter().any(|name| headers.contains_key(*name))
}

pub(super) async fn sign_out(State(pages): Site, headers: HeaderMap, _form: SubmittedForm) -> PageResponse {
    if let Some(id) = pages.shown_session(&headers) {
        pages.sessions.end(&id);
    }
    let cookie = pages.session_cookie(&headers, None);
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/pages/sign-in")).into_response())
}

impl Pages {
    /// The hash of a token that was shown, if it is somebody's.
    fn valid_token(&self, address: ClientAddress, shown: &str) -> Answer<Option<TokenHash>> {
        let find = || tokens::caller(&self.shared.tokens(), shown.as_bytes());
        let Some(caller) = self.shared.brake.look_up(address, shown.as_bytes(), find)? else { return Ok(None) };
        let Ok(token) = Token::try_from(shown.to_owned()) else { return Ok(None) };
        tracing::info!(caller = caller.name, "signed in");
        Ok(Some(token.hash()))
    }

    /// Begins a session under a fresh name; the browser's previous one ends.
    fn signed_in(&self, headers: &HeaderMap, token: TokenHash) -> Response {
        if let Some(before) = self.shown_session(headers) {
            self.sessions.end(&before);
        }
        let id = self.sessions.begin(token, self.shared.now());
        let cookie = self.session_cookie(headers, Some(&id));
        ([(header::SET_COOKIE, cookie)], Redirect::to(HOME)).into_response()
    }

    fn sign_in_page(&self, headers: &HeaderMap, status: StatusCode, fault: Option<&str>) -> Response {
        // An existing one is kept: a form in another tab stays valid.
        let visit = self.shown_visit(headers).unwrap_or_else(Token::generate);
        let page = frame::bare("Sign in", sign_in_form(&visit.hash().to_text(), fault));
        (status, [(header::SET_COOKIE, self.visit_cookie(headers, &visit))], page).into_response()
    }
}

fn sign_in_form(form_token: &str, fault: Option<&str>) -> Markup {
    html! {
        section.narrow.panel {
            h1 { "Sign in" }
            p { "Ask a crowd without learning anyone's answer." }
            @if let Some(fault) = fault { p.fault role="alert" { (fault) } }
            form method="post" action="/pages/sign-in" {
                input type="hidden" name=(FORM_TOKEN) value=(form_token);
                label for="token" { "Your token" }
                input #token type="password" name="token" required autocomplete="current-password" spellcheck="false"
                    aria-describedby="token-help";
                p.help #token-help {
                    "An analyst's token is in a file below " code { "tokens" } " in the desk's folder. \
                     " code { "uptack serve" } " prints a link that signs in without it, once."
                }
                button.primary type="submit" { "Sign in" }
            }
        }
    }
}
