//! Title and subtitle, and the sizes that all pictures share.

use crate::svg::{Anchor, Svg, lines};

pub(crate) const WIDTH: f64 = 640.0;
pub(crate) const TEXT: f64 = 15.0;
const TITLE: f64 = 19.0;
/// The width of a line of text across a picture.
pub(crate) const LINE_WIDTH: f64 = WIDTH - 30.0;
/// The space to the left of the first letter.
const INDENT: f64 = 14.0;
/// The space above a line of the title, and of the subtitle.
const TITLE_GAP: f64 = 5.0;
const SUBTITLE_GAP: f64 = 4.0;

/// Title and subtitle at the top of a picture, broken into lines.
pub(crate) struct Heading {
    title: Vec<String>,
    subtitle: Vec<String>,
}

impl Heading {
    pub(crate) fn new(title: &str, subtitle: &str) -> Self {
        Self { title: lines(title, TITLE, LINE_WIDTH), subtitle: lines(subtitle, TEXT, LINE_WIDTH) }
    }

    pub(crate) fn height(&self) -> f64 {
        let title = self.title.len() as f64 * (TITLE + TITLE_GAP);
        let subtitle = self.subtitle.len() as f64 * (TEXT + SUBTITLE_GAP);
        INDENT + title + subtitle + 14.0
    }

    pub(crate) fn draw(&self, svg: &mut Svg) {
        let bottom = text_lines(svg, 10.0, TITLE, TITLE_GAP, &self.title);
        text_lines(svg, bottom, TEXT, SUBTITLE_GAP, &self.subtitle);
    }
}

/// Draws lines of text one below the other and returns where the last one ends.
pub(crate) fn text_lines(svg: &mut Svg, top: f64, size: f64, gap: f64, lines: &[String]) -> f64 {
    lines.iter().fold(top, |y, line| {
        svg.text((INDENT, y + size + gap), size, Anchor::Start, line);
        y + size + gap
    })
}
