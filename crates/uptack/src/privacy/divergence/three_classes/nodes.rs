//! Which nodes of the two circles are used, and what the others could add (`docs/accounting.md`, "Fourier").

use std::f64::consts::{PI, TAU};

use super::tilt::HighRow;
use crate::privacy::likelihood::CrowdLaws;

/// Nodes on the circles of both counts; odd, so that every node but the first has a mirror image.
pub(super) type Nodes = HighRow<i64>;

/// The nodes at which the generating function is not negligible: columns of row nodes, one column for each high node.
pub(super) struct UsedNodes {
    /// For each used node of the high circle (without mirror images) the first and the last row node.
    pub(super) columns: Vec<(i64, i64)>,
    /// How many columns have a value at each row node, counted from a column's first. Columns further from the first high node
    /// are shorter; one that is shorter than a later one is filled up with zeros.
    pub(super) widths: Vec<usize>,
    /// Where the values of each row node start if they are stored one row node after the other.
    pub(super) starts: Vec<usize>,
    /// What the nodes of each column that are left out may add, and what all columns that are left out may.
    pub(super) left_out: Vec<f64>,
    pub(super) columns_left_out: f64,
}

/// More values than this are not computed: they would take a quarter of a gigabyte. With fewer, three classes would stay open
/// in crowds of a hundred million that close today.
const MOST_VALUES: usize = 1 << 24;

impl UsedNodes {
    /// All nodes at which the generating function may be above e^(−`cut`); none where they are too many.
    pub(super) fn new(crowd: &CrowdLaws<3>, nodes: Nodes, cut: f64) -> Option<Self> {
        let decay = Decay::of(crowd);
        let step = HighRow { high: TAU / nodes.high as f64, row: TAU / nodes.row as f64 };
        let theta = |node: i64| node as f64 * step.high;
        let columns: Vec<(i64, i64)> =
            (0..=nodes.high / 2).map_while(|node| decay.range(theta(node), step.row, nodes.row, cut)).collect();
        let used = columns.len() as i64;
        let lengths: Vec<usize> = columns.iter().map(|(from, to)| (to - from + 1) as usize).collect();
        if lengths.iter().sum::<usize>() > MOST_VALUES {
            return None;
        }
        let depth = lengths.iter().copied().max().unwrap_or(0);
        let width = |at: usize| lengths.iter().rposition(|length| *length > at).map_or(0, |last| last + 1);
        let widths: Vec<usize> = (0..depth).map(width).collect();
        let used_nodes = Self {
            starts: widths.iter().scan(0, |sum, width| Some(std::mem::replace(sum, *sum + width))).collect(),
            widths,
            left_out: (0..used).map(|node| decay.left_out(theta(node), step.row, nodes.row, cut)).collect(),
            columns_left_out: decay.columns_left_out(used, step.high, nodes),
            columns,
        };
        (used_nodes.size() <= MOST_VALUES).then_some(used_nodes)
    }

    /// How many values there are.
    pub(super) fn size(&self) -> usize {
        self.widths.iter().sum()
    }
}

/// A bound on the size of the generating function: it is at most exp(−E) with E = high·(1 − cos θ) + row·(1 − cos φ) +
/// both·(1 − cos(θ − φ)). For a fixed θ this is c·(1 − cos(φ − φ₀)) and a part that does not depend on φ.
struct Decay {
    high: f64,
    row: f64,
    both: f64,
}

impl Decay {
    fn of(crowd: &CrowdLaws<3>) -> Self {
        // Slightly less, which covers rounding.
        let least = |one, other| crowd.product(one, other) * (1.0 - 1e-9);
        Self { high: least(0, 2), row: least(1, 2), both: least(0, 1) }
    }

    /// The part without φ, the factor c and the angle φ₀.
    fn column(&self, theta: f64) -> (f64, f64, f64) {
        let (real, imaginary) = (self.row + self.both * theta.cos(), self.both * theta.sin());
        let factor = real.hypot(imaginary);
        // row + both − c without cancellation.
        let chord = 2.0 * (0.5 * theta).sin().powi(2);
        let lost = 2.0 * self.row * self.both * chord / (self.row + self.both + factor).max(f64::MIN_POSITIVE);
        (self.high * chord + lost, factor, imaginary.atan2(real))
    }

    /// How far from φ₀ the exponent stays below `cut`; none where it never is.
    fn reach(&self, theta: f64, cut: f64) -> Option<(f64, f64)> {
        let (base, factor, middle) = self.column(theta);
        let left = cut - base;
        if left < 0.0 {
            return None;
        }
        let reach = if left >= 2.0 * factor { PI } else { (1.0 - left / factor).acos() };
        Some((middle, reach))
    }

    /// The row nodes to be used in a column; none where the whole column is left out.
    fn range(&self, theta: f64, step: f64, nodes: i64, cut: f64) -> Option<(i64, i64)> {
        let (middle, reach) = self.reach(theta, cut)?;
        let (from, to) = (((middle - reach) / step).floor() as i64, ((middle + reach) / step).ceil() as i64);
        Some(if to - from + 1 >= nodes { (-(nodes / 2), nodes / 2) } else { (from, to) })
    }

    /// What the nodes of a used column that are left out may add.
    fn left_out(&self, theta: f64, step: f64, nodes: i64, cut: f64) -> f64 {
        let all = self.range(theta, step, nodes, cut).is_none_or(|(from, to)| to - from + 1 >= nodes);
        let Some((_, reach)) = self.reach(theta, cut) else { return 0.0 };
        if all {
            return 0.0;
        }
        let (base, factor, _) = self.column(theta);
        2.0 * falling_sum(reach, step, |angle| base + factor * 2.0 * (0.5 * angle).sin().powi(2))
    }

    /// What whole columns from the node `from` on may add.
    fn columns_left_out(&self, from: i64, step: f64, nodes: Nodes) -> f64 {
        if from > nodes.high / 2 {
            return 0.0;
        }
        2.0 * nodes.row as f64 * falling_sum(from as f64 * step, step, |theta| self.column(theta).0)
    }
}

/// A bound on Σ exp(−exponent(angle)) over angles from `from` to π in equal steps, for a growing exponent: in ever longer blocks,
/// each bounded by its first term.
pub(super) fn falling_sum(from: f64, step: f64, exponent: impl Fn(f64) -> f64) -> f64 {
    let (mut angle, mut count, mut sum) = (from, 1.0, 0.0);
    while angle <= PI + step {
        sum += count * (-exponent(angle.min(PI))).exp();
        angle += count * step;
        count *= 1.25_f64;
        count = count.ceil();
    }
    sum
}
