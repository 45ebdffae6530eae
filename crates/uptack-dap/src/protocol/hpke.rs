//! Sealing shares to one party: HPKE with the labels and associated data of DAP-09.

pub use janus_core::hpke::{HpkeKeypair, HpkePrivateKey, is_hpke_config_supported};

use janus_core::hpke::{self, HpkeApplicationInfo, Label};
use janus_messages::{
    AggregateShareAad, BatchSelector, ExtensionType, HpkeAeadId, HpkeCiphertext, HpkeConfig, HpkeConfigId, HpkeKdfId,
    HpkeKemId, InputShareAad, Interval, PlaintextInputShare, ReportMetadata, Role, TaskId,
};
use prio::codec::Decode;

use super::{encode, vdaf::Sum};
use crate::error::{Error, Result};

/// Makes a fresh key for receiving shares: X25519, HKDF-SHA256, AES-128-GCM.
pub fn generate_keypair(id: u8) -> HpkeKeypair {
    HpkeKeypair::generate(
        HpkeConfigId::from(id),
        HpkeKemId::X25519HkdfSha256,
        HpkeKdfId::HkdfSha256,
        HpkeAeadId::Aes128Gcm,
    )
    .expect("X25519 is supported")
}

/// Seals a client's input share to one aggregator.
pub fn seal_input_share(
    config: &HpkeConfig,
    receiver: Role,
    task: &TaskId,
    metadata: &ReportMetadata,
    public_share: &[u8],
    input_share: Vec<u8>,
) -> Result<HpkeCiphertext> {
    let plaintext = encode(&PlaintextInputShare::new(Vec::new(), input_share));
    let info = HpkeApplicationInfo::new(&Label::InputShare, &Role::Client, &receiver);
    let aad = input_share_aad(task, metadata, public_share);
    hpke::seal(config, &info, &plaintext, &aad)
        .map_err(|_| Error::refused(format!("the {receiver}'s key cannot be used")))
}

/// Why an input share could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// The ciphertext does not open under the key.
    Decrypt,
    /// It opens, but not to an input share without extensions we would have to understand.
    Message,
}

/// Opens an input share that a client sealed to us.
pub fn open_input_share(
    keypair: &HpkeKeypair,
    receiver: Role,
    task: &TaskId,
    metadata: &ReportMetadata,
    public_share: &[u8],
    ciphertext: &HpkeCiphertext,
) -> std::result::Result<Vec<u8>, OpenError> {
    let info = HpkeApplicationInfo::new(&Label::InputShare, &Role::Client, &receiver);
    let aad = input_share_aad(task, metadata, public_share);
    let plaintext = hpke::open(keypair, &info, ciphertext, &aad).map_err(|_| OpenError::Decrypt)?;
    let share = PlaintextInputShare::get_decoded(&plaintext).map_err(|_| OpenError::Message)?;
    let mut types: Vec<_> = share.extensions().iter().map(|extension| *extension.extension_type() as u16).collect();
    types.sort_unstable();
    let doubled = types.windows(2).any(|pair| pair[0] == pair[1]);
    if doubled || types.contains(&(ExtensionType::Taskprov as u16)) {
        return Err(OpenError::Message);
    }
    Ok(share.payload().to_vec())
}

/// Seals an aggregator's share of a batch to the collector.
pub fn seal_aggregate_share(
    config: &HpkeConfig,
    sender: Role,
    task: &TaskId,
    interval: Interval,
    share: &Sum,
) -> Result<HpkeCiphertext> {
    let info = HpkeApplicationInfo::new(&Label::AggregateShare, &sender, &Role::Collector);
    let aad = aggregate_share_aad(task, interval);
    hpke::seal(config, &info, &share.to_bytes(), &aad)
        .map_err(|_| Error::environment("the collector's key cannot be used"))
}

/// Opens an aggregator's share of a batch.
pub fn open_aggregate_share(
    keypair: &HpkeKeypair,
    sender: Role,
    task: &TaskId,
    interval: Interval,
    ciphertext: &HpkeCiphertext,
) -> Result<Vec<u8>> {
    let info = HpkeApplicationInfo::new(&Label::AggregateShare, &sender, &Role::Collector);
    let aad = aggregate_share_aad(task, interval);
    hpke::open(keypair, &info, ciphertext, &aad)
        .map_err(|_| Error::refused(format!("the {sender}'s share does not open under our key")))
}

fn input_share_aad(task: &TaskId, metadata: &ReportMetadata, public_share: &[u8]) -> Vec<u8> {
    encode(&InputShareAad::new(*task, metadata.clone(), public_share.to_vec()))
}

fn aggregate_share_aad(task: &TaskId, interval: Interval) -> Vec<u8> {
    let selector = BatchSelector::new_time_interval(interval);
    encode(&AggregateShareAad::new(*task, Vec::new(), selector))
}
