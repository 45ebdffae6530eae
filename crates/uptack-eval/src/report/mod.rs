//! The report: tables, plots, and one self-contained page.

mod data;
mod histogram;
mod page;
mod plots;
mod summary;

pub use plots::Figure;
pub use summary::{ReportFinding, ReportTable, measured};

use crate::error::Result;
use crate::evaluation::Evaluation;

/// A file of the report.
pub struct ReportFile {
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl ReportFile {
    fn new(name: impl Into<String>, text: String) -> Self {
        Self { name: name.into(), bytes: text.into_bytes() }
    }
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;

impl Evaluation {
    /// All files of the report. With the feature `png` each plot is there twice, as SVG and as PNG.
    pub fn files(&self) -> Result<Vec<ReportFile>> {
        let plots = self.plots()?;
        let mut files = vec![
            ReportFile::new("index.html", self.page(&plots)),
            ReportFile::new("rows.csv", self.rows_csv()),
            ReportFile::new("stations.csv", self.stations_csv()),
            ReportFile::new("evaluation.json", format!("{:#}\n", self.json())),
        ];
        for (name, plot) in &plots {
            files.push(ReportFile::new(format!("{name}.svg"), plot.to_svg()));
            #[cfg(feature = "png")]
            files.push(ReportFile { name: format!("{name}.png"), bytes: plot.to_png(PNG_WIDTH)? });
        }
        Ok(files)
    }
}
