//! Bearer tokens and their hashes.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rand::{RngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::{
    crypto::sha256,
    error::{Error, Result},
};

/// A secret that a caller shows. Its `Debug` form shows nothing of it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token(String);

impl Token {
    /// 256 bits from the operating system.
    pub fn generate() -> Self {
        let mut bytes = [0; 32];
        OsRng.fill_bytes(&mut bytes);
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The fewest characters of a token that a server accepts: 16 random ones are far beyond guessing over a network.
    pub const SHORTEST: usize = 16;

    /// Refuses a token that could be guessed, for servers that are told which token to accept. The error does not quote it.
    pub fn check_length(&self) -> Result<()> {
        let length = self.0.len();
        if length >= Self::SHORTEST {
            return Ok(());
        }
        Err(Error::input(format!(
            "the token has {length} characters and could be guessed; use at least {} random ones",
            Self::SHORTEST
        )))
    }

    /// The token as it stands in a header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a server keeps in place of the token.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.0.as_bytes())
    }
}

impl TryFrom<String> for Token {
    type Error = Error;

    /// Takes the characters that RFC 6750 allows in a bearer token.
    fn try_from(text: String) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        if text.is_empty() || text.len() > 1024 || !text.chars().all(allowed) {
            return Err(Error::input("a token is 1 to 1024 letters, digits and any of -._~+/="));
        }
        Ok(Self(text))
    }
}

impl From<Token> for String {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// The SHA-256 of a token: enough to recognize it, not to show it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    pub(crate) fn of(token: &[u8]) -> Self {
        Self(sha256(token))
    }

    /// Whether this is the hash of `token`, in time that depends on neither.
    pub fn matches(&self, token: &[u8]) -> bool {
        verify_slices_are_equal(&self.0, &Self::of(token).0).is_ok()
    }

    /// Unpadded base64url.
    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

impl TryFrom<String> for TokenHash {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        <[u8; 32]>::try_from(bytes)
            .map(Self)
            .map_err(|_| Error::input("a token hash is 32 bytes in unpadded base64url"))
    }
}

impl From<TokenHash> for String {
    fn from(hash: TokenHash) -> Self {
        hash.to_text()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_token_and_no_other() {
        let token = Token::generate();
        assert!(token.hash().matches(token.as_str().as_bytes()));
        assert!(!token.hash().matches(Token::generate().as_str().as_bytes()));
        assert!(!token.hash().matches(b""));
    }

    #[test]
    fn nothing_secret_is_shown() {
        let token = Token::generate();
        let shown = format!("{token:?} {:?}", token.hash());
        assert_eq!(shown, "Token(…) TokenHash(…)");
    }

    #[test]
    fn short_tokens_are_for_no_server() {
        let checked = |text: &str| Token::try_from(text.to_owned()).unwrap().check_length();
        assert!(checked(&"x".repeat(16)).is_ok() && Token::generate().check_length().is_ok());
        let error = checked("qqq").unwrap_err();
        assert!(error.is_input() && error.to_string().contains("has 3 characters"), "{error}");
        assert!(!error.to_string().contains("qqq"), "{error}");
    }

    #[test]
    fn bad_tokens_are_refused() {
        for text in ["", "two words", "line\nbreak", "é"] {
            assert!(Token::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        assert!(TokenHash::try_from("AAAA".to_owned()).is_err());
    }
}
