//! The shapes of points.

use crate::svg::{Position, Svg, coordinates, number, points};

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
enum Fill {
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
            Self::Square => brush.polygon(SQUARE, Fill::Solid),
            Self::Diamond => brush.polygon(DIAMOND, Fill::Solid),
            Self::Triangle => brush.polygon(TRIANGLE, Fill::Solid),
            Self::TriangleDown => brush.polygon(TRIANGLE_DOWN, Fill::Solid),
            Self::OpenSquare => brush.polygon(SQUARE, Fill::Open),
            Self::OpenDiamond => brush.polygon(DIAMOND, Fill::Open),
            Self::OpenTriangle => brush.polygon(TRIANGLE, Fill::Open),
            Self::OpenTriangleDown => brush.polygon(TRIANGLE_DOWN, Fill::Open),
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

    fn polygon(&self, corners: &[Position], fill: Fill) -> String {
        let points = points(corners.iter().map(|&corner| self.corner(corner)));
        let paint = match fill {
            Fill::Solid => format!("fill=\"{}\"", self.colour),
            Fill::Open => format!("fill=\"#ffffff\" stroke=\"{}\" stroke-width=\"1.6\"", self.colour),
        };
        format!("<polygon points=\"{points}\" {paint}/>")
    }

    fn strokes(&self, strokes: &[[Position; 2]]) -> String {
        let ends = strokes.iter().map(|ends| ends.map(|end| coordinates(self.corner(end))));
        let path: String = ends.map(|[from, to]| format!("M{from}L{to}")).collect();
        format!("<path d=\"{path}\" stroke=\"{}\" stroke-width=\"2.2\"/>", self.colour)
    }
}
