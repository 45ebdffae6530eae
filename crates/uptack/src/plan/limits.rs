//! The constraints of a request, and the fewest flips under which a law keeps them.

use std::cell::Cell;

use super::family::Family;
use super::law::Law;
use super::request::Request;
use crate::error::Error;
use crate::privacy::{self, Epsilon};

/// The constraints, with the number of owners that a claim may count on.
pub(super) struct Limits<'a> {
    request: &'a Request,
    owners: u64,
    /// How often the accounting was called.
    calls: Cell<u64>,
    /// The larger flip of the law found last: the next one is near it.
    last_flip: Cell<f64>,
}

/// The certificate is wider than the ends by up to 0.8 per mille in ε; the search aims below it by a little more.
const CERTIFICATE_SHARE: f64 = 1.0 - 8.5e-4;
/// How exactly the search solves for the flips, in their logarithm: the error moves by half of it.
const SEARCH_ACCURACY: f64 = 2e-3;
/// How exactly what was found is solved for in the end.
const FINAL_ACCURACY: f64 = 2e-5;

impl<'a> Limits<'a> {
    pub(super) fn new(request: &'a Request) -> Result<Self, Error> {
        let owners = request.claim_owners()?;
        Ok(Self { request, owners, calls: Cell::new(0), last_flip: Cell::new(20.0 / owners as f64) })
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The law with the fewest flips that keeps every constraint; none where the flips would drown the truth.
    pub(super) fn fewest_flips(&self, family: Family, shape: &Law) -> Option<Law> {
        self.solve(family, shape, SEARCH_ACCURACY)
    }

    /// The same, exactly.
    pub(super) fn polished(&self, family: Family, law: &Law) -> Option<Law> {
        self.solve(family, law, FINAL_ACCURACY)
    }

    fn solve(&self, family: Family, shape: &Law, accuracy: f64) -> Option<Law> {
        let most = family.largest_factor(shape) * (1.0 - 1e-9);
        let local = self.local_factor(family, shape, most)?;
        let factor = match self.request.release {
            None => local,
            Some((epsilon, delta)) => {
                let aim = Epsilon::new(epsilon.value() * CERTIFICATE_SHARE).ok()?;
                let excess = |log_factor: f64| {
                    let law = family.with_flips_times(shape, log_factor.exp());
                    self.log_delta(&law, aim) - delta.value().ln()
                };
                let guess = (self.last_flip.get() / shape.flip[0].max(shape.flip[1])).ln();
                falling_root(excess, guess, (local.ln(), most.ln()), accuracy)?.exp()
            }
        };
        let law = family.with_flips_times(shape, factor);
        self.last_flip.set(law.flip[0].max(law.flip[1]));
        Some(law)
    }

    /// The smallest factor at which the linked ε and that of each answer are small enough; they fall with it.
    fn local_factor(&self, family: Family, shape: &Law, most: f64) -> Option<f64> {
        let request = self.request;
        if request.answer_epsilon.is_none() && request.linked_epsilon.is_none() {
            return Some(1e-12);
        }
        let keeps = |factor: f64| {
            let law = family.with_flips_times(shape, factor);
            request.answer_epsilon.is_none_or(|most| family.answer_epsilon(&law) <= most)
                && request.linked_epsilon.is_none_or(|most| law.linked_epsilon() <= most)
        };
        if !keeps(most) {
            return None;
        }
        let (mut low, mut high) = ((1e-12f64).ln(), most.ln());
        if keeps(low.exp()) {
            return Some(low.exp());
        }
        for _ in 0..60 {
            let half = 0.5 * (low + high);
            if keeps(half.exp()) { high = half } else { low = half }
        }
        Some(high.exp())
    }

    /// ln δ at the ends, not below −1e4.
    fn log_delta(&self, law: &Law, epsilon: Epsilon) -> f64 {
        self.calls.set(self.calls.get() + 1);
        let delta = law
            .channel()
            .and_then(|channel| privacy::release(&channel, self.owners))
            .map_or(1.0, |accountant| accountant.delta_of_ends(epsilon).upper());
        delta.ln().max(-1e4)
    }
}

/// Where a falling function becomes negative within the ends, from the side where it is; none where it does nowhere.
///
/// From a guess in growing steps until it is bracketed, then by false position, with bisection where that is slow.
fn falling_root(function: impl Fn(f64) -> f64, guess: f64, (least, most): (f64, f64), accuracy: f64) -> Option<f64> {
    let at = |x: f64| (x, function(x));
    let mut low = at(guess.clamp(least, most));
    let mut high = low;
    let mut step = 0.1;
    while high.1 > 0.0 {
        if high.0 >= most {
            return None;
        }
        low = high;
        high = at((high.0 + step).min(most));
        step *= 2.5;
    }
    while low.1 <= 0.0 {
        if low.0 <= least {
            return Some(least);
        }
        high = low;
        low = at((low.0 - step).max(least));
        step *= 2.5;
    }
    for round in 0..60 {
        let width = high.0 - low.0;
        if width < accuracy {
            break;
        }
        let crossing = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        // A little beyond the crossing, so that the bracket shrinks from both sides.
        let aimed =
            if round % 4 == 3 || !crossing.is_finite() { 0.5 * (low.0 + high.0) } else { crossing + 0.4 * accuracy };
        let next = at(aimed.clamp(low.0 + 0.01 * width, high.0 - 0.01 * width));
        if next.1 > 0.0 { low = next } else { high = next }
    }
    Some(high.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_approached_from_the_negative_side() {
        for guess in [-9.0, -1.0, 0.3, 4.0] {
            let root = falling_root(|x| 0.25 - x * x * x, guess, (-10.0, 10.0), 1e-6).unwrap();
            assert!(root.powi(3) >= 0.25 && root - 0.25f64.cbrt() < 2e-6, "{guess}: {root}");
        }
        assert_eq!(falling_root(|x| 1.0 - x, 0.0, (-1.0, 0.5), 1e-6), None);
        assert_eq!(falling_root(|x| -1.0 - x, 0.2, (0.0, 0.5), 1e-6), Some(0.0));
    }
}
