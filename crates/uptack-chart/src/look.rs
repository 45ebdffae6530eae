//! What tells series apart: colour, marker and dashes.

use crate::marker::Marker;
use crate::svg::{Position, Svg, points};

/// First the colours of Okabe and Ito, in order of falling contrast with the background and without their yellow, which is
/// hard to see on white; then darker and other ones for pictures, or sets of pictures, with more series.
const COLOURS: [&str; 26] = [
    "#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B", "#5D3A9B", "#8C510A",
    "#01665E", "#A50026", "#7A8B00", "#003C67", "#8B3A00", "#00573F", "#9E9E9E", "#A3006F", "#B8860B", "#2A4BD7",
    "#404040", "#9970AB", "#C51B7D", "#3B7A00", "#E0607E", "#2FA49A",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_series_differ_in_every_respect_thirteen_in_marker_and_all_in_colour() {
        let looks: Vec<Look> = (0..Look::COLOURS).map(Look::numbered).collect();
        for (index, first) in looks.iter().enumerate() {
            for (other, second) in looks.iter().enumerate().skip(index + 1) {
                assert_ne!(first.colour, second.colour, "{index} and {other}");
                assert_eq!(first.marker == second.marker, other == index + 13, "{index} and {other}");
                assert!(other >= 8 || first.dash != second.dash, "{index} and {other}");
            }
        }
    }
}
