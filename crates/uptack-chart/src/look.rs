//! What tells series apart: colour, marker and dashes.

use crate::svg::{Position, Svg, coordinates, number, points};

/// First the colours of Okabe and Ito, in order of falling contrast with the background and without their yellow, which is
/// hard to see on white; then darker and other ones for pictures, or sets of pictures, with more series.
const COLOURS: [&str; 30] = [
    "#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B", "#5D3A9B", "#8C510A",
    "#01665E", "#A50026", "#7A8B00", "#003C67", "#8B3A00", "#00573F", "#9E9E9E", "#A3006F", "#B8860B", "#2A4BD7",
    "#404040", "#9970AB", "#C51B7D", "#3B7A00", "#E0607E", "#2FA49A", "#4F6D8F", "#7F6000", "#6A00B8", "#C04000",
];

/// The pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dash(&'static str);

impl Dash {
    /// A line without gaps.
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

    /// The attribute of a dashed line, with a space before it; nothing for a solid one.
    fn attribute(self) -> String {
        match self {
            Self::SOLID => String::new(),
            Self(pattern) => format!(" stroke-dasharray=\"{pattern}\""),
        }
    }
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
    /// How many looks have a colour of their own.
    pub const COLOURS: usize = COLOURS.len();

    /// The look of series number `index`.
    ///
    /// The first eight differ in colour, marker and dashes. No two of the first [`Look::COLOURS`] share a colour, and
    /// no two whose numbers differ modulo 13 share a marker.
    pub fn numbered(index: usize) -> Self {
        Self {
            colour: cycled(&COLOURS, index),
            marker: cycled(&Marker::NUMBERED, index),
            dash: cycled(&Dash::ALL, index),
        }
    }

    /// The look of a point that is chosen among others.
    pub fn chosen() -> Self {
        Self { colour: "#000000", marker: Marker::Halo, dash: Dash::SOLID }
    }

    /// The same with another marker.
    #[must_use]
    pub fn marked(self, marker: Marker) -> Self {
        Self { marker, ..self }
    }

    /// Its colour as `#RRGGBB`.
    pub fn colour(&self) -> &'static str {
        self.colour
    }

    pub(crate) fn line(self, svg: &mut Svg, positions: impl IntoIterator<Item = Position>) {
        let (points, colour, dash) = (points(positions), self.colour, self.dash.attribute());
        svg.raw(&format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>"));
    }

    pub(crate) fn whisker(self, svg: &mut Svg, x: f64, low: f64, high: f64) {
        svg.stroke((x, low), (x, high), self.colour, 1.5);
    }

    pub(crate) fn mark(self, svg: &mut Svg, at: Position) {
        self.marker.draw(svg, self.colour, at);
    }
}

/// Number `index` of values that begin anew after the last.
fn cycled<T: Copy>(values: &[T], index: usize) -> T {
    values[index % values.len()]
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// An open square.
    OpenSquare,
    /// An open triangle, point up.
    OpenTriangle,
    /// An open diamond.
    OpenDiamond,
    /// An open triangle, point down.
    OpenTriangleDown,
    /// Both crosses, one over the other.
    Star,
    /// A small dot that others may overlap, for thousands of points.
    Dot,
    /// A wide open circle around the marker of a chosen point.
    Halo,
}

/// Corners relative to the marker's centre.
const SQUARE: &[Position] = &[(-4.2, -4.2), (4.2, -4.2), (4.2, 4.2), (-4.2, 4.2)];
const DIAMOND: &[Position] = &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)];
const TRIANGLE: &[Position] = &[(0.0, -5.6), (5.2, 4.2), (-5.2, 4.2)];
const TRIANGLE_DOWN: &[Position] = &[(0.0, 5.6), (5.2, -4.2), (-5.2, -4.2)];
/// Strokes, each by its ends.
const CROSS: &[[Position; 2]] = &[[(-4.4, -4.4), (4.4, 4.4)], [(-4.4, 4.4), (4.4, -4.4)]];
const PLUS: &[[Position; 2]] = &[[(-5.4, 0.0), (5.4, 0.0)], [(0.0, -5.4), (0.0, 5.4)]];

/// How the inside of a shape is painted.
#[derive(Clone, Copy)]
enum MarkerFill {
    Solid,
    Open,
}

impl Marker {
    /// The markers that numbered series take in turn; they differ from each other even without colour.
    pub(crate) const NUMBERED: [Self; 13] = [
        Self::Circle,
        Self::Square,
        Self::Triangle,
        Self::Diamond,
        Self::Cross,
        Self::Plus,
        Self::TriangleDown,
        Self::Ring,
        Self::OpenSquare,
        Self::OpenTriangle,
        Self::OpenDiamond,
        Self::OpenTriangleDown,
        Self::Star,
    ];

    pub(crate) fn draw(self, svg: &mut Svg, colour: &str, at: Position) {
        let brush = Brush { colour, at };
        let shape = match self {
            Self::Circle => brush.circle(4.2, colour),
            Self::Ring => brush.circle(4.2, "#ffffff"),
            Self::Dot => brush.dot(),
            Self::Halo => brush.halo(),
            Self::Square => brush.polygon(SQUARE, MarkerFill::Solid),
            Self::Diamond => brush.polygon(DIAMOND, MarkerFill::Solid),
            Self::Triangle => brush.polygon(TRIANGLE, MarkerFill::Solid),
            Self::TriangleDown => brush.polygon(TRIANGLE_DOWN, MarkerFill::Solid),
            Self::OpenSquare => brush.polygon(SQUARE, MarkerFill::Open),
            Self::OpenDiamond => brush.polygon(DIAMOND, MarkerFill::Open),
            Self::OpenTriangle => brush.polygon(TRIANGLE, MarkerFill::Open),
            Self::OpenTriangleDown => brush.polygon(TRIANGLE_DOWN, MarkerFill::Open),
            Self::Cross => brush.strokes(CROSS),
            Self::Plus => brush.strokes(PLUS),
            Self::Star => brush.strokes(&[CROSS, PLUS].concat()),
        };
        svg.raw(&shape);
    }
}

/// What draws a marker: a colour at a position.
struct Brush<'a> {
    colour: &'a str,
    at: Position,
}

impl Brush<'_> {
    fn corner(&self, (dx, dy): Position) -> Position {
        (self.at.0 + dx, self.at.1 + dy)
    }

    fn centre(&self) -> String {
        format!("cx=\"{}\" cy=\"{}\"", number(self.at.0), number(self.at.1))
    }

    fn circle(&self, radius: f64, fill: &str) -> String {
        let (centre, colour) = (self.centre(), self.colour);
        format!("<circle {centre} r=\"{radius}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.6\"/>")
    }

    fn halo(&self) -> String {
        format!("<circle {} r=\"9\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.4\"/>", self.centre(), self.colour)
    }

    fn dot(&self) -> String {
        format!("<circle {} r=\"2\" fill=\"{}\" fill-opacity=\"0.45\"/>", self.centre(), self.colour)
    }

    fn polygon(&self, corners: &[Position], fill: MarkerFill) -> String {
        let points = points(corners.iter().map(|&corner| self.corner(corner)));
        let paint = match fill {
            MarkerFill::Solid => format!("fill=\"{}\"", self.colour),
            MarkerFill::Open => format!("fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"1.6\"", self.colour),
        };
        format!("<polygon points=\"{points}\" {paint}/>")
    }

    fn strokes(&self, strokes: &[[Position; 2]]) -> String {
        let ends = strokes.iter().map(|ends| ends.map(|end| coordinates(self.corner(end))));
        let path: String = ends.map(|[from, to]| format!("M{from}L{to}")).collect();
        format!("<path d=\"{path}\" stroke=\"{}\" stroke-width=\"2.2\"/>", self.colour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_series_differ_in_every_respect_thirteen_in_marker_and_all_in_colour() {
        let looks: Vec<Look> = (0..Look::COLOURS).map(Look::numbered).collect();
        for (index, first) in looks.iter().enumerate() {
            for (other, second) in looks.iter().enumerate().skip(index + 1) {
                assert_ne!(first.colour, second.colour, "{index} and {other}");
                assert_eq!(first.marker == second.marker, (other - index) % 13 == 0, "{index} and {other}");
                assert!(other >= 8 || first.dash != second.dash, "{index} and {other}");
            }
        }
    }
}
