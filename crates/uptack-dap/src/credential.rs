//! What an enrolled owner shows with a report: its key, and a signature over this task and these bytes.
//!
//! The owner keeps an Ed25519 secret; a leader that requires enrolment keeps the public half, and nothing that it could
//! show elsewhere. A credential is made for one report of one task. Somebody who captures it (the leader of another desk, a
//! log, a proxy) can use it for that report alone.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use std::{fmt, str::FromStr};

use crate::{
    crypto::{SecretKey, sha256},
    error::{Error, Result},
    protocol::SealedReport,
    protocol::TaskId,
    signed::PublicKey,
};

/// The header that carries a credential.
pub const HEADER: &str = "uptack-credential";

/// The secret from which an owner's credentials are derived. It never leaves the owner, and `Debug` does not show it.
#[derive(Clone)]
pub struct OwnerSecret(SecretKey);

const SCHEME: &str = "ed25519-secret:";
/// Keeps these signatures apart from any others that the same key may be asked for.
const DOMAIN: &[u8] = b"uptack: one report of an enrolled owner, version 1";

impl OwnerSecret {
    /// 256 bits from the operating system.
    pub fn generate() -> Self {
        Self(SecretKey::generate())
    }

    /// The half that is enrolled at a leader.
    pub fn public(&self) -> PublicKey {
        PublicKey::from(&self.0)
    }

    /// The text that the owner keeps.
    pub fn to_text(&self) -> String {
        format!("{SCHEME}{}", URL_SAFE_NO_PAD.encode(self.0.seed()))
    }

    /// The credential for one report of one task.
    pub fn credential(&self, task: &TaskId, report: &SealedReport) -> Credential {
        let signature = self.0.sign(&message(task, report.as_bytes()));
        Credential(format!("{}.{}", self.public(), URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl FromStr for OwnerSecret {
    type Err = Error;

    /// Reads what [`OwnerSecret::to_text`] wrote. The error does not quote it.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = text.strip_prefix(SCHEME).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let secret = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()).ok_or_else(|| {
            Error::input(format!(
                "not the secret of an enrolled owner (`{SCHEME}` and 43 characters); credentials without it are of \
                 an earlier version, which showed them to every leader: enrol the owners anew"
            ))
        })?;
        Ok(Self(SecretKey::from_seed(&secret)))
    }
}

impl fmt::Debug for OwnerSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OwnerSecret({})", self.public())
    }
}

/// The right to send one report, as it stands in the header [`HEADER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential(String);

impl Credential {
    /// The text of the header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a stored credential.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The key that a credential names; only [`Credential::verify`] says whether it signed anything.
    pub fn key(&self) -> Option<PublicKey> {
        self.0.split_once('.')?.0.parse().ok()
    }

    /// Whether the named key signed this report for this task.
    pub fn verify(&self, task: &TaskId, report: &[u8]) -> bool {
        let Some((key, signature)) = self.0.split_once('.') else { return false };
        key.parse::<PublicKey>().is_ok_and(|key| key.verify(&message(task, report), signature).is_ok())
    }
}

/// The message that is signed. It has a fixed length after the domain, so that no two pairs of task and report share one.
fn message(task: &TaskId, report: &[u8]) -> Vec<u8> {
    [DOMAIN, task.as_ref(), &sha256(report)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_its_text_and_does_not_show() {
        let secret = OwnerSecret::generate();
        let again: OwnerSecret = secret.to_text().parse().unwrap();
        assert_eq!(again.public(), secret.public());
        let body = secret.to_text().replace(SCHEME, "");
        assert!(!format!("{secret:?}").contains(&body));
        for bad in ["", SCHEME, "ed25519-secret:AAAA", &body] {
            let told = bad.parse::<OwnerSecret>().unwrap_err().to_string();
            assert!(told.contains("enrol the owners anew") && !told.contains(&body), "{told}");
        }
    }

    #[test]
    fn a_credential_is_for_one_task_and_one_report() {
        let secret = OwnerSecret::generate();
        let (task, other) = (TaskId::from([1; 32]), TaskId::from([2; 32]));
        let signature = |report: &[u8]| URL_SAFE_NO_PAD.encode(secret.0.sign(&message(&task, report)));
        let credential = Credential(format!("{}.{}", secret.public(), signature(b"report")));
        assert_eq!(credential.key(), Some(secret.public()));
        assert!(credential.verify(&task, b"report"));
        assert!(!credential.verify(&other, b"report") && !credential.verify(&task, b"another"));
        let stolen = Credential(format!("{}.{}", OwnerSecret::generate().public(), signature(b"report")));
        assert!(!stolen.verify(&task, b"report"));
        for bad in ["", ".", "ed25519:AAAA.AAAA", &secret.public().to_string()] {
            assert!(!Credential(bad.to_owned()).verify(&task, b"report"), "{bad}");
        }
    }
}
