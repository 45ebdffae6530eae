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
    /// The δ that the search aims at: a little less than asked for, so that the certificate, which is wider than the
    /// ends by up to 5 % in δ, is met as well.
    delta: f64,
    /// How often the accounting was called.
    calls: Cell<u64>,
}

/// What the certificate may add to δ.
const CERTIFICATE_SHARE: f64 = 1.06;

impl<'a> Limits<'a> {
    pub(super) fn new(request: &'a Request) -> Result<Self, Error> {
        let owners = request.claim_owners()?;
        let delta = request.release.map_or(1.0, |(_, delta)| delta.value() / CERTIFICATE_SHARE);
        Ok(Self { request, owners, delta, calls: Cell::new(0) })
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The law with the fewest flips that keeps every constraint; none where the flips would drown the truth.
    pub(super) fn fewest_flips(&self, family: Family, shape: &Law) -> Option<Law> {
        let most = family.largest_factor(shape) * (1.0 - 1e-9);
        let local = self.local_factor(family, shape, most)?;
        let factor = match self.request.release {
            None => local,
            Some((epsilon, _)) => self.release_factor(family, shape, epsilon, local, most)?,
        };
        Some(family.with_flips_times(shape, factor))
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

    /// The smallest factor from `least` on at which the release at its ends is within the aim.
    ///
    /// ln δ falls in the logarithm of the factor; false position with bisection's safety finds it in some six calls.
    fn release_factor(&self, family: Family, shape: &Law, epsilon: Epsilon, least: f64, most: f64) -> Option<f64> {
        let aim = self.delta.ln();
        let excess = |log_factor: f64| -> f64 {
            let law = family.with_flips_times(shape, log_factor.exp());
            self.log_delta(&law, epsilon) - aim
        };
        // A first guess from the flips that hide a target at this ε and δ in a large crowd.
        let expected = (4.0 - aim / 4.0).max(1.0) / (self.owners as f64 * shape.flip[1].max(shape.flip[0]));
        let (floor, ceiling) = (least.ln(), most.ln());
        let mut at = expected.ln().clamp(floor, ceiling);
        let mut value = excess(at);
        let (mut low, mut high);
        if value > 0.0 {
            (low, high) = ((at, value), (at, value));
            while high.1 > 0.0 {
                if high.0 >= ceiling {
                    return None;
                }
                low = high;
                at = (high.0 + 0.7).min(ceiling);
                high = (at, excess(at));
            }
        } else {
            (low, high) = ((at, value), (at, value));
            while low.1 <= 0.0 {
                if low.0 <= floor {
                    return Some(floor.exp());
                }
                high = low;
                at = (low.0 - 0.7).max(floor);
                low = (at, excess(at));
            }
        }
        for round in 0..40 {
            if high.0 - low.0 < 2e-4 {
                break;
            }
            let slope = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let margin = 0.02 * (high.0 - low.0);
            let aimed = if round % 3 == 2 || !slope.is_finite() { 0.5 * (low.0 + high.0) } else { slope };
            at = aimed.clamp(low.0 + margin, high.0 - margin);
            value = excess(at);
            if value > 0.0 { low = (at, value) } else { high = (at, value) }
        }
        Some(high.0.exp())
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
