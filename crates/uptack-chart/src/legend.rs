//! The names below a plot.

use crate::heading::{TEXT, WIDTH};
use crate::look::Look;
use crate::plot::BAND;
use crate::series::{Band, Draw, Series};
use crate::svg::{Anchor, Svg, number};

const ENTRY_HEIGHT: f64 = 23.0;
const SAMPLE: f64 = 40.0;
const ROOM: f64 = WIDTH - 28.0;

/// The names, in as many columns as they fit.
pub(crate) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    columns: usize,
}

struct Entry<'a> {
    name: &'a str,
    sample: Sample,
}

/// What stands before a name.
enum Sample {
    Series { look: Look, line: bool, marker: bool },
    Band,
}

impl<'a> Legend<'a> {
    /// Series without a name have no entry; where one draws the line of a look, the look's named series shows it.
    pub(crate) fn new(series: &'a [(&'a Series, Look)], bands: &'a [Band]) -> Self {
        let lined = |look: Look| series.iter().any(|(other, drawn)| other.draw != Draw::Points && *drawn == look);
        let named = series.iter().filter(|(series, _)| !series.name.is_empty()).map(|&(series, look)| Entry {
            name: &series.name,
            sample: Sample::Series { look, line: lined(look), marker: series.draw != Draw::Line },
        });
        let bands = bands.iter().map(|band| Entry { name: &band.name, sample: Sample::Band });
        let entries: Vec<Entry<'a>> = named.chain(bands).collect();
        let columns = columns(&entries);
        Self { entries, columns }
    }

    pub(crate) fn height(&self) -> f64 {
        self.entries.len().div_ceil(self.columns) as f64 * ENTRY_HEIGHT + 14.0
    }

    pub(crate) fn draw(&self, svg: &mut Svg, top: f64) {
        let width = ROOM / self.columns as f64;
        for (index, entry) in self.entries.iter().enumerate() {
            let x = 16.0 + (index % self.columns) as f64 * width;
            let y = top + (index / self.columns) as f64 * ENTRY_HEIGHT;
            entry.draw(svg, (x, y));
        }
    }
}

fn columns(entries: &[Entry<'_>]) -> usize {
    let longest = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let wide = SAMPLE + 20.0 + longest as f64 * TEXT * 0.5;
    (ROOM / wide).floor().clamp(1.0, 3.0) as usize
}

impl Entry<'_> {
    fn draw(&self, svg: &mut Svg, (x, y): (f64, f64)) {
        match self.sample {
            Sample::Series { look, line, marker } => {
                if line {
                    look.line(svg, &[(x, y), (x + SAMPLE, y)]);
                }
                if marker {
                    look.mark(svg, x + SAMPLE / 2.0, y);
                }
            }
            Sample::Band => svg.raw(&format!(
                "<rect x=\"{}\" y=\"{}\" width=\"{SAMPLE}\" height=\"14\" {BAND}/>",
                number(x),
                number(y - 7.0)
            )),
        }
        svg.text((x + SAMPLE + 8.0, y + 5.0), TEXT, Anchor::Start, self.name);
    }
}
