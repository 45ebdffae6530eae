//! All plots of the report.

mod coverage;
mod curves;
mod looks;
mod stations;

use uptack_chart::{Chart, Map};

use crate::compare::Comparison;
use crate::evaluation::Evaluation;

/// A chart or a map.
pub enum Plot {
    /// Lines and points.
    Chart(Chart),
    /// Dots at their places.
    Map(Map),
}

impl Plot {
    /// As SVG.
    pub fn to_svg(&self) -> String {
        match self {
            Self::Chart(chart) => chart.to_svg(),
            Self::Map(map) => map.to_svg(),
        }
    }

    /// As PNG.
    #[cfg(feature = "png")]
    pub fn to_png(&self, width: u32) -> Result<Vec<u8>, uptack_chart::RenderError> {
        match self {
            Self::Chart(chart) => chart.to_png(width),
            Self::Map(map) => map.to_png(width),
        }
    }
}

impl Evaluation {
    /// All plots, each with its name.
    pub fn plots(&self) -> Vec<(String, Plot)> {
        let named = |name: String, chart: Chart| (name, Plot::Chart(chart));
        let by_population =
            |comparison: Comparison| named(format!("error-{comparison}"), self.error_against_population(comparison));
        let mut plots: Vec<(String, Plot)> = Comparison::ALL.map(by_population).into();
        plots.push(named("error-epsilon".to_owned(), self.error_against_epsilon()));
        plots.push(named("coverage".to_owned(), self.coverage_chart()));
        plots.extend(self.scatter().map(|chart| named("scatter".to_owned(), chart)));
        plots.extend(self.difference_map().map(|map| ("map".to_owned(), Plot::Map(map))));
        plots
    }
}
