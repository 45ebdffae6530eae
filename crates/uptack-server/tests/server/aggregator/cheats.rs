//! Clients that cheat as well as one can. Everything about their reports is consistent, the joint
//! randomness included, except what they claim: so that it is the proof that refuses them, and not
//! an accident of form.

use prio::{
    codec::Encode,
    field::{Field128, FieldElement, FieldElementWithInteger},
    flp::{
        Type,
        gadgets::{Mul, ParallelSum},
        types::{Histogram, SumVec},
    },
    vdaf::xof::{IntoFieldVec, Xof, XofTurboShake128},
};
use uptack_dap::{
    ballot,
    protocol::{ReportId, VdafKind},
};

use crate::aggregator::{
    faults::report_of,
    support::{Stage, quick},
};

type Circuit = ParallelSum<Field128, Mul<Field128>>;
type Seed = [u8; 16];

/// VDAF-08's sharding, with any field elements in place of a measurement.
struct Forger<T> {
    circuit: T,
    /// The number of the sum in the draft.
    algorithm: u8,
}

impl Forger<Histogram<Field128, Circuit>> {
    fn of_cells(kind: &VdafKind) -> Self {
        let VdafKind::Histogram { length, chunk_length } = *kind else { panic!("not a histogram") };
        Self { circuit: Histogram::new(length, chunk_length).unwrap(), algorithm: 3 }
    }
}

impl Forger<SumVec<Field128, Circuit>> {
    fn of_bits(kind: &VdafKind) -> Self {
        let VdafKind::Bits { length, chunk_length } = *kind else { panic!("not bits") };
        Self { circuit: SumVec::new(1, length, chunk_length).unwrap(), algorithm: 2 }
    }
}

impl<T: Type<Field = Field128>> Forger<T> {
    /// A public share and two input shares of `input`, with the proof that an honest prover's
    /// algorithm makes of it.
    fn shard(&self, id: &ReportId, input: &[Field128]) -> (Vec<u8>, [Vec<u8>; 2]) {
        let random = self.expand(&rand::random(), 4, &[1], self.circuit.prove_rand_len());
        self.shard_with(id, input, |joint| self.circuit.prove(input, &random, joint).unwrap())
    }

    /// The same with any proof, made in view of the joint randomness.
    fn shard_with(
        &self,
        id: &ReportId,
        input: &[Field128],
        prove: impl FnOnce(&[Field128]) -> Vec<Field128>,
    ) -> (Vec<u8>, [Vec<u8>; 2]) {
        let [measurement_seed, proof_seed, leader_blind, helper_blind]: [Seed; 4] = rand::random();
        let helper = self.expand(&measurement_seed, 1, &[1], input.len());
        let leader = difference(input, &helper);
        let parts = [self.part(&leader_blind, 0, id, &leader), self.part(&helper_blind, 1, id, &helper)];
        let mut joint_seed = self.xof(&[0; 16], 6);
        joint_seed.update(&parts.concat());
        let joint = self.expand(joint_seed.into_seed().as_ref(), 3, &[1], self.circuit.joint_rand_len());
        let proof = prove(&joint);
        let leader_proof = difference(&proof, &self.expand(&proof_seed, 2, &[1, 1], proof.len()));
        let leader_share = [bytes(&leader), bytes(&leader_proof), leader_blind.to_vec()].concat();
        let helper_share = [measurement_seed, proof_seed, helper_blind].concat();
        (parts.concat(), [leader_share, helper_share])
    }

    fn part(&self, blind: &Seed, aggregator: u8, id: &ReportId, share: &[Field128]) -> Seed {
        let mut xof = self.xof(blind, 7);
        xof.update(&[aggregator]);
        xof.update(id.as_ref());
        xof.update(&bytes(share));
        *xof.into_seed().as_ref()
    }

    fn expand(&self, seed: &Seed, usage: u8, binder: &[u8], length: usize) -> Vec<Field128> {
        let mut xof = self.xof(seed, usage);
        xof.update(binder);
        xof.into_seed_stream().into_field_vec(length)
    }

    /// The generator for one of the draft's purposes.
    fn xof(&self, seed: &Seed, usage: u8) -> XofTurboShake128 {
        XofTurboShake128::init(seed, &[8, 0, 0, 0, 0, self.algorithm, 0, usage])
    }
}

fn difference(left: &[Field128], right: &[Field128]) -> Vec<Field128> {
    left.iter().zip(right).map(|(left, right)| *left - *right).collect()
}

fn bytes(elements: &[Field128]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.get_encoded().unwrap()).collect()
}

fn elements(values: &[u128]) -> Vec<Field128> {
    values.iter().map(|value| Field128::from(*value)).collect()
}

async fn send(stage: &Stage, id: ReportId, (public, shares): (Vec<u8>, [Vec<u8>; 2])) {
    let task = stage.parameters().task_id;
    let report = report_of(stage, &task, public, shares, id, None).await;
    stage.client.send(&report).await.unwrap();
}

async fn forge<T: Type<Field = Field128>>(stage: &Stage, forger: &Forger<T>, values: &[u128]) {
    let id: ReportId = rand::random();
    send(stage, id, forger.shard(&id, &elements(values))).await;
}

/// A client that claims two cells at once.
pub(crate) async fn upload_two_cells(stage: &Stage) {
    forge(stage, &Forger::of_cells(&stage.parameters().vdaf), &[1, 1, 0]).await;
}

/// How many reports the helper refused for their proof, and the leader before it asked.
async fn refused(stage: &Stage) -> [u64; 2] {
    let proof = "uptack_reports_aggregated_total{outcome=\"invalid-proof\"}";
    let share = "uptack_reports_aggregated_total{outcome=\"invalid-share\"}";
    [
        stage.metric(&stage.pair.helper.operations_url().unwrap(), proof).await,
        stage.metric(&stage.pair.leader.operations_url().unwrap(), share).await,
    ]
}

/// One less than nothing, in the field.
fn minus_one() -> u128 {
    Field128::modulus() - 1
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_other_than_one_cell_fail_their_proof() {
    let stage = Stage::new(2).await;
    let forger = Forger::of_cells(&stage.parameters().vdaf);
    // What the forger makes of an honest claim is taken, so that nothing but the claim is wrong.
    forge(&stage, &forger, &[0, 1, 0]).await;
    stage.upload_counts([1, 0, 1]).await;
    upload_two_cells(&stage).await;
    let claims = [[1_000_000, 0, 0], [0, 0, 0], [1, 1, 1], [2, minus_one(), 0], [0, 0, minus_one()]];
    for claim in claims {
        forge(&stage, &forger, &claim).await;
    }
    assert_eq!(stage.collect().await.unwrap().counts, [1, 1, 1]);
    assert_eq!(refused(&stage).await, [6, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn votes_other_than_one_or_none_fail_their_proof() {
    let stage = Stage::with(1, quick, |parameters| parameters.vdaf = ballot::kind(2)).await;
    let forger = Forger::of_bits(&stage.parameters().vdaf);
    forge(&stage, &forger, &[1, 0, 0, 1]).await;
    for claim in [[1_000_000, 0, 0, 0], [2, 0, 0, 0], [0, 0, minus_one(), 0]] {
        forge(&stage, &forger, &claim).await;
    }
    assert_eq!(stage.collect().await.unwrap().counts, [1, 0, 0, 1]);
    assert_eq!(refused(&stage).await, [3, 0]);
}

/// A proof that holds for any joint randomness lets a client tell the leader another part than the
/// helper has: the verifier's sum is then right, so that the helper accepts, and the leader rejects
/// at the end. One such report would make the two sides' counts differ and spoil the batch for
/// everybody, if the helper did not compare its own part.
///
/// A ballot of ones has such a proof, nothing but zeros: one factor of every product is the value
/// less one.
#[tokio::test(flavor = "multi_thread")]
async fn a_lie_about_the_joint_randomness_spoils_only_its_own_report() {
    let stage = Stage::with(1, quick, |parameters| parameters.vdaf = ballot::kind(2)).await;
    let forger = Forger::of_bits(&stage.parameters().vdaf);
    let zeros = |_: &[Field128]| vec![Field128::zero(); forger.circuit.proof_len()];
    // With the truth about the joint randomness the report is good.
    let id: ReportId = rand::random();
    send(&stage, id, forger.shard_with(&id, &elements(&[1; 4]), zeros)).await;
    // With a lie about the leader's part, or the helper's, it is not, for either side.
    for position in [0, 16] {
        let id: ReportId = rand::random();
        let (mut public, shares) = forger.shard_with(&id, &elements(&[1; 4]), zeros);
        public[position] ^= 1;
        send(&stage, id, (public, shares)).await;
    }
    assert_eq!(stage.collect().await.unwrap().counts, [1; 4]);
    assert_eq!(refused(&stage).await, [1, 1]);
}
