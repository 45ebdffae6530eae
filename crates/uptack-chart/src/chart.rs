//! Lines and points over two axes.

use crate::look::Look;
use crate::plot::Legend;
use crate::plot::{Axis, Band, Point, ReferenceLine, Series};
use crate::plot::{PLOT_HEIGHT, PlotArea};
use crate::scale::Ruler;
use crate::svg::{Heading, LINE_WIDTH, TEXT, WIDTH, text_lines};
use crate::svg::{Svg, lines};

/// Series over two axes, with a heading, a legend and notes.
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
    /// The series that are drawn.
    pub series: Vec<Series>,
    /// Values to compare the series with, marked across the chart.
    pub levels: Vec<ReferenceLine>,
    /// Regions behind the series.
    pub bands: Vec<Band>,
    /// What to know when reading it, below the legend.
    pub notes: Vec<String>,
}

impl Chart {
    /// A chart with nothing on it yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            x,
            y,
            series: Vec::new(),
            levels: Vec::new(),
            bands: Vec::new(),
            notes: Vec::new(),
        }
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
        self.levels.push(ReferenceLine { y, label: label.into() });
        self
    }

    /// The same with a band behind the series.
    #[must_use]
    pub fn band(mut self, name: impl Into<String>, points: Vec<(f64, f64, f64)>) -> Self {
        self.bands.push(Band { name: name.into(), points });
        self
    }

    /// The same with one more note below the legend.
    #[must_use]
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same with a subtitle.
    #[must_use]
    pub fn subtitled(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// The data of the chart: the points of every series of the legend. A line without a name that looks like one of them belongs to
    /// it, and has all of its points.
    pub fn data(&self) -> Vec<(&str, &[Point])> {
        let is_line_of =
            |line: &Series, named: &Series| line.name.is_empty() && line.look.is_some() && line.look == named.look;
        let named = self.series.iter().filter(|series| !series.name.is_empty());
        named
            .map(|series| {
                let line = self.series.iter().find(|line| is_line_of(line, series)).unwrap_or(series);
                (series.name.as_str(), line.points.as_slice())
            })
            .collect()
    }

    /// The chart as a self-contained SVG document.
    pub fn to_svg(&self) -> String {
        self.picture().finish()
    }

    fn picture(&self) -> Svg {
        let series = self.series_with_looks();
        let layout = self.layout(&series);
        let mut svg = Svg::new(WIDTH, layout.height(), &self.title, &self.subtitle);
        layout.heading.draw(&mut svg);
        self.draw_plot(&mut svg, &series, &layout);
        layout.legend.draw(&mut svg, layout.plot_bottom() + 72.0);
        text_lines(&mut svg, layout.legend_bottom() - 8.0, TEXT, NOTE_GAP, &layout.notes);
        svg
    }

    fn series_with_looks(&self) -> Vec<(&Series, Look)> {
        let look = |index, series: &Series| series.look.unwrap_or_else(|| Look::numbered(index));
        self.series.iter().enumerate().map(|(index, series)| (series, look(index, series))).collect()
    }

    fn layout<'a>(&'a self, series: &'a [(&'a Series, Look)]) -> Layout<'a> {
        Layout {
            heading: Heading::new(&self.title, &self.subtitle),
            legend: Legend::new(series, &self.bands),
            notes: self.notes.iter().flat_map(|note| lines(note, TEXT, LINE_WIDTH)).collect(),
        }
    }

    fn draw_plot(&self, svg: &mut Svg, series: &[(&Series, Look)], layout: &Layout<'_>) {
        let (top, bottom) = (layout.heading.height(), layout.plot_bottom());
        let plot = PlotArea { top, bottom, x: self.horizontal_ruler(), y: self.vertical_ruler() };
        plot.axes(svg, &self.x.label, &self.y.label);
        for band in &self.bands {
            plot.band(svg, band);
        }
        for level in &self.levels {
            plot.level(svg, level);
        }
        for (series, look) in series {
            plot.series(svg, series, *look);
        }
    }

    fn horizontal_ruler(&self) -> Ruler {
        let bands = self.band_points().map(|&(x, _, _)| x);
        self.x.ruler(self.points().map(|point| point.x).chain(bands))
    }

    fn vertical_ruler(&self) -> Ruler {
        let points = self.points().flat_map(Point::heights);
        let bands = self.band_points().flat_map(|&(_, low, high)| [low, high]);
        let levels = self.levels.iter().map(|level| level.y);
        self.y.ruler(points.chain(bands).chain(levels))
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    fn band_points(&self) -> impl Iterator<Item = &(f64, f64, f64)> {
        self.bands.iter().flat_map(|band| &band.points)
    }
}

/// The parts of a chart's picture, from the top: heading, plot, legend, notes.
struct Layout<'a> {
    heading: Heading,
    legend: Legend<'a>,
    notes: Vec<String>,
}

const NOTE_GAP: f64 = 5.0;

impl Layout<'_> {
    fn plot_bottom(&self) -> f64 {
        self.heading.height() + PLOT_HEIGHT
    }

    fn legend_bottom(&self) -> f64 {
        self.plot_bottom() + 58.0 + self.legend.height()
    }

    fn height(&self) -> f64 {
        let notes = match self.notes.len() {
            0 => 0.0,
            count => count as f64 * (TEXT + NOTE_GAP) + 8.0,
        };
        self.legend_bottom() + notes
    }
}

/// Charts one below the other in one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What the charts show together.
    pub title: String,
    /// The charts, from the top.
    pub charts: Vec<Chart>,
}

impl Sheet {
    /// The sheet as a self-contained SVG document.
    pub fn to_svg(&self) -> String {
        Svg::stacked(WIDTH, &self.title, self.charts.iter().map(Chart::picture).collect()).finish()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::scale::Scale;

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
    fn the_data_of_a_series_are_all_points_of_its_line() {
        let look = Look::numbered(0);
        let line = Series::line("", [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]).looking(look);
        let chart = chart().with(line).with(Series::points("family", [(2.0, 3.0)]).looking(look));
        let lengths: Vec<(&str, usize)> = chart.data().iter().map(|(name, points)| (*name, points.len())).collect();
        assert_eq!(lengths, [("theory", 2), ("measured & true", 2), ("family", 3)]);
    }

    #[test]
    fn a_sheet_has_all_its_charts() {
        let sheet = Sheet { title: "both".to_owned(), charts: vec![chart(), chart().subtitled("below")] };
        let svg = sheet.to_svg();
        assert_eq!(svg.matches("measured &amp; true").count(), 2);
        assert!(svg.contains("below</text>"));
    }

    #[test]
    fn bands_and_notes_are_in_the_picture() {
        let band = vec![(5e4, 6.0, 8.0), (5e7, 6.5, 7.5)];
        let svg = chart().band("chance", band).noted("theory and truth coincide").to_svg();
        assert_eq!(svg.matches("fill-opacity=\"0.13\"").count(), 2, "the band and its sample in the legend");
        assert!(svg.contains("chance</text>") && svg.contains("theory and truth coincide</text>"));
        assert!(!svg.contains("NaN"));
    }
}
