//! Who asks, and whether a form was sent from one of our own pages.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use uptack_dap::token::Token;

use super::{
    Pages,
    fields::Fields,
    refusal::Refusal,
    sessions::{LIFETIME, Session},
    visitor::{FORM_TOKEN, Visitor},
};
use crate::{base::http::read_body, desk::tokens};

/// Largest body of a form: a ballot of thousands of questions fits.
pub(super) const LARGEST_FORM: usize = 1024 * 1024;
impl Pages {
    /// Who asks. The token that the session was begun with has to be valid still.
    pub(super) fn visitor(&self, headers: &HeaderMap) -> Result<Visitor, Refusal> {
        let id = self.shown_session(headers).ok_or(Refusal::SignIn)?;
        let session = self.sessions.find(&id, self.shared.now()).ok_or(Refusal::SignIn)?;
        let Session { token, form_token, .. } = session;
        match tokens::holder(&self.shared.tokens(), &token)? {
            Some(caller) => Ok(Visitor { caller, form_token }),
            None => {
                self.sessions.end(&id);
                Err(Refusal::SignIn)
            }
        }
    }

    /// Reads a form that changes something, from somebody who is signed in and from no page but ours.
    pub(super) async fn form(&self, headers: &HeaderMap, body: Body) -> Result<(Visitor, Fields), Refusal> {
        let visitor = self.visitor(headers)?;
        let fields = self.read_form(headers, body).await?;
        check_form_token(fields.get(FORM_TOKEN), &visitor.form_token)?;
        Ok((visitor, fields))
    }

    /// Reads a form whose token is still to be checked.
    pub(super) async fn read_form(&self, headers: &HeaderMap, body: Body) -> Result<Fields, Refusal> {
        check_origin(headers)?;
        let body = read_body(body, LARGEST_FORM, self.shared.config.request_timeout).await?;
        Ok(Fields::parse(&body))
    }

    pub(super) fn shown_session(&self, headers: &HeaderMap) -> Option<String> {
        [true, false].into_iter().find_map(|secure| cookie(headers, &self.session_name(secure)))
    }

    /// The cookie's name. With the prefix, browsers take it from this very host and over TLS alone.
    fn session_name(&self, secure: bool) -> String {
        format!("{}uptack-{}", if secure { "__Host-" } else { "" }, self.port)
    }

    /// The cookie that shows a session, or ends it.
    pub(super) fn session_cookie(&self, headers: &HeaderMap, id: Option<&Token>) -> HeaderValue {
        let name = self.session_name(self.is_secure(headers));
        self.cookie(headers, &name, id.map(Token::as_str), LIFETIME)
    }

    /// The cookie that binds the form for signing in to the browser that asked for it.
    pub(super) fn visit_cookie(&self, headers: &HeaderMap, visit: &Token) -> HeaderValue {
        self.cookie(headers, &self.visit_name(), Some(visit.as_str()), 3600)
    }

    pub(super) fn shown_visit(&self, headers: &HeaderMap) -> Option<Token> {
        Token::try_from(cookie(headers, &self.visit_name())?).ok()
    }

    fn visit_name(&self) -> String {
        format!("uptack-visit-{}", self.port)
    }

    fn cookie(&self, headers: &HeaderMap, name: &str, value: Option<&str>, lifetime: u64) -> HeaderValue {
        let secure = if self.is_secure(headers) { "; Secure" } else { "" };
        let age = if value.is_some() { lifetime } else { 0 };
        let value = value.unwrap_or_default();
        let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::try_from(text).expect("a token is visible ASCII")
    }

    /// Whether the browser speaks TLS to us, or to a proxy that says so. Whoever says so falsely gets a cookie that its own
    /// browser does not send back.
    fn is_secure(&self, headers: &HeaderMap) -> bool {
        let forwarded = headers.get("x-forwarded-proto").is_some_and(|value| value == "https");
        self.shared.config.tls.is_some() || forwarded
    }
}

/// Refuses what another site sent. Browsers say where a form comes from; one that says nothing is held to the form's
/// token alone. Our own forms say `null` where no referrer may be sent, and are told apart by the other header.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    let host = text(header::HOST).unwrap_or_default();
    let own = match text(header::ORIGIN) {
        None => true,
        Some("null") => site == Some("same-origin"),
        Some(origin) => origin.split_once("://").is_some_and(|(_, authority)| authority == host),
    };
    match site {
        None | Some("same-origin" | "none") if own => Ok(()),
        _ => Err(Refusal::page(StatusCode::FORBIDDEN, "This form was sent from another site. Nothing was done.")),
    }
}

/// Refuses a form that is not one of this session's.
pub(super) fn check_form_token(shown: &str, expected: &str) -> Result<(), Refusal> {
    let expected = Token::try_from(expected.to_owned());
    if expected.is_ok_and(|expected| expected.hash().matches(shown.as_bytes())) {
        return Ok(());
    }
    let words = "This form is not one of your session's. Nothing was done; load the page again and repeat it.";
    Err(Refusal::page(StatusCode::FORBIDDEN, words))
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn forms_of_other_sites_are_refused() {
        let host = ("host", "desk.example:8470");
        for (allowed, pairs) in [
            (true, vec![host]),
            (true, vec![host, ("origin", "https://desk.example:8470")]),
            (true, vec![host, ("origin", "null"), ("sec-fetch-site", "same-origin")]),
            (true, vec![host, ("sec-fetch-site", "same-origin")]),
            (true, vec![host, ("sec-fetch-site", "none")]),
            (false, vec![host, ("origin", "https://evil.example")]),
            (false, vec![host, ("origin", "https://desk.example:8471")]),
            (false, vec![host, ("origin", "https://desk.example:8470.evil.example")]),
            (false, vec![host, ("origin", "null")]),
            (false, vec![host, ("origin", "null"), ("sec-fetch-site", "cross-site")]),
            (false, vec![host, ("sec-fetch-site", "cross-site")]),
            (false, vec![host, ("sec-fetch-site", "same-site")]),
            (false, vec![host, ("origin", "https://desk.example:8470"), ("sec-fetch-site", "cross-site")]),
        ] {
            assert_eq!(check_origin(&headers(&pairs)).is_ok(), allowed, "{pairs:?}");
        }
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let sent = headers(&[("cookie", "a=1; uptack-80=x; uptack-8=y; b=c=d")]);
        assert_eq!(cookie(&sent, "uptack-8").as_deref(), Some("y"));
        assert_eq!(cookie(&sent, "b").as_deref(), Some("c=d"));
        assert_eq!(cookie(&sent, "uptack"), None);
    }
}
