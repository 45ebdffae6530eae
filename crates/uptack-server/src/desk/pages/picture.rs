//! Small pictures that take their colours from the page.

use maud::{Markup, PreEscaped, html};
use uptack::display;
use uptack_chart::Chart;

/// An interval with its estimate, on a line that begins at zero; in words for those who do not see it.
pub(super) fn interval(low: f64, estimate: f64, high: f64) -> Markup {
    let first = low.min(0.0);
    let last = (high + 0.12 * (high - first)).max(first + 1.0);
    let place = |value: f64| format!("{:.1}", 4.0 + 192.0 * ((value - first) / (last - first)).clamp(0.0, 1.0));
    let [from, to] = display::interval(low, high);
    let words = format!("Interval from {from} to {to}, estimate {}", display::nearest(estimate));
    html! {
        svg.interval viewBox="0 0 200 20" role="img" aria-label=(words) {
            line.axis x1="4" y1="10" x2="196" y2="10" {}
            line.axis x1=(place(0.0)) y1="6" x2=(place(0.0)) y2="14" {}
            line.range x1=(place(low)) y1="10" x2=(place(high)) y2="10" {}
            line.end x1=(place(low)) y1="5" x2=(place(low)) y2="15" {}
            line.end x1=(place(high)) y1="5" x2=(place(high)) y2="15" {}
            circle.estimate cx=(place(estimate)) cy="10" r="4.5" {}
        }
    }
}

/// A chart within the page.
pub(super) fn chart(chart: &Chart) -> Markup {
    html! { figure.chart { (PreEscaped(chart.to_svg())) } }
}
