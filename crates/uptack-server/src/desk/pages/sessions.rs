//! Who is signed in, and links that sign in once. Both are kept as hashes and in memory alone.

use std::{collections::HashMap, sync::Mutex};
use uptack_dap::token::{Token, TokenHash};

use crate::base::locks::lock;

/// How long a session lasts, in seconds: a day's work.
pub(super) const LIFETIME: u64 = 8 * 3600;
/// How long a link can be used, in seconds.
const LINK_LIFETIME: u64 = 3600;
/// Sessions at once. Only holders of a token begin one, so this bounds memory, not an attack.
const MOST: usize = 1000;

/// Who is signed in, by the hash of what the browser shows.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<TokenHash, Session>>);

/// A browser that is signed in.
#[derive(Clone)]
pub(super) struct Session {
    /// The token that it was begun with: the session ends when the token is removed.
    pub(super) token: TokenHash,
    /// What every form of this session carries.
    pub(super) form_token: String,
    expires: u64,
}

impl Sessions {
    /// Begins a session under a name that nobody has seen before, whatever the browser came with.
    pub(super) fn begin(&self, token: TokenHash, now: u64) -> Token {
        let (id, form_token) = (Token::generate(), Token::generate().as_str().to_owned());
        let mut sessions = lock(&self.0);
        make_room(&mut sessions, now);
        sessions.insert(id.hash(), Session { token, form_token, expires: now + LIFETIME });
        id
    }

    pub(super) fn find(&self, id: &str, now: u64) -> Option<Session> {
        lock(&self.0).get(&hash_of(id)?).filter(|session| session.expires > now).cloned()
    }

    pub(super) fn end(&self, id: &str) {
        if let Some(id) = hash_of(id) {
            lock(&self.0).remove(&id);
        }
    }
}

/// Removes what has expired and, if there are still too many, the session that expires first.
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

/// The hash of what a browser shows; none if it cannot be a token.
fn hash_of(shown: &str) -> Option<TokenHash> {
    Token::try_from(shown.to_owned()).ok().map(|token| token.hash())
}

#[cfg(test)]
mod tests {
    use super::*;

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
