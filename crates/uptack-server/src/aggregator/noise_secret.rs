//! The secret from which an aggregator derives the noise of a task's batches.
//!
//! Noise is not drawn from the operating system when a batch is released: an aggregator that was restored from a backup, cloned or
//! taken back to a snapshot would draw again, and whoever gets both results averages the noise away. Instead it follows from this
//! secret and from everything that identifies the release, so that the same release always carries the same noise.
//!
//! Two releases that differ in anything, even in one report, have independent noise. They must: with equal noise, the difference
//! of their sums would be exact.
//!
//! Each task has a secret of its own, which is drawn when the task is added and deleted with it. Until then, whoever learns it can
//! compute the noise of the task's releases. `SECURITY.md` says what a copy from before the task does not repeat.

use aws_lc_rs::hmac;
use rand::{RngCore, rngs::OsRng};
use std::fmt;
use uptack::{CoinKey, DerivedCoins, NoiseLaw};
use uptack_dap::{
    protocol::{AggregatorRole, BatchChecksum, BatchInterval, Sum, TaskId},
    task::AggregatorTask,
};

/// Separates these keys from everything else that is ever derived from a secret of this kind.
const LABEL: &[u8] = b"uptack noise of a release, version 1";

/// 32 random bytes. Its `Debug` shows nothing of them.
#[derive(Clone)]
pub(crate) struct NoiseSecret([u8; 32]);

/// One release of a batch, by all that distinguishes it from others of the same task.
pub(crate) struct Release<'a> {
    pub(crate) interval: BatchInterval,
    pub(crate) reports: u64,
    pub(crate) checksum: BatchChecksum,
    /// This aggregator's share, without noise. The checksum alone is not enough: it is a XOR, and whoever chooses reports can choose
    /// two sets of them with the same checksum.
    pub(crate) sum: &'a Sum,
}

impl NoiseSecret {
    /// A secret from the operating system's randomness.
    pub(crate) fn generate() -> Self {
        let mut bytes = [0; 32];
        OsRng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// The secret as it is stored; none if there are not 32 bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The noise of a release, one number for each of its sums; nothing if the task has none.
    pub(crate) fn noise(&self, task: &AggregatorTask, release: &Release<'_>) -> uptack::Result<Option<Vec<i64>>> {
        let parameters = &task.parameters;
        let Some(law) = &parameters.noise else { return Ok(None) };
        let mut coins = self.coins(task.role, &parameters.task_id, law, release);
        law.draw_many(parameters.vdaf.length(), &mut coins).map(Some)
    }

    /// Coins for one release: HMAC-SHA256 over the label and all fields, each after its length, is the key of their stream. The
    /// sums of a release take their noise from it one after the other.
    fn coins(&self, role: AggregatorRole, task: &TaskId, law: &NoiseLaw, release: &Release<'_>) -> DerivedCoins {
        let (role, law, sum) = (role.to_string(), law.to_string(), release.sum.to_bytes());
        let [start, finish, reports] =
            [release.interval.start(), release.interval.finish(), release.reports].map(u64::to_be_bytes);
        let checksum = release.checksum.as_bytes();
        let fields: [&[u8]; 9] =
            [LABEL, role.as_bytes(), task.as_ref(), law.as_bytes(), &start, &finish, &reports, checksum, &sum];
        let mut tag = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        for field in fields {
            tag.update(&(field.len() as u64).to_be_bytes());
            tag.update(field);
        }
        let key = tag.sign().as_ref().try_into().expect("HMAC-SHA256 has 32 bytes");
        DerivedCoins::new(CoinKey::from_secret_bytes(key))
    }
}

impl fmt::Debug for NoiseSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("NoiseSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack::Coins;
    use uptack_dap::protocol::{ReportId, Vdaf, VdafKind};

    /// Everything that a draw depends on.
    #[derive(Clone)]
    struct Draw {
        secret: [u8; 32],
        role: AggregatorRole,
        task: [u8; 32],
        law: &'static str,
        interval: (u64, u64),
        reports: u64,
        report: [u8; 16],
        noise_in_sum: [i64; 2],
    }

    const DRAW: Draw = Draw {
        secret: [7; 32],
        role: AggregatorRole::Helper,
        task: [3; 32],
        law: "laplace(scale=2.5)",
        interval: (300, 600),
        reports: 1,
        report: [1; 16],
        noise_in_sum: [4, 0],
    };

    impl Draw {
        fn bytes(&self) -> [u8; 32] {
            let mut checksum = BatchChecksum::default();
            checksum.add(&ReportId::from(self.report));
            let mut sum = Vdaf::new(&VdafKind::bits(2)).unwrap().zero();
            sum.add_noise(&self.noise_in_sum);
            let interval = BatchInterval::new(self.interval.0, self.interval.1).unwrap();
            let release = Release { interval, reports: self.reports, checksum, sum: &sum };
            let (task, law) = (TaskId::from(self.task), self.law.parse().unwrap());
            let mut bytes = [0; 32];
            NoiseSecret(self.secret).coins(self.role, &task, &law, &release).fill(&mut bytes).unwrap();
            bytes
        }
    }

    #[test]
    fn noise_repeats_for_the_same_release_and_differs_if_anything_does() {
        assert_eq!(DRAW.bytes(), DRAW.bytes());
        let others = [
            Draw { secret: [8; 32], ..DRAW },
            Draw { role: AggregatorRole::Leader, ..DRAW },
            Draw { task: [4; 32], ..DRAW },
            Draw { law: "laplace(scale=2)", ..DRAW },
            Draw { interval: (0, 600), ..DRAW },
            Draw { interval: (300, 900), ..DRAW },
            Draw { reports: 2, ..DRAW },
            Draw { report: [2; 16], ..DRAW },
            Draw { noise_in_sum: [5, 0], ..DRAW },
            Draw { noise_in_sum: [0, 4], ..DRAW },
        ];
        let mut seen = vec![DRAW.bytes()];
        for other in others {
            assert!(!seen.contains(&other.bytes()));
            seen.push(other.bytes());
        }
    }

    /// Pinned, and computed by another program (Python's `hmac` and a ChaCha20 of its own): a version that derived other noise
    /// would, after a restore, add a second draw to a batch.
    #[test]
    fn what_is_derived_stays_what_it_was() {
        assert_eq!(DRAW.bytes()[..16], [241, 136, 51, 135, 87, 27, 253, 107, 19, 56, 101, 188, 179, 21, 84, 139]);
    }

    #[test]
    fn secrets_are_drawn_and_shown_to_nobody() {
        let [one, other] = [NoiseSecret::generate(), NoiseSecret::generate()];
        assert_ne!(one.as_bytes(), other.as_bytes());
        assert_eq!(NoiseSecret::from_bytes(one.as_bytes()).unwrap().as_bytes(), one.as_bytes());
        assert!(NoiseSecret::from_bytes(&[0; 31]).is_none());
        assert_eq!(format!("{one:?}"), "NoiseSecret(…)");
    }
}
