//! How well anybody can guess an owner's truth (`docs/accounting.md`, "What a guesser gains").

use crate::channel::Channel;
use crate::privacy::likelihood::ExactLikelihood;
use crate::privacy::views::{cells, marginal};
use crate::privacy::{Accountant, Guarantee, Target};
use crate::probability::Probability;
use crate::truth::Truth;

/// The best possible accuracy of a guess at one owner's truth, whatever the guesser knows of the others.
///
/// A guesser who believes in *yes* with probability π and then sees the view is right with probability at most
/// (1−π) + π·δ(ln((1−π)/π)), and the best guesser reaches that. The numbers are exact for local views and certified for the
/// release; they are rounded up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BayesAccuracy {
    /// From an even prior: before the view, the guess is right half of the time.
    pub even: f64,
    /// From a prior of 1 %: before the view, guessing the likelier truth is right 99 % of the time.
    pub rare: f64,
}

/// The odds of the likelier truth under the prior of 1 %.
const RARE_ODDS: f64 = 99.0;

impl BayesAccuracy {
    /// For somebody who sees one answer of a known owner.
    pub fn from_answer(channel: &Channel, answer: usize) -> Self {
        Self::local(&marginal(channel, answer))
    }

    /// For somebody who sees all answers of a known owner.
    pub fn from_linked(channel: &Channel) -> Self {
        Self::local(&cells(channel))
    }

    /// For somebody who sees the tallies and knows everybody else's truth.
    pub fn from_release(accountant: &Accountant, claim: &Guarantee) -> Self {
        let even = 0.5 + 0.5 * accountant.delta_upper(0.0);
        let claimed = delta_at_rare_odds(claim).filter(|&delta| delta < 1e-3);
        let rare = claimed.unwrap_or_else(|| accountant.delta_upper(RARE_ODDS.ln()));
        Self { even: up(even), rare: up(0.99 + 0.01 * rare) }
    }

    /// In integers, so that at most the last bit of a double is off: 57 % does not become 57.0001 %.
    fn local(classes: &[ExactLikelihood]) -> Self {
        let whole = Probability::ONE.numerator();
        let even = excess(classes, Truth::Yes, 1);
        let rare_odds = RARE_ODDS as u128;
        let rare = match excess(classes, Truth::Yes, rare_odds).max(excess(classes, Truth::No, rare_odds)) {
            0 => 0.99,
            excess => up(0.99 + 0.01 * (excess as f64 / whole as f64)),
        };
        Self { even: (whole + even) as f64 / (2.0 * whole as f64), rare }
    }
}

/// δ at ε = ln 99 from above, by a claim alone: δ falls with ε, so where a claim's ε is below that, its own δ is a bound.
fn delta_at_rare_odds(claim: &Guarantee) -> Option<f64> {
    match (claim.target(), claim.value()) {
        (Target::Delta(delta), Some(value)) if value.upper() <= RARE_ODDS.ln() => Some(delta.value()),
        (Target::Epsilon(epsilon), Some(value)) if epsilon.value() <= RARE_ODDS.ln() => Some(value.upper()),
        _ => None,
    }
}

/// Σ over the classes of (p − odds·q)₊, p being the probability under `truth` and q that under the other one: δ at e^ε = odds.
fn excess(classes: &[ExactLikelihood], truth: Truth, odds: u128) -> u128 {
    classes.iter().map(|class| class[truth].saturating_sub(odds * class[truth.other()])).sum()
}

/// Slightly more than `accuracy`, which covers the rounding of a few operations.
fn up(accuracy: f64) -> f64 {
    (accuracy * (1.0 + 1e-12)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mechanism;
    use crate::privacy::{Delta, release};

    fn channel(text: &str) -> Channel {
        text.parse::<Mechanism>().unwrap().channel()
    }

    #[test]
    fn local_guesses_are_those_of_the_law() {
        let guess = BayesAccuracy::from_linked(&channel("randomized-response(t=0.8)"));
        assert!((guess.even - 0.8).abs() < 1e-9);
        assert!((guess.rare - 0.99).abs() < 1e-9);
        let bare = BayesAccuracy::from_linked(&channel("sampling(sy=0.5,sn=0.5)"));
        assert!((bare.even - 0.75).abs() < 1e-9);
        assert!((bare.rare - 0.995).abs() < 1e-9);
        let nothing = BayesAccuracy::from_answer(&channel("blended(0,0.25,0.25,0,0.5,0.1,0.1)"), 0);
        assert!((nothing.even - 0.5).abs() < 1e-9);
    }

    #[test]
    fn alone_in_the_crowd_the_release_is_the_cell() {
        let channel = channel("randomized-response(t=0.8)");
        let accountant = release(&channel, 1).unwrap();
        let claim = accountant.epsilon(Delta::new(1e-8).unwrap());
        let (alone, local) = (BayesAccuracy::from_release(&accountant, &claim), BayesAccuracy::from_linked(&channel));
        assert!((alone.even - local.even).abs() < 1e-6 && alone.even >= local.even - 1e-11);
        let crowd = release(&channel, 1000).unwrap();
        let claim = crowd.epsilon(Delta::new(1e-8).unwrap());
        assert!(BayesAccuracy::from_release(&crowd, &claim).even < 0.55);
    }
}
