//! The data of a chart (axes, series, levels and bands), its drawing between the axes, and the legend below.

use crate::look::Look;
use crate::scale::{Ruler, Scale, Tick};
use crate::svg::{Anchor, INK, Position, Svg, TEXT, WIDTH, points};

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
pub enum SeriesStyle {
    /// A line through its points.
    Line,
    /// A marker at each of its points.
    Points,
    /// Both.
    Both,
}

impl SeriesStyle {
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
    pub draw: SeriesStyle,
    /// Its colour, marker and dashes; by default those of its place in the chart.
    pub look: Option<Look>,
}

impl Series {
    /// A series drawn as a line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::drawn(name, points, SeriesStyle::Line)
    }

    /// A series drawn as markers.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::drawn(name, points, SeriesStyle::Points)
    }

    /// A series drawn as a line with markers.
    pub fn both(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::drawn(name, points, SeriesStyle::Both)
    }

    /// The same series with this look.
    #[must_use]
    pub fn looking(mut self, look: Look) -> Self {
        self.look = Some(look);
        self
    }

    fn drawn(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>, draw: SeriesStyle) -> Self {
        let points = points.into_iter().map(|(x, y)| Point { x, y, interval: None }).collect();
        Self { name: name.into(), points, draw, look: None }
    }
}

/// A value on the vertical axis that is marked across the whole chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceLine {
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

const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 18.0;
pub(crate) const PLOT_HEIGHT: f64 = 330.0;
/// How bands are painted, here and in the legend.
pub(crate) const BAND: &str = "fill=\"#0072B2\" fill-opacity=\"0.13\"";

/// The positions of values in the picture.
pub(crate) struct PlotArea {
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
}

impl PlotArea {
    pub(crate) fn axes(&self, svg: &mut Svg, x_label: &str, y_label: &str) {
        self.grid(svg);
        svg.frame((LEFT, self.top), RIGHT - LEFT, self.bottom - self.top);
        svg.text(((LEFT + RIGHT) / 2.0, self.bottom + 44.0), TEXT, Anchor::Middle, x_label);
        svg.upward_text((20.0, (self.top + self.bottom) / 2.0), TEXT, y_label);
    }

    fn grid(&self, svg: &mut Svg) {
        for tick in self.x.ticks() {
            grid_column(svg, &tick, across(tick.place), (self.top, self.bottom));
        }
        for tick in self.y.ticks() {
            grid_row(svg, &tick, self.down(tick.place));
        }
    }

    pub(crate) fn level(&self, svg: &mut Svg, level: &ReferenceLine) {
        let Some(place) = self.y.place(level.y) else { return };
        let y = self.down(place);
        svg.stroke((LEFT, y), (RIGHT, y), INK, 1.4);
        svg.text((RIGHT - 6.0, y - 5.0), TEXT, Anchor::End, &level.label);
    }

    /// A band is never open: what lies beyond an axis is moved to its end.
    pub(crate) fn band(&self, svg: &mut Svg, band: &Band) {
        let lower = band.points.iter().map(|&(x, low, _)| self.nearest(x, low));
        let upper = band.points.iter().rev().map(|&(x, _, high)| self.nearest(x, high));
        svg.raw(&format!("<polygon points=\"{}\" {BAND}/>", points(lower.chain(upper))));
    }

    pub(crate) fn series(&self, svg: &mut Svg, series: &Series, look: Look) {
        if series.draw.has_line() {
            self.line(svg, series, look);
        }
        self.whiskers(svg, series, look);
        if series.draw.has_markers() {
            let positions = series.points.iter().filter_map(|point| self.position(point));
            positions.for_each(|at| look.mark(svg, at));
        }
    }

    /// A point that cannot be shown breaks the line rather than being bridged.
    fn line(&self, svg: &mut Svg, series: &Series, look: Look) {
        for run in series.points.split(|point| self.position(point).is_none()) {
            if run.len() > 1 {
                look.line(svg, run.iter().filter_map(|point| self.position(point)));
            }
        }
    }

    fn whiskers(&self, svg: &mut Svg, series: &Series, look: Look) {
        for point in &series.points {
            if let (Some((low, high)), Some(x)) = (point.interval, self.x.place(point.x)) {
                let [low, high] = [low, high].map(|end| self.down(self.y.nearest(end)));
                look.whisker(svg, across(x), low, high);
            }
        }
    }

    fn position(&self, point: &Point) -> Option<Position> {
        Some((across(self.x.place(point.x)?), self.down(self.y.place(point.y)?)))
    }

    /// The position of the values, or the nearest one between the axes.
    fn nearest(&self, x: f64, y: f64) -> Position {
        (across(self.x.nearest(x)), self.down(self.y.nearest(y)))
    }

    fn down(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}

/// A line of the grid from the top to the bottom, with its label below.
pub(crate) fn grid_column(svg: &mut Svg, tick: &Tick, x: f64, (top, bottom): (f64, f64)) {
    svg.rule((x, top), (x, bottom), tick.label.is_none());
    if let Some(label) = &tick.label {
        svg.text((x, bottom + 20.0), TEXT, Anchor::Middle, label);
    }
}

fn grid_row(svg: &mut Svg, tick: &Tick, y: f64) {
    svg.rule((LEFT, y), (RIGHT, y), tick.label.is_none());
    if let Some(label) = &tick.label {
        svg.text((LEFT - 8.0, y + 5.0), TEXT, Anchor::End, label);
    }
}

fn across(place: f64) -> f64 {
    LEFT + place * (RIGHT - LEFT)
}

const ENTRY_HEIGHT: f64 = 23.0;
const SAMPLE_WIDTH: f64 = 40.0;
const LEGEND_WIDTH: f64 = WIDTH - 28.0;

/// The names, in as many columns as fit.
pub(crate) struct Legend<'a> {
    entries: Vec<LegendEntry<'a>>,
    columns: usize,
}

struct LegendEntry<'a> {
    name: &'a str,
    sample: LegendSample,
}

/// The sample to the left of a name.
enum LegendSample {
    Series { look: Look, line: bool, marker: bool },
    Band,
}

impl<'a> Legend<'a> {
    /// Series without a name have no entry. If one of them draws the line of a look, the look's named series shows it.
    pub(crate) fn new(series: &'a [(&'a Series, Look)], bands: &'a [Band]) -> Self {
        let has_line = |look: Look| series.iter().any(|(other, drawn)| other.draw.has_line() && *drawn == look);
        let named = series.iter().filter(|(series, _)| !series.name.is_empty());
        let of_series = named.map(|&(series, look)| LegendEntry::of_series(series, look, has_line(look)));
        let entries: Vec<LegendEntry<'a>> = of_series.chain(bands.iter().map(LegendEntry::of_band)).collect();
        let columns = columns(&entries);
        Self { entries, columns }
    }

    pub(crate) fn height(&self) -> f64 {
        self.entries.len().div_ceil(self.columns) as f64 * ENTRY_HEIGHT + 14.0
    }

    pub(crate) fn draw(&self, svg: &mut Svg, top: f64) {
        let width = LEGEND_WIDTH / self.columns as f64;
        for (index, entry) in self.entries.iter().enumerate() {
            let x = 16.0 + (index % self.columns) as f64 * width;
            let y = top + (index / self.columns) as f64 * ENTRY_HEIGHT;
            entry.draw(svg, (x, y));
        }
    }
}

fn columns(entries: &[LegendEntry<'_>]) -> usize {
    let longest = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let width = SAMPLE_WIDTH + 20.0 + longest as f64 * TEXT * 0.5;
    (LEGEND_WIDTH / width).floor().clamp(1.0, 3.0) as usize
}

impl<'a> LegendEntry<'a> {
    fn of_series(series: &'a Series, look: Look, line: bool) -> Self {
        let sample = LegendSample::Series { look, line, marker: series.draw.has_markers() };
        Self { name: &series.name, sample }
    }

    fn of_band(band: &'a Band) -> Self {
        Self { name: &band.name, sample: LegendSample::Band }
    }

    fn draw(&self, svg: &mut Svg, (x, y): Position) {
        self.sample.draw(svg, (x, y));
        svg.text((x + SAMPLE_WIDTH + 8.0, y + 5.0), TEXT, Anchor::Start, self.name);
    }
}

impl LegendSample {
    fn draw(&self, svg: &mut Svg, (x, y): Position) {
        match *self {
            Self::Series { look, line, marker } => {
                if line {
                    look.line(svg, [(x, y), (x + SAMPLE_WIDTH, y)]);
                }
                if marker {
                    look.mark(svg, (x + SAMPLE_WIDTH / 2.0, y));
                }
            }
            Self::Band => svg.rectangle((x, y - 7.0), SAMPLE_WIDTH, 14.0, BAND),
        }
    }
}
