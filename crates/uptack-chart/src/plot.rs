//! The part of a chart between its axes.

use crate::heading::{TEXT, WIDTH};
use crate::look::Look;
use crate::scale::{Ruler, Tick};
use crate::series::{Band, Level, Point, Series};
use crate::svg::{Anchor, INK, Position, Svg, points};

const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 18.0;
pub(crate) const PLOT_HEIGHT: f64 = 330.0;
/// How bands are painted, here and in the legend.
pub(crate) const BAND: &str = "fill=\"#0072B2\" fill-opacity=\"0.13\"";

/// The positions of values in the picture.
pub(crate) struct Plot {
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
}

impl Plot {
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

    pub(crate) fn level(&self, svg: &mut Svg, level: &Level) {
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
