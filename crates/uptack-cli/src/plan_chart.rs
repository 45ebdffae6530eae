//! The file of a plan's chart.

use std::path::Path;

use uptack_chart::Sheet;

use crate::failure::Failure;

/// The form of a picture, by the ending of its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;
/// The endings that this build writes.
const ENDINGS: &str = if cfg!(feature = "png") { ".svg or .png" } else { ".svg" };

impl Picture {
    /// Found out before any work is done.
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            #[cfg(feature = "png")]
            Some("png") => Ok(Self::Png),
            _ => Err(Failure::request(format!("{}: a chart is written as {ENDINGS}", path.display()))
                .with_hint("name the file so that it ends in one of them")),
        }
    }

    pub(crate) fn bytes(self, sheet: &Sheet) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Svg => Ok(sheet.to_svg().into_bytes()),
            #[cfg(feature = "png")]
            Self::Png => sheet.to_png(PNG_WIDTH).map_err(|error| Failure::environment(format!("the chart: {error}"))),
        }
    }
}
