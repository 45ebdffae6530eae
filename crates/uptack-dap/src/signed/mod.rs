//! Query cards under the signature of the desk that opened them.
//!
//! The signature is Ed25519 over the canonical bytes. The card names the key that signs it, so that an owner who pins that
//! key knows who vouches for the card. The check is strict: it accepts no second form of a key or a signature.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

use crate::{
    crypto,
    error::{Error, Result},
};

#[cfg(feature = "protocol")]
mod signing;
#[cfg(feature = "protocol")]
pub use signing::{OpenedCard, Signer};

/// A card as it travels: its canonical text and the signature over its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedCard {
    /// The name under which the query is listed; it must be the hash of the card.
    pub query: String,
    /// The canonical text.
    pub card: String,
    /// Unpadded base64url of the signature's 64 bytes.
    pub signature: String,
}

/// The name of a query: unpadded base64url of the SHA-256 of its card's canonical text.
pub(crate) fn query_name(canonical: &str) -> String {
    URL_SAFE_NO_PAD.encode(crypto::sha256(canonical.as_bytes()))
}

/// A key that owners pin, written `ed25519:` and unpadded base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

const SCHEME: &str = "ed25519:";

impl PublicKey {
    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks a signature over a message, strictly.
    pub fn verify(&self, message: &[u8], signature: &str) -> Result<()> {
        let bytes = URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        let signature = <[u8; 64]>::try_from(bytes).map_err(|_| Error::refused("the signature is malformed"))?;
        if !crypto::verify(&self.0, message, &signature) {
            return Err(Error::refused("the signature is not the signer's over this card"));
        }
        Ok(())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || Error::input(format!("`{text}` is not a public key (`{SCHEME}` and 43 characters)"));
        let bytes = text.strip_prefix(SCHEME).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).ok_or_else(refuse)?;
        let key = <[u8; 32]>::try_from(bytes).map_err(|_| refuse())?;
        if crypto::is_weak(&key) {
            return Err(Error::input(format!("`{text}` is a key under which anybody can sign")));
        }
        Ok(Self(key))
    }
}

impl Serialize for PublicKey {
    fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_written() {
        let key = Signer::generate().public();
        assert_eq!(key.to_string().parse::<PublicKey>().unwrap(), key);
        for bad in ["", "ed25519:", "ed25519:AAAA", "rsa:AAAA"] {
            assert!(bad.parse::<PublicKey>().is_err(), "{bad}");
        }
        let neutral = format!("{SCHEME}{}", URL_SAFE_NO_PAD.encode([&[1][..], &[0; 31]].concat()));
        assert!(neutral.parse::<PublicKey>().unwrap_err().to_string().contains("anybody can sign"));
    }

    #[derive(Deserialize)]
    struct Keys {
        rows: Vec<Key>,
    }

    #[derive(Deserialize)]
    struct Key {
        key: String,
        is: String,
        accepted: bool,
    }

    /// The page for people reads the same file.
    #[test]
    fn a_key_under_which_anybody_can_sign_is_refused_as_on_the_page_for_people() {
        let keys: Keys = serde_json::from_str(include_str!("../../../../vectors/keys.json")).unwrap();
        for row in keys.rows {
            assert_eq!(row.key.parse::<PublicKey>().is_ok(), row.accepted, "{}: {}", row.is, row.key);
        }
    }
}
