//! All crowds, range by range (`docs/accounting.md`, "Ranges", "Owners of unknown truth" and "Widths").

use super::crowds::Crowds;
use crate::certified::binomial::{Binomial, Coin, window};
use crate::privacy::claim::CrowdValue;
use crate::privacy::divergence::{BoundAttempt, DivergenceRequest};
use crate::privacy::likelihood::Crowd;
use crate::truth::Truth;

/// A search that has used this share of its allowance must have come a third as far, or it is given up for a wider one.
const EARLY: f64 = 0.3;

/// The share of the room below the limit that the first range is given if its width is only guessed.
const FIRST_SHARE: f64 = 0.8;

/// The statement that the sweep tries to prove: at the requested ε no crowd has a divergence above `limit`; `largest` bounds all
/// so far.
pub(super) struct Proposition {
    pub(super) request: DivergenceRequest,
    pub(super) limit: f64,
    pub(super) largest: f64,
    /// The divergence at the crowds of one truth.
    pub(super) base: f64,
    /// By how much ε grows when the proposition is weakened.
    pub(super) step: f64,
    /// The e^ε from which on the proposition is trivial.
    pub(super) trivial: f64,
    /// A bound for every crowd.
    pub(super) everywhere: f64,
    /// Whether a weaker proposition will be tried if this one is too costly.
    pub(super) may_fail: bool,
}

/// The largest value known to occur.
pub(super) struct Attained {
    pub(super) value: f64,
    pub(super) crowd: u64,
}

impl Attained {
    /// The lower end of a value that was found.
    pub(super) fn by(found: CrowdValue) -> Self {
        Self { value: found.lower(), crowd: found.crowd }
    }
}

impl Crowds<'_> {
    /// Covers all crowds by ranges, each bounded by the crowd of its fewest yes- and its fewest no-owners. Where a range
    /// cannot be bounded by the limit although it is small, `weaken` weakens the proposition, and `learned` returns the bound
    /// that an exact value there implies for the number sought. Returns whether all crowds were covered.
    pub(super) fn sweep(
        &self,
        proposition: &mut Proposition,
        attained: &mut Attained,
        weaken: impl Fn(&mut Proposition, f64),
        learned: impl Fn(&Proposition, &CrowdValue) -> f64,
    ) -> bool {
        let half = self.others / 2;
        // If the truths may be exchanged, one half stands for both.
        let once = half == self.others || self.view.is_symmetric();
        let mut sweep = Sweep { crowds: self, proposition, attained, weaken, learned };
        sweep.half(Truth::Yes, half) && (once || sweep.half(Truth::No, self.others - half - 1))
    }

    /// The smallest width: a range that cannot be bounded is not narrowed any further.
    fn smallest_range(&self) -> u64 {
        // Where the number of flips alone hides the target, only ranges of some dozens of crowds hold at first. Two classes are
        // cheap enough for that.
        let parts = if self.view.is_two_classes() { 4_000_000 } else { 40_000 };
        (self.others / parts).max(1)
    }

    /// The width to try first. Where a crowd is costly, it is guessed from the bound for half crowds: the logarithm of the
    /// divergence falls at least as slowly with the number of owners near the whole crowd as it does on the way from the half.
    fn first_width(&self, proposition: &Proposition) -> u64 {
        let narrow = (self.others / 1000).max(1);
        if self.are_cheap() {
            return narrow;
        }
        let room = (proposition.limit / proposition.base).ln();
        let slope = (proposition.everywhere / proposition.base).ln() / (self.others as f64 / 2.0);
        let guess = FIRST_SHARE * room / slope;
        if guess.is_finite() { (guess as u64).clamp(narrow, self.others / 2 + 1) } else { narrow }
    }

    /// A bound for all crowds of at least these yes- and no-owners and as many more of either truth as are missing, and an
    /// estimate of it without the losses of the method. An owner of unknown truth draws with some probability from the law
    /// of one known truth; where too few of them do, which is made rare, the bound for all crowds stands in.
    fn range_bound(&self, known: Crowd, proposition: &Proposition) -> (f64, f64) {
        // Ranges end at the half, so that the bound for every crowd, which is one of half crowds, stands in for this one, too.
        debug_assert!(
            known.yes.max(known.no) >= self.others.div_ceil(2),
            "a range beyond the half: {known:?} of {}",
            self.others
        );
        let log_cut = proposition.log_cut();
        let rarely = (5e-4 * proposition.limit / proposition.everywhere).clamp(log_cut.exp(), 0.05);
        let crowd = self.with_owners_alike(known, rarely);
        // The known owners alone are a bound for certain.
        let price = if crowd.size() > known.size() { rarely * proposition.everywhere } else { 0.0 };
        let goal = proposition.limit - price;
        let request = DivergenceRequest { log_cut, goal, precision: proposition.precision(), ..proposition.request };
        let attempt = self.attempt(crowd, request);
        (attempt.bound.largest() + price, attempt.guess.largest() + price)
    }

    /// A bound for all crowds of at least these owners.
    fn attempt(&self, crowd: Crowd, request: DivergenceRequest) -> BoundAttempt {
        if self.view.is_exact_in_every_crowd() {
            return BoundAttempt::exact(self.view.both_truths(crowd, request, &self.work).upper());
        }
        self.view.bound(crowd, request, &self.work)
    }

    /// The known owners, and how many owners of unknown truth draw from the law of one truth, except with probability `rarely`.
    fn with_owners_alike(&self, known: Crowd, rarely: f64) -> Crowd {
        let like = self.view.in_common();
        let share = like.no.max(like.yes);
        let coin = Coin { success: share, failure: 1.0 - share };
        let (alike, _) = window(&[Binomial::new(self.others - known.size(), coin)], rarely.ln());
        if like.no >= like.yes {
            Crowd { no: known.no + alike, ..known }
        } else {
            Crowd { yes: known.yes + alike, ..known }
        }
    }
}

impl Proposition {
    /// Whether it needs no proof.
    fn is_trivial(&self) -> bool {
        self.request.growth >= self.trivial
    }

    /// The logarithm of what may be left out: a bound may be wrong by a hundred-thousandth of the limit.
    fn log_cut(&self) -> f64 {
        self.request.log_cut.max(self.limit.max(1e-300).ln() - 13.0)
    }

    /// A precision that leaves most of the room below the limit to the ranges.
    fn precision(&self) -> f64 {
        (0.04 * (self.limit / self.base - 1.0)).clamp(1e-9, 1e-3)
    }
}

/// A sweep over all crowds.
struct Sweep<'s, 'a, W, L> {
    crowds: &'s Crowds<'a>,
    proposition: &'s mut Proposition,
    attained: &'s mut Attained,
    weaken: W,
    learned: L,
}

impl<W: Fn(&mut Proposition, f64), L: Fn(&Proposition, &CrowdValue) -> f64> Sweep<'_, '_, W, L> {
    /// The crowds with at most `last` owners of one truth among the others, starting from none.
    fn half(&mut self, truth: Truth, last: u64) -> bool {
        let smallest = self.crowds.smallest_range();
        let (mut from, mut width) = (0, self.crowds.first_width(self.proposition).min(last + 1));
        let mut widths = RangeWidth::default();
        while from <= last {
            if self.proposition.is_trivial() {
                return true;
            }
            if self.is_too_slow(from, last) {
                return false;
            }
            let to = (from + (width - 1)).min(last);
            let tried = self.try_range(truth, from, to);
            let next = widths.next(tried, self.proposition.base, self.proposition.limit).max(smallest);
            if tried.holds {
                self.proposition.largest = self.proposition.largest.max(tried.bound);
                (from, width) = (to + 1, next);
            } else if width > smallest {
                width = next.clamp(smallest, width - 1);
            } else {
                self.learn_at(truth, [from, to]);
                (self.weaken)(self.proposition, tried.guess);
                width = smallest.saturating_mul(16);
            }
        }
        true
    }

    /// Bounds the crowds with `from` to `to` owners of one truth among the others.
    fn try_range(&self, truth: Truth, from: u64, to: u64) -> Tried {
        let known = Crowd::oriented(truth, from, self.crowds.others - to);
        let (bound, guess) = self.crowds.range_bound(known, self.proposition);
        Tried { from, width: to - from + 1, bound, guess, holds: bound <= self.proposition.limit }
    }

    /// Whether the work is spent, or so much of it that a wider margin is better.
    fn is_too_slow(&self, from: u64, last: u64) -> bool {
        let used = self.crowds.work.used();
        used >= 1.0 || self.proposition.may_fail && used > EARLY && used * last as f64 > 3.0 * from as f64
    }

    /// Evaluates the ends of a range that could not be bounded, if its crowds have exact formulas.
    fn learn_at(&mut self, truth: Truth, counts: [u64; 2]) {
        if !self.crowds.view.is_exact_in_every_crowd() {
            return;
        }
        for count in counts {
            let crowd = Crowd::oriented(truth, count, self.crowds.others - count);
            let found = self.crowds.exactly(crowd.yes, self.proposition.request);
            let value = (self.learned)(self.proposition, &found);
            if value > self.attained.value {
                *self.attained = Attained { value, crowd: found.crowd };
            }
        }
    }
}

/// The share of the expected room that a range is given. With more, more ranges fail, and a range that fails costs as much as one
/// that holds; with less, more ranges are needed.
const SHARE: f64 = 0.94;

/// The next range is expected to lose this many times as much as the last one that held.
const LOSS_ALLOWED: f64 = 1.1;

/// A bound whose logarithm is this far below that of the limit says nothing about the next range.
const FAR_BELOW: f64 = -5.0;

/// Learns from the ranges so far how wide the next may be: the logarithm of a range's bound is about a level, which falls from
/// the crowds of one truth inwards, plus a part that grows with the width.
#[derive(Default)]
pub(super) struct RangeWidth {
    /// By how much the logarithm grows with each crowd in the range.
    slope: Option<f64>,
    /// The levels of the last two ranges that held.
    last: Option<RangeLevel>,
    before: Option<RangeLevel>,
    /// The last range that failed.
    failed: Option<Failed>,
    /// The logarithm of the method's loss in the last range that held.
    loss: f64,
}

/// The level of a range that held.
#[derive(Clone, Copy)]
struct RangeLevel {
    from: u64,
    level: f64,
}

impl RangeLevel {
    /// By how much the level falls from one crowd to the next, up to a later range.
    fn drift_to(self, later: Self) -> f64 {
        if later.from <= self.from {
            return 0.0;
        }
        ((later.level - self.level) / (later.from - self.from) as f64).min(0.0)
    }
}

/// A range that failed, with the logarithm of its bound.
#[derive(Clone, Copy)]
struct Failed {
    from: u64,
    width: u64,
    logarithm: f64,
}

impl Failed {
    /// The slope that a narrower range with the same start shows; none for other ranges.
    fn slope_to(self, tried: Tried, logarithm: f64) -> Option<f64> {
        (self.from == tried.from && self.width > tried.width)
            .then(|| (self.logarithm - logarithm) / (self.width - tried.width) as f64)
    }
}

/// A range that was tried.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    pub(super) from: u64,
    pub(super) width: u64,
    pub(super) bound: f64,
    /// An estimate of the bound without the losses of the method.
    pub(super) guess: f64,
    pub(super) holds: bool,
}

impl Tried {
    /// A width that is wanted next, within limits on how much widths may change at once.
    fn limited(&self, wanted: f64) -> u64 {
        let width = self.width as f64;
        let (least, most) = if self.holds { (0.3, 6.0) } else { (0.1, 0.9) };
        if wanted.is_finite() { wanted.clamp(least * width, most * width) as u64 } else { self.width / 2 }
    }
}

impl RangeWidth {
    /// The width of the next range, which starts where the last one ended if that one held, and where it started otherwise.
    /// `base` is the divergence of the crowds of one truth, `limit` the largest bound that is accepted.
    pub(super) fn next(&mut self, tried: Tried, base: f64, limit: f64) -> u64 {
        if tried.holds {
            self.loss = (tried.bound / tried.guess).ln();
        }
        let logarithm = (tried.guess / limit).ln();
        // Far below the limit a bound is not sharp.
        if tried.holds && logarithm < FAR_BELOW {
            return tried.width.saturating_mul(4);
        }
        let slope = self.learn_slope(tried, logarithm, (base / limit).ln());
        let ahead = self.level_ahead(tried, logarithm, slope);
        tried.limited(SHARE * (-LOSS_ALLOWED * self.loss - ahead) / slope)
    }

    /// The level where the next range starts; the one that was tried is noted.
    fn level_ahead(&mut self, tried: Tried, logarithm: f64, slope: f64) -> f64 {
        let width = tried.width as f64;
        let level = logarithm - slope * width;
        if !tried.holds {
            self.failed = Some(Failed { from: tried.from, width: tried.width, logarithm });
            return level;
        }
        (self.before, self.last) = (self.last, Some(RangeLevel { from: tried.from, level }));
        self.failed = None;
        level + (self.drift() * width).max(-2.0)
    }

    /// The slope: at first from the level of the crowds of one truth, later from two ranges with the same start.
    fn learn_slope(&mut self, tried: Tried, logarithm: f64, base: f64) -> f64 {
        let first = (logarithm - base) / tried.width as f64;
        let learned = self.failed.and_then(|failed| failed.slope_to(tried, logarithm)).or(self.slope).or(Some(first));
        let slope = learned.filter(|slope| *slope > 0.0).or(self.slope).unwrap_or(-base / (4.0 * tried.width as f64));
        self.slope = Some(slope);
        slope
    }

    /// By how much the level falls from one crowd to the next.
    fn drift(&self) -> f64 {
        self.before.zip(self.last).map_or(0.0, |(before, last)| before.drift_to(last))
    }
}
