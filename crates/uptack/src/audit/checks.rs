//! What the claims rest on: the law drawn is the law stated, coins are fresh, and their number tells nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::bound::{Hits, lower_tail, upper_tail};
use super::collect::{Counts, HALVES, PairTable, Path, Pieces, TEST, TRAINING, on_all_threads};
use super::local::{Outcomes, Sample, attack};
use super::subject::{AuditCoins, Replay, Source, Subject};
use super::{Finding, Verdict, some_of};
use crate::channel::Channel;
use crate::error::Result;
use crate::packed::Truths;
use crate::progress::Progress;
use crate::truth::Truth;

/// Do the counts fit the probabilities that are stated?
///
/// Every count is put to an exact binomial test, on both sides, and the smallest tail is multiplied by the number of
/// tests (Bonferroni).
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// How many tails were looked at.
    pub tests: u64,
    /// The smallest tail, corrected for their number.
    pub p_value: f64,
    /// The count that fits worst.
    pub worst: Option<Misfit>,
    /// Violated if `p_value` is below this check's share of the stated miss.
    pub verdict: Verdict,
}

/// A count and what it should have been.
#[derive(Clone, Debug, Serialize)]
pub struct Misfit {
    /// What was counted.
    pub what: String,
    /// Its stated probability.
    pub stated: f64,
    /// How often it came up.
    pub hits: u64,
    /// In how many trials.
    pub trials: u64,
}

/// Collects tests and keeps the worst.
pub(super) struct Fitting {
    tests: u64,
    tail: f64,
    worst: Option<Misfit>,
}

impl Fitting {
    pub(super) fn new() -> Self {
        Self { tests: 0, tail: 1.0, worst: None }
    }

    pub(super) fn test(&mut self, count: Hits, stated: f64, what: impl FnOnce() -> String) {
        if count.trials == 0 {
            return;
        }
        self.tests += 2;
        let tail = upper_tail(count, stated).min(lower_tail(count, stated));
        if tail < self.tail {
            self.tail = tail;
            self.worst = Some(Misfit { what: what(), stated, hits: count.hits, trials: count.trials });
        }
    }

    /// Tests every outcome of one law.
    pub(super) fn test_law(
        &mut self,
        counts: &[u64],
        stated: impl Iterator<Item = f64>,
        what: impl Fn(usize) -> String,
    ) {
        let trials = counts.iter().sum();
        for (outcome, (&hits, stated)) in counts.iter().zip(stated).enumerate() {
            self.test(Hits { hits, trials }, stated, || what(outcome));
        }
    }

    pub(super) fn conclude(self, miss: f64) -> Fit {
        let p_value = (self.tail * self.tests as f64).min(1.0);
        Fit { tests: self.tests, p_value, worst: self.worst, verdict: Verdict::violated_if(p_value <= miss) }
    }
}

fn truth_name(truth: bool) -> &'static str {
    if truth { "yes" } else { "no" }
}

fn law(channel: &Channel, truth: bool) -> Vec<f64> {
    channel.cells().iter().map(|cell| if truth { cell.yes() } else { cell.no() }.to_f64()).collect()
}

/// Is the law drawn the law stated, on each of the sampler's paths and on both together?
pub(super) fn stated_law(channel: &Channel, whole: &Counts, miss: f64) -> Fit {
    let mut fitting = Fitting::new();
    for truth in [false, true] {
        for path in [Path::Single, Path::Batch, Path::Both] {
            fitting.test_law(&whole.owners(path, truth), law(channel, truth).into_iter(), |cell| {
                format!("cell {} for a {} ({path})", channel.cells()[cell].name(), truth_name(truth))
            });
        }
    }
    fitting.conclude(miss)
}

/// Do owners next to each other, and in the same lane of consecutive words, draw independently? Pairs are compared with
/// the product of the stated laws, so a sampler that draws another law fails here, too.
pub(super) fn independence(channel: &Channel, whole: &Counts, miss: f64) -> Fit {
    let mut fitting = Fitting::new();
    for (path, table) in pair_tables(whole) {
        for truths in [[false, false], [false, true], [true, false], [true, true]] {
            let [first, second] = truths.map(|truth| law(channel, truth));
            let stated = first.iter().flat_map(|p| second.iter().map(move |q| p * q));
            let [one, other] = truths.map(truth_name);
            fitting.test_law(table.pairs(truths), stated, |pair| {
                format!("cells {} for a {one} and a {other} ({path})", pair_name(channel, pair))
            });
        }
    }
    fitting.conclude(miss)
}

/// The adversary who holds the target's cell and that of another owner, whose truth is known. With fresh coins the other
/// cell adds nothing: the claim is that of the target's cell alone.
pub(super) fn neighbour(channel: &Channel, halves: &[Counts; HALVES], claimed: Option<f64>, miss: f64) -> Finding {
    let tables = pair_tables(&halves[TRAINING]).into_iter().zip(pair_tables(&halves[TEST]));
    let samples = tables.flat_map(|((path, training), (_, test))| {
        [false, true].map(|other| Sample {
            name: format!("{path}, the other holds {}", truth_name(other)),
            training: beside(training, other),
            test: beside(test, other),
        })
    });
    attack(&samples.collect::<Vec<_>>(), claimed, miss, |event| {
        let names = event.iter().map(|&pair| pair_name(channel, pair));
        format!("the other's and the target's cells are {}", some_of(names))
    })
}

/// The cells of the target and of another owner, whose truth is `other`.
fn beside(table: &PairTable, other: bool) -> Outcomes {
    Outcomes { yes: table.pairs([other, true]).to_vec(), no: table.pairs([other, false]).to_vec() }
}

fn pair_tables(counts: &Counts) -> [(&'static str, &PairTable); 3] {
    [("single", &counts.single), ("batch", &counts.batch), ("batch, same lane", &counts.lanes)]
}

fn pair_name(channel: &Channel, pair: usize) -> String {
    let cells = channel.cells();
    format!("{}|{}", cells[pair / cells.len()].name(), cells[pair % cells.len()].name())
}

/// The adversary who sees how many bytes a call for one owner read.
pub(super) fn lengths(halves: &[Counts; HALVES], miss: f64) -> Finding {
    let by_length = halves.iter().flat_map(|half| &half.lengths);
    let seen: BTreeSet<u64> = by_length.flat_map(|counts| counts.keys().copied()).collect();
    let lengths: Vec<u64> = seen.into_iter().collect();
    let [training, test] = [TRAINING, TEST].map(|half| {
        let [no, yes] = &halves[half].lengths;
        Outcomes { yes: counts_of(&lengths, yes), no: counts_of(&lengths, no) }
    });
    attack(&[Sample { name: "single".to_owned(), training, test }], Some(0.0), miss, |event| {
        format!("{} bytes read", some_of(event.iter().map(|&index| lengths[index])))
    })
}

pub(super) fn counts_of(lengths: &[u64], counts: &BTreeMap<u64, u64>) -> Vec<u64> {
    lengths.iter().map(|length| counts.get(length).copied().unwrap_or(0)).collect()
}

/// The same coins tossed again for other truths: the bytes read must not change. No chance is involved.
#[derive(Clone, Debug, Serialize)]
pub struct Replays {
    /// How many batches, and single calls, were replayed.
    pub replayed: u64,
    /// How many of them read another number of bytes for another truth.
    pub differing: u64,
    /// Violated if any did.
    pub verdict: Verdict,
}

/// Batches this large read some tens of buffers of coins.
const LARGEST_REPLAY: u64 = 4096;

/// Spends up to `calls` calls on replays; also says how many it made.
pub(super) fn replays(
    subject: &impl Subject,
    calls: u64,
    coins: AuditCoins,
    progress: &Progress,
) -> Result<(Replays, u64)> {
    let crowds = replayed_crowds((calls / 64).clamp(1, LARGEST_REPLAY));
    let each = crowds.iter().map(|crowd| crowd.len() as u64).sum::<u64>() + 2;
    let pieces = Pieces { count: calls / each, calls: each, progress };
    let (replayed, made) = (2 * pieces.count, pieces.count * each);
    let work = |differing: &mut u64, piece: u64| {
        *differing += differing_lengths(subject, &crowds, &mut Replay::new(coins.of(4, piece)))?;
        Ok(())
    };
    let differing = on_all_threads(pieces, || 0, work, |sum, part| *sum += part)?;
    Ok((Replays { replayed, differing, verdict: Verdict::violated_if(differing > 0) }, made))
}

/// A crowd of yes-owners, one of no-owners, and one of both.
fn replayed_crowds(owners: u64) -> [Truths; 3] {
    [
        (0..owners).map(|_| Truth::Yes).collect(),
        (0..owners).map(|_| Truth::No).collect(),
        (0..owners).map(|owner| Truth::from_bool(owner % 3 == 0)).collect(),
    ]
}

/// For how many of the two, a batch and a single call, the length depends on the truths.
fn differing_lengths(subject: &impl Subject, crowds: &[Truths], coins: &mut Replay<Source>) -> Result<u64> {
    let batch = length_depends_on(crowds, coins, |truths, coins| subject.draw_many(truths, coins).map(drop))?;
    let single =
        length_depends_on(&[Truth::Yes, Truth::No], coins, |&truth, coins| subject.draw(truth, coins).map(drop))?;
    Ok(u64::from(batch) + u64::from(single))
}

/// Whether the number of bytes read from the same coins depends on the input.
pub(super) fn length_depends_on<T>(
    inputs: &[T],
    coins: &mut Replay<Source>,
    draw: impl Fn(&T, &mut Replay<Source>) -> Result<()>,
) -> Result<bool> {
    let mut read = Vec::new();
    for input in inputs {
        coins.rewind();
        draw(input, coins)?;
        read.push(coins.read());
    }
    Ok(read.windows(2).any(|pair| pair[0] != pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_cell_is_a_misfit_and_a_likely_count_is_not() {
        let mut fitting = Fitting::new();
        fitting.test(Hits { hits: 1, trials: 1000 }, 0.0, || "impossible".to_owned());
        let fit = fitting.conclude(1e-3);
        assert_eq!((fit.verdict, fit.p_value), (Verdict::Violated, 0.0));
        let mut fitting = Fitting::new();
        fitting.test(Hits { hits: 480, trials: 1000 }, 0.5, || "likely".to_owned());
        fitting.test(Hits { hits: 1000, trials: 1000 }, 1.0, || "certain".to_owned());
        let fit = fitting.conclude(1e-3);
        assert_eq!((fit.verdict, fit.tests), (Verdict::Consistent, 4));
    }
}
