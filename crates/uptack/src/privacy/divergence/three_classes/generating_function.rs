//! The signed law of a histogram from the values of its generating function on two circles (`docs/accounting.md`, "Fourier").
//!
//! With F the crowd's generating function and X the target's weights, both tilted, the coefficients of F·X at the counts
//! (a, b) are a double Fourier sum over the nodes of two circles. F falls off like a Gaussian from (1, 1), so all but some hundred
//! nodes are left out, and what they could add is bounded. Signs and tails of one row are sums over one circle.

use std::f64::consts::{PI, TAU};

use super::tilt::{HighRow, Tilt};
use crate::certified::rounding::ROUNDOFF;
use crate::privacy::likelihood::{CrowdLaws, Weight};

/// Nodes on the circles of the counts high and row; odd, so that every node but the first has a mirror image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes {
    pub(super) high: i64,
    pub(super) row: i64,
}

/// The target's tilted weights for high, row and low: their sum, the parts, and the sum of the parts' sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed {
    pub(super) sum: f64,
    pub(super) high: f64,
    pub(super) row: f64,
    pub(super) magnitude: f64,
}

impl Signed {
    /// The weights of the classes high, row and low under a tilt.
    pub(super) fn new(weights: &[Weight; 3], tilt: Tilt) -> Self {
        let factors = [tilt.high.exp(), tilt.row.exp(), 1.0];
        let scaled = [0, 1, 2].map(|class: usize| weights[class].value() * factors[class]);
        let magnitude = (0..3).map(|class| weights[class].magnitude() * factors[class]).sum();
        Self { sum: scaled.iter().sum(), high: scaled[0], row: scaled[1], magnitude }
    }
}

/// The transform, with the nodes' values scaled and arranged for Horner's rule.
pub(super) struct Transform {
    nodes: Nodes,
    /// The counts at which the nodes' phases start.
    center: HighRow<i64>,
    /// Values by row node, counted from each column's first, then by high node; the real parts and the imaginary parts.
    real: Vec<f64>,
    imaginary: Vec<f64>,
    /// How many columns have a value at each row node; columns further from the first node are shorter.
    widths: Vec<usize>,
    /// How many nodes of the high circle are used (without mirror images), and the first row node of each.
    width: usize,
    firsts: Vec<i64>,
    /// 1/(1 − e^(−tilt − iθ)) for each high node: the sum of a geometric series.
    series: Vec<[f64; 2]>,
    /// How far a term may be off, and a sum beyond a count.
    term_error: f64,
    beyond_error: f64,
}

/// One row's transform over the high circle.
pub(super) struct Row {
    real: Vec<f64>,
    imaginary: Vec<f64>,
}

impl Transform {
    /// The transform of a tilted crowd with the target, where values below e^`noise` are left out; `tilt` is that of the
    /// high count.
    pub(super) fn new(
        crowd: &CrowdLaws<3>,
        signed: Signed,
        center: HighRow<i64>,
        nodes: Nodes,
        tilt: f64,
        noise: f64,
    ) -> Self {
        let decay = Decay::of(crowd);
        let step = [TAU / nodes.high as f64, TAU / nodes.row as f64];
        let ranges: Vec<(i64, i64)> = (0..=nodes.high / 2)
            .map_while(|node| decay.range(node as f64 * step[0], step[1], nodes.row, -noise))
            .collect();
        let (width, used) = (ranges.len(), ranges.len() as i64);
        let lengths: Vec<usize> = ranges.iter().map(|range| (range.1 - range.0 + 1) as usize).collect();
        let depth = lengths.iter().copied().max().unwrap_or(0);
        // A column that is shorter than a later one is filled up with zeros.
        let widths: Vec<usize> =
            (0..depth).map(|at| lengths.iter().rposition(|length| *length > at).map_or(0, |last| last + 1)).collect();
        let starts: Vec<usize> =
            widths.iter().scan(0, |sum, width| Some(std::mem::replace(sum, *sum + width))).collect();
        let size = widths.iter().sum();
        let series = (0..used).map(|node| geometric(tilt, node as f64 * step[0])).collect();
        let mut transform = Self {
            nodes,
            center,
            real: vec![0.0; size],
            imaginary: vec![0.0; size],
            widths,
            width,
            firsts: ranges.iter().map(|range| range.0).collect(),
            series,
            term_error: 0.0,
            beyond_error: 0.0,
        };
        let horner = 16.0 * ROUNDOFF * (depth as i64 + 3 * used + 16) as f64;
        for (node, range) in (0..used).zip(&ranges) {
            let error = transform.fill(node, *range, &starts, crowd, signed, horner)
                + signed.magnitude * decay.left_out(node as f64 * step[0], step[1], nodes.row, -noise);
            let [real, imaginary] = transform.series[node as usize];
            transform.term_error += error * mirrored(node);
            transform.beyond_error += error * mirrored(node) * real.hypot(imaginary);
        }
        let rest = signed.magnitude * decay.columns_left_out(used, step[0], nodes);
        let scale = 1.0 / (nodes.high as f64 * nodes.row as f64);
        transform.term_error = (transform.term_error + rest) * scale;
        transform.beyond_error = (transform.beyond_error + rest * geometric(tilt, 0.0)[0]) * scale;
        transform
    }

    /// Computes one column of nodes; returns how far all its values together may be off.
    fn fill(
        &mut self,
        node: i64,
        (from, to): (i64, i64),
        starts: &[usize],
        crowd: &CrowdLaws<3>,
        signed: Signed,
        horner: f64,
    ) -> f64 {
        let scale = mirrored(node) / (self.nodes.high as f64 * self.nodes.row as f64);
        let theta = TAU * node as f64 / self.nodes.high as f64;
        let mut error = 0.0;
        for other in from..=to {
            let phi = TAU * other as f64 / self.nodes.row as f64;
            let (size, angle) = generating(crowd, theta, phi, self.center);
            let factor = weight(signed, theta, phi);
            let magnitude = factor[0].hypot(factor[1]);
            let (sine, cosine) = angle.sin_cos();
            let index = starts[(other - from) as usize] + node as usize;
            self.real[index] = scale * size * (factor[0] * cosine - factor[1] * sine);
            self.imaginary[index] = scale * size * (factor[0] * sine + factor[1] * cosine);
            let turned = 16.0 * crowd.owners.size() as f64 * (theta.abs() + phi.abs());
            // A factor near zero is off by some roundings of its parts, whatever its size.
            let near_zero = 64.0 * ROUNDOFF * signed.magnitude;
            error += size * (magnitude * (ROUNDOFF * (64.0 + turned) + horner) + 32.0 * ROUNDOFF * signed.magnitude)
                + near_zero;
        }
        error
    }

    /// How far a term may be off.
    pub(super) fn term_error(&self) -> f64 {
        self.term_error
    }

    /// How far a sum beyond a count may be off.
    pub(super) fn beyond_error(&self) -> f64 {
        self.beyond_error
    }

    /// How many nodes are used, as a measure of work.
    pub(super) fn size(&self) -> usize {
        self.real.len()
    }

    /// Room for a row.
    pub(super) fn new_row(&self) -> Row {
        Row { real: vec![0.0; self.width], imaginary: vec![0.0; self.width] }
    }

    /// Fills `row` with the transform of the row `count`.
    pub(super) fn fill_row(&self, count: i64, row: &mut Row) {
        let offset = count - self.center.row;
        let (sine, cosine) = turn(-offset, self.nodes.row);
        row.real.fill(0.0);
        row.imaginary.fill(0.0);
        let mut end = self.real.len();
        for width in self.widths.iter().rev() {
            let start = end - width;
            let (real, imaginary) = (&self.real[start..end], &self.imaginary[start..end]);
            end = start;
            let sums = row.real.iter_mut().zip(&mut row.imaginary);
            for ((sum_real, sum_imaginary), (real, imaginary)) in sums.zip(real.iter().zip(imaginary)) {
                let next = *sum_real * cosine - *sum_imaginary * sine + real;
                *sum_imaginary = *sum_real * sine + *sum_imaginary * cosine + imaginary;
                *sum_real = next;
            }
        }
        // Each column starts at its own row node.
        let mut power = [1.0, 0.0];
        let (mut at, mut moved, mut factor) = (0, i64::MAX, [1.0, 0.0]);
        for ((real, imaginary), first) in row.real.iter_mut().zip(&mut row.imaginary).zip(&self.firsts) {
            if first - at != moved {
                moved = first - at;
                let (sine, cosine) = turn(-(moved * (offset % self.nodes.row)), self.nodes.row);
                factor = [cosine, sine];
            }
            at = *first;
            power = [power[0] * factor[0] - power[1] * factor[1], power[0] * factor[1] + power[1] * factor[0]];
            (*real, *imaginary) = (*real * power[0] - *imaginary * power[1], *real * power[1] + *imaginary * power[0]);
        }
    }

    /// The tilted term at the high count `count`.
    pub(super) fn term(&self, row: &Row, count: i64) -> f64 {
        let (sine, cosine) = turn(self.center.high - count, self.nodes.high);
        let values = row.real.iter().zip(&row.imaginary);
        values.rev().fold([0.0, 0.0], |sum, (real, imaginary)| horner(sum, sine, cosine, *real, *imaginary))[0]
    }

    /// The sum of the terms from the high count `count` on, with the tilt of the first of them.
    pub(super) fn beyond(&self, row: &Row, count: i64) -> f64 {
        let (sine, cosine) = turn(self.center.high - count, self.nodes.high);
        let values = row.real.iter().zip(&row.imaginary).zip(&self.series);
        let sum = values.rev().fold([0.0, 0.0], |sum, ((real, imaginary), series)| {
            let product = [real * series[0] - imaginary * series[1], real * series[1] + imaginary * series[0]];
            horner(sum, sine, cosine, product[0], product[1])
        });
        sum[0]
    }
}

fn horner(sum: [f64; 2], sine: f64, cosine: f64, real: f64, imaginary: f64) -> [f64; 2] {
    [sum[0] * cosine - sum[1] * sine + real, sum[0] * sine + sum[1] * cosine + imaginary]
}

/// Sine and cosine of `steps` nodes of a circle.
fn turn(steps: i64, nodes: i64) -> (f64, f64) {
    let steps = steps.rem_euclid(nodes);
    let near = if steps > nodes / 2 { steps - nodes } else { steps };
    (TAU * near as f64 / nodes as f64).sin_cos()
}

/// How many nodes a node stands for: its mirror image has the conjugate value.
fn mirrored(node: i64) -> f64 {
    if node == 0 { 1.0 } else { 2.0 }
}

/// 1/(1 − e^(−tilt − iθ)).
fn geometric(tilt: f64, theta: f64) -> [f64; 2] {
    let shrink = (-tilt).exp();
    // 1 − e^(−tilt)·cos θ without cancellation.
    let real = -(-tilt).exp_m1() + 2.0 * shrink * (0.5 * theta).sin().powi(2);
    let imaginary = shrink * theta.sin();
    let square = real * real + imaginary * imaginary;
    [real / square, -imaginary / square]
}

/// Magnitude and angle of the crowd's generating function, without the phase of the center.
fn generating(crowd: &CrowdLaws<3>, theta: f64, phi: f64, center: HighRow<i64>) -> (f64, f64) {
    let [chord_high, chord_row, chord_both] = [theta, phi, theta - phi].map(|angle| 2.0 * (0.5 * angle).sin().powi(2));
    let (mut logarithm, mut angle) = (0.0, -theta * center.high as f64 - phi * center.row as f64);
    for (owners, [high, row, low]) in crowd.each() {
        let (imaginary, real) = (high * theta.sin() + row * phi.sin(), high * theta.cos() + row * phi.cos() + low);
        // 1 − |…|², a sum of positive parts.
        let lost = 2.0 * (high * low * chord_high + row * low * chord_row + high * row * chord_both);
        // Near a zero of the factor 1 − |…|² says little, but the factor itself is accurate.
        let factor = if lost > 0.5 { real.hypot(imaginary).ln() } else { 0.5 * (-lost).ln_1p() };
        logarithm += owners as f64 * factor;
        angle += owners as f64 * imaginary.atan2(real);
    }
    (logarithm.exp(), angle)
}

/// The target's weight at a node.
fn weight(signed: Signed, theta: f64, phi: f64) -> [f64; 2] {
    let chord = |angle: f64| -2.0 * (0.5 * angle).sin().powi(2);
    [
        signed.sum + signed.high * chord(theta) + signed.row * chord(phi),
        signed.high * theta.sin() + signed.row * phi.sin(),
    ]
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
