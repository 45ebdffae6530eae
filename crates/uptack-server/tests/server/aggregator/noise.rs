//! The noise that aggregators add: its law, as a collector meets it, and that there is one draw for each batch.

use std::path::Path;

use futures_util::{StreamExt, future::join_all, stream};
use uptack::NoiseLaw;
use uptack_dap::{
    client::Client,
    clock::Clock,
    collector::Collector,
    protocol::{Measurement, VdafKind},
    task::TaskSet,
};
use uptack_server::aggregator::{Pair, back_up};

use crate::aggregator::support::{PATIENCE, Stage, collection, eventually, noisy, now, quick};

/// False alarms of one comparison with a law. The generator is the operating system's, so that every run is another.
const ALPHA: f64 = 1e-6;
const SCALE: &str = "2";
/// Where the pair's clock stands.
const NOW: u64 = 1_900_000_000;
const WINDOW: u64 = 100;

/// Each report is a release of its own, of two bits.
const BITS: usize = 2;

/// A pair whose clock stands, and the differences between what it publishes and what owners wrote.
struct Bench {
    _directory: tempfile::TempDir,
    pair: Pair,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::standing_at(NOW);
        let adjust = |config: &mut uptack_server::aggregator::Config| {
            quick(config);
            config.clock = clock.clone();
        };
        let pair = Pair::start(directory.path(), adjust).await.unwrap();
        Self { _directory: directory, pair }
    }

    /// Releases so many batches, each of one report, and gives back sums less bits. Whether leader and helper add noise
    /// is said to each of them apart: no message of the protocol tells the other, and the collector expects noise.
    async fn differences(&self, releases: u64, [leader, helper]: [bool; 2]) -> Vec<i64> {
        let mut parameters = self.pair.parameters(VdafKind::bits(BITS), WINDOW, 1);
        parameters.report_expiry_age = None;
        parameters.noise = Some(NoiseLaw::laplace(SCALE.parse().unwrap()));
        let mut task = TaskSet::generate(parameters).unwrap();
        for (part, adds) in [(&mut task.leader, leader), (&mut task.helper, helper)] {
            part.parameters.noise = part.parameters.noise.filter(|_| adds);
        }
        self.pair.add_task(&task).await.unwrap();
        let client = Client::new(task.parameters().clone()).unwrap();
        let collector = Collector::new(task.collector.clone()).unwrap();
        let (client, collector, task) = (&client, &collector, &task);
        let release = |index: u64| async move {
            let time = NOW - (index + 1) * WINDOW;
            let bits = vec![index.is_multiple_of(2), index.is_multiple_of(3)];
            client.upload(&Measurement::Bits(bits.clone()), time, PATIENCE).await.unwrap();
            let batch = task.parameters().batch(time, 1).unwrap();
            let collected = collector.collect(&Collector::new_job(), batch, PATIENCE).await.unwrap();
            assert_eq!((collected.reports, collected.counts.len()), (1, 0));
            let sums = collected.sums.unwrap();
            sums.into_iter().zip(bits).map(|(sum, bit)| sum - i64::from(bit)).collect::<Vec<i64>>()
        };
        let all = stream::iter(0..releases).map(release).buffer_unordered(32).concat().await;
        assert_eq!(all.len(), releases as usize * BITS);
        all
    }
}

/// One draw, and the sum of two, over values far beyond what occurs.
fn laws() -> [Vec<f64>; 2] {
    let noise = NoiseLaw::laplace(SCALE.parse().unwrap());
    let two = |sum: i64| (-200..=200).map(|one| noise.probability(one) * noise.probability(sum - one)).sum::<f64>();
    [SPAN.map(|value| noise.probability(value)).collect(), SPAN.map(two).collect()]
}

const SPAN: std::ops::RangeInclusive<i64> = -100..=100;

/// Which of nine bins a difference falls into; each is expected at least ten times by both laws.
fn bin(difference: i64) -> usize {
    let side = match difference.unsigned_abs() {
        0 => 0,
        1 => 1,
        2 => 2,
        3..=4 => 3,
        _ => 4,
    };
    if difference < 0 { 4 - side } else { 4 + side }
}

/// The probability of a chi-square with eight degrees of freedom beyond the one of these differences and this law.
fn p_value(differences: &[i64], law: &[f64]) -> f64 {
    let (mut found, mut expected) = ([0.0; 9], [0.0; 9]);
    for difference in differences {
        found[bin(*difference)] += 1.0;
    }
    for (value, probability) in SPAN.zip(law) {
        expected[bin(value)] += probability * differences.len() as f64;
    }
    assert!(expected.iter().all(|&count| count >= 10.0), "{expected:?}");
    let half =
        found.iter().zip(expected).map(|(found, expected)| (found - expected).powi(2) / expected).sum::<f64>() / 2.0;
    (-half).exp() * (1.0 + half + half * half / 2.0 + half.powi(3) / 6.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn published_sums_carry_one_draw_of_each_aggregator_that_adds_noise() {
    let bench = Bench::new().await;
    let [one, two] = laws();
    let of_both = bench.differences(400, [true, true]).await;
    let mut of_one = bench.differences(200, [true, false]).await;
    of_one.extend(bench.differences(200, [false, true]).await);
    for (differences, law, other) in [(&of_both, &two, &one), (&of_one, &one, &two)] {
        let p = p_value(differences, law);
        assert!(p > ALPHA, "p = {p:e} of {differences:?}");
        // The comparison tells one draw from two, so that it would notice one that is missing or too many.
        assert!(p_value(differences, other) < ALPHA);
    }
    assert_eq!(bench.differences(10, [false, false]).await, [0; 10 * BITS]);
}

/// A collector that could have a batch drawn again would average the noise away.
#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_jobs_at_once_for_one_batch_get_one_result() {
    let stage = Stage::with(3, quick, noisy(1, "10")).await;
    for bit in [true, true, false] {
        stage.client.upload(&Measurement::Bits(vec![bit]), now(), PATIENCE).await.unwrap();
    }
    let (jobs, batch): (Vec<_>, _) = ((0..32).map(|_| Collector::new_job()).collect(), stage.batch());
    let outcomes = join_all(jobs.iter().map(|job| stage.collector.collect(job, batch, PATIENCE))).await;
    let served: Vec<_> = jobs.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).collect();
    let [(job, Ok(collected))] = served[..] else { panic!("{} results", served.len()) };
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(refused.is_refused() && refused.to_string().contains("too many times"), "{refused}");
    }
    // Asked for again, it is the same to the last byte.
    let first = collection(&stage.pair.leader.url(), &stage.task, job).await;
    for _ in 0..32 {
        stage.collector.request(job, batch).await.unwrap();
        assert_eq!(&stage.collector.poll(job, batch).await.unwrap(), collected);
        assert_eq!(collection(&stage.pair.leader.url(), &stage.task, job).await, first);
    }
}

/// Restored from the same backup again and again, both aggregators publish the same sums each time: otherwise a dishonest leader, or
/// a collector, would average the noise of the draws away.
#[tokio::test(flavor = "multi_thread")]
async fn twelve_restores_of_leader_and_helper_repeat_their_noise() {
    let stage = Stage::with(3, quick, noisy(2, "50")).await;
    for bit in [true, true, false] {
        stage.client.upload(&Measurement::Bits(vec![bit, false]), now(), PATIENCE).await.unwrap();
    }
    let (batch, leader) = (stage.batch(), stage.pair.leader.operations_url().unwrap());
    eventually("all reports are added up", async || {
        stage.metric(&leader, "uptack_reports_aggregated_total{outcome=\"added\"}").await == 3
    })
    .await;
    let copies = tempfile::tempdir().unwrap();
    for role in ["leader", "helper"] {
        back_up(&stage.directory.path().join(role), &copies.path().join(role)).unwrap();
    }
    let published = stage.collect().await.unwrap().sums.unwrap();
    stage.pair.shutdown().await;
    for _ in 0..12 {
        let restored = tempfile::tempdir().unwrap();
        for role in ["leader", "helper"] {
            copy_folder(&copies.path().join(role), &restored.path().join(role));
        }
        let pair = Pair::start(restored.path(), quick).await.unwrap();
        let mut task = stage.task.collector.clone();
        task.parameters.leader = pair.leader.url();
        let again = Collector::new(task).unwrap().collect(&Collector::new_job(), batch, PATIENCE).await.unwrap();
        assert_eq!(again.sums.unwrap(), published);
        pair.shutdown().await;
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Shares of two batches do not add up to anything, and noise is no excuse for that.
#[tokio::test(flavor = "multi_thread")]
async fn sums_that_noise_cannot_explain_are_refused() {
    let stage = Stage::with(1, quick, noisy(1, "1000")).await;
    stage.client.upload(&Measurement::Bits(vec![true]), now(), PATIENCE).await.unwrap();
    let mut exact = stage.task.collector.clone();
    exact.parameters.noise = Some(NoiseLaw::laplace("0.01".parse().unwrap()));
    let (job, batch) = (Collector::new_job(), stage.batch());
    let sum = stage.collector.collect(&job, batch, PATIENCE).await.unwrap().sums.unwrap()[0];
    let outcome = Collector::new(exact).unwrap().poll(&job, batch).await;
    // One result in two thousand needs no noise to explain it.
    assert_eq!(outcome.is_ok(), (0..=1).contains(&sum), "{sum}");
}
