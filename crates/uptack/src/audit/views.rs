//! The adversaries who hold one owner's whole cell, or one of its answers.

use super::collect::{Counts, HALVES, Path, TEST, TRAINING};
use super::local::{Outcomes, Sample, attack};
use super::{Claims, Finding, some_of};
use crate::channel::{Channel, answer_name};

/// The adversary who holds the whole cell.
pub(super) fn linked(channel: &Channel, halves: &[Counts; HALVES], claims: &Claims, miss: f64) -> Finding {
    let samples = by_path(halves, |cells| cells);
    attack(&samples, claims.linked, miss, |event| {
        format!("the cell is {}", some_of(event.iter().map(|&cell| channel.cells()[cell].name())))
    })
}

/// The adversaries who each hold one answer.
pub(super) fn answers(channel: &Channel, halves: &[Counts; HALVES], claims: &Claims, miss: f64) -> Vec<Finding> {
    let find = |(answer, &claimed): (usize, &Option<f64>)| {
        let samples = by_path(halves, |cells| marginal(channel, answer, &cells));
        let (letter, outputs) = (answer_name(answer), &channel.answers()[answer]);
        attack(&samples, claimed, miss, |event| {
            format!("{letter} is {}", some_of(event.iter().map(|&output| outputs[output])))
        })
    };
    claims.answers.iter().enumerate().map(find).collect()
}

/// One sample for each of the sampler's paths and for both together, its outcomes made from the counts of the cells.
fn by_path(halves: &[Counts; HALVES], outcomes: impl Fn(Vec<u64>) -> Vec<u64>) -> Vec<Sample> {
    let sample = |path: Path| {
        let [training, test] = [TRAINING, TEST].map(|half| {
            let [no, yes] = [false, true].map(|truth| outcomes(halves[half].owners(path, truth)));
            Outcomes { yes, no }
        });
        Sample { name: path.to_string(), training, test }
    };
    [Path::Both, Path::Single, Path::Batch].map(sample).into()
}

/// How often an answer had each of its outputs, from the counts of the cells.
fn marginal(channel: &Channel, answer: usize, cells: &[u64]) -> Vec<u64> {
    let outputs = &channel.answers()[answer];
    let mut counts = vec![0; outputs.len()];
    for (cell, count) in channel.cells().iter().zip(cells) {
        if let Some(place) = outputs.iter().position(|output| *output == cell.outputs()[answer]) {
            counts[place] += count;
        }
    }
    counts
}
