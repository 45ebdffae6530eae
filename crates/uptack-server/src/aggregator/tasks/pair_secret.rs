//! The secret that the two aggregators of a pair share, and nobody else.
//!
//! From it and the name of a card's task both derive, each for itself, the key under which they verify reports and the
//! token that the leader shows to the helper. So a party that hands out task definitions, above all the desk, never holds
//! either: with the verification key it could make reports that pass as valid, with the token it could speak to the
//! helper as the leader.

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rand::{RngCore, rngs::OsRng};
use std::{fmt, path::Path};
use uptack_dap::{
    private::write_secret,
    protocol::{TaskId, VerifyKey},
    token::Token,
};

use crate::error::{Error, Result};

/// 32 random bytes, in files as unpadded base64url. Its `Debug` shows nothing of them.
#[derive(Clone)]
pub struct PairSecret([u8; 32]);

impl PairSecret {
    /// A secret from the operating system's randomness.
    pub fn generate() -> Self {
        let mut bytes = [0; 32];
        OsRng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// Draws a secret and writes it into a new file, readable by its owner alone.
    ///
    /// An existing file is left alone: tasks that are being served depend on it.
    pub fn create(path: &Path) -> Result<Self> {
        if path.exists() {
            return Err(Error::input(format!("{}: the file already exists", path.display())));
        }
        let secret = Self::generate();
        write_secret(path, &format!("{}\n", URL_SAFE_NO_PAD.encode(secret.0)))?;
        Ok(secret)
    }

    /// The secret in a file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| uptack_dap::Error::named_file(path, error))?;
        warn_if_shared(path);
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).unwrap_or_default();
        <[u8; 32]>::try_from(bytes).map(Self).map_err(|_| {
            Error::input(format!("{}: not a pair secret (32 bytes in unpadded base64url)", path.display()))
        })
    }

    /// The secret in a file, which is made if there is none.
    pub fn load_or_create(path: &Path) -> Result<Self> {
        if path.exists() { Self::load(path) } else { Self::create(path) }
    }

    /// The key under which both aggregators verify the reports of a task.
    pub fn verify_key(&self, task: &TaskId) -> VerifyKey {
        let mut key = VerifyKey::default();
        let length = key.len();
        key.copy_from_slice(&self.derive("uptack verify key", task)[..length]);
        key
    }

    /// The token that the leader of a task shows to the helper.
    pub fn aggregator_token(&self, task: &TaskId) -> Token {
        let text = URL_SAFE_NO_PAD.encode(self.derive("uptack leader to helper", task));
        Token::try_from(text).expect("base64url is made of letters that a token may have")
    }

    /// One key for each purpose and task: HMAC-SHA256 over the purpose, a zero byte and the task's name. No purpose
    /// contains a zero byte, so no two inputs are equal.
    fn derive(&self, purpose: &str, task: &TaskId) -> [u8; 32] {
        let message = [purpose.as_bytes(), &[0], task.as_ref()].concat();
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), &message);
        tag.as_ref().try_into().expect("HMAC-SHA256 has 32 bytes")
    }
}

impl fmt::Debug for PairSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PairSecret(…)")
    }
}

/// Some systems mount secrets with modes of their own, so this is a warning and not a refusal.
fn warn_if_shared(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0) {
            tracing::warn!(file = %path.display(), "others on this machine can read the pair secret");
        }
    }
    let _ = path;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both sides of every pair must go on deriving the same, across versions: pinned, and computed by
    /// another program (Python's `hmac`).
    #[test]
    fn what_is_derived_stays_what_it_was() {
        let secret = PairSecret([7; 32]);
        let task = TaskId::from([3; 32]);
        assert_eq!(URL_SAFE_NO_PAD.encode(secret.verify_key(&task)), "3OBynEIsRT7hloAdL_Q73A");
        assert_eq!(secret.aggregator_token(&task).as_str(), "AxCKEBiiLvzUL6X6VCQehjYIcbRWH-tXyjFvCxAgFx0");
    }

    #[test]
    fn every_purpose_task_and_secret_has_its_own() {
        let (secret, other) = (PairSecret::generate(), PairSecret::generate());
        let (task, another) = (TaskId::from([1; 32]), TaskId::from([2; 32]));
        let key = secret.verify_key(&task);
        assert_eq!(key, secret.verify_key(&task));
        assert_ne!(key, secret.verify_key(&another));
        assert_ne!(key, other.verify_key(&task));
        let token = secret.aggregator_token(&task);
        assert_ne!(token.as_str(), secret.aggregator_token(&another).as_str());
        assert!(!token.as_str().starts_with(&URL_SAFE_NO_PAD.encode(key)[..20]));
    }

    #[test]
    fn a_file_is_made_once_and_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pair.secret");
        let made = PairSecret::load_or_create(&path).unwrap();
        assert_eq!(PairSecret::load(&path).unwrap().0, made.0);
        assert!(PairSecret::create(&path).unwrap_err().is_input());
        assert_eq!(PairSecret::load_or_create(&path).unwrap().0, made.0);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(&path, "short").unwrap();
        let error = PairSecret::load(&path).unwrap_err();
        assert!(error.is_input() && !error.to_string().contains("short"), "{error}");
        assert_eq!(format!("{made:?}"), "PairSecret(…)");
    }
}
