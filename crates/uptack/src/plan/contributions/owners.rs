//! Choices by owners' coins alone: how many take part, and how often they are wrong.
//!
//! For each share of owners who take part there is a least probability of a wrong option with which the release keeps its ε and δ.
//! Rare options have the smallest error if few take part, and common ones if everybody does; the search moves along that share.

use std::cell::Cell;

use super::noisy::{contributions, least_other, with_coins};
use crate::contribution::Contributions;
use crate::plan::Asked;
use crate::plan::bit_search::{Bit, Goal};
use crate::plan::family::fewer;
use crate::plan::request::Request;
use crate::plan::root::falling_root;
use crate::privacy::Target;
use crate::privacy::composition::Profile;
use crate::privacy::contributions::OwnersAlone;

/// The best coins that keep the request, certified; `None` if there are none.
pub(super) fn planned(request: &Request) -> Option<Contributions> {
    let most = request.most_participation();
    let search = OwnersSearch::new(request)?;
    let Some((epsilon, delta)) = request.release else {
        // Local bounds alone: the error falls with the participation.
        return with_coins(request, most, search.least_other(most));
    };
    let target = Target::Delta(delta);
    let keeps = |planned: &Contributions| {
        let accountant = OwnersAlone::new(planned, search.owners).ok()?;
        Some(accountant.guarantee(target).value()?.upper() <= epsilon.value())
    };
    let best = search.best()?;
    let part = fewer(best.part);
    let other = best.other * (part / best.part);
    let mut raised = RAISES.into_iter().filter_map(|raise| with_coins(request, part, other * raise));
    raised.find(|planned| keeps(planned) == Some(true))
}

/// The factors on the probability of a wrong option, tried in turn until the certificate satisfies the request.
const RAISES: [f64; 8] = [1.0, 1.000_01, 1.000_1, 1.001, 1.004, 1.02, 1.1, 1.5];
/// The steps from one share of owners who take part to the next, first, and the factor on each step when the search turns.
const FIRST_STEP: f64 = 0.5;
const TURN: f64 = -0.4;
/// Steps this small are the last.
const LAST_STEP: f64 = 0.02;
/// The accuracy of the logarithm of the least probability of a wrong option.
const ACCURACY: f64 = 2e-5;
/// The smallest share of owners who take part that is tried.
const LEAST_PART: f64 = 1e-4;

/// Coins, and the error with them.
#[derive(Clone, Copy)]
struct Coins {
    part: f64,
    other: f64,
    error: f64,
}

struct OwnersSearch<'a> {
    request: &'a Request,
    owners: u64,
    goal: Goal,
    /// The logarithm of the last probability of a wrong option over the participation, and the slope of ln δ there.
    last: Cell<(f64, f64)>,
}

impl<'a> OwnersSearch<'a> {
    fn new(request: &'a Request) -> Option<Self> {
        let owners = request.claim_owners().ok()?;
        let epsilon = request.release_epsilon().unwrap_or(1.0);
        let last = Cell::new(((30.0 / owners as f64).ln(), -10.0));
        Some(Self { request, owners, goal: Goal::new(request, epsilon), last })
    }

    fn least_other(&self, part: f64) -> f64 {
        least_other(self.request.asked, part, self.request.cell_epsilon())
    }

    /// The coins of least error. It has one minimum: steps turn around and shrink wherever it rises.
    fn best(&self) -> Option<Coins> {
        let most = self.request.most_participation();
        let mut best = self.at(most)?;
        if matches!(self.request.asked, Asked::Counts { .. }) {
            return Some(best);
        }
        let (mut log_part, mut step) = (most.ln(), -FIRST_STEP);
        while step.abs() > LAST_STEP {
            let next = (log_part + step).clamp(LEAST_PART.ln(), most.ln());
            match self.at(next.exp()).filter(|coins| coins.error < best.error) {
                Some(better) => (best, log_part) = (better, next),
                None => step *= TURN,
            }
        }
        Some(best)
    }

    /// The coins with the fewest wrong options if this share takes part.
    fn at(&self, part: f64) -> Option<Coins> {
        // A little below the share of every possibility, above which rounding would leave the law.
        let share = part / f64::from(self.request.asked.possibilities());
        let (least, most) = (self.least_other(part), share * (1.0 - 1e-9));
        let other = if self.excess(part, least) <= 0.0 { least } else { self.needed_other(part, (least, most))? };
        let told = part - f64::from(self.request.asked.possibilities() - 1) * other;
        let bit = Bit { missed: 1.0 - told, stray: other, of_no: false };
        let error = self.goal.error_with(&bit, 0.0);
        (bit.lean() > 0.0 && error.is_finite()).then_some(Coins { part, other, error })
    }

    /// The least probability of a wrong option that keeps the bound on the release.
    fn needed_other(&self, part: f64, (least, most): (f64, f64)) -> Option<f64> {
        let (guess, slope) = self.last.get();
        let least = least.max(most * 1e-12).ln();
        let function = |log_other: f64| self.excess(part, log_other.exp());
        let root = falling_root(function, (guess + part.ln(), slope), (least, most.ln()), ACCURACY)?;
        self.last.set((root.at - part.ln(), root.slope));
        Some(root.at.exp())
    }

    /// By how much ln δ of the release is above the bound.
    fn excess(&self, part: f64, other: f64) -> f64 {
        let Some((epsilon, delta)) = self.request.release else { return f64::NEG_INFINITY };
        let planned = contributions(self.request.asked, part, other);
        let accountant = planned.and_then(|planned| OwnersAlone::new(&planned, self.owners));
        accountant.map_or(f64::INFINITY, |accountant| (accountant.delta_upper(epsilon.value()) / delta.value()).ln())
    }
}
