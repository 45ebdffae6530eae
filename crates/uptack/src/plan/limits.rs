//! The bound on the release, and the smallest flip rate with which a law satisfies it.

use std::cell::{Cell, RefCell};

use super::family::ThreeClassLaw;
use super::request::Request;
use super::root::falling_root;
use crate::channel::Channel;
use crate::error::Result;
use crate::privacy::{self, Accountant, Enclosure, WatchedCrowds, WatchedEnds};

/// The bound of the release, at the number of owners that a claim may count on.
pub(super) struct ReleaseLimit {
    /// ε and δ.
    release: Option<(f64, f64)>,
    owners: u64,
    /// How often the accounting was called.
    calls: Cell<u64>,
    /// The larger flip of the law found last, and the slope of ln δ there: the next law is near it.
    last: Cell<(f64, f64)>,
    /// Crowds of both truths (how many of the others are *yes*) that turned out worse than those of one truth.
    crowds: RefCell<Vec<u64>>,
    /// How their upper ends are found.
    ends: Cell<WatchedEnds>,
}

impl ReleaseLimit {
    pub(super) fn new(request: &Request) -> Result<Self> {
        let owners = request.claim_owners()?;
        let release = request.release.map(|(epsilon, delta)| (epsilon.value(), delta.value()));
        let last = Cell::new((20.0 / owners as f64, -10.0));
        let ends = Cell::new(WatchedEnds::Estimated);
        Ok(Self { release, owners, calls: Cell::new(0), last, crowds: RefCell::default(), ends })
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

    /// Watches one more crowd from now on; false if it is watched already.
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

    /// Bounds the watched crowds from now on as a certificate does; false if they are bounded already.
    pub(super) fn bound_crowds(&self) -> bool {
        self.ends.replace(WatchedEnds::Bounded) != WatchedEnds::Bounded
    }

    /// Forgets the watched crowds. Those of another family are seldom the worst of this one, and slow down every call.
    pub(super) fn forget(&self) {
        self.crowds.borrow_mut().clear();
        self.ends.set(WatchedEnds::Estimated);
    }

    /// Whether a crowd of both truths violates the bound although those of one truth do not. It is watched from now on.
    pub(super) fn finds_worse_crowd(&self, law: &ThreeClassLaw) -> bool {
        let Some((epsilon, delta)) = self.release.filter(|_| self.owners <= PROBED_OWNERS) else { return false };
        let worse = self.accountant(law).and_then(|accountant| accountant.worse_crowd(epsilon, delta));
        worse.is_some_and(|crowd| self.watch(crowd))
    }

    /// Whether a crowd of one truth shows that the law violates the bound: then no certificate can satisfy it.
    pub(super) fn is_broken(&self, law: &ThreeClassLaw) -> bool {
        self.is_broken_at(law, 1.0)
    }

    /// The same at the bound's ε over `allowance`.
    pub(super) fn is_broken_at(&self, law: &ThreeClassLaw, allowance: f64) -> bool {
        let Some((epsilon, delta)) = self.release else { return false };
        self.delta(law, epsilon / allowance, delta).is_some_and(|found| found.lower() > delta)
    }

    /// Whether a channel satisfies the bound in the crowds of one truth.
    pub(super) fn is_kept(&self, channel: &Channel) -> bool {
        let Some((epsilon, delta)) = self.release else { return true };
        self.count_call();
        let accountant = privacy::release(channel, self.owners);
        accountant.is_ok_and(|accountant| accountant.delta_near(epsilon, delta, WatchedCrowds::NONE).upper() <= delta)
    }

    /// The smallest flip rate within the ends at which the law satisfies the bound, with ε over `allowance`, in the crowds of one
    /// truth. Its logarithm is solved for to this accuracy, from above; `None` if no flip rate satisfies the bound.
    pub(super) fn least_flip_rate(
        &self,
        law: impl Fn(f64) -> ThreeClassLaw,
        (least, most): (f64, f64),
        allowance: f64,
        accuracy: f64,
    ) -> Option<f64> {
        let Some((epsilon, delta)) = self.release else { return Some(least) };
        let ends = (least.max(SMALLEST_FLIP_RATE).ln(), most.ln() + f64::ln_1p(-1e-9));
        if ends.0 >= ends.1 {
            return None;
        }
        let excess = |log_flip_rate: f64| self.log_excess(&law(log_flip_rate.exp()), epsilon / allowance, delta);
        let root = falling_root(excess, self.guess(&law), ends, accuracy)?;
        let flip_rate = root.at.exp();
        self.last.set((largest_flip(&law(flip_rate)), root.slope));
        Some(flip_rate)
    }

    /// ln(δ of the law at ε) − ln δ.
    fn log_excess(&self, law: &ThreeClassLaw, epsilon: f64, delta: f64) -> f64 {
        let found = self.delta(law, epsilon, delta).map_or(1.0, |found| found.upper());
        found.ln() - delta.ln()
    }

    /// The logarithm of the flip rate at which the law has the flips of the one found last, and the slope of ln δ there.
    fn guess(&self, law: impl Fn(f64) -> ThreeClassLaw) -> (f64, f64) {
        let (flip, slope) = self.last.get();
        // Flips grow in proportion to the flip rate; the smallest one gives the factor.
        ((flip / largest_flip(&law(SMALLEST_FLIP_RATE)) * SMALLEST_FLIP_RATE).ln(), slope)
    }

    fn delta(&self, law: &ThreeClassLaw, epsilon: f64, delta: f64) -> Option<Enclosure> {
        self.count_call();
        let crowds = self.crowds.borrow();
        let ends = self.ends.get();
        let most = if ends == WatchedEnds::Bounded { MOST_BOUNDED } else { MOST_CROWDS };
        let watched = WatchedCrowds { crowds: &crowds[..crowds.len().min(most)], ends };
        Some(self.accountant(law)?.delta_near(epsilon, delta, watched))
    }

    fn accountant(&self, law: &ThreeClassLaw) -> Option<Accountant> {
        privacy::release(&law.channel().ok()?, self.owners).ok()
    }

    fn count_call(&self) {
        self.calls.set(self.calls.get() + 1);
    }
}

/// The most crowds of both truths that are watched. With fewer, laws that differ in their worst crowd alternate.
const MOST_CROWDS: usize = 8;
/// The most that are bounded: each costs some twenty times as much as an estimate.
const MOST_BOUNDED: usize = 4;
/// In larger crowds the worst one is hardly worse than those of one truth, and costs more than a certificate.
const PROBED_OWNERS: u64 = 100_000;
/// Smaller flip rates round to zero: the integers of a channel hardly distinguish them.
const SMALLEST_FLIP_RATE: f64 = 1e-17;

/// The larger of the two flips, which decides how well a target is hidden.
fn largest_flip(law: &ThreeClassLaw) -> f64 {
    let flip = |class: usize| law.yes()[class].min(law.no()[class]);
    flip(0).max(flip(1)).max(f64::MIN_POSITIVE)
}
