//! All plots of the report.

mod coverage;
mod curves;
mod looks;
mod stations;

use uptack_chart::{Chart, Map};

use crate::compare::Comparison;
use crate::evaluation::Evaluation;

/// A plot under its name.
pub enum Plot {
    /// Lines and points.
    Chart(Chart),
    /// Places.
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
    /// All plots under their names.
    pub fn plots(&self) -> Vec<(String, Plot)> {
        let mut plots: Vec<(String, Plot)> = Comparison::ALL
            .iter()
            .map(|&comparison| (format!("error-{comparison}"), Plot::Chart(self.error_against_population(comparison))))
            .collect();
        plots.push(("error-epsilon".to_owned(), Plot::Chart(self.error_against_epsilon())));
        plots.push(("coverage".to_owned(), Plot::Chart(self.coverage_chart())));
        plots.extend(self.scatter().map(|chart| ("scatter".to_owned(), Plot::Chart(chart))));
        plots.extend(self.difference_map().map(|map| ("map".to_owned(), Plot::Map(map))));
        plots
    }
}
