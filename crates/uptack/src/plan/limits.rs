//! The release's bound, and the least doubt under which a law keeps it.

use std::cell::{Cell, RefCell};

use super::law::Law;
use super::request::Request;
use crate::channel::Channel;
use crate::error::Error;
use crate::privacy;

/// The bound of the release, at the number of owners that a claim may count on.
pub(super) struct Limits {
    /// ε and δ.
    release: Option<(f64, f64)>,
    owners: u64,
    /// How often the accounting was called.
    calls: Cell<u64>,
    /// The larger flip of the law found last, and how steeply ln δ fell there: the next one is near it.
    last: Cell<(f64, f64)>,
    /// Crowds of both truths (how many of the others are *yes*) that turned out worse than those of one truth.
    crowds: RefCell<Vec<u64>>,
}

impl Limits {
    pub(super) fn new(request: &Request) -> Result<Self, Error> {
        let owners = request.claim_owners()?;
        let release = request.release.map(|(epsilon, delta)| (epsilon.value(), delta.value()));
        let last = Cell::new((20.0 / owners as f64, -10.0));
        Ok(Self { release, owners, calls: Cell::new(0), last, crowds: RefCell::default() })
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls.get()
    }

    pub(super) fn owners(&self) -> u64 {
        self.owners
    }

    pub(super) fn release(&self) -> Option<(f64, f64)> {
        self.release
    }

    /// Looks at one more crowd from now on; false where it is looked at already.
    pub(super) fn watch(&self, crowd: u64) -> bool {
        let mut crowds = self.crowds.borrow_mut();
        let new = crowd > 0 && crowd + 1 < self.owners && !crowds.contains(&crowd);
        if new {
            // The newest is the likeliest to matter.
            crowds.insert(0, crowd);
            crowds.truncate(MOST_CROWDS);
        }
        new
    }

    /// Forgets what was watched: another family's crowds are seldom the worst of this one, and cost as much in every call.
    pub(super) fn forget(&self) {
        self.crowds.borrow_mut().clear();
    }

    /// Whether a crowd of both truths breaks the bound where those of one truth keep it: it is watched from now on.
    pub(super) fn finds_worse_crowd(&self, law: &Law) -> bool {
        let Some((epsilon, delta)) = self.release.filter(|_| self.owners <= PROBED_OWNERS) else { return false };
        let accountant = law.channel().and_then(|channel| privacy::release(&channel, self.owners)).ok();
        let worse = accountant.and_then(|accountant| accountant.worse_crowd(epsilon, delta));
        worse.is_some_and(|crowd| self.watch(crowd))
    }

    /// Whether a crowd of one truth shows that the law breaks the bound: it is impossible, whatever a certificate would say.
    pub(super) fn is_broken(&self, law: &Law) -> bool {
        self.is_broken_at(law, 1.0)
    }

    /// The same at the bound's ε over `allowance`.
    pub(super) fn is_broken_at(&self, law: &Law, allowance: f64) -> bool {
        let Some((epsilon, delta)) = self.release else { return false };
        self.delta(law, epsilon / allowance, delta).is_some_and(|found| found.lower() > delta)
    }

    /// Whether a channel keeps the bound in the crowds of one truth.
    pub(super) fn is_kept(&self, channel: &Channel) -> bool {
        let Some((epsilon, delta)) = self.release else { return true };
        self.calls.set(self.calls.get() + 1);
        let accountant = privacy::release(channel, self.owners);
        accountant.is_ok_and(|accountant| accountant.delta_near(epsilon, delta, &[]).upper() <= delta)
    }

    /// The least doubt within the ends at which the law keeps the bound, with ε over `allowance`, in the crowds of one
    /// truth, to this accuracy of its logarithm, from above; none where there is none.
    pub(super) fn least_doubt(
        &self,
        law: impl Fn(f64) -> Law,
        (least, most): (f64, f64),
        allowance: f64,
        accuracy: f64,
    ) -> Option<f64> {
        let Some((epsilon, delta)) = self.release else { return Some(least) };
        let excess = |log_doubt: f64| {
            let found = self.delta(&law(log_doubt.exp()), epsilon / allowance, delta);
            found.map_or(1.0, |found| found.upper()).ln() - delta.ln()
        };
        let least = least.max(SMALLEST_DOUBT).ln();
        let most = most.ln() + f64::ln_1p(-1e-9);
        if least >= most {
            return None;
        }
        let (flip, slope) = self.last.get();
        // The flips of the law with the most doubt tell how flips and doubt go together.
        let guess = (flip / largest_flip(&law(SMALLEST_DOUBT)) * SMALLEST_DOUBT).ln();
        let root = falling_root(excess, (guess, slope), (least, most), accuracy)?;
        let doubt = root.at.exp();
        self.last.set((largest_flip(&law(doubt)), root.slope));
        Some(doubt)
    }

    fn delta(&self, law: &Law, epsilon: f64, delta: f64) -> Option<privacy::Enclosure> {
        self.calls.set(self.calls.get() + 1);
        let accountant = law.channel().and_then(|channel| privacy::release(&channel, self.owners)).ok()?;
        Some(accountant.delta_near(epsilon, delta, &self.crowds.borrow()))
    }
}

/// Crowds beyond those of one truth cost as much as these each; more than a few have never been needed.
const MOST_CROWDS: usize = 4;
/// In larger crowds the worst one is hardly worse than those of one truth, and costs more than a certificate.
const PROBED_OWNERS: u64 = 100_000;
/// Less doubt than this is none: the integers of a channel hardly tell it from zero.
const SMALLEST_DOUBT: f64 = 1e-17;

/// The smaller of the classes that decide how well a target is hidden.
fn largest_flip(law: &Law) -> f64 {
    let [yes, no] = [law.yes(), law.no()];
    yes[0].min(no[0]).max(yes[1].min(no[1])).max(f64::MIN_POSITIVE)
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
const FAR_BELOW: f64 = -9.0;

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
