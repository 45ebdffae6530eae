//! Who is signed in, and whether a form was sent from one of our own pages.
//!
//! Sessions, and links that sign in once, are kept as hashes and in memory alone.

use super::{
    Pages,
    frame::{FORM_TOKEN, PageError, PageResult, Visitor},
};
use crate::{
    base::{bodies::Sender, lock},
    desk::tokens,
};
use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::{
        HeaderMap, HeaderName, HeaderValue,
        header::{COOKIE, HOST, ORIGIN},
        request::Parts,
    },
};
use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};
use uptack_dap::token::{Token, TokenHash};

/// Largest body of a form: a ballot of thousands of questions fits.
pub(super) const LARGEST_FORM: usize = 1024 * 1024;

/// Anybody who is not signed in has to sign in first.
impl FromRequestParts<Arc<Pages>> for Visitor {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, pages: &Arc<Pages>) -> PageResult<Self> {
        pages.visitor(&parts.headers)
    }
}

/// A form that changes something, from somebody who is signed in and from no page but ours.
pub(super) struct SubmittedForm {
    pub(super) visitor: Visitor,
    pub(super) fields: FormFields,
}

impl FromRequest<Arc<Pages>> for SubmittedForm {
    type Rejection = PageError;

    async fn from_request(request: Request, pages: &Arc<Pages>) -> PageResult<Self> {
        let (parts, body) = request.into_parts();
        let visitor = pages.visitor(&parts.headers)?;
        let fields = pages.read_form(&parts.headers, body, LARGEST_FORM, Sender::Known).await?;
        check_form_token(fields.get(FORM_TOKEN), &visitor.form_token)?;
        Ok(Self { visitor, fields })
    }
}

impl Pages {
    /// Who asks. The token that the session was begun with must still be valid.
    pub(super) fn visitor(&self, headers: &HeaderMap) -> PageResult<Visitor> {
        let id = self.shown_session(headers).ok_or(PageError::SignIn)?;
        let session = self.sessions.find(&id, self.shared.now()).ok_or(PageError::SignIn)?;
        let Session { token, form_token, .. } = session;
        match tokens::holder(&self.shared.tokens(), &token)? {
            Some(caller) => Ok(Visitor { caller, form_token }),
            None => {
                self.sessions.end(&id);
                Err(PageError::SignIn)
            }
        }
    }

    /// Reads a form whose token is still to be checked.
    pub(super) async fn read_form(
        &self,
        headers: &HeaderMap,
        body: Body,
        limit: usize,
        sender: Sender,
    ) -> PageResult<FormFields> {
        check_origin(headers)?;
        let body = self.shared.bodies.read(body, limit, sender).await?;
        Ok(FormFields::parse(&body))
    }

    pub(super) fn shown_session(&self, headers: &HeaderMap) -> Option<String> {
        cookie(headers, &self.session_name(headers))
    }

    fn session_name(&self, headers: &HeaderMap) -> String {
        self.cookie_name(headers, "uptack")
    }

    /// The one name of a cookie that counts. Over TLS it has the prefix with which browsers accept it only from this very host and
    /// over TLS: without it, a page on another port or subdomain could set the cookie, and give a browser somebody else's
    /// session.
    fn cookie_name(&self, headers: &HeaderMap, name: &str) -> String {
        format!("{}{name}-{}", if self.is_secure(headers) { "__Host-" } else { "" }, self.port)
    }

    /// The cookie that shows a session, or ends it.
    pub(super) fn session_cookie(&self, headers: &HeaderMap, id: Option<&Token>) -> HeaderValue {
        self.cookie(headers, &self.session_name(headers), id.map(Token::as_str), LIFETIME)
    }

    /// The cookie that binds the sign-in form to the browser that asked for it.
    pub(super) fn visit_cookie(&self, headers: &HeaderMap, visit: &Token) -> HeaderValue {
        self.cookie(headers, &self.visit_name(headers), Some(visit.as_str()), 3600)
    }

    pub(super) fn shown_visit(&self, headers: &HeaderMap) -> Option<Token> {
        Token::try_from(cookie(headers, &self.visit_name(headers))?).ok()
    }

    fn visit_name(&self, headers: &HeaderMap) -> String {
        self.cookie_name(headers, "uptack-visit")
    }

    fn cookie(&self, headers: &HeaderMap, name: &str, value: Option<&str>, lifetime: u64) -> HeaderValue {
        let secure = if self.is_secure(headers) { "; Secure" } else { "" };
        let age = if value.is_some() { lifetime } else { 0 };
        let value = value.unwrap_or_default();
        let text = format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::try_from(text).expect("a token is visible ASCII")
    }

    /// Whether the browser speaks TLS to us, or to a proxy that says so. A client that says so falsely only gets a
    /// cookie that its own browser does not send back.
    pub(super) fn is_secure(&self, headers: &HeaderMap) -> bool {
        let forwarded = headers.get("x-forwarded-proto").is_some_and(|value| value == "https");
        self.shared.config.tls.is_some() || forwarded
    }
}

/// Where a browser says that a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses forms that another site sent. Browsers say where a form comes from; for one that does not, only the form's token
/// is checked. The origin of our own forms is `null` where no referrer may be sent; `Sec-Fetch-Site` tells them apart.
pub(super) fn check_origin(headers: &HeaderMap) -> PageResult<()> {
    let site = text(headers, SEC_FETCH_SITE);
    match site {
        None | Some("same-origin" | "none") if is_own_origin(headers, site) => Ok(()),
        _ => Err(PageError::forbidden("This form was sent from another site. Nothing was done.")),
    }
}

fn is_own_origin(headers: &HeaderMap, site: Option<&str>) -> bool {
    let host = text(headers, HOST).unwrap_or_default();
    match text(headers, ORIGIN) {
        None => true,
        Some("null") => site == Some("same-origin"),
        Some(origin) => origin.split_once("://").is_some_and(|(_, authority)| authority == host),
    }
}

/// The text of a header; `?`, which matches nothing, if it is not text.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Refuses a form of another session.
pub(super) fn check_form_token(shown: &str, expected: &str) -> PageResult<()> {
    let expected = Token::try_from(expected.to_owned());
    if expected.is_ok_and(|expected| expected.hash().matches(shown.as_bytes())) {
        return Ok(());
    }
    let words = "This form is not one of your session's. Nothing was done; load the page again and repeat it.";
    Err(PageError::forbidden(words))
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    cookies(headers).find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

/// All cookies of a request, by name.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// The fields of a form, in a query or in a body.
#[derive(Debug, Clone, Default)]
pub(super) struct FormFields(Vec<(String, String)>);

/// Those of the request's query.
impl<S: Sync> FromRequestParts<S> for FormFields {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

impl FormFields {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// A field, trimmed; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
    }

    /// A field, trimmed, if it was filled in.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields with these names that were filled in, as a query and in this order.
    pub(super) fn query(&self, names: &[&str]) -> String {
        let given = names.iter().filter_map(|name| Some((*name, self.given(name)?)));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
    }
}

/// How long a session lasts, in seconds: a day's work.
const LIFETIME: u64 = 8 * 3600;
/// How long a link can be used, in seconds.
const LINK_LIFETIME: u64 = 3600;
/// Sessions at once. Only holders of a token begin one, so this bounds memory, not an attack.
const MOST: usize = 1000;

/// Who is signed in, by the hash of the cookie's value.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<TokenHash, Session>>);

/// A browser that is signed in.
#[derive(Clone)]
struct Session {
    /// The token that it was begun with: the session ends when the token is removed.
    token: TokenHash,
    /// The token that every form of this session carries.
    form_token: String,
    expires: u64,
}

impl Sessions {
    /// Begins a session under a fresh name; the one that the browser may have sent is ignored.
    pub(super) fn begin(&self, token: TokenHash, now: u64) -> Token {
        let (id, form_token) = (Token::generate(), Token::generate().as_str().to_owned());
        let mut sessions = lock(&self.0);
        make_room(&mut sessions, now);
        sessions.insert(id.hash(), Session { token, form_token, expires: now + LIFETIME });
        id
    }

    fn find(&self, id: &str, now: u64) -> Option<Session> {
        lock(&self.0).get(&hash_of(id)?).filter(|session| session.expires > now).cloned()
    }

    pub(super) fn end(&self, id: &str) {
        if let Some(id) = hash_of(id) {
            lock(&self.0).remove(&id);
        }
    }
}

/// Removes expired sessions and, if there are still too many, the one that expires first.
fn make_room(sessions: &mut HashMap<TokenHash, Session>, now: u64) {
    sessions.retain(|_, session| session.expires > now);
    if sessions.len() < MOST {
        return;
    }
    let oldest = sessions.iter().min_by_key(|(_, session)| session.expires).map(|(id, _)| id.clone());
    if let Some(id) = oldest {
        sessions.remove(&id);
    }
}

/// Links that were issued and not used, with the token that each stands for and when it expires.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<TokenHash, (TokenHash, u64)>>);

impl Links {
    pub(super) fn issue(&self, token: TokenHash, now: u64) -> Token {
        let secret = Token::generate();
        let mut links = lock(&self.0);
        links.retain(|_, (_, expires)| *expires > now);
        links.insert(secret.hash(), (token, now + LINK_LIFETIME));
        secret
    }

    /// The token that a link stands for; the link is void from now on.
    pub(super) fn redeem(&self, secret: &str, now: u64) -> Option<TokenHash> {
        let (token, expires) = lock(&self.0).remove(&hash_of(secret)?)?;
        (expires > now).then_some(token)
    }
}

/// The hash of a secret that a browser sent; `None` if it cannot be a token.
fn hash_of(shown: &str) -> Option<TokenHash> {
    Token::try_from(shown.to_owned()).ok().map(|token| token.hash())
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

    #[test]
    fn sessions_begin_under_a_fresh_name_and_expire() {
        let sessions = Sessions::default();
        let token = Token::generate().hash();
        let [one, other] = [(); 2].map(|()| sessions.begin(token.clone(), 100));
        assert_ne!(one.as_str(), other.as_str());
        let found = sessions.find(one.as_str(), 100 + LIFETIME - 1).unwrap();
        assert!(found.token == token && found.form_token != one.as_str());
        assert_ne!(found.form_token, sessions.find(other.as_str(), 100).unwrap().form_token);
        assert!(sessions.find(one.as_str(), 100 + LIFETIME).is_none());
        assert!(sessions.find("chosen-by-somebody-else", 100).is_none() && sessions.find("", 100).is_none());
        sessions.end(one.as_str());
        assert!(sessions.find(one.as_str(), 100).is_none() && sessions.find(other.as_str(), 100).is_some());
    }

    #[test]
    fn there_is_an_end_to_sessions_and_the_oldest_goes_first() {
        let sessions = Sessions::default();
        let token = Token::generate().hash();
        let first = sessions.begin(token.clone(), 1);
        for _ in 0..MOST {
            sessions.begin(token.clone(), 2);
        }
        assert!(sessions.find(first.as_str(), 2).is_none());
        assert_eq!(lock(&sessions.0).len(), MOST);
    }

    #[test]
    fn a_link_signs_in_once_and_not_for_ever() {
        let links = Links::default();
        let token = Token::generate().hash();
        let [used, late] = [(); 2].map(|()| links.issue(token.clone(), 100));
        assert!(links.redeem(used.as_str(), 101) == Some(token));
        assert!(links.redeem(used.as_str(), 101).is_none());
        assert!(links.redeem(late.as_str(), 100 + LINK_LIFETIME).is_none());
        assert!(links.redeem("guess", 101).is_none());
    }
}
