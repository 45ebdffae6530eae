//! Sealing shares to one party: HPKE with the labels and associated data of DAP-09.
//!
//! The algorithms are X25519 and HKDF with SHA-256, and AES-GCM or ChaCha20-Poly1305: those that DAP requires of everybody,
//! and two more.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use janus_messages::{
    AggregateShareAad, BatchSelector, Extension, ExtensionType, HpkeAeadId, HpkeCiphertext, HpkeConfig, HpkeConfigId,
    HpkeConfigList, HpkeKdfId, HpkeKemId, HpkePublicKey, InputShareAad, PlaintextInputShare, Role, TaskId,
};
use prio::codec::Decode;
use rustls::crypto::{
    aws_lc_rs::hpke as suites,
    hpke::{EncapsulatedSecret, Hpke, HpkePrivateKey as SecretKey, HpkePublicKey as PublicKey},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

use super::{
    AggregatorRole, BatchInterval, ReportHeader, encode,
    vdaf::{Sum, Vdaf},
};
use crate::error::{Error, Result};

/// Both halves of a key: the public one that others seal to, and the private one that opens. In files the private half is
/// unpadded base64url.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HpkeKeypair {
    config: HpkeConfig,
    private_key: HpkePrivateKey,
}

impl HpkeKeypair {
    /// Puts the two halves together.
    pub fn new(config: HpkeConfig, private_key: HpkePrivateKey) -> Self {
        Self { config, private_key }
    }

    /// Reads the public half from what [`HpkeKeypair::config_bytes`] gave; `None` if that is damaged.
    pub fn from_bytes(config: &[u8], private_key: HpkePrivateKey) -> Option<Self> {
        Some(Self { config: HpkeConfig::get_decoded(config).ok()?, private_key })
    }

    /// The number by which sealed shares name the key.
    pub fn id(&self) -> u8 {
        (*self.config.id()).into()
    }

    /// The public half, to store.
    pub fn config_bytes(&self) -> Vec<u8> {
        encode(&self.config)
    }

    /// The public half, as it is handed out.
    pub fn config(&self) -> &HpkeConfig {
        &self.config
    }

    /// The half that opens.
    pub fn private_key(&self) -> &HpkePrivateKey {
        &self.private_key
    }
}

/// The half of a key that opens messages sealed to the other half. Its `Debug` form does not show it.
#[derive(Clone)]
pub struct HpkePrivateKey(Vec<u8>);

impl HpkePrivateKey {
    /// From the bytes that `as_ref` gives.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl AsRef<[u8]> for HpkePrivateKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for HpkePrivateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HpkePrivateKey(…)")
    }
}

impl Serialize for HpkePrivateKey {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for HpkePrivateKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        URL_SAFE_NO_PAD.decode(text).map(Self).map_err(|_| de::Error::custom("a private key is unpadded base64url"))
    }
}

/// Makes a fresh key for receiving shares: X25519, HKDF-SHA256, AES-128-GCM.
pub fn generate_keypair(id: u8) -> HpkeKeypair {
    let (public, secret) =
        suites::DH_KEM_X25519_HKDF_SHA256_AES_128.generate_key_pair().expect("the operating system gives randomness");
    let config = HpkeConfig::new(
        HpkeConfigId::from(id),
        HpkeKemId::X25519HkdfSha256,
        HpkeKdfId::HkdfSha256,
        HpkeAeadId::Aes128Gcm,
        HpkePublicKey::from(public.0),
    );
    HpkeKeypair::new(config, HpkePrivateKey::new(secret.secret_bytes().to_vec()))
}

/// Whether a key's algorithms are among those used here, so that shares can be sealed to it and opened with it.
pub fn is_hpke_config_supported(config: &HpkeConfig) -> bool {
    suite(config).is_some()
}

/// Aggregator: the answer to a client that asks for the keys to seal to.
pub fn keys_to_bytes(keys: Vec<HpkeConfig>) -> Vec<u8> {
    encode(&HpkeConfigList::new(keys))
}

/// Client: decodes an aggregator's keys; `None` if it is not a list of keys.
pub fn keys_from_bytes(bytes: &[u8]) -> Option<Vec<HpkeConfig>> {
    Some(HpkeConfigList::get_decoded(bytes).ok()?.hpke_configs().to_vec())
}

/// A share that only its receiver can open: of a report or of a sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedShare(pub(super) HpkeCiphertext);

impl SealedShare {
    /// Its bytes, to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(&self.0)
    }

    /// Reads a stored share; `None` if it is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        HpkeCiphertext::get_decoded(bytes).ok().map(Self)
    }
}

/// Client: seals an input share to one aggregator.
pub(super) fn seal_input(
    config: &HpkeConfig,
    receiver: AggregatorRole,
    task: &TaskId,
    header: &ReportHeader,
    public_share: &[u8],
    input_share: Vec<u8>,
) -> Result<SealedShare> {
    let plaintext = encode(&PlaintextInputShare::new(Vec::new(), input_share));
    let info = info(INPUT_SHARE, Role::Client, receiver.to_dap());
    let aad = input_share_aad(task, header, public_share);
    let sealed = seal(config, &info, &plaintext, &aad);
    sealed.map(SealedShare).ok_or_else(|| Error::refused(format!("the {receiver}'s key cannot be used")))
}

/// Why an input share could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// The ciphertext does not open under the key.
    Decrypt,
    /// It opens, but is not an input share, or has extensions that we would have to understand.
    Message,
}

/// Aggregator: opens an input share that a client sealed to it.
pub(super) fn open_input(
    keypair: &HpkeKeypair,
    receiver: AggregatorRole,
    task: &TaskId,
    header: &ReportHeader,
    public_share: &[u8],
    sealed: &HpkeCiphertext,
) -> std::result::Result<Vec<u8>, OpenError> {
    let info = info(INPUT_SHARE, Role::Client, receiver.to_dap());
    let aad = input_share_aad(task, header, public_share);
    let plaintext = open(keypair, &info, sealed, &aad).ok_or(OpenError::Decrypt)?;
    let share = PlaintextInputShare::get_decoded(&plaintext).map_err(|_| OpenError::Message)?;
    if !are_extensions_valid(share.extensions()) {
        return Err(OpenError::Message);
    }
    Ok(share.payload().to_vec())
}

/// Whether no extension occurs twice, and none has to be understood.
fn are_extensions_valid(extensions: &[Extension]) -> bool {
    let mut types: Vec<_> = extensions.iter().map(|extension| *extension.extension_type() as u16).collect();
    types.sort_unstable();
    let has_duplicates = types.windows(2).any(|pair| pair[0] == pair[1]);
    !has_duplicates && !types.contains(&(ExtensionType::Taskprov as u16))
}

/// Aggregator: seals a share of a batch to the collector.
pub fn seal_sum(
    collector: &HpkeConfig,
    sender: AggregatorRole,
    task: &TaskId,
    batch: BatchInterval,
    sum: &Sum,
) -> Result<SealedShare> {
    let info = info(AGGREGATE_SHARE, sender.to_dap(), Role::Collector);
    let sealed = seal(collector, &info, &sum.to_bytes(), &aggregate_share_aad(task, batch));
    sealed.map(SealedShare).ok_or_else(|| Error::environment("the collector's key cannot be used"))
}

/// Collector: opens an aggregator's share of a batch.
pub fn open_sum(
    keypair: &HpkeKeypair,
    sender: AggregatorRole,
    task: &TaskId,
    batch: BatchInterval,
    vdaf: &Vdaf,
    share: &SealedShare,
) -> Result<Sum> {
    let info = info(AGGREGATE_SHARE, sender.to_dap(), Role::Collector);
    let opened = open(keypair, &info, &share.0, &aggregate_share_aad(task, batch))
        .ok_or_else(|| Error::refused(format!("the {sender}'s share does not open under our key")))?;
    vdaf.sum_from_bytes(&opened)
}

fn input_share_aad(task: &TaskId, header: &ReportHeader, public_share: &[u8]) -> Vec<u8> {
    encode(&InputShareAad::new(*task, header.metadata(), public_share.to_vec()))
}

fn aggregate_share_aad(task: &TaskId, batch: BatchInterval) -> Vec<u8> {
    let selector = BatchSelector::new_time_interval(batch.to_dap());
    encode(&AggregateShareAad::new(*task, Vec::new(), selector))
}

const INPUT_SHARE: &[u8] = b"dap-09 input share";
const AGGREGATE_SHARE: &[u8] = b"dap-09 aggregate share";

/// Binds a ciphertext to its purpose, its sender and its receiver.
fn info(label: &[u8], sender: Role, receiver: Role) -> Vec<u8> {
    [label, &[sender as u8, receiver as u8]].concat()
}

/// `None` if the key is malformed or of another kind. The library's error says no more than that.
fn seal(to: &HpkeConfig, info: &[u8], plaintext: &[u8], aad: &[u8]) -> Option<HpkeCiphertext> {
    let key = PublicKey(to.public_key().as_ref().to_vec());
    let (encapsulated, payload) = suite(to)?.seal(info, aad, plaintext, &key).ok()?;
    Some(HpkeCiphertext::new(*to.id(), encapsulated.0, payload))
}

/// `None` if the ciphertext was not made by [`seal`] for this key with the same `info` and `aad`.
fn open(keypair: &HpkeKeypair, info: &[u8], ciphertext: &HpkeCiphertext, aad: &[u8]) -> Option<Vec<u8>> {
    let key = SecretKey::from(keypair.private_key.0.clone());
    let encapsulated = EncapsulatedSecret(ciphertext.encapsulated_key().to_vec());
    suite(&keypair.config)?.open(&encapsulated, info, aad, ciphertext.payload(), &key).ok()
}

/// `None` for algorithms that are not used here.
fn suite(config: &HpkeConfig) -> Option<&'static dyn Hpke> {
    let (HpkeKemId::X25519HkdfSha256, HpkeKdfId::HkdfSha256) = (config.kem_id(), config.kdf_id()) else { return None };
    match config.aead_id() {
        HpkeAeadId::Aes128Gcm => Some(suites::DH_KEM_X25519_HKDF_SHA256_AES_128),
        HpkeAeadId::Aes256Gcm => Some(suites::DH_KEM_X25519_HKDF_SHA256_AES_256),
        HpkeAeadId::ChaCha20Poly1305 => Some(suites::DH_KEM_X25519_HKDF_SHA256_CHACHA20_POLY1305),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ReportId, VdafKind};
    use janus_core::hpke::{self as janus, HpkeApplicationInfo, Label};

    fn at_janus(keypair: &HpkeKeypair) -> janus::HpkeKeypair {
        serde_json::from_str(&serde_json::to_string(keypair).unwrap()).unwrap()
    }

    /// Under every supported algorithm, Janus opens our shares and we open those of Janus.
    #[test]
    fn shares_open_at_janus_and_those_of_janus_here() {
        let task = TaskId::from([3; 32]);
        let header = ReportHeader { id: ReportId::from([1; 16]), time: 600 };
        let (public, share) = (b"public".to_vec(), b"share".to_vec());
        let aad = input_share_aad(&task, &header, &public);
        let message = encode(&PlaintextInputShare::new(Vec::new(), share.clone()));
        for keypair in keypairs() {
            let theirs = at_janus(&keypair);
            for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
                let info = HpkeApplicationInfo::new(&Label::InputShare, &Role::Client, &role.to_dap());
                let sealed = seal_input(keypair.config(), role, &task, &header, &public, share.clone()).unwrap();
                assert_eq!(janus::open(&theirs, &info, &sealed.0, &aad).unwrap(), message);
                let sealed = janus::seal(keypair.config(), &info, &message, &aad).unwrap();
                assert_eq!(open_input(&keypair, role, &task, &header, &public, &sealed), Ok(share.clone()));
            }
        }
    }

    #[test]
    fn sums_open_at_janus_and_those_of_janus_here() {
        let task = TaskId::from([3; 32]);
        let batch = BatchInterval::new(600, 660).unwrap();
        let aad = aggregate_share_aad(&task, batch);
        let vdaf = Vdaf::new(&VdafKind::histogram(3)).unwrap();
        let (sum, keypair) = (vdaf.zero(), generate_keypair(7));
        for role in [AggregatorRole::Leader, AggregatorRole::Helper] {
            let info = HpkeApplicationInfo::new(&Label::AggregateShare, &role.to_dap(), &Role::Collector);
            let sealed = seal_sum(keypair.config(), role, &task, batch, &sum).unwrap();
            assert_eq!(janus::open(&at_janus(&keypair), &info, &sealed.0, &aad).unwrap(), sum.to_bytes());
            let sealed = SealedShare(janus::seal(keypair.config(), &info, &sum.to_bytes(), &aad).unwrap());
            assert_eq!(open_sum(&keypair, role, &task, batch, &vdaf, &sealed).unwrap().to_bytes(), sum.to_bytes());
        }
    }

    #[test]
    fn keys_are_written_as_janus_writes_them_and_debug_hides_them() {
        let keypair = generate_keypair(7);
        let text = serde_json::to_string(&keypair).unwrap();
        assert_eq!(serde_json::to_string(&at_janus(&keypair)).unwrap(), text);
        let again: HpkeKeypair = serde_json::from_str(&text).unwrap();
        assert_eq!(again.private_key().as_ref(), keypair.private_key().as_ref());
        let secret = URL_SAFE_NO_PAD.encode(keypair.private_key());
        assert!(text.contains(&secret) && !format!("{keypair:?}").contains(&secret));
        let error = serde_json::from_str::<HpkeKeypair>(&text.replace(&secret, "no+base64url")).unwrap_err();
        assert!(!error.to_string().contains("no+base64url"), "{error}");
    }

    /// Algorithms that only other implementations know.
    #[test]
    fn bad_algorithms_are_not_supported() {
        let key = generate_keypair(1).config().public_key().clone();
        for (kem, kdf, aead) in [
            (HpkeKemId::P256HkdfSha256, HpkeKdfId::HkdfSha256, HpkeAeadId::Aes128Gcm),
            (HpkeKemId::X25519HkdfSha256, HpkeKdfId::HkdfSha512, HpkeAeadId::Aes128Gcm),
            (HpkeKemId::X25519HkdfSha256, HpkeKdfId::Shake256, HpkeAeadId::Aes128Gcm),
            (HpkeKemId::X25519HkdfSha256, HpkeKdfId::HkdfSha256, HpkeAeadId::Other(9)),
        ] {
            let config = HpkeConfig::new(HpkeConfigId::from(1), kem, kdf, aead, key.clone());
            assert!(!is_hpke_config_supported(&config), "{config:?}");
            assert!(seal(&config, b"", b"", b"").is_none());
        }
    }

    /// A key of small order would make a secret that anybody knows; one of another length is none.
    #[test]
    fn bad_keys_are_refused() {
        let mut keypair = generate_keypair(1);
        let (id, kem, kdf, aead) =
            (1.into(), *keypair.config.kem_id(), *keypair.config.kdf_id(), HpkeAeadId::Aes128Gcm);
        for bad in [vec![0; 32], [&[1][..], &[0; 31]].concat(), vec![9; 31], vec![9; 33], Vec::new()] {
            let config = HpkeConfig::new(id, kem, kdf, aead, HpkePublicKey::from(bad.clone()));
            assert!(seal(&config, b"", b"", b"").is_none(), "{bad:?}");
            let sealed = HpkeCiphertext::new(id, bad.clone(), vec![0; 16]);
            assert!(open(&keypair, b"", &sealed, b"").is_none(), "{bad:?}");
        }
        let sealed = seal(keypair.config(), b"", b"share", b"").unwrap();
        assert_eq!(open(&keypair, b"", &sealed, b""), Some(b"share".to_vec()));
        keypair.private_key.0.pop();
        assert_eq!(open(&keypair, b"", &sealed, b""), None);
    }

    fn keypairs() -> [HpkeKeypair; 3] {
        [HpkeAeadId::Aes128Gcm, HpkeAeadId::Aes256Gcm, HpkeAeadId::ChaCha20Poly1305].map(|aead| {
            let HpkeKeypair { config, private_key } = generate_keypair(1);
            let public = config.public_key().clone();
            let config = HpkeConfig::new(*config.id(), *config.kem_id(), *config.kdf_id(), aead, public);
            HpkeKeypair::new(config, private_key)
        })
    }
}
