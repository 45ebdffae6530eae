//! Which nodes of the two circles are used, and what the others could add (`docs/accounting.md`, "Fourier").

use std::f64::consts::{PI, TAU};

use super::tilt::{HighRow, Products};
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
        let circles = Circles::new(Decay::of(crowd), nodes, cut);
        let columns: Vec<(i64, i64)> = (0..=nodes.high / 2).map_while(|node| circles.column(node)).collect();
        let widths = widths(&columns)?;
        let used = columns.len() as i64;
        let used_nodes = Self {
            starts: starts(&widths),
            widths,
            left_out: (0..used).map(|node| circles.left_out(node)).collect(),
            columns_left_out: circles.columns_left_out(used),
            columns,
        };
        (used_nodes.size() <= MOST_VALUES).then_some(used_nodes)
    }

    /// How many values there are.
    pub(super) fn size(&self) -> usize {
        self.widths.iter().sum()
    }
}

/// How many of these columns reach each place, up to the last column that does; none where they have too many values.
fn widths(columns: &[(i64, i64)]) -> Option<Vec<usize>> {
    let lengths: Vec<usize> = columns.iter().map(|(from, to)| (to - from + 1) as usize).collect();
    if lengths.iter().sum::<usize>() > MOST_VALUES {
        return None;
    }
    let depth = lengths.iter().copied().max().unwrap_or(0);
    let width = |at: usize| lengths.iter().rposition(|length| *length > at).map_or(0, |last| last + 1);
    Some((0..depth).map(width).collect())
}

/// Where each of some consecutive stretches of these widths starts.
fn starts(widths: &[usize]) -> Vec<usize> {
    widths.iter().scan(0, |sum, width| Some(std::mem::replace(sum, *sum + width))).collect()
}

/// A bound on the size of the generating function: it is at most exp(−E) with E = high·(1 − cos θ) + row·(1 − cos φ) +
/// both·(1 − cos(θ − φ)).
struct Decay {
    high: f64,
    row: f64,
    both: f64,
}

impl Decay {
    fn of(crowd: &CrowdLaws<3>) -> Self {
        let Products { high, row, both } = crowd.products();
        // Slightly less, which covers rounding.
        let [high, row, both] = [high, row, both].map(|product| product * (1.0 - 1e-9));
        Self { high, row, both }
    }

    /// The exponent for a fixed θ.
    fn column(&self, theta: f64) -> ColumnDecay {
        let (real, imaginary) = (self.row + self.both * theta.cos(), self.both * theta.sin());
        let factor = real.hypot(imaginary);
        // row + both − c without cancellation.
        let lost = 2.0 * self.row * self.both * chord(theta) / (self.row + self.both + factor).max(f64::MIN_POSITIVE);
        ColumnDecay { base: self.high * chord(theta) + lost, factor, middle: imaginary.atan2(real) }
    }
}

/// The exponent of the bound for a fixed θ: `base` + c·(1 − cos(φ − φ₀)), where c is `factor` and φ₀ is `middle`.
struct ColumnDecay {
    base: f64,
    factor: f64,
    middle: f64,
}

impl ColumnDecay {
    /// How far from φ₀ the exponent stays below `cut`; none where it never is.
    fn reach(&self, cut: f64) -> Option<f64> {
        let left = cut - self.base;
        if left < 0.0 {
            return None;
        }
        Some(if left >= 2.0 * self.factor { PI } else { (1.0 - left / self.factor).acos() })
    }
}

/// The nodes of both circles. Those at which the bound is above e^(−`cut`) are used.
struct Circles {
    decay: Decay,
    nodes: Nodes,
    /// The angle from one node to the next.
    step: HighRow<f64>,
    cut: f64,
}

impl Circles {
    fn new(decay: Decay, nodes: Nodes, cut: f64) -> Self {
        Self { decay, nodes, step: nodes.map(|count| TAU / count as f64), cut }
    }

    fn theta(&self, node: i64) -> f64 {
        node as f64 * self.step.high
    }

    /// The row nodes to be used in the column of a high node; none where the whole column is left out.
    fn column(&self, node: i64) -> Option<(i64, i64)> {
        let column = self.decay.column(self.theta(node));
        let reach = column.reach(self.cut)?;
        let from = ((column.middle - reach) / self.step.row).floor() as i64;
        let to = ((column.middle + reach) / self.step.row).ceil() as i64;
        let nodes = self.nodes.row;
        Some(if to - from + 1 >= nodes { (-(nodes / 2), nodes / 2) } else { (from, to) })
    }

    /// What the nodes of a used column that are left out may add.
    fn left_out(&self, node: i64) -> f64 {
        let all = self.column(node).is_none_or(|(from, to)| to - from + 1 >= self.nodes.row);
        let column = self.decay.column(self.theta(node));
        match column.reach(self.cut) {
            Some(reach) if !all => {
                2.0 * falling_sum(reach, self.step.row, |angle| column.base + column.factor * chord(angle))
            }
            _ => 0.0,
        }
    }

    /// What whole columns from the high node `from` on may add.
    fn columns_left_out(&self, from: i64) -> f64 {
        if from > self.nodes.high / 2 {
            return 0.0;
        }
        2.0 * self.nodes.row as f64
            * falling_sum(self.theta(from), self.step.high, |theta| self.decay.column(theta).base)
    }
}

/// How many nodes a node stands for: its mirror image has the conjugate value.
pub(super) fn mirrored(node: i64) -> f64 {
    if node == 0 { 1.0 } else { 2.0 }
}

/// A value of a generating function by its size and its angle.
pub(super) struct Polar {
    pub(super) size: f64,
    pub(super) angle: f64,
}

/// 1 − cos θ without cancellation.
pub(super) fn chord(theta: f64) -> f64 {
    2.0 * (0.5 * theta).sin().powi(2)
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

/// The next odd number.
pub(super) fn odd(number: i64) -> i64 {
    number | 1
}
