//! The three-class law that every family of the planner comes down to.

use crate::channel::{Cell, Channel, Output};
use crate::error::Error;
use crate::fraction::Fraction;
use crate::probability::Probability;

/// Who takes part and who answers the opposite: law(yes) = (sy − ry, ry, 1 − sy), law(no) = (rn, sn − rn, 1 − sn) over
/// the classes that speak for yes, for no, and for neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    /// sy and sn.
    pub(super) part: [f64; 2],
    /// ry and rn.
    pub(super) flip: [f64; 2],
}

impl Law {
    /// The symmetric law of `normal-form`.
    pub(super) fn symmetric(part: f64, flip: f64) -> Self {
        Self { part: [part; 2], flip: [flip; 2] }
    }

    pub(super) fn yes(&self) -> [f64; 3] {
        [(self.part[0] - self.flip[0]).max(0.0), self.flip[0], 1.0 - self.part[0]]
    }

    pub(super) fn no(&self) -> [f64; 3] {
        [self.flip[1], (self.part[1] - self.flip[1]).max(0.0), 1.0 - self.part[1]]
    }

    /// A channel with this law, for the accounting.
    pub(super) fn channel(&self) -> Result<Channel, Error> {
        let grid = |law: [f64; 3]| -> Result<[Probability; 3], Error> {
            let exact = |value: f64| Fraction::from_f64(value.clamp(0.0, 1.0)).map(|fraction| fraction.round());
            let (first, second) = (exact(law[0])?, exact(law[1])?);
            let second = second.min(first.complement());
            let rest = first.complement().saturating_sub(second);
            // A class that neither truth was meant to reach must not get the rounding's dust.
            Ok(if law[2] <= 0.0 { [first, first.complement(), Probability::ZERO] } else { [first, second, rest] })
        };
        let (yes, no) = (grid(self.yes())?, grid(self.no())?);
        let outputs = [Output::ONE, Output::ZERO, Output::BOTTOM];
        let cells = outputs.iter().zip(yes.into_iter().zip(no));
        Channel::from_cells(cells.map(|(&output, (yes, no))| Cell::new(vec![output], yes, no)).collect())
    }

    /// The local ε of the cell.
    pub(super) fn linked_epsilon(&self) -> f64 {
        ratio_epsilon(&self.yes(), &self.no())
    }

    /// The variance of the combined estimator at `yes` of `owners`.
    pub(super) fn variance(&self, owners: f64, yes: f64) -> f64 {
        let edge = 1e-18 * owners.min(1.0);
        let yes = yes.clamp(edge, owners - edge);
        combined_variance(&self.yes(), &self.no(), owners, yes)
    }
}

/// max |ln(p/q)|; infinite where one is 0 and the other is not.
pub(super) fn ratio_epsilon(p: &[f64], q: &[f64]) -> f64 {
    let one = |(&p, &q): (&f64, &f64)| if p <= 0.0 && q <= 0.0 { 0.0 } else { (p / q).ln().abs() };
    p.iter().zip(q).map(one).fold(0.0, f64::max)
}

/// 1 / dᵀS⁻¹d over the classes that occur, the likeliest left out.
fn combined_variance(p: &[f64; 3], q: &[f64; 3], owners: f64, yes: f64) -> f64 {
    let no = owners - yes;
    let mut occurring: Vec<usize> = (0..3).filter(|&class| p[class] > 0.0 || q[class] > 0.0).collect();
    occurring.sort_by(|&a, &b| (p[a] + q[a]).total_cmp(&(p[b] + q[b])));
    occurring.pop();
    let variance = |c: usize| yes * p[c] * (1.0 - p[c]) + no * q[c] * (1.0 - q[c]);
    let difference = |c: usize| p[c] - q[c];
    let information = match occurring[..] {
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
