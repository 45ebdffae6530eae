//! From SVG to pixels.

use std::fmt;
use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

use crate::{Bars, Chart, Map, Sheet};

/// Wider pictures are refused, so that a mistyped width does not fill the memory.
const WIDEST: u32 = 10_000;

/// A picture that could not be made.
#[derive(Debug)]
pub struct RenderError(String);

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RenderError {}

impl Chart {
    /// The chart as a PNG of this many pixels across.
    pub fn to_png(&self, width: u32) -> Result<Vec<u8>, RenderError> {
        render(&self.to_svg(), width)
    }
}

impl Bars {
    /// The bars as a PNG of this many pixels across.
    pub fn to_png(&self, width: u32) -> Result<Vec<u8>, RenderError> {
        render(&self.to_svg(), width)
    }
}

impl Sheet {
    /// The sheet as a PNG of this many pixels across.
    pub fn to_png(&self, width: u32) -> Result<Vec<u8>, RenderError> {
        render(&self.to_svg(), width)
    }
}

impl Map {
    /// The maps as a PNG of this many pixels across.
    pub fn to_png(&self, width: u32) -> Result<Vec<u8>, RenderError> {
        render(&self.to_svg(), width)
    }
}

fn render(svg: &str, width: u32) -> Result<Vec<u8>, RenderError> {
    if width == 0 || width > WIDEST {
        return Err(RenderError(format!("a picture cannot be {width} pixels wide; 1 to {WIDEST} are possible")));
    }
    let failed = |error: &dyn fmt::Display| RenderError(format!("the picture could not be drawn: {error}"));
    let tree = Tree::from_str(svg, &options()).map_err(|error| failed(&error))?;
    let scale = width as f32 / tree.size().width();
    let height = (tree.size().height() * scale).ceil() as u32;
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| failed(&"it is too large"))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}

fn options() -> Options<'static> {
    static FONTS: OnceLock<Arc<fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(epaint_default_fonts::UBUNTU_LIGHT.to_vec());
        let family = fonts.faces().next().and_then(|face| face.families.first().map(|(name, _)| name.clone()));
        if let Some(family) = family {
            fonts.set_sans_serif_family(family);
        }
        Arc::new(fonts)
    });
    Options { fontdb: Arc::clone(fonts), ..Options::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Scale, chart::tests::chart};

    #[test]
    fn bad_widths_and_bad_pictures_are_refused() {
        assert!(render("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>", 0).is_err());
        assert!(render("<svg", 10).unwrap_err().to_string().contains("could not be drawn"));
    }

    #[test]
    fn a_sheet_is_as_tall_as_its_charts() {
        let sheet = Sheet { title: "both".to_owned(), charts: vec![chart(), chart().subtitled("below")] };
        let height = |png: Vec<u8>| u32::from_be_bytes(png[20..24].try_into().unwrap());
        let each: u32 = sheet.charts.iter().map(|chart| height(chart.to_png(320).unwrap())).sum();
        assert!(height(sheet.to_png(320).unwrap()).abs_diff(each) <= 2);
    }

    #[test]
    fn an_empty_chart_is_still_a_picture() {
        let empty = Chart::new("", Axis::new("", Scale::Log), Axis::new("", Scale::Linear));
        assert!(empty.to_png(100).unwrap().starts_with(b"\x89PNG"));
    }

    /// The text is drawn, not dropped for want of a font: with it the picture has more ink than without.
    #[test]
    fn the_png_has_the_text() {
        let with = chart().to_png(320).unwrap();
        let mut bare = chart();
        bare.title.clear();
        bare.x.label.clear();
        bare.y.label.clear();
        bare.series.iter_mut().for_each(|series| series.name = " ".to_owned());
        assert_eq!(&with[16..20], 320u32.to_be_bytes());
        assert!(with.len() > bare.to_png(320).unwrap().len() + 1000);
    }
}
