//! How wide a range of crowds to try next (`docs/accounting.md`, "Widths").

/// So much of the room that there should be is used: a range that fails has cost as much as one that does not.
const SHARE: f64 = 0.94;

/// A bound this far below the limit, as a logarithm, is far below.
const FAR_BELOW: f64 = -5.0;

/// What the ranges so far say about the next: the logarithm of a range's bound is about a level, which falls from the crowds of
/// one truth inwards, and a part in proportion to the width.
pub(super) struct RangeWidth {
    /// What each crowd of the width adds.
    slope: Option<f64>,
    /// The levels of the last two ranges that held, with where they start.
    last: Option<(u64, f64)>,
    before: Option<(u64, f64)>,
    /// The last range that failed: its start, its width and its logarithm.
    failed: Option<(u64, u64, f64)>,
}

/// A range that was tried.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    pub(super) from: u64,
    pub(super) width: u64,
    /// What the bound would be but for the losses of the method.
    pub(super) guess: f64,
    pub(super) holds: bool,
}

impl RangeWidth {
    pub(super) fn new() -> Self {
        Self { slope: None, last: None, before: None, failed: None }
    }

    /// The width for the next range, which starts where the last one ended if that held, and else where it started. `base` is the
    /// divergence of the crowds of one truth, `limit` what a bound should not exceed, `loss` the logarithm of what the method loses.
    pub(super) fn next(&mut self, tried: Tried, base: f64, limit: f64, loss: f64) -> u64 {
        let (logarithm, width) = ((tried.guess / limit).ln(), tried.width as f64);
        // Far below the limit a bound is not sharp and tells nothing.
        if tried.holds && logarithm < FAR_BELOW {
            return tried.width.saturating_mul(4);
        }
        let slope = self.learn(tried, logarithm, (base / limit).ln());
        let level = logarithm - slope * width;
        let ahead = if tried.holds {
            (self.before, self.last) = (self.last, Some((tried.from, level)));
            self.failed = None;
            level + (self.drift() * width).max(-2.0)
        } else {
            self.failed = Some((tried.from, tried.width, logarithm));
            level
        };
        let wanted = SHARE * (-loss - ahead) / slope;
        let (least, most) = if tried.holds { (0.3, 6.0) } else { (0.1, 0.9) };
        if wanted.is_finite() { wanted.clamp(least * width, most * width) as u64 } else { tried.width / 2 }
    }

    /// The slope: from the level of the crowds of one truth at first, later from two ranges with the same start.
    fn learn(&mut self, tried: Tried, logarithm: f64, base: f64) -> f64 {
        let same = self.failed.filter(|(from, width, _)| *from == tried.from && *width > tried.width);
        let learned = match (same, self.slope) {
            (Some((_, width, failed)), _) => Some((failed - logarithm) / (width - tried.width) as f64),
            (None, None) => Some((logarithm - base) / tried.width as f64),
            (None, known) => known,
        };
        let slope = learned.filter(|slope| *slope > 0.0).or(self.slope).unwrap_or(-base / (4.0 * tried.width as f64));
        self.slope = Some(slope);
        slope
    }

    /// By how much the level falls with each crowd.
    fn drift(&self) -> f64 {
        match (self.before, self.last) {
            (Some((start, before)), Some((from, last))) if from > start => {
                ((last - before) / (from - start) as f64).min(0.0)
            }
            _ => 0.0,
        }
    }
}
