//! How far from the best a plan can be: a proof by boxes that no law of a family has a smaller error.

use super::search::{Found, Search};

/// What the boxes showed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    /// No law of the family that keeps the request has a smaller error than this.
    AtLeast(f64),
    /// A law that is better than what was known, by the crowds of one truth.
    Better(Found),
}

/// The shares below the known error at which a bound is tried, one after the other.
const SHARES: [f64; 10] = [0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.2, 0.5];
/// Laws within this of the known error are no news.
const NEWS: f64 = 0.002;

impl Search<'_> {
    /// A lower bound of the error of every law of the family that keeps the request, near `known` if it can be; `budget`
    /// calls of the accounting are spent for each share of it that is tried.
    ///
    /// From the largest participation downwards in boxes [a, b]: let y be the doubt at which the error is T at
    /// participation b. If a crowd of one truth shows that (a, y) breaks the bound, then every law in the box that keeps it
    /// has more doubt than y, because it would otherwise give away more than (a, y); and its error is at least that of
    /// (b, y), which is T. One call of the accounting for each box.
    pub(super) fn bound(&self, known: f64, allowance: f64, budget: u32, news: bool) -> Bound {
        let (least, most) = self.domain();
        let (mut b, mut width) = (most, 0.01 * most);
        let mut shares = SHARES.into_iter();
        let (mut goal, mut left) = (known * (1.0 - shares.next().unwrap_or(1.0)), budget);
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
            let here = [a, b].into_iter().filter(|_| news).filter_map(|place| self.at(place, allowance, 1e-3));
            if let Some(better) =
                here.filter(|found| found.cost < known * (1.0 - NEWS)).min_by(|x, y| x.cost.total_cmp(&y.cost))
            {
                return Bound::Better(better);
            }
            let Some(share) = shares.next() else { return Bound::AtLeast(0.0) };
            (goal, left, width) = (known * (1.0 - share), budget, 0.01 * b);
        }
        Bound::AtLeast(goal)
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
