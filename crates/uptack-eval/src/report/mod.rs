//! The report: tables, plots, and one self-contained page.

mod data;
mod page;
mod plots;
mod summary;

pub use plots::Plot;
pub use summary::{Finding, Table, measured};

use crate::error::Result;
use crate::evaluation::Evaluation;

/// A file of the report.
pub struct File {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl File {
    fn new(name: impl Into<String>, text: String) -> Self {
        Self { name: name.into(), bytes: text.into_bytes() }
    }
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;

impl Evaluation {
    /// All files of the report. With the feature `png` each plot is there twice, as SVG and as PNG.
    pub fn files(&self) -> Result<Vec<File>> {
        let plots = self.plots();
        let mut files = vec![
            File::new("index.html", self.page(&plots)),
            File::new("rows.csv", self.rows_csv()),
            File::new("stations.csv", self.stations_csv()),
            File::new("evaluation.json", format!("{:#}\n", self.json())),
        ];
        for (name, plot) in &plots {
            files.push(File::new(format!("{name}.svg"), plot.to_svg()));
            #[cfg(feature = "png")]
            files.push(File { name: format!("{name}.png"), bytes: plot.to_png(PNG_WIDTH)? });
        }
        Ok(files)
    }
}
