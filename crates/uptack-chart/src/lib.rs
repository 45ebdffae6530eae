//! Charts and maps of counts, as SVG text and, with the feature `png`, as PNG.
//!
//! Every series has a colour *and* a marker *and* a dash pattern, so that a chart can be read in black and white and with
//! any colour vision. Text is real text, of at least eleven pixels when the picture is 400 pixels wide. Nothing here
//! reads a file, a clock or the network: the same chart always gives the same bytes.
//!
//! ```
//! use uptack_chart::{Axis, Chart, Scale, Series};
//! let line = Series::line("square root", (1..=4).map(|power| (10f64.powi(power), 10f64.powi(power).sqrt())));
//! let chart = Chart::new("Error against population", Axis::new("owners", Scale::Log), Axis::new("sd", Scale::Log))
//!     .with(line);
//! let svg = chart.to_svg();
//! assert!(svg.starts_with("<svg") && svg.contains("square root"));
//! ```

mod bars;
mod chart;
mod look;
mod map;
mod plan;
mod plot;
#[cfg(feature = "png")]
mod png;
mod scale;
mod svg;

pub use bars::{Bar, Bars};
pub use chart::{Chart, Sheet};
pub use look::{Dash, Look, Marker};
pub use map::{Dot, Map, Panel};
pub use plan::{Errors, PlanCharts};
pub use plot::{Axis, Band, Point, ReferenceLine, Series, SeriesStyle};
#[cfg(feature = "png")]
pub use png::RenderError;
pub use scale::Scale;
