//! SHA-256 and Ed25519.
//!
//! Signatures are checked strictly. The libraries refuse a second form of a signature: `S` must be reduced, and `R` is compared byte by byte. But
//! they accept keys of small order, under which one signature fits many messages, and second forms of some points; both are refused here.
//!
//! Whoever takes part uses the library that also does TLS (`aws_lc`). Whoever only checks documents needs neither it nor the C compiler that it
//! takes: without the feature `protocol`, digests and signatures are computed in Rust (`portable`). The tests ask both the same questions.

#[cfg(feature = "protocol")]
mod aws_lc;
#[cfg(any(test, not(feature = "protocol")))]
mod portable;

#[cfg(feature = "protocol")]
use aws_lc as library;
#[cfg(not(feature = "protocol"))]
use portable as library;

#[cfg(feature = "protocol")]
pub(crate) use aws_lc::SecretKey;

/// The SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    library::sha256(bytes)
}

/// Whether a signature is the key's over this message. A weak key ([`is_weak`]) has no valid signatures.
pub(crate) fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    verify_strictly(library::is_signed, key, message, signature)
}

/// A library's check of a signature, given key, message and signature.
type IsSigned = fn(&[u8; 32], &[u8], &[u8; 64]) -> bool;

fn verify_strictly(is_signed: IsSigned, key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let (commitment, _) = signature.split_first_chunk::<32>().expect("64 bytes begin with 32");
    is_signed(key, message, signature) && !is_weak(key) && !is_weak(commitment)
}

/// Whether bytes encode a point of small order, or are a second encoding of a point.
///
/// A point is its y below p = 2²⁵⁵ − 19, lowest byte first, with the sign of x as the highest bit. The points of small
/// order are those whose y is listed, whatever the sign.
pub(crate) fn is_weak(point: &[u8; 32]) -> bool {
    let mut y = *point;
    y[31] &= 0x7f;
    let is_reduced = y.iter().rev().lt(PRIME.iter().rev());
    !is_reduced || SMALL_ORDER.contains(&y)
}

const PRIME: [u8; 32] = number(0xed, 0xff, 0x7f);
/// The orders are 4, 1, 2, 8 and 8.
const SMALL_ORDER: [[u8; 32]; 5] = [
    number(0, 0, 0),
    number(1, 0, 0),
    number(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

/// A number from its lowest and its highest byte, and the value of all bytes in between.
const fn number(lowest: u8, between: u8, highest: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    bytes[0] = lowest;
    bytes[31] = highest;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<const LENGTH: usize>(hexadecimal: &str) -> [u8; LENGTH] {
        std::array::from_fn(|place| u8::from_str_radix(&hexadecimal[2 * place..2 * place + 2], 16).unwrap())
    }

    const LIBRARIES: [IsSigned; 2] = [aws_lc::is_signed, portable::is_signed];

    /// The verdict of `verify`, which must be the same with either library.
    fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
        let [one, other] = LIBRARIES.map(|library| verify_strictly(library, key, message, signature));
        assert_eq!(one, other, "{key:x?} {signature:x?}");
        one
    }

    /// Queries are named by digests, so these must not change with the library: FIPS 180-4's "abc".
    #[test]
    fn the_digest_is_that_of_the_standard() {
        for library in [aws_lc::sha256, portable::sha256] {
            let digest: String = library(b"abc").iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        }
        for length in [0, 1, 55, 56, 63, 64, 65, 1000] {
            let bytes: Vec<u8> = (0..length).map(|place| place as u8).collect();
            assert_eq!(aws_lc::sha256(&bytes), portable::sha256(&bytes));
        }
    }

    /// Every byte of a signature and of its key counts, and both libraries refuse the same.
    #[test]
    fn a_record_checked_without_a_c_compiler_gets_the_same_verdict() {
        let key = SecretKey::from_seed(&[7; 32]);
        let (public, signature) = (key.public(), key.sign(b"card"));
        assert!(verify(&public, b"card", &signature));
        for byte in 0..96 {
            let mut changed = [&public[..], &signature[..]].concat();
            changed[byte] ^= 1 << (byte % 8);
            let (public, signature) = changed.split_first_chunk::<32>().unwrap();
            assert!(!verify(public, b"card", signature.try_into().unwrap()), "byte {byte}");
        }
    }

    /// The third vector of RFC 8032, section 7.1: seeds and keys in files mean what they mean to every other library.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let key = SecretKey::from_seed(&bytes("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"));
        let public = bytes("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
        let signature = bytes(
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
             18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        );
        assert_eq!((key.public(), key.sign(&[0xaf, 0x82])), (public, signature));
        assert_eq!(SecretKey::from_seed(&key.seed()).public(), public);
        assert!(verify(&public, &[0xaf, 0x82], &signature) && !verify(&public, &[0xaf, 0x83], &signature));
    }

    /// S and S + L satisfy the same equation; only the smaller is a signature.
    #[test]
    fn a_signature_has_one_form() {
        let key = SecretKey::generate();
        let mut signature = key.sign(b"card");
        let order: [u8; 32] = bytes("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let mut carry = 0;
        for (byte, add) in signature[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        assert_eq!(carry, 0);
        assert!(!verify(&key.public(), b"card", &signature));
    }

    /// With the neutral point as key, R = S·B fits every message: for S = 0 that is the neutral point again, for S = 1
    /// the generator. The library accepts both, so we have to refuse them ourselves.
    #[test]
    fn keys_that_sign_everything_are_refused() {
        let generator: [u8; 32] = bytes("5866666666666666666666666666666666666666666666666666666666666666");
        let neutral = number(1, 0, 0);
        for (commitment, scalar) in [(neutral, number(0, 0, 0)), (generator, number(1, 0, 0))] {
            let signature: [u8; 64] = [commitment, scalar].concat().try_into().unwrap();
            assert!(aws_lc::is_signed(&neutral, b"any", &signature));
            assert!(!verify(&neutral, b"any", &signature));
        }
    }

    #[test]
    fn weak_points_are_recognized_in_every_form() {
        for y in SMALL_ORDER {
            let mut negative = y;
            negative[31] |= 0x80;
            assert!(is_weak(&y) && is_weak(&negative), "{y:x?}");
        }
        // p and p + 1 are second forms of 0 and 1; the largest number of 255 bits is one of 18.
        for y in [PRIME, number(0xee, 0xff, 0x7f), number(0xff, 0xff, 0x7f), [0xff; 32]] {
            assert!(is_weak(&y), "{y:x?}");
        }
        assert!(!is_weak(&number(0xeb, 0xff, 0x7f)));
        assert!((0..100).all(|_| !is_weak(&SecretKey::generate().public())));
    }
}
