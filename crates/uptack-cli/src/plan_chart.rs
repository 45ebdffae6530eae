//! The file of a plan's chart.

use std::path::Path;

use uptack_chart::Sheet;

use crate::failure::{Failure, Result};
use crate::output::{check_writable, write_whole};

/// A file that a chart can be written to.
pub(crate) struct ChartFile<'a> {
    path: &'a Path,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;
/// The extensions that this build writes.
const EXTENSIONS: &str = if cfg!(feature = "png") { ".svg or .png" } else { ".svg" };

impl<'a> ChartFile<'a> {
    /// Checks, before any work is done, that a chart can be written at this path.
    pub(crate) fn new(path: &'a Path) -> Result<Self> {
        let format = Format::of(path)?;
        check_writable(path)?;
        Ok(Self { path, format })
    }

    pub(crate) fn write(&self, sheet: &Sheet) -> Result<()> {
        write_whole(self.path, &self.format.encode(sheet)?)
    }
}

impl Format {
    /// The format, by the extension.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            #[cfg(feature = "png")]
            Some("png") => Ok(Self::Png),
            _ => Err(Failure::request(format!("{}: a chart is written as {EXTENSIONS}", path.display()))
                .with_hint("name the file so that it ends in one of them")),
        }
    }

    fn encode(self, sheet: &Sheet) -> Result<Vec<u8>> {
        match self {
            Self::Svg => Ok(sheet.to_svg().into_bytes()),
            #[cfg(feature = "png")]
            Self::Png => sheet.to_png(PNG_WIDTH).map_err(|error| Failure::environment(format!("the chart: {error}"))),
        }
    }
}
