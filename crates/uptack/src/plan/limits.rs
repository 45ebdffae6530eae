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
    /// The larger flip of the law found last, and how steeply ln δ fell there: the next one is near it.
    last: Cell<(f64, f64)>,
    /// How exactly the search solves for the flips, in their logarithm: the error moves by half of it.
    accuracy: f64,
}

/// The certificate is wider than the ends by up to 0.8 per mille in ε; the search aims below it by a little more.
const CERTIFICATE_SHARE: f64 = 1.0 - 8.5e-4;
/// How exactly what was found is solved for in the end.
const FINAL_ACCURACY: f64 = 2e-5;

impl<'a> Limits<'a> {
    pub(super) fn new(request: &'a Request, accuracy: f64) -> Result<Self, Error> {
        let owners = request.claim_owners()?;
        Ok(Self { request, owners, calls: Cell::new(0), last: Cell::new((20.0 / owners as f64, -10.0)), accuracy })
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The law with the fewest flips that keeps every constraint; none where the flips would drown the truth.
    pub(super) fn fewest_flips(&self, family: Family, shape: &Law) -> Option<Law> {
        self.solve(family, shape, self.accuracy)
    }

    /// The same, exactly.
    pub(super) fn polished(&self, family: Family, law: &Law) -> Option<Law> {
        self.solve(family, law, FINAL_ACCURACY)
    }

    fn solve(&self, family: Family, shape: &Law, accuracy: f64) -> Option<Law> {
        let most = family.largest_factor(shape) * (1.0 - 1e-9);
        let local = self.local_factor(family, shape, most)?;
        let Some((epsilon, delta)) = self.request.release else {
            return Some(family.with_flips_times(shape, local));
        };
        let aim = Epsilon::new(epsilon.value() * CERTIFICATE_SHARE).ok()?;
        let excess = |log_factor: f64| {
            let law = family.with_flips_times(shape, log_factor.exp());
            self.log_delta(&law, aim) - delta.value().ln()
        };
        let (flip, slope) = self.last.get();
        let guess = (flip / shape.flip[0].max(shape.flip[1])).ln();
        let root = falling_root(excess, (guess, slope), (local.ln(), most.ln()), accuracy)?;
        let law = family.with_flips_times(shape, root.at.exp());
        self.last.set((law.flip[0].max(law.flip[1]), root.slope));
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

/// Where a falling function is not positive any more, and how steeply it falls there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Root {
    at: f64,
    slope: f64,
}

/// Two points this close together tell the slope between them.
const NEAR: f64 = 0.5;
/// Below this the function says only that the root is elsewhere.
const FAR_BELOW: f64 = -60.0;

/// Where a falling function becomes negative within the ends, from the side where it is; none where it does nowhere.
///
/// By secants from a guess of the place and the slope, with bisection where they are slow once the root is bracketed.
fn falling_root(
    function: impl Fn(f64) -> f64,
    (guess, slope): (f64, f64),
    (least, most): (f64, f64),
    accuracy: f64,
) -> Option<Root> {
    let (mut x, mut slope) = (guess.clamp(least, most), slope.min(-1e-3));
    let [mut low, mut high, mut before]: [Option<(f64, f64)>; 3] = [None; 3];
    let mut step = 0.05;
    for round in 0..80 {
        let value = function(x);
        if let Some((other, other_value)) = before.replace((x, value)) {
            let secant = (value - other_value) / (x - other);
            let known = secant < 0.0 && (x - other).abs() < NEAR && value.min(other_value) > FAR_BELOW;
            slope = if known { secant } else { slope };
            // ln δ is concave in the logarithm of the flips: between two points it lies above its chord.
            if known && value <= 0.0 && other_value > 0.0 && value >= slope * accuracy {
                return Some(Root { at: x, slope });
            }
        }
        if value > 0.0 {
            low = Some((x, value))
        } else {
            high = Some((x, value))
        }
        x = match (low, high) {
            (Some(low), Some(high)) if high.0 - low.0 < accuracy => return Some(Root { at: high.0, slope }),
            (Some(low), Some(high)) => {
                let width = high.0 - low.0;
                let crossing = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
                // A little beyond the crossing, where the function is not positive.
                let aimed =
                    if round % 4 == 3 || high.1 < FAR_BELOW { low.0 + 0.5 * width } else { crossing + 0.4 * accuracy };
                let margin = 0.01 * width;
                if aimed.is_finite() { aimed.clamp(low.0 + margin, high.0 - margin) } else { low.0 + 0.5 * width }
            }
            (Some((at, _)), None) if at >= most => return None,
            (None, Some((at, _))) if at <= least => return Some(Root { at: least, slope }),
            // Towards the root and a little beyond it, in steps that grow.
            _ => {
                let newton = (-value / slope).abs();
                let reach = (1.05 * newton + 0.4 * accuracy).clamp(accuracy, step);
                step *= 2.5;
                if value > 0.0 { (x + reach).min(most) } else { (x - reach).max(least) }
            }
        };
    }
    high.map(|(at, _)| Root { at, slope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_approached_from_the_negative_side() {
        for guess in [-9.0, -1.0, 0.3, 0.63, 4.0] {
            for slope in [-1e-4, -1.2, -50.0] {
                let root = falling_root(|x| 0.25 - x * x * x, (guess, slope), (-10.0, 10.0), 1e-6).unwrap();
                assert!(root.at.powi(3) >= 0.25 && root.at - 0.25f64.cbrt() < 2e-6, "{guess} {slope}: {root:?}");
            }
        }
        assert_eq!(falling_root(|x| 1.0 - x, (0.0, -1.0), (-1.0, 0.5), 1e-6), None);
        assert_eq!(falling_root(|x| -1.0 - x, (0.2, -1.0), (0.0, 0.5), 1e-6).map(|root| root.at), Some(0.0));
    }

    /// Where the function falls off a cliff the secant says little, and the bracket decides.
    #[test]
    fn a_cliff_is_found() {
        let cliff = |x: f64| if x < 1.0 { 3.0 - 0.1 * x } else { -1e4 };
        let root = falling_root(cliff, (0.2, -18.0), (-5.0, 9.0), 1e-4).unwrap();
        assert!(root.at >= 1.0 && root.at < 1.0 + 1e-3, "{root:?}");
    }
}
