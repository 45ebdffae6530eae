//! How far from the best a plan can be: a proof by boxes that no law of a family has a smaller error.

use super::search::{Found, Search};

/// What the boxes showed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// No law of the family that keeps the request has a smaller error than this.
    AtLeast(f64),
    /// A law that is better than what was known, judged by the crowds of one truth.
    Better(Found),
}

/// The certified mechanism that a bound is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) error: f64,
    pub(super) allowance: f64,
}

/// The shares below the known error at which a bound is tried, one after the other.
const SHARES: [f64; 10] = [0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.2, 0.5];
/// A law within this share of the known error is not reported as better.
const NEWS: f64 = 0.002;
/// The width of the first box of a share, as a share of its upper end.
const FIRST_WIDTH: f64 = 0.01;

impl Search<'_> {
    /// A lower bound on the error of every law of the family that keeps the request, near the known error if possible. Each
    /// share of it that is tried may spend `budget` calls of the accounting. A better law is reported if `news` says so.
    ///
    /// From the largest participation downwards in boxes [a, b]: let y be the doubt at which the error is T at
    /// participation b. If a crowd of one truth shows that (a, y) breaks the bound, then every law in the box that keeps it
    /// has more doubt than y, because it would otherwise give away more than (a, y); and its error is at least that of
    /// (b, y), which is T. One call of the accounting for each box.
    pub(super) fn bound(&self, known: Known, budget: u32, news: bool) -> Bound {
        let (least, most) = self.domain();
        let (mut b, mut width) = (most, FIRST_WIDTH * most);
        let mut goals = SHARES.into_iter().map(|share| known.error * (1.0 - share));
        let (mut goal, mut left) = (goals.next().unwrap_or(0.0), budget);
        while b > least {
            // With participation b at most and no doubt at all the error is larger: so it is everywhere below.
            let Some(doubt) = self.doubt_at_error(b, goal) else { return Bound::AtLeast(goal) };
            let a = (b - width).max(least);
            left = left.saturating_sub(1);
            if self.is_impossible(a, doubt) {
                (b, width) = (a, width * 1.7);
                continue;
            }
            width = (b - a) * 0.4;
            let stuck = width < 1e-4 * (1.0 - a).max(1e-7) || !self.is_impossible(b, doubt);
            if !stuck && left > 0 {
                continue;
            }
            if let Some(better) = news.then(|| self.better_at([a, b], known)).flatten() {
                return Bound::Better(better);
            }
            let Some(next) = goals.next() else { return Bound::AtLeast(0.0) };
            (goal, left, width) = (next, budget, FIRST_WIDTH * b);
        }
        Bound::AtLeast(goal)
    }

    /// The best law at these participations, if its error is clearly below the known one.
    fn better_at(&self, places: [f64; 2], known: Known) -> Option<Found> {
        let found = places.into_iter().filter_map(|place| self.at(place, known.allowance, 1e-3));
        let better = found.filter(|found| found.cost < known.error * (1.0 - NEWS));
        better.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }

    /// Whether the local bounds, the participation or a crowd of one truth rule the law out, and all laws with as much
    /// participation and no more doubt.
    fn is_impossible(&self, place: f64, doubt: f64) -> bool {
        match self.curve.least_doubt(self.family, self.request, place) {
            None => true,
            Some(least) if doubt < least => true,
            Some(least) => {
                self.curve.exceeds(place, least, self.domain().1)
                    || self.limits.is_broken(&self.curve.law(place, doubt))
            }
        }
    }
}
