//! The three-class law that every family of the planner comes down to.

use crate::channel::{Cell, Channel, Output};
use crate::error::Result;
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Who takes part and who answers the opposite of the truth: law(yes) = (sy − ry, ry, 1 − sy) and
/// law(no) = (rn, sn − rn, 1 − sn) over the classes that speak for yes, for no, and for neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    /// Who takes part: sy and sn.
    pub(super) part: [f64; 2],
    /// Who answers the opposite: ry and rn.
    pub(super) flip: [f64; 2],
}

impl Law {
    /// The symmetric law of `normal-form`.
    pub(super) fn symmetric(part: f64, flip: f64) -> Self {
        Self { part: [part; 2], flip: [flip; 2] }
    }

    /// The law in which nobody says 0: owners of one truth say 1 `often`, those of the other one `rarely`. With `of_no` it is
    /// the no-owners who do so often.
    pub(super) fn one_sided(often: f64, rarely: f64, of_no: bool) -> Self {
        let (yes, no) = if of_no { (rarely, often) } else { (often, rarely) };
        Self { part: [yes, no], flip: [0.0, no] }
    }

    pub(super) fn yes(&self) -> [f64; 3] {
        [(self.part[0] - self.flip[0]).max(0.0), self.flip[0], 1.0 - self.part[0]]
    }

    pub(super) fn no(&self) -> [f64; 3] {
        [self.flip[1], (self.part[1] - self.flip[1]).max(0.0), 1.0 - self.part[1]]
    }

    /// The classes that an owner of either truth can reach.
    pub(super) fn occurring_classes(&self) -> Vec<usize> {
        (0..3).filter(|&class| self.yes()[class] > 0.0 || self.no()[class] > 0.0).collect()
    }

    /// A channel with this law, for the accounting.
    pub(super) fn channel(&self) -> Result<Channel> {
        let laws = rounded(self.yes())?.into_iter().zip(rounded(self.no())?);
        let cells = [Output::ONE, Output::ZERO, Output::BOTTOM].into_iter().zip(laws);
        Channel::from_cells(cells.map(|(output, (yes, no))| Cell::new(vec![output], yes, no)).collect())
    }

    /// The local ε of the cell: max |ln(p/q)|; infinite if one is 0 and the other is not.
    pub(super) fn linked_epsilon(&self) -> f64 {
        let log_ratio = |(p, q): (f64, f64)| if p <= 0.0 && q <= 0.0 { 0.0 } else { (p / q).ln().abs() };
        self.yes().into_iter().zip(self.no()).map(log_ratio).fold(0.0, f64::max)
    }

    /// The variance of the combined estimator with `yes` yes-owners among `owners`.
    pub(super) fn variance(&self, owners: f64, yes: f64) -> f64 {
        let edge = 1e-18 * owners.min(1.0);
        let yes = yes.clamp(edge, owners - edge);
        self.combined_variance(yes, owners - yes)
    }

    /// 1 / dᵀS⁻¹d over the classes that occur, except the likeliest.
    fn combined_variance(&self, yes: f64, no: f64) -> f64 {
        let (p, q) = (self.yes(), self.no());
        let variance = |c: usize| yes * p[c] * (1.0 - p[c]) + no * q[c] * (1.0 - q[c]);
        let difference = |c: usize| p[c] - q[c];
        let information = match self.all_but_likeliest()[..] {
            [a] => difference(a).powi(2) / variance(a),
            [a, b] => {
                let covariance = -(yes * p[a] * p[b] + no * q[a] * q[b]);
                let (da, db) = (difference(a), difference(b));
                let determinant = variance(a) * variance(b) - covariance * covariance;
                (da * da * variance(b) - 2.0 * da * db * covariance + db * db * variance(a)) / determinant
            }
            _ => 0.0,
        };
        1.0 / information
    }

    /// The classes that occur without the likeliest of them, the least likely first.
    fn all_but_likeliest(&self) -> Vec<usize> {
        let (yes, no) = (self.yes(), self.no());
        let mut classes = self.occurring_classes();
        classes.sort_by(|&a, &b| (yes[a] + no[a]).total_cmp(&(yes[b] + no[b])));
        classes.pop();
        classes
    }
}

/// One truth's law in the integers of a channel.
fn rounded(law: [f64; 3]) -> Result<[Probability; 3]> {
    let exact = |value: f64| Fraction::from_f64(value.clamp(0.0, 1.0)).map(|fraction| fraction.round());
    let (first, second) = (exact(law[0])?, exact(law[1])?);
    // The dust of rounding must not reach a class that the law leaves empty.
    if law[2] <= 0.0 {
        return Ok([first, first.complement(), Probability::ZERO]);
    }
    let second = second.min(first.complement());
    Ok([first, second, first.complement().saturating_sub(second)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Estimator;

    #[test]
    fn variance_is_that_of_the_estimator() {
        for law in [
            Law::symmetric(0.5, 1e-4),
            Law::symmetric(1.0, 1e-3),
            Law { part: [0.6, 0.3], flip: [1e-3, 2e-3] },
            Law { part: [0.6, 1e-3], flip: [0.0, 1e-3] },
        ] {
            let estimator = Estimator::new(&law.channel().unwrap()).unwrap();
            for yes in [0.0, 5.0, 500.0, 25_000.0] {
                let (ours, theirs) = (law.variance(50_000.0, yes).sqrt(), estimator.sd(50_000, yes).unwrap());
                assert!((ours / theirs - 1.0).abs() < 1e-9, "{law:?} {yes}: {ours} {theirs}");
            }
        }
    }
}
