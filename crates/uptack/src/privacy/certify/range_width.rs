//! How wide a range of crowds to try next (`docs/accounting.md`, "Widths").

/// The share of the expected room that a range is given. With more, more ranges fail, and a range that fails costs as much as one
/// that holds; with less, more ranges are needed.
const SHARE: f64 = 0.94;

/// A bound whose logarithm is this far below that of the limit says nothing about the next range.
const FAR_BELOW: f64 = -5.0;

/// Learns from the ranges so far how wide the next may be: the logarithm of a range's bound is about a level, which falls from the
/// crowds of one truth inwards, plus a part that grows with the width.
pub(super) struct RangeWidth {
    /// By how much the logarithm grows with each crowd of the width.
    slope: Option<f64>,
    /// The starts and levels of the last two ranges that held.
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
    /// What the bound would be without the losses of the method.
    pub(super) guess: f64,
    pub(super) holds: bool,
}

impl RangeWidth {
    pub(super) fn new() -> Self {
        Self { slope: None, last: None, before: None, failed: None }
    }

    /// The width of the next range, which starts where the last one ended if that one held, and where it started otherwise. `base`
    /// is the divergence of the crowds of one truth, `limit` what a bound must not exceed, `loss` the logarithm of what the method
    /// loses.
    pub(super) fn next(&mut self, tried: Tried, base: f64, limit: f64, loss: f64) -> u64 {
        let (logarithm, width) = ((tried.guess / limit).ln(), tried.width as f64);
        // Far below the limit a bound is not sharp.
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

    /// The slope: at first from the level of the crowds of one truth, later from two ranges with the same start.
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

    /// By how much the level falls from one crowd to the next.
    fn drift(&self) -> f64 {
        match (self.before, self.last) {
            (Some((start, before)), Some((from, last))) if from > start => {
                ((last - before) / (from - start) as f64).min(0.0)
            }
            _ => 0.0,
        }
    }
}
