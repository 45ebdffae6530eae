//! The library that also does TLS.

use aws_lc_rs::{
    digest,
    encoding::{AsBigEndian, Curve25519SeedBin},
    signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey},
};
use rand::{RngCore, rngs::OsRng};

/// The SHA-256 of bytes.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Whether a signature is the key's over this message, by the library's rules.
pub(super) fn is_signed(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
}

/// The half of a key that signs. It is kept in the library's own form, which is wiped from memory when it is dropped.
#[derive(Clone)]
pub(crate) struct SecretKey(Ed25519KeyPair);

impl SecretKey {
    /// A key from the operating system's randomness.
    pub(crate) fn generate() -> Self {
        let mut seed = [0; 32];
        OsRng.fill_bytes(&mut seed);
        Self::from_seed(&seed)
    }

    /// The key of a seed; any 32 bytes are one.
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(seed).expect("32 bytes are a seed"))
    }

    /// The seed that [`SecretKey::from_seed`] takes.
    pub(crate) fn seed(&self) -> [u8; 32] {
        let seed: Curve25519SeedBin<'_> =
            self.0.seed().and_then(|seed| seed.as_be_bytes()).expect("a key was made of its seed");
        seed.as_ref().try_into().expect("a seed has 32 bytes")
    }

    /// The half with which others check signatures.
    pub(crate) fn public(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().expect("a public key has 32 bytes")
    }

    /// The signature's 64 bytes.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).as_ref().try_into().expect("a signature has 64 bytes")
    }
}
