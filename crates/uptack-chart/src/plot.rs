//! The part of a chart between its axes.

use crate::heading::{TEXT, WIDTH};
use crate::look::Look;
use crate::scale::{Ruler, Tick};
use crate::series::{Band, Draw, Level, Point, Series};
use crate::svg::{Anchor, INK, Svg, number};

const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 18.0;
pub(crate) const PLOT_HEIGHT: f64 = 330.0;
/// How bands are painted, here and in the legend.
pub(crate) const BAND: &str = "fill=\"#0072B2\" fill-opacity=\"0.13\"";

/// Where values are in the picture.
pub(crate) struct Plot {
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
}

impl Plot {
    pub(crate) fn axes(&self, svg: &mut Svg, x_label: &str, y_label: &str) {
        self.x.ticks().into_iter().for_each(|tick| self.column(svg, tick));
        self.y.ticks().into_iter().for_each(|tick| self.row(svg, tick));
        svg.frame((LEFT, self.top), RIGHT - LEFT, self.bottom - self.top);
        svg.text(((LEFT + RIGHT) / 2.0, self.bottom + 44.0), TEXT, Anchor::Middle, x_label);
        svg.upward_text((20.0, (self.top + self.bottom) / 2.0), TEXT, y_label);
    }

    fn column(&self, svg: &mut Svg, tick: Tick) {
        let x = across(tick.place);
        svg.rule((x, self.top), (x, self.bottom), tick.label.is_none());
        if let Some(label) = tick.label {
            svg.text((x, self.bottom + 20.0), TEXT, Anchor::Middle, &label);
        }
    }

    fn row(&self, svg: &mut Svg, tick: Tick) {
        let y = self.down(tick.place);
        svg.rule((LEFT, y), (RIGHT, y), tick.label.is_none());
        if let Some(label) = tick.label {
            svg.text((LEFT - 8.0, y + 5.0), TEXT, Anchor::End, &label);
        }
    }

    pub(crate) fn level(&self, svg: &mut Svg, level: &Level) {
        let Some(place) = self.y.place(level.y) else { return };
        let y = self.down(place);
        svg.stroke((LEFT, y), (RIGHT, y), INK, 1.4);
        svg.text((RIGHT - 6.0, y - 5.0), TEXT, Anchor::End, &level.label);
    }

    /// What is outside of the axes is moved to their ends, so that a band is never open.
    pub(crate) fn band(&self, svg: &mut Svg, band: &Band) {
        let corner =
            |x: f64, y: f64| format!("{},{}", number(across(self.x.nearest(x))), number(self.down(self.y.nearest(y))));
        let lower = band.points.iter().map(|&(x, low, _)| corner(x, low));
        let upper = band.points.iter().rev().map(|&(x, _, high)| corner(x, high));
        let corners: Vec<String> = lower.chain(upper).collect();
        svg.raw(&format!("<polygon points=\"{}\" {BAND}/>", corners.join(" ")));
    }

    pub(crate) fn series(&self, svg: &mut Svg, series: &Series, look: Look) {
        if series.draw != Draw::Points {
            self.line(svg, series, look);
        }
        self.whiskers(svg, series, look);
        if series.draw != Draw::Line {
            series.points.iter().filter_map(|point| self.place(point)).for_each(|(x, y)| look.mark(svg, x, y));
        }
    }

    /// A point that cannot be shown breaks the line rather than being bridged.
    fn line(&self, svg: &mut Svg, series: &Series, look: Look) {
        for run in series.points.split(|point| self.place(point).is_none()) {
            let run: Vec<(f64, f64)> = run.iter().filter_map(|point| self.place(point)).collect();
            if run.len() > 1 {
                look.line(svg, &run);
            }
        }
    }

    fn whiskers(&self, svg: &mut Svg, series: &Series, look: Look) {
        for point in &series.points {
            if let (Some((low, high)), Some(x)) = (point.interval, self.x.place(point.x)) {
                look.whisker(svg, across(x), self.down(self.y.nearest(low)), self.down(self.y.nearest(high)));
            }
        }
    }

    fn place(&self, point: &Point) -> Option<(f64, f64)> {
        Some((across(self.x.place(point.x)?), self.down(self.y.place(point.y)?)))
    }

    fn down(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - self.top)
    }
}

fn across(place: f64) -> f64 {
    LEFT + place * (RIGHT - LEFT)
}
