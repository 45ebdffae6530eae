//! How series are told apart: by colour, by marker and by dashes, each of which suffices alone.

use crate::svg::{Svg, number};

/// Okabe and Ito's colours, in an order of falling contrast with the background; their yellow is left out, which
/// white swallows.
const COLOURS: [&str; 8] = ["#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B"];

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    Circle,
    /// A filled square.
    Square,
    /// A filled triangle, point up.
    Triangle,
    /// A filled diamond.
    Diamond,
    /// Two crossing diagonals.
    Cross,
    /// An upright cross.
    Plus,
    /// A filled triangle, point down.
    TriangleDown,
    /// An open circle.
    Ring,
    /// A wide open circle with a dot's room in its middle, around what is chosen.
    Halo,
}

const MARKERS: [Marker; 8] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
    Marker::Plus,
    Marker::TriangleDown,
    Marker::Ring,
];

/// The pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dash(&'static str);

impl Dash {
    /// No gaps.
    pub const SOLID: Self = Self("");
    const ALL: [Self; 8] = [
        Self::SOLID,
        Self("9 4"),
        Self("2 3"),
        Self("10 3 2 3"),
        Self("5 2"),
        Self("16 4"),
        Self("2 6"),
        Self("7 2 2 2 2 2"),
    ];
}

/// The colour, the marker and the dashes of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    colour: &'static str,
    /// The shape of its points.
    pub marker: Marker,
    /// The pattern of its line.
    pub dash: Dash,
}

impl Look {
    /// The look of series number `index`; the first eight differ in all three respects.
    pub fn numbered(index: usize) -> Self {
        let turn = index / COLOURS.len();
        let colour = COLOURS[index % COLOURS.len()];
        Self {
            colour,
            marker: MARKERS[(index + 3 * turn) % MARKERS.len()],
            dash: Dash::ALL[(index + 5 * turn) % Dash::ALL.len()],
        }
    }

    /// What is chosen among points of other looks.
    pub fn chosen() -> Self {
        Self { colour: "#000000", marker: Marker::Halo, dash: Dash::SOLID }
    }

    pub(crate) fn line(self, svg: &mut Svg, points: &[(f64, f64)]) {
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
        let dash =
            if self.dash.0.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash.0) };
        svg.raw(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dash}/>",
            path.join(" "),
            self.colour
        ));
    }

    pub(crate) fn whisker(self, svg: &mut Svg, x: f64, low: f64, high: f64) {
        let (x, low, high) = (number(x), number(low), number(high));
        svg.raw(&format!(
            "<line x1=\"{x}\" y1=\"{low}\" x2=\"{x}\" y2=\"{high}\" stroke=\"{}\" stroke-width=\"1.5\"/>",
            self.colour
        ));
    }

    pub(crate) fn mark(self, svg: &mut Svg, x: f64, y: f64) {
        let at = |dx: f64, dy: f64| format!("{},{}", number(x + dx), number(y + dy));
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<String> = corners.iter().map(|&(dx, dy)| at(dx, dy)).collect();
            format!("<polygon points=\"{}\" fill=\"{}\"/>", corners.join(" "), self.colour)
        };
        let strokes = |path: String| format!("<path d=\"{path}\" stroke=\"{}\" stroke-width=\"2.2\"/>", self.colour);
        let circle = |fill: &str| {
            let (x, y) = (number(x), number(y));
            format!(
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"4.2\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1.6\"/>",
                self.colour
            )
        };
        let shape = match self.marker {
            Marker::Circle => circle(self.colour),
            Marker::Ring => circle("#ffffff"),
            Marker::Halo => format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"9\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"/>",
                number(x),
                number(y),
                self.colour
            ),
            Marker::Square => polygon(&[(-4.2, -4.2), (4.2, -4.2), (4.2, 4.2), (-4.2, 4.2)]),
            Marker::Diamond => polygon(&[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)]),
            Marker::Triangle => polygon(&[(0.0, -5.6), (5.2, 4.2), (-5.2, 4.2)]),
            Marker::TriangleDown => polygon(&[(0.0, 5.6), (5.2, -4.2), (-5.2, -4.2)]),
            Marker::Cross => {
                strokes(format!("M{}L{}M{}L{}", at(-4.4, -4.4), at(4.4, 4.4), at(-4.4, 4.4), at(4.4, -4.4)))
            }
            Marker::Plus => strokes(format!("M{}L{}M{}L{}", at(-5.4, 0.0), at(5.4, 0.0), at(0.0, -5.4), at(0.0, 5.4))),
        };
        svg.raw(&shape);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_series_differ_in_every_respect_and_more_in_some() {
        let looks: Vec<Look> = (0..24).map(Look::numbered).collect();
        for (index, first) in looks.iter().enumerate() {
            for (other, second) in looks.iter().enumerate().skip(index + 1) {
                assert_ne!(first, second);
                if other < 8 {
                    assert!(
                        first.colour != second.colour && first.marker != second.marker && first.dash != second.dash
                    );
                } else {
                    assert!(first.marker != second.marker || first.dash != second.dash, "{index} and {other} in grey");
                }
            }
        }
    }
}
