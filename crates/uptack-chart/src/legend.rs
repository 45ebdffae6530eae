//! The names below a plot.

use crate::heading::{TEXT, WIDTH};
use crate::look::Look;
use crate::plot::BAND;
use crate::series::{Band, Series};
use crate::svg::{Anchor, Position, Svg};

const ENTRY_HEIGHT: f64 = 23.0;
const SAMPLE_WIDTH: f64 = 40.0;
const LEGEND_WIDTH: f64 = WIDTH - 28.0;

/// The names, in as many columns as fit.
pub(crate) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    columns: usize,
}

struct Entry<'a> {
    name: &'a str,
    sample: Sample,
}

/// The sample to the left of a name.
enum Sample {
    Series { look: Look, line: bool, marker: bool },
    Band,
}

impl<'a> Legend<'a> {
    /// Series without a name have no entry. If one of them draws the line of a look, the look's named series shows it.
    pub(crate) fn new(series: &'a [(&'a Series, Look)], bands: &'a [Band]) -> Self {
        let has_line = |look: Look| series.iter().any(|(other, drawn)| other.draw.has_line() && *drawn == look);
        let named = series.iter().filter(|(series, _)| !series.name.is_empty());
        let of_series = named.map(|&(series, look)| Entry::of_series(series, look, has_line(look)));
        let entries: Vec<Entry<'a>> = of_series.chain(bands.iter().map(Entry::of_band)).collect();
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

fn columns(entries: &[Entry<'_>]) -> usize {
    let longest = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let width = SAMPLE_WIDTH + 20.0 + longest as f64 * TEXT * 0.5;
    (LEGEND_WIDTH / width).floor().clamp(1.0, 3.0) as usize
}

impl<'a> Entry<'a> {
    fn of_series(series: &'a Series, look: Look, line: bool) -> Self {
        let sample = Sample::Series { look, line, marker: series.draw.has_markers() };
        Self { name: &series.name, sample }
    }

    fn of_band(band: &'a Band) -> Self {
        Self { name: &band.name, sample: Sample::Band }
    }

    fn draw(&self, svg: &mut Svg, (x, y): Position) {
        self.sample.draw(svg, (x, y));
        svg.text((x + SAMPLE_WIDTH + 8.0, y + 5.0), TEXT, Anchor::Start, self.name);
    }
}

impl Sample {
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
