//! Lines and points over two axes.

use crate::look::Look;
use crate::scale::{Ruler, Scale};
use crate::svg::{Anchor, INK, Svg, lines};

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

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// Under which conditions.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Values to compare with.
    pub levels: Vec<Level>,
}

pub(crate) const WIDTH: f64 = 640.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 18.0;
const PLOT_HEIGHT: f64 = 330.0;
pub(crate) const TITLE: f64 = 19.0;
pub(crate) const TEXT: f64 = 15.0;

impl Chart {
    /// A chart with nothing on it yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), subtitle: String::new(), x, y, series: Vec::new(), levels: Vec::new() }
    }

    /// The same with one more series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The same with a level marked.
    #[must_use]
    pub fn level(mut self, y: f64, label: impl Into<String>) -> Self {
        self.levels.push(Level { y, label: label.into() });
        self
    }

    /// The same with a subtitle.
    #[must_use]
    pub fn subtitled(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// The chart as an SVG document that needs nothing else.
    pub fn to_svg(&self) -> String {
        self.picture().finish()
    }

    fn picture(&self) -> Svg {
        let title = lines(&self.title, TITLE, WIDTH - 30.0);
        let subtitle = lines(&self.subtitle, TEXT, WIDTH - 30.0);
        let top = heading_height(title.len(), subtitle.len());
        let legend = Legend::new(self);
        let bottom = top + PLOT_HEIGHT;
        let height = bottom + 58.0 + legend.height();
        let mut svg = Svg::new(WIDTH, height, &self.title, &self.subtitle);
        heading(&mut svg, &title, &subtitle);
        let plot = Plot { top, bottom, x: self.ruler_x(), y: self.ruler_y() };
        plot.axes(&mut svg, self);
        for level in &self.levels {
            plot.level(&mut svg, level);
        }
        for (index, series) in self.series.iter().enumerate() {
            plot.series(&mut svg, series, look_of(series, index));
        }
        legend.draw(&mut svg, bottom + 72.0);
        svg
    }

    fn ruler_x(&self) -> Ruler {
        let values = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
        Ruler::new(self.x.scale, self.x.range, values)
    }

    fn ruler_y(&self) -> Ruler {
        let ends = |point: &Point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        };
        let values = self.series.iter().flat_map(|series| series.points.iter().flat_map(ends));
        Ruler::new(self.y.scale, self.y.range, values.chain(self.levels.iter().map(|level| level.y)))
    }
}

/// Charts one below the other in one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What they show together.
    pub title: String,
    /// The charts, from the top.
    pub charts: Vec<Chart>,
}

impl Sheet {
    /// The sheet as an SVG document that needs nothing else.
    pub fn to_svg(&self) -> String {
        Svg::stacked(WIDTH, &self.title, self.charts.iter().map(Chart::picture).collect()).finish()
    }
}

/// The room that a heading takes.
pub(crate) fn heading_height(titles: usize, subtitles: usize) -> f64 {
    14.0 + titles as f64 * (TITLE + 5.0) + subtitles as f64 * (TEXT + 4.0) + 14.0
}

/// Title and subtitle at the top of a picture.
pub(crate) fn heading(svg: &mut Svg, title: &[String], subtitle: &[String]) {
    let mut y = 10.0;
    for line in title {
        y += TITLE + 5.0;
        svg.text((14.0, y), TITLE, Anchor::Start, line);
    }
    for line in subtitle {
        y += TEXT + 4.0;
        svg.text((14.0, y), TEXT, Anchor::Start, line);
    }
}

fn look_of(series: &Series, index: usize) -> Look {
    series.look.unwrap_or_else(|| Look::numbered(index))
}

/// The part of the picture between the axes.
struct Plot {
    top: f64,
    bottom: f64,
    x: Ruler,
    y: Ruler,
}

impl Plot {
    fn axes(&self, svg: &mut Svg, chart: &Chart) {
        let right = WIDTH - RIGHT;
        for tick in self.x.ticks() {
            let x = across(tick.place);
            svg.rule((x, self.top), (x, self.bottom), tick.label.is_none());
            if let Some(label) = tick.label {
                svg.text((x, self.bottom + 20.0), TEXT, Anchor::Middle, &label);
            }
        }
        for tick in self.y.ticks() {
            let y = self.down(tick.place);
            svg.rule((LEFT, y), (right, y), tick.label.is_none());
            if let Some(label) = tick.label {
                svg.text((LEFT - 8.0, y + 5.0), TEXT, Anchor::End, &label);
            }
        }
        svg.frame((LEFT, self.top), right - LEFT, self.bottom - self.top);
        svg.text(((LEFT + right) / 2.0, self.bottom + 44.0), TEXT, Anchor::Middle, &chart.x.label);
        svg.upward_text((20.0, (self.top + self.bottom) / 2.0), TEXT, &chart.y.label);
    }

    fn level(&self, svg: &mut Svg, level: &Level) {
        let Some(place) = self.y.place(level.y) else { return };
        let y = self.down(place);
        svg.stroke((LEFT, y), (WIDTH - RIGHT, y), INK, 1.4);
        svg.text((WIDTH - RIGHT - 6.0, y - 5.0), TEXT, Anchor::End, &level.label);
    }

    fn series(&self, svg: &mut Svg, series: &Series, look: Look) {
        let place = |point: &Point| Some((across(self.x.place(point.x)?), self.down(self.y.place(point.y)?)));
        if series.draw != Draw::Points {
            // A point that cannot be shown breaks the line rather than being bridged.
            for run in series.points.split(|point| place(point).is_none()) {
                let run: Vec<(f64, f64)> = run.iter().filter_map(place).collect();
                if run.len() > 1 {
                    look.line(svg, &run);
                }
            }
        }
        for point in &series.points {
            if let (Some((low, high)), Some(x)) = (point.interval, self.x.place(point.x)) {
                look.whisker(svg, across(x), self.down(self.y.nearest(low)), self.down(self.y.nearest(high)));
            }
        }
        if series.draw != Draw::Line {
            series.points.iter().filter_map(place).for_each(|(x, y)| look.mark(svg, x, y));
        }
    }

    fn down(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}

fn across(place: f64) -> f64 {
    LEFT + place * (WIDTH - RIGHT - LEFT)
}

/// The names below the plot, in as many columns as they fit.
struct Legend<'a> {
    /// The series, its look, and whether a line of that look is drawn, by itself or by a series without a name.
    entries: Vec<(&'a Series, Look, bool)>,
    columns: usize,
}

const ENTRY_HEIGHT: f64 = 23.0;
const SAMPLE: f64 = 40.0;

impl<'a> Legend<'a> {
    fn new(chart: &'a Chart) -> Self {
        let named = chart.series.iter().enumerate().filter(|(_, series)| !series.name.is_empty());
        let all = || chart.series.iter().enumerate();
        let lined =
            |look: Look| all().any(|(index, other)| other.draw != Draw::Points && look_of(other, index) == look);
        let entry = |(index, series)| (series, look_of(series, index), lined(look_of(series, index)));
        let entries: Vec<_> = named.map(entry).collect();
        let longest = entries.iter().map(|(series, ..)| series.name.chars().count()).max().unwrap_or(0);
        let wide = SAMPLE + 20.0 + longest as f64 * TEXT * 0.5;
        let columns = ((WIDTH - 28.0) / wide).floor().clamp(1.0, 3.0) as usize;
        Self { entries, columns }
    }

    fn height(&self) -> f64 {
        self.entries.len().div_ceil(self.columns) as f64 * ENTRY_HEIGHT + 14.0
    }

    fn draw(&self, svg: &mut Svg, top: f64) {
        let width = (WIDTH - 28.0) / self.columns as f64;
        for (index, (series, look, lined)) in self.entries.iter().enumerate() {
            let x = 16.0 + (index % self.columns) as f64 * width;
            let y = top + (index / self.columns) as f64 * ENTRY_HEIGHT;
            if *lined {
                look.line(svg, &[(x, y), (x + SAMPLE, y)]);
            }
            if series.draw != Draw::Line {
                look.mark(svg, x + SAMPLE / 2.0, y);
            }
            svg.text((x + SAMPLE + 8.0, y + 5.0), TEXT, Anchor::Start, &series.name);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn chart() -> Chart {
        let x = Axis::new("owners", Scale::Log);
        let y = Axis::new("root mean squared error <vehicles>", Scale::Log);
        let mut measured = Series::points("measured & true", [(50_000.0, 7.0), (5e6, 7.1)]);
        measured.points[0].interval = Some((5.0, 9.0));
        Chart::new("Error", x, y).with(Series::line("theory", [(50_000.0, 7.0), (5e7, 7.0)])).with(measured)
    }

    #[test]
    fn everything_that_was_said_is_in_the_picture_as_text() {
        let svg = chart().subtitled("at equal ε").level(7.5, "curator").to_svg();
        for text in
            [">Error</text>", "at equal ε</text>", "theory</text>", "measured &amp; true", "10 M</text>", "curator"]
        {
            assert!(svg.contains(text), "{text} in {svg}");
        }
        assert!(svg.contains("&lt;vehicles&gt;") && !svg.contains("<vehicles>"));
        assert_eq!(svg.matches("<polyline").count(), 2, "the line and its sample in the legend");
        assert_eq!(svg.matches("<polygon").count(), 3, "two squares and one in the legend");
    }

    #[test]
    fn what_cannot_be_shown_breaks_the_line() {
        let points = [(1.0, 1.0), (2.0, 2.0), (3.0, f64::NAN), (4.0, 0.0), (5.0, 2.0), (6.0, 1.0)];
        let chart = Chart::new("t", Axis::new("x", Scale::Linear), Axis::new("y", Scale::Log));
        let svg = chart.with(Series::line("", points)).to_svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_sheet_has_all_its_charts() {
        let sheet = Sheet { title: "both".to_owned(), charts: vec![chart(), chart().subtitled("below")] };
        let svg = sheet.to_svg();
        assert_eq!(svg.matches("measured &amp; true").count(), 2);
        assert!(svg.contains("below</text>"));
    }
}
