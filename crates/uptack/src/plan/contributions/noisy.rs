//! Contributions with noise that the aggregators add: closed forms, and no search (`docs/contributions.md`, "Planning").
//!
//! Everybody takes part as far as the request allows it. For counts of at least five owners and K ≤ 3·e^L, fewer taking part was
//! never better by more than 1 %. It is for counts of next to nobody, at an ε above 1 above all, and where there are so many
//! options that the linked ε leaves a poor estimate anyway.

use crate::contribution::Contributions;
use crate::error::Result;
use crate::fraction::Fraction;
use crate::noise::{NoiseLaw, Scale};
use crate::plan::Asked;
use crate::plan::family::up;
use crate::plan::noisy::{scale_of, scales_from};
use crate::plan::request::Request;
use crate::privacy::contributions::{linked_epsilon, one_aggregator};

/// The coins that the local bounds demand, and the least noise with which one honest aggregator is enough for the release's ε;
/// `None` if no coins keep the bounds.
pub(super) fn planned(request: &Request) -> Option<Contributions> {
    let (epsilon, _) = request.release?;
    let part = request.most_participation();
    let local = with_coins(request, part, least_other(request.asked, part, request.cell_epsilon()))?;
    let scale = least_scale(&local, epsilon.value())?;
    Some(local.with_noise(Some(NoiseLaw::laplace(scale))))
}

/// The least probability of each wrong possibility at a linked ε of L: r = f/(e^(L/k) + K − 1). Zero without a bound.
pub(super) fn least_other(asked: Asked, part: f64, linked: f64) -> f64 {
    let odds = (linked / f64::from(asked.most())).exp();
    part / (odds + f64::from(asked.possibilities()) - 1.0)
}

/// The probabilities are raised by these shares, in turn, until the rounded parameters satisfy the local bounds.
const HIGHER: [f64; 4] = [0.0, 2e-6, 2e-5, 2e-4];

/// Contributions whose wrong possibilities have at least this probability, which is rounded up to few digits.
pub(super) fn with_coins(request: &Request, part: f64, other: f64) -> Option<Contributions> {
    HIGHER.into_iter().find_map(|more| {
        // The most that a wrong possibility can have is the share of every possibility.
        let most = part / f64::from(request.asked.possibilities());
        let rounded = up(other * (1.0 + more));
        let contributions = contributions(request.asked, part, rounded.min(most)).ok()?;
        keeps_local(request, &contributions).then_some(contributions)
    })
}

/// Contributions of this form. Only a choice has owners who take no part.
pub(super) fn contributions(asked: Asked, part: f64, other: f64) -> Result<Contributions> {
    let other = Fraction::from_f64(other)?;
    match asked {
        Asked::Counts { counts, most } => Contributions::counts_of(counts, most, other),
        _ => Contributions::choice(asked.possibilities(), Fraction::from_f64(part)?, other),
    }
}

fn keeps_local(request: &Request, contributions: &Contributions) -> bool {
    let most = request.cell_epsilon();
    most.is_infinite() || linked_epsilon(contributions).is_some_and(|epsilon| epsilon <= most)
}

/// The smallest scale of few digits with which one honest aggregator guarantees `epsilon`, by the exact claim.
fn least_scale(contributions: &Contributions, epsilon: f64) -> Option<Scale> {
    let keeps = |scale: &Scale| {
        let noisy = contributions.clone().with_noise(Some(NoiseLaw::laplace(*scale)));
        one_aggregator(&noisy).is_some_and(|claim| claim.upper() <= epsilon)
    };
    scales_from(scale_of(needed_decay(&CoinLaw::of(contributions), epsilon))).find(keeps)
}

/// The probabilities of one contribution: of the true possibility (g), of each other one (r), and of silence (s).
#[derive(Clone, Copy, Debug)]
pub(super) struct CoinLaw {
    pub(super) told: f64,
    pub(super) other: f64,
    pub(super) silent: f64,
    /// How many counts are published (C).
    pub(super) counts: f64,
    /// Whether one more possibility is not counted.
    pub(super) has_uncounted: bool,
    /// How many contributions one owner makes (k).
    pub(super) most: f64,
}

impl CoinLaw {
    fn of(contributions: &Contributions) -> Self {
        let law = contributions.law();
        Self {
            told: law.told().to_f64(),
            other: law.other().to_f64(),
            silent: law.silent().to_f64(),
            counts: contributions.counts() as f64,
            has_uncounted: contributions.has_uncounted(),
            most: f64::from(contributions.most()),
        }
    }

    /// For each possible change of a contribution, the largest ratio of the two laws of all noisy counts, both as
    /// coefficients of 1, a and a² (`privacy::contributions`).
    fn moves(&self) -> Vec<([f64; 3], [f64; 3])> {
        let Self { told: g, other: r, silent: s, counts, .. } = *self;
        let mut moves = Vec::new();
        if counts > 1.0 {
            let uncounted = if self.has_uncounted { s + r } else { s };
            moves.push(([g, uncounted, (counts - 1.0) * r], [r, uncounted, g + (counts - 2.0) * r]));
        }
        if self.has_uncounted {
            moves.push(([g, r + s, (counts - 1.0) * r], [r, g + s, (counts - 1.0) * r]));
            moves.push(([g + s, counts * r, 0.0], [r + s, g + (counts - 1.0) * r, 0.0]));
        }
        moves
    }
}

/// The a = e^(−1/t) with which one honest aggregator guarantees `epsilon` for all contributions of an owner, each of which gets
/// the same share: the largest that any change of a contribution needs. Zero if the coins are enough.
pub(super) fn needed_decay(law: &CoinLaw, epsilon: f64) -> f64 {
    let growth = (epsilon / law.most).exp();
    law.moves().into_iter().map(|(from, to)| least_decay(from, to, growth)).fold(0.0, f64::max)
}

/// The smallest a at which the ratio of two laws, given by their coefficients of 1, a and a², is at most `growth`: the
/// positive root of u·a² + v·a = w. Zero if no noise is needed.
fn least_decay(from: [f64; 3], to: [f64; 3], growth: f64) -> f64 {
    let [lacking, linear, square] = [0, 1, 2].map(|power| growth * to[power] - from[power]);
    let needed = -lacking;
    if needed <= 0.0 {
        return 0.0;
    }
    2.0 * needed / (linear + (linear * linear + 4.0 * square * needed).sqrt())
}
