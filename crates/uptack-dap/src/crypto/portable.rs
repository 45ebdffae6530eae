//! Digests and checks of signatures without a C compiler. Nothing here is secret, so nothing has to take constant time.

use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};

/// The SHA-256 of bytes.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Whether a signature is the key's over this message, by the library's strict rules.
pub(super) fn is_signed(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let signature = Signature::from_bytes(signature);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
}
