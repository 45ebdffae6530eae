//! SHA-256 by the library that also does TLS.

use aws_lc_rs::digest;

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries are named by digests, so these must not change with the library: FIPS 180-4's "abc".
    #[test]
    fn the_digest_is_that_of_the_standard() {
        let digest: String = sha256(b"abc").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
