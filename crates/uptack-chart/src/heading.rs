//! Title and subtitle, and the sizes that all pictures share.

use crate::svg::{Anchor, Svg, lines};

pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const TEXT: f64 = 15.0;
const TITLE: f64 = 19.0;
/// Left of the first letter.
const INDENT: f64 = 14.0;

/// Title and subtitle at the top of a picture, broken into lines.
pub(crate) struct Heading {
    title: Vec<String>,
    subtitle: Vec<String>,
}

impl Heading {
    pub(crate) fn new(title: &str, subtitle: &str) -> Self {
        Self { title: lines(title, TITLE, WIDTH - 30.0), subtitle: lines(subtitle, TEXT, WIDTH - 30.0) }
    }

    /// The room that it takes.
    pub(crate) fn height(&self) -> f64 {
        INDENT + self.title.len() as f64 * (TITLE + 5.0) + self.subtitle.len() as f64 * (TEXT + 4.0) + 14.0
    }

    pub(crate) fn draw(&self, svg: &mut Svg) {
        let bottom = text_lines(svg, 10.0, TITLE, 5.0, &self.title);
        text_lines(svg, bottom, TEXT, 4.0, &self.subtitle);
    }
}

/// Draws lines of text one below the other and gives where the last one stands.
pub(crate) fn text_lines(svg: &mut Svg, top: f64, size: f64, gap: f64, lines: &[String]) -> f64 {
    lines.iter().fold(top, |y, line| {
        svg.text((INDENT, y + size + gap), size, Anchor::Start, line);
        y + size + gap
    })
}
