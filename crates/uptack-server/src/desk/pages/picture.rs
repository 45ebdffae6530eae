//! Small pictures that take their colours from the page.

use maud::{Markup, PreEscaped, html};
use uptack::display;
use uptack_chart::Chart;

/// An interval with its estimate, on a line that begins at zero; in words for those who do not see it.
pub(super) fn interval(low: f64, estimate: f64, high: f64) -> Markup {
    let line = Line::around(low, high);
    let [from, to] = display::interval(low, high);
    let words = format!("Interval from {from} to {to}, estimate {}", display::nearest(estimate));
    html! {
        svg.interval viewBox="0 0 200 20" role="img" aria-label=(words) {
            line.axis x1="4" y1="10" x2="196" y2="10" {}
            (line.mark("axis", 0.0, 6, 14))
            line.range x1=(line.place(low)) y1="10" x2=(line.place(high)) y2="10" {}
            (line.mark("end", low, 5, 15))
            (line.mark("end", high, 5, 15))
            circle.estimate cx=(line.place(estimate)) cy="10" r="4.5" {}
        }
    }
}

/// The values that a picture shows, from left to right.
struct Line {
    first: f64,
    last: f64,
}

impl Line {
    /// Zero and the interval, with some space behind it.
    fn around(low: f64, high: f64) -> Self {
        let first = low.min(0.0);
        Self { first, last: (high + 0.12 * (high - first)).max(first + 1.0) }
    }

    /// Where a value is, in units of the picture.
    fn place(&self, value: f64) -> String {
        format!("{:.1}", 4.0 + 192.0 * ((value - self.first) / (self.last - self.first)).clamp(0.0, 1.0))
    }

    /// A vertical stroke at a value.
    fn mark(&self, class: &str, value: f64, top: u32, bottom: u32) -> Markup {
        let x = self.place(value);
        html! { line class=(class) x1=(x) y1=(top) x2=(x) y2=(bottom) {} }
    }
}

/// A chart within the page.
pub(super) fn chart(chart: &Chart) -> Markup {
    html! { figure.chart { (PreEscaped(chart.to_svg())) } }
}
