//! What is drawn over two axes.

use crate::look::Look;
use crate::scale::Scale;

/// What an axis says and how it spreads its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is along it, with its unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// From where to where; by default whatever holds all values.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis that holds all values.
    pub fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, range: None }
    }

    /// The same from `low` to `high`; what is outside is left out.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }
}

/// One point, with an interval where there is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
}

/// What is drawn of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A line through its points.
    Line,
    /// A marker at each of its points.
    Points,
    /// Both.
    Both,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it; a series without a name is not in the legend.
    pub name: String,
    /// Its points, in the order of the line.
    pub points: Vec<Point>,
    /// What is drawn of it.
    pub draw: Draw,
    /// Its colour, marker and dashes; by default those of its number in the chart.
    pub look: Option<Look>,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::plain(name, points, Draw::Line)
    }

    /// Markers.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::plain(name, points, Draw::Points)
    }

    /// A line with markers.
    pub fn both(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::plain(name, points, Draw::Both)
    }

    /// The same with this look.
    #[must_use]
    pub fn looking(mut self, look: Look) -> Self {
        self.look = Some(look);
        self
    }

    fn plain(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, draw: Draw) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, interval: None }).collect();
        Self { name: name.into(), points, draw, look: None }
    }
}

/// A value on the vertical axis that is marked across the whole chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The value.
    pub y: f64,
    /// What it is.
    pub label: String,
}

/// A region between two curves, behind everything else.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// What the legend calls it.
    pub name: String,
    /// Along the horizontal axis, with the lower and the upper end there.
    pub points: Vec<(f64, f64, f64)>,
}
