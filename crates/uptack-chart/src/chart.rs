//! Lines and points over two axes.

use crate::heading::{Heading, TEXT, WIDTH, text_lines};
use crate::legend::Legend;
use crate::look::Look;
use crate::plot::{PLOT_HEIGHT, Plot};
use crate::scale::Ruler;
use crate::series::{Axis, Band, Level, Point, Series};
use crate::svg::{Svg, lines};

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
    /// What is behind the series.
    pub bands: Vec<Band>,
    /// What to know when reading it, below the legend.
    pub notes: Vec<String>,
}

const NOTE_GAP: f64 = 5.0;

impl Chart {
    /// A chart with nothing on it yet.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (title, subtitle) = (title.into(), String::new());
        Self { title, subtitle, x, y, series: Vec::new(), levels: Vec::new(), bands: Vec::new(), notes: Vec::new() }
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

    /// The chart as an SVG document that needs nothing else.
    pub fn to_svg(&self) -> String {
        self.picture().finish()
    }

    fn picture(&self) -> Svg {
        let heading = Heading::new(&self.title, &self.subtitle);
        let series = self.looking();
        let legend = Legend::new(&series, &self.bands);
        let notes: Vec<String> = self.notes.iter().flat_map(|note| lines(note, TEXT, WIDTH - 30.0)).collect();
        let bottom = heading.height() + PLOT_HEIGHT;
        let below = bottom + 58.0 + legend.height();
        let room = if notes.is_empty() { 0.0 } else { notes.len() as f64 * (TEXT + NOTE_GAP) + 8.0 };
        let mut svg = Svg::new(WIDTH, below + room, &self.title, &self.subtitle);
        heading.draw(&mut svg);
        self.plot(&mut svg, &series, heading.height(), bottom);
        legend.draw(&mut svg, bottom + 72.0);
        text_lines(&mut svg, below - 8.0, TEXT, NOTE_GAP, &notes);
        svg
    }

    fn plot(&self, svg: &mut Svg, series: &[(&Series, Look)], top: f64, bottom: f64) {
        let plot = Plot { top, bottom, x: self.ruler_x(), y: self.ruler_y() };
        plot.axes(svg, &self.x.label, &self.y.label);
        self.bands.iter().for_each(|band| plot.band(svg, band));
        self.levels.iter().for_each(|level| plot.level(svg, level));
        series.iter().for_each(|(series, look)| plot.series(svg, series, *look));
    }

    /// The series, each with its look.
    fn looking(&self) -> Vec<(&Series, Look)> {
        let look = |(index, series): (usize, &Series)| series.look.unwrap_or_else(|| Look::numbered(index));
        self.series.iter().enumerate().map(|(index, series)| (series, look((index, series)))).collect()
    }

    fn ruler_x(&self) -> Ruler {
        let points = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
        let bands = self.bands.iter().flat_map(|band| band.points.iter().map(|point| point.0));
        Ruler::new(self.x.scale, self.x.range, points.chain(bands))
    }

    fn ruler_y(&self) -> Ruler {
        let ends = |point: &Point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [point.y, low, high]
        };
        let points = self.series.iter().flat_map(|series| series.points.iter().flat_map(ends));
        let bands = self.bands.iter().flat_map(|band| band.points.iter().flat_map(|&(_, low, high)| [low, high]));
        let levels = self.levels.iter().map(|level| level.y);
        Ruler::new(self.y.scale, self.y.range, points.chain(bands).chain(levels))
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
