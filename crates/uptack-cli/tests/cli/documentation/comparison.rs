//! The README's table of alternatives: every number of it is computed anew.

use std::fs;

use uptack::estimate::Estimator;
use uptack::plan::{Noise, Prior, Request, Trust, least_error};
use uptack::privacy::{Delta, Epsilon};
use uptack::{Channel, Mechanism, NoiseLaw};
use uptack_eval::compare::randomized_response;

use super::root;

const OWNERS: [u64; 2] = [50_000, 1_000_000];
const YES: u64 = 500;
const EPSILON: f64 = 1.0;
const DELTA: f64 = 1e-8;

/// The error and, where it is finite, the linked ε.
type Figures = (f64, Option<f64>);

/// What the README says of an alternative, by the first column.
fn figures(name: &str, owners: u64) -> Figures {
    match name {
        "OpenDP, at a trusted curator" => (laplace_variance().sqrt(), None),
        "Prio or DAP without noise" => (0.0, None),
        "Prio or DAP with noise of the aggregators" => ((2.0 * laplace_variance()).sqrt(), None),
        "**Uptack** with noise, `--linked-epsilon 12`" => with_noise(owners, 12.0),
        "**Uptack** with noise, as `ask` plans it" => with_noise(owners, uptack::plan::USUAL_LINKED_EPSILON),
        "**Uptack** without noise" => of_mechanism(&least_error(&request(owners)).unwrap(), owners),
        "shuffled reports, by the privacy blanket" => shuffled(owners, blanket),
        "shuffled reports, by clones (2023)" => shuffled(owners, clones),
        // RAPPOR's bit of a yes/no question is randomized response: a report of one bit is charged once.
        "randomized response" | "RAPPOR, one question" => of_mechanism(&randomized_response(EPSILON).unwrap(), owners),
        other => panic!("the README compares with `{other}`, which this test does not know"),
    }
}

/// The variance of one draw of discrete Laplace noise that hides one answer at ε.
fn laplace_variance() -> f64 {
    NoiseLaw::laplace(format!("{}", 1.0 / EPSILON).parse().unwrap()).variance()
}

pub(super) fn request(owners: u64) -> Request {
    let wanted = (Epsilon::new(EPSILON).unwrap(), Delta::new(DELTA).unwrap());
    Request { release: Some(wanted), ..Request::new(owners, Prior::at(YES)) }
}

fn with_noise(owners: u64, linked: f64) -> Figures {
    let (noise, trust) = (Noise::Aggregators, Trust::OneAggregator);
    let request = Request { noise, trust, linked_epsilon: Some(linked), ..request(owners) };
    of_mechanism(&least_error(&request).unwrap(), owners)
}

fn of_mechanism(mechanism: &Mechanism, owners: u64) -> Figures {
    let channel = mechanism.channel();
    (sd(&channel, owners), Some(local_epsilon(&channel)))
}

fn sd(channel: &Channel, owners: u64) -> f64 {
    Prior::at(YES).predicted_sd(&Estimator::new(channel).unwrap(), owners).unwrap()
}

fn local_epsilon(channel: &Channel) -> f64 {
    let losses = channel.cells().iter().map(|cell| (cell.yes().to_f64() / cell.no().to_f64()).ln().abs());
    losses.fold(0.0, f64::max)
}

/// The least noisy randomized response that an accountant permits.
pub(super) fn shuffled(owners: u64, permits: impl Fn(&Channel, u64) -> bool) -> Figures {
    let (mut low, mut high) = (1.0, 14.0);
    while high - low > 1e-6 {
        let middle = 0.5 * (low + high);
        let channel = fine_randomized_response(middle).channel();
        if permits(&channel, owners) { low = middle } else { high = middle }
    }
    of_mechanism(&fine_randomized_response(low), owners)
}

/// Randomized response with as many digits as it takes: six, which the evaluation uses, cost a per cent of the error at a million
/// owners.
fn fine_randomized_response(epsilon: f64) -> Mechanism {
    format!("randomized-response(t={:.15})", 1.0 / (1.0 + (-epsilon).exp())).parse().unwrap()
}

/// The privacy blanket of Balle, Bell, Gascón and Nissim (2019) for randomized response, without a lattice. Of n owners, A draw the
/// target's truth from the blanket and B the other one, each with probability q, and
/// δ = E[(A·(p − e^ε·q) − B·(e^ε·p − q))₊]/(n·q).
pub(super) fn blanket(channel: &Channel, owners: u64) -> bool {
    let (p, q) = (channel.cells()[0].yes().to_f64(), channel.cells()[0].no().to_f64());
    let growth = EPSILON.exp();
    let (gain, loss) = (p - growth * q, growth * p - q);
    let delta: f64 = binomial(owners, q)
        .map(|(own, chance)| {
            let others = binomial(owners - own, q / (1.0 - q));
            let worth = others.map(|(other, chance)| chance * (gain * own as f64 - loss * other as f64));
            chance * worth.take_while(|worth| *worth > 0.0).sum::<f64>()
        })
        .sum();
    delta / (owners as f64 * q) <= DELTA
}

/// The probabilities of a count that is far below `trials`, up to where they no longer matter.
fn binomial(trials: u64, share: f64) -> impl Iterator<Item = (u64, f64)> {
    let first = (0, (trials as f64 * (-share).ln_1p()).exp());
    let next = move |&(count, chance): &(u64, f64)| {
        let odds = share / (1.0 - share) * (trials - count) as f64 / (count + 1) as f64;
        Some((count + 1, chance * odds)).filter(|(count, chance)| *chance > 1e-25 || *count < 100)
    };
    std::iter::successors(Some(first), next)
}

/// The closed form of Feldman, McMillan and Talwar, *Stronger privacy amplification by shuffling* (2023).
pub(super) fn clones(channel: &Channel, owners: u64) -> bool {
    let (growth, n) = (local_epsilon(channel).exp(), owners as f64);
    let applies = growth <= n / (8.0 * (2.0 / DELTA).ln()) - 1.0;
    let factor = 4.0 * (2.0 * (4.0 / DELTA).ln() / ((growth + 1.0) * n)).sqrt() + 4.0 / n;
    applies && ((growth - 1.0) * factor).ln_1p() <= EPSILON
}

fn decimals(printed: &str) -> usize {
    printed.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// The error with as many decimals as are printed.
fn rounded_like(error: f64, printed: &str) -> String {
    format!("{error:.0$}", decimals(printed))
}

/// The claim with as many decimals as are printed, rounded up but for the error of a logarithm.
fn rounded_up_like(claim: f64, printed: &str) -> String {
    let unit = 10f64.powi(decimals(printed) as i32);
    rounded_like((unit * (claim - 1e-9)).ceil() / unit, printed)
}

#[test]
fn every_number_of_the_readmes_table_is_what_is_computed() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, table) = readme.split_once("| method | who has to be honest |").unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 10);
    let mut wrong = Vec::new();
    for row in &rows {
        let &[name, _, _, small, large, linked] = row.as_slice() else { panic!("{row:?}") };
        let computed = OWNERS.map(|owners| figures(name, owners));
        let errors =
            [small, large].iter().zip(&computed).all(|(printed, (sd, _))| rounded_like(*sd, printed) == **printed);
        // One number stands for both crowds where they have the same.
        let stated: Vec<&str> = linked.split(" and ").collect();
        let agrees = |((_, linked), stated): (&Figures, &&str)| match linked {
            Some(linked) => rounded_up_like(*linked, stated) == **stated,
            None => **stated == *"none",
        };
        if !errors || !computed.iter().zip(stated.iter().cycle()).all(agrees) {
            wrong.push(format!("{name}: {small}, {large}, {linked}; computed {computed:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
