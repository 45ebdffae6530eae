//! The sums: Prio3 of VDAF-08, from a measurement to shares and back to counts.
//!
//! Preparation is the ping-pong topology of VDAF-08 for a one-round VDAF, written out: the leader
//! says `Initialize`, the helper answers `Finish`, and both hold an output share. It is written out
//! because each side adds one check of its own. A client publishes both aggregators' parts of the
//! joint randomness; Prio3 compares only the combination, at the very end. So a client could have
//! the helper accept what the leader afterwards rejects, and with that one report spoil the batch
//! for everybody, because the two sides' counts would differ. Each side therefore first compares
//! its own published part with the one it computes; then both work with the same randomness, and
//! both accept or both reject.

use janus_messages::ReportId;
use prio::{
    codec::{Encode, ParameterizedDecode},
    field::{Field128, FieldElement, FieldElementWithInteger},
    topology::ping_pong::PingPongMessage,
    vdaf::{
        Aggregatable, Aggregator, Client, Collector, OutputShare, PrepareTransition,
        prio3::{
            Prio3Histogram, Prio3InputShare, Prio3PrepareState, Prio3PublicShare, Prio3SumVec, optimal_chunk_length,
        },
    },
};
use serde::{Deserialize, Serialize};

use super::encode;
use crate::error::{Error, Result};

/// Bytes in a VDAF-08 verification key.
pub const VERIFY_KEY_LENGTH: usize = 16;
/// Bytes in one part of the joint randomness.
const SEED_LENGTH: usize = 16;
/// The longest vector accepted in a task: a ballot of 16 384 queries.
const MAXIMUM_LENGTH: usize = 32_768;

/// The secret that both aggregators share and clients must not know.
pub type VerifyKey = [u8; VERIFY_KEY_LENGTH];

/// Which sum a task computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum VdafKind {
    /// One-hot over the cells of a channel: a report adds one to exactly one cell.
    Histogram {
        /// Number of cells.
        length: usize,
        /// Cells proven by one gadget call; all parties must agree on it.
        chunk_length: usize,
    },
    /// Bits that are summed one by one: a report adds zero or one to each.
    Bits {
        /// Number of bits.
        length: usize,
        /// Bits proven by one gadget call; all parties must agree on it.
        chunk_length: usize,
    },
}

impl VdafKind {
    /// The sum for a channel with `length` cells.
    pub fn histogram(length: usize) -> Self {
        Self::Histogram { length, chunk_length: optimal_chunk_length(length) }
    }

    /// The sum for `length` independent bits.
    pub fn bits(length: usize) -> Self {
        Self::Bits { length, chunk_length: optimal_chunk_length(length) }
    }

    /// The sum for a channel: one count for each of the channel's cells, in the same order; or, if the aggregators add noise,
    /// one bit that says whether the answer is `1`.
    pub fn for_channel(channel: &uptack::Channel) -> Self {
        if channel.noise().is_some() { Self::bits(1) } else { Self::histogram(channel.cells().len()) }
    }

    /// The number of cells or bits.
    pub fn length(&self) -> usize {
        match self {
            Self::Histogram { length, .. } | Self::Bits { length, .. } => *length,
        }
    }

    fn chunk_length(&self) -> usize {
        match self {
            Self::Histogram { chunk_length, .. } | Self::Bits { chunk_length, .. } => *chunk_length,
        }
    }

    /// Refuses impossible lengths.
    fn check_lengths(&self) -> Result<()> {
        let (length, chunk) = (self.length(), self.chunk_length());
        if length == 0 || length > MAXIMUM_LENGTH || chunk == 0 || chunk > length {
            return Err(Error::input(format!(
                "a sum over {length} cells in chunks of {chunk} is not possible: \
                 the length must be between 1 and {MAXIMUM_LENGTH}, the chunk between 1 and the length"
            )));
        }
        Ok(())
    }
}

/// What one report says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measurement {
    /// The index of one cell.
    Cell(usize),
    /// One value for each bit.
    Bits(Vec<bool>),
}

/// A Prio3 instance that a task uses.
#[derive(Debug, Clone)]
pub enum Vdaf {
    /// See [`VdafKind::Histogram`].
    Histogram(Box<Prio3Histogram>),
    /// See [`VdafKind::Bits`].
    Bits(Box<Prio3SumVec>),
}

macro_rules! each {
    ($self:expr, $vdaf:ident => $body:expr) => {
        match $self {
            Vdaf::Histogram($vdaf) => $body,
            Vdaf::Bits($vdaf) => $body,
        }
    };
}

/// The leader's memory of one report between its request and the helper's answer.
pub struct LeaderState(Prio3PrepareState<Field128, SEED_LENGTH>);

/// What one aggregator tells the other about a report.
pub type PrepareMessage = PingPongMessage;

/// One aggregator's share of one report's contribution.
#[derive(Clone)]
pub struct Contribution(OutputShare<Field128>);

/// One aggregator's share of a sum of contributions.
#[derive(Clone)]
pub struct Sum(prio::vdaf::AggregateShare<Field128>);

impl Vdaf {
    /// Builds the instance; refuses impossible lengths.
    pub fn new(kind: &VdafKind) -> Result<Self> {
        kind.check_lengths()?;
        let instance = match *kind {
            VdafKind::Histogram { length, chunk_length } => {
                Prio3Histogram::new_histogram(2, length, chunk_length).map(|vdaf| Self::Histogram(Box::new(vdaf)))
            }
            VdafKind::Bits { length, chunk_length } => {
                Prio3SumVec::new_sum_vec(2, 1, length, chunk_length).map(|vdaf| Self::Bits(Box::new(vdaf)))
            }
        };
        instance.map_err(|error| Error::input(format!("impossible sum: {error}")))
    }

    /// Splits a measurement into a public share and the two input shares, with the operating
    /// system's randomness.
    pub fn shard(&self, measurement: &Measurement, id: &ReportId) -> Result<(Vec<u8>, [Vec<u8>; 2])> {
        let (public, inputs) = self
            .checked_shard(measurement, id)
            .ok_or_else(|| Error::input("the answer does not fit the task's cells"))?;
        let [leader, helper] =
            <[_; 2]>::try_from(inputs).map_err(|_| Error::environment("sharding did not yield two shares"))?;
        Ok((encode(&public), [encode(&leader), encode(&helper)]))
    }

    /// The shares of a measurement, or `None` if it does not fit the task.
    ///
    /// The library panics on a cell out of range, and its messages may quote the measurement. So the range is checked first,
    /// and no message is passed on.
    #[allow(clippy::type_complexity)]
    fn checked_shard(
        &self,
        measurement: &Measurement,
        id: &ReportId,
    ) -> Option<(Prio3PublicShare<SEED_LENGTH>, Vec<Prio3InputShare<Field128, SEED_LENGTH>>)> {
        let length = each!(self, vdaf => vdaf.output_len());
        match (self, measurement) {
            (Self::Histogram(vdaf), Measurement::Cell(cell)) if *cell < length => vdaf.shard(cell, id.as_ref()).ok(),
            (Self::Bits(vdaf), Measurement::Bits(bits)) if bits.len() == length => {
                let bits: Vec<u128> = bits.iter().map(|bit| u128::from(*bit)).collect();
                vdaf.shard(&bits, id.as_ref()).ok()
            }
            _ => None,
        }
    }

    /// Whether a leader's input share and a public share have the form this sum needs.
    pub fn is_leader_share(&self, public_share: &[u8], input_share: &[u8]) -> bool {
        self.decode_shares(0, public_share, input_share).is_some()
    }

    /// The leader's first step: its memory and the message for the helper, or `None` if the report
    /// is malformed.
    pub fn leader_start(
        &self,
        key: &VerifyKey,
        id: &ReportId,
        public_share: &[u8],
        input_share: &[u8],
    ) -> Option<(LeaderState, PingPongMessage)> {
        let (state, prep_share) = self.start(key, 0, id, public_share, input_share)?;
        Some((LeaderState(state), PingPongMessage::Initialize { prep_share }))
    }

    /// The helper's only step: its contribution and the message for the leader, or `None` if the
    /// report is malformed or its proof is wrong.
    pub fn helper_finish(
        &self,
        key: &VerifyKey,
        id: &ReportId,
        public_share: &[u8],
        input_share: &[u8],
        message: &PingPongMessage,
    ) -> Option<(Contribution, PingPongMessage)> {
        let PingPongMessage::Initialize { prep_share } = message else {
            return None;
        };
        let (state, own_share) = self.start(key, 1, id, public_share, input_share)?;
        each!(self, vdaf => {
            let shares = [prep_share, &own_share]
                .map(|bytes| ParameterizedDecode::get_decoded_with_param(&state, bytes));
            let [Ok(leader), Ok(helper)] = shares else { return None };
            let message = vdaf
                .prepare_shares_to_prepare_message(&(), [leader, helper])
                .ok()?;
            let prep_msg = message.get_encoded().ok()?;
            match vdaf.prepare_next(state, message).ok()? {
                PrepareTransition::Finish(share) => {
                    Some((Contribution(share), PingPongMessage::Finish { prep_msg }))
                }
                PrepareTransition::Continue(..) => None,
            }
        })
    }

    /// The leader's last step, on the helper's message.
    pub fn leader_finish(&self, state: LeaderState, message: &PingPongMessage) -> Option<Contribution> {
        let PingPongMessage::Finish { prep_msg } = message else {
            return None;
        };
        each!(self, vdaf => {
            let message = ParameterizedDecode::get_decoded_with_param(&state.0, prep_msg).ok()?;
            match vdaf.prepare_next(state.0, message).ok()? {
                PrepareTransition::Finish(share) => Some(Contribution(share)),
                PrepareTransition::Continue(..) => None,
            }
        })
    }

    /// The sum of nothing.
    pub fn zero(&self) -> Sum {
        let length = each!(self, vdaf => vdaf.output_len());
        Sum(vec![Field128::zero(); length].into())
    }

    /// Reads a sum that [`Sum::to_bytes`] wrote.
    pub fn sum_from_bytes(&self, bytes: &[u8]) -> Result<Sum> {
        each!(self, vdaf => ParameterizedDecode::get_decoded_with_param(&(&**vdaf, &()), bytes))
            .map(Sum)
            .map_err(|_| Error::environment("a stored or received share has the wrong form"))
    }

    /// Puts the two aggregators' shares together, if neither added noise.
    pub fn reveal(&self, shares: [Sum; 2], reports: u64) -> Result<Vec<u64>> {
        self.unshard(shares, reports)?.into_iter().map(|sum| u64::try_from(sum).map_err(unfit)).collect()
    }

    /// Puts the two aggregators' shares together, if they added noise.
    pub fn reveal_noisy(&self, shares: [Sum; 2], reports: u64) -> Result<Vec<i64>> {
        self.unshard(shares, reports)?.into_iter().map(to_signed).collect()
    }

    fn unshard(&self, shares: [Sum; 2], reports: u64) -> Result<Vec<u128>> {
        let reports = usize::try_from(reports).unwrap_or(usize::MAX);
        let shares = shares.map(|share| share.0);
        each!(self, vdaf => vdaf.unshard(&(), shares, reports)).map_err(unfit)
    }

    fn start(
        &self,
        key: &VerifyKey,
        aggregator: usize,
        id: &ReportId,
        public_share: &[u8],
        input_share: &[u8],
    ) -> Option<(Prio3PrepareState<Field128, SEED_LENGTH>, Vec<u8>)> {
        let (public, input) = self.decode_shares(aggregator, public_share, input_share)?;
        let (state, share) = each!(self, vdaf => vdaf
            .prepare_init(key, aggregator, &(), id.as_ref(), &public, &input)
            .ok()?);
        let share = share.get_encoded().ok()?;
        let published = public_share.chunks_exact(SEED_LENGTH).nth(aggregator);
        // The encoding of a prepare share ends with this aggregator's part.
        let computed = share.rchunks_exact(SEED_LENGTH).next();
        (published == computed).then_some((state, share))
    }

    #[allow(clippy::type_complexity)]
    fn decode_shares(
        &self,
        aggregator: usize,
        public_share: &[u8],
        input_share: &[u8],
    ) -> Option<(Prio3PublicShare<SEED_LENGTH>, Prio3InputShare<Field128, SEED_LENGTH>)> {
        each!(self, vdaf => Some((
            ParameterizedDecode::get_decoded_with_param(&**vdaf, public_share).ok()?,
            ParameterizedDecode::get_decoded_with_param(&(&**vdaf, aggregator), input_share).ok()?,
        )))
    }
}

impl Sum {
    /// Adds one report's contribution.
    pub fn add(&mut self, contribution: &Contribution) {
        self.0.accumulate(&contribution.0).expect("contributions and sums of one task have the same length");
    }

    /// Adds another sum of the same task.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0).expect("sums of one task have the same length");
    }

    /// Adds a whole number to each coordinate.
    pub fn add_noise(&mut self, noise: &[i64]) {
        let elements: Vec<Field128> = noise.iter().copied().map(from_signed).collect();
        self.0.merge(&elements.into()).expect("there is one draw for each coordinate");
    }

    /// The encoding that goes to the collector.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(&self.0)
    }
}

/// A field element as a whole number: the upper half of the field stands for the negative numbers.
fn to_signed(element: u128) -> Result<i64> {
    let below_zero = Field128::modulus() - element;
    let value =
        if below_zero < element { i64::try_from(below_zero).map(|value| -value) } else { i64::try_from(element) };
    value.map_err(unfit)
}

/// A whole number as a field element; a negative one wraps around.
fn from_signed(value: i64) -> Field128 {
    let size = Field128::from(u128::from(value.unsigned_abs()));
    if value < 0 { -size } else { size }
}

fn unfit<E>(_: E) -> Error {
    Error::environment("the two shares do not fit each other")
}

#[cfg(test)]
mod tests {
    use super::*;
    use prio::topology::ping_pong::{PingPongState, PingPongTopology};

    const KEY: VerifyKey = [7; 16];

    fn report(vdaf: &Vdaf, measurement: &Measurement) -> (ReportId, Vec<u8>, [Vec<u8>; 2]) {
        let id = ReportId::from([3; 16]);
        let (public, shares) = vdaf.shard(measurement, &id).unwrap();
        (id, public, shares)
    }

    fn run(vdaf: &Vdaf, id: &ReportId, public: &[u8], shares: &[Vec<u8>; 2]) -> Option<Vec<u64>> {
        let (state, first) = vdaf.leader_start(&KEY, id, public, &shares[0])?;
        let (helper, second) = vdaf.helper_finish(&KEY, id, public, &shares[1], &first)?;
        let leader = vdaf.leader_finish(state, &second)?;
        let mut sums = [vdaf.zero(), vdaf.zero()];
        sums[0].add(&leader);
        sums[1].add(&helper);
        Some(vdaf.reveal(sums, 1).unwrap())
    }

    #[test]
    fn each_cell_counts_once() {
        let vdaf = Vdaf::new(&VdafKind::histogram(5)).unwrap();
        for cell in 0..5 {
            let (id, public, shares) = report(&vdaf, &Measurement::Cell(cell));
            let mut expected = vec![0; 5];
            expected[cell] = 1;
            assert_eq!(run(&vdaf, &id, &public, &shares).unwrap(), expected);
        }
        assert!(vdaf.shard(&Measurement::Cell(5), &ReportId::from([0; 16])).unwrap_err().is_input());
    }

    #[test]
    fn bits_count_one_by_one() {
        let vdaf = Vdaf::new(&VdafKind::bits(4)).unwrap();
        let bits = vec![true, false, true, true];
        let (id, public, shares) = report(&vdaf, &Measurement::Bits(bits));
        assert_eq!(run(&vdaf, &id, &public, &shares).unwrap(), [1, 0, 1, 1]);
    }

    #[test]
    fn noise_of_both_shares_adds_up_also_below_zero() {
        let vdaf = Vdaf::new(&VdafKind::bits(3)).unwrap();
        let mut sums = [vdaf.zero(), vdaf.zero()];
        sums[0].add_noise(&[5, -7, i64::MAX]);
        sums[1].add_noise(&[-5, 3, 0]);
        assert_eq!(vdaf.reveal_noisy(sums.clone(), 1).unwrap(), [0, -4, i64::MAX]);
        // Below zero there is nothing to count.
        assert!(vdaf.reveal(sums.clone(), 1).is_err());
        sums[1].add_noise(&[0, 0, 1]);
        assert!(vdaf.reveal_noisy(sums, 1).is_err());
    }

    /// Our messages are those of the library's ping-pong topology, byte for byte.
    #[test]
    fn messages_are_those_of_the_ping_pong_topology() {
        let ours = Vdaf::new(&VdafKind::histogram(3)).unwrap();
        let theirs = Prio3Histogram::new_histogram(2, 3, optimal_chunk_length(3)).unwrap();
        let (id, public, shares) = report(&ours, &Measurement::Cell(1));
        let public_share = Prio3PublicShare::get_decoded_with_param(&theirs, &public).unwrap();
        let input = |index: usize| Prio3InputShare::get_decoded_with_param(&(&theirs, index), &shares[index]).unwrap();
        let (_, their_first) = theirs.leader_initialized(&KEY, &(), id.as_ref(), &public_share, &input(0)).unwrap();
        let (_, our_first) = ours.leader_start(&KEY, &id, &public, &shares[0]).unwrap();
        assert_eq!(encode(&our_first), encode(&their_first));
        let transition =
            theirs.helper_initialized(&KEY, &(), id.as_ref(), &public_share, &input(1), &our_first).unwrap();
        let (state, their_second) = transition.evaluate(&theirs).unwrap();
        assert!(matches!(state, PingPongState::Finished(_)));
        let (_, our_second) = ours.helper_finish(&KEY, &id, &public, &shares[1], &their_first).unwrap();
        assert_eq!(encode(&our_second), encode(&their_second));
    }

    #[test]
    fn bad_public_share_is_refused_by_the_side_it_names() {
        let vdaf = Vdaf::new(&VdafKind::histogram(3)).unwrap();
        let (id, public, shares) = report(&vdaf, &Measurement::Cell(1));
        let flipped = |position: usize| {
            let mut bytes = public.clone();
            bytes[position] ^= 1;
            bytes
        };
        let leaders_part = flipped(0);
        let helpers_part = flipped(SEED_LENGTH);
        assert!(vdaf.leader_start(&KEY, &id, &leaders_part, &shares[0]).is_none());
        let (_, first) =
            vdaf.leader_start(&KEY, &id, &helpers_part, &shares[0]).expect("the leader cannot know the helper's part");
        assert!(vdaf.helper_finish(&KEY, &id, &helpers_part, &shares[1], &first).is_none());
    }

    #[test]
    fn bad_lengths_are_refused() {
        for kind in [
            VdafKind::histogram(0),
            VdafKind::bits(MAXIMUM_LENGTH + 1),
            VdafKind::Histogram { length: 3, chunk_length: 0 },
            VdafKind::Bits { length: 3, chunk_length: 4 },
        ] {
            assert!(Vdaf::new(&kind).unwrap_err().is_input(), "{kind:?}");
        }
    }
}
