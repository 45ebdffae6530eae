//! The data of a chart: its axes, series, levels and bands.

use crate::look::Look;
use crate::scale::{Ruler, Scale};

/// An axis: its label, and how it spreads values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity along it, with its unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// The ends of the axis; by default all values fit.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis that fits all values.
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, range: None }
    }

    /// The same axis from `low` to `high`; values outside are left out.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    pub(crate) fn ruler(&self, values: impl Iterator<Item = f64>) -> Ruler {
        Ruler::new(self.scale, self.range, values)
    }
}

/// One point, with its interval if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// The values on the vertical axis that the point and its interval reach.
    pub(crate) fn heights(&self) -> [f64; 3] {
        let (low, high) = self.interval.unwrap_or((self.y, self.y));
        [self.y, low, high]
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A line through its points.
    Line,
    /// A marker at each of its points.
    Points,
    /// Both.
    Both,
}

impl Draw {
    pub(crate) fn has_line(self) -> bool {
        self != Self::Points
    }

    pub(crate) fn has_markers(self) -> bool {
        self != Self::Line
    }
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; a series without a name is not in the legend.
    pub name: String,
    /// Its points, in the order of the line.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub draw: Draw,
    /// Its colour, marker and dashes; by default those of its place in the chart.
    pub look: Option<Look>,
}

impl Series {
    /// A series drawn as a line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::drawn(name, points, Draw::Line)
    }

    /// A series drawn as markers.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::drawn(name, points, Draw::Points)
    }

    /// A series drawn as a line with markers.
    pub fn both(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::drawn(name, points, Draw::Both)
    }

    /// The same series with this look.
    #[must_use]
    pub fn looking(mut self, look: Look) -> Self {
        self.look = Some(look);
        self
    }

    fn drawn(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, draw: Draw) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, interval: None }).collect();
        Self { name: name.into(), points, draw, look: None }
    }
}

/// A value on the vertical axis that is marked across the whole chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The value.
    pub y: f64,
    /// Its label.
    pub label: String,
}

/// A region between two curves, behind everything else.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Its name in the legend.
    pub name: String,
    /// Values on the horizontal axis, each with the lower and the upper end of the region there.
    pub points: Vec<(f64, f64, f64)>,
}
