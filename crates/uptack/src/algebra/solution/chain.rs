//! The subtractions that lead to a solution, as text.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::algebra::coupling::Coupled;
use crate::channel::{Bin, Channel, Output};

/// One subtraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The difference of bins, as in `B3 - C3`.
    pub combination: String,
    /// What it holds, in terms.
    pub holds: String,
    /// How often it is added (or, below 0, subtracted) to make up the solution.
    pub weight: i64,
}

/// Σ w·bin as differences of successive answers, from the last answer back, and what is left of the first.
pub(super) fn chain(coupled: &Coupled, channel: &Channel, used: &[(Bin, i64)]) -> Vec<Step> {
    let outputs: BTreeSet<Output> = used.iter().map(|(bin, _)| bin.output).collect();
    let mut steps: Vec<(usize, Step)> = Vec::new();
    for output in outputs {
        let bins: Vec<Bin> = channel.bins().into_iter().filter(|bin| bin.output == output).collect();
        steps.extend(chain_of_output(coupled, &bins, used));
    }
    steps.sort_by_key(|(answer, _)| Reverse(*answer));
    steps.into_iter().map(|(_, step)| step).collect()
}

/// The steps through the bins of one output, each with the later of its answers.
fn chain_of_output(coupled: &Coupled, bins: &[Bin], used: &[(Bin, i64)]) -> Vec<(usize, Step)> {
    let weight = |bin: &Bin| used.iter().find(|(other, _)| other == bin).map_or(0, |(_, weight)| *weight);
    let mut steps = Vec::new();
    let mut reached = 0;
    for (later, bin) in bins.iter().enumerate().rev() {
        reached += weight(bin);
        let earlier = later.checked_sub(1).map(|earlier| (bins[earlier], -1));
        let parts: Vec<(Bin, i64)> = [(*bin, 1)].into_iter().chain(earlier).collect();
        steps.extend(step(coupled, &parts, reached).map(|step| (bin.answer, step)));
    }
    steps
}

/// A step turned so that what it holds starts with a plus; none if it adds nothing.
fn step(coupled: &Coupled, parts: &[(Bin, i64)], weight: i64) -> Option<Step> {
    let (_, first) = *content(coupled, parts).first()?;
    let turn = first.signum();
    let turned: Vec<(Bin, i64)> = parts.iter().map(|(bin, weight)| (*bin, weight * turn)).collect();
    let step = Step { combination: bins_text(&turned), holds: content_text(coupled, &turned), weight: weight * turn };
    (weight != 0).then_some(step)
}

/// What a combination of bins holds: a weight for each term.
fn content(coupled: &Coupled, parts: &[(Bin, i64)]) -> Vec<(usize, i64)> {
    let mut weights = vec![0; coupled.terms.len()];
    for (bin, weight) in parts {
        for (_, held) in coupled.contents.iter().filter(|(other, _)| other == bin) {
            held.iter().for_each(|(term, sign)| weights[*term] += weight * sign);
        }
    }
    weights.into_iter().enumerate().filter(|(_, weight)| *weight != 0).collect()
}

/// What a combination of bins holds, as text.
pub(super) fn content_text(coupled: &Coupled, parts: &[(Bin, i64)]) -> String {
    signed_text(content(coupled, parts).into_iter().map(|(term, weight)| (coupled.terms[term].name.clone(), weight)))
}

/// A combination of bins, as text.
pub(super) fn bins_text(parts: &[(Bin, i64)]) -> String {
    let mut ordered = parts.to_vec();
    // What is subtracted comes last, as one would write it.
    ordered.sort_by_key(|(_, weight)| *weight < 0);
    signed_text(ordered.into_iter().map(|(bin, weight)| (bin.name(), weight)))
}

fn signed_text(parts: impl Iterator<Item = (String, i64)>) -> String {
    let mut text = String::new();
    for (name, weight) in parts {
        text.push_str(match (text.is_empty(), weight < 0) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        });
        if weight.abs() != 1 {
            text.push_str(&format!("{}*", weight.abs()));
        }
        text.push_str(&name);
    }
    if text.is_empty() { "0".to_owned() } else { text }
}
