//! How wide a range of crowds to try next (`docs/accounting.md`, "Widths").

/// The share of the expected room that a range is given. With more, more ranges fail, and a range that fails costs as much as one
/// that holds; with less, more ranges are needed.
const SHARE: f64 = 0.94;

/// The next range is expected to lose this many times as much as the last one that held.
const LOSS_ALLOWED: f64 = 1.1;

/// A bound whose logarithm is this far below that of the limit says nothing about the next range.
const FAR_BELOW: f64 = -5.0;

/// Learns from the ranges so far how wide the next may be: the logarithm of a range's bound is about a level, which falls from the
/// crowds of one truth inwards, plus a part that grows with the width.
#[derive(Default)]
pub(super) struct RangeWidth {
    /// By how much the logarithm grows with each crowd in the range.
    slope: Option<f64>,
    /// The levels of the last two ranges that held.
    last: Option<Level>,
    before: Option<Level>,
    /// The last range that failed.
    failed: Option<Failed>,
    /// The logarithm of what the method lost in the last range that held.
    loss: f64,
}

/// The level of a range that held.
#[derive(Clone, Copy)]
struct Level {
    from: u64,
    level: f64,
}

impl Level {
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
    /// What the bound would be without the losses of the method.
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
    /// The width of the next range, which starts where the last one ended if that one held, and where it started otherwise. `base`
    /// is the divergence of the crowds of one truth, `limit` what a bound must not exceed.
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
        (self.before, self.last) = (self.last, Some(Level { from: tried.from, level }));
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
