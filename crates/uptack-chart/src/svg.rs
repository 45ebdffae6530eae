//! Writing SVG, and the heading and sizes that all pictures share.

/// An SVG document that grows.
pub(crate) struct Svg {
    body: String,
    height: f64,
}

/// Pixels from the left and from the top of a picture.
pub(crate) type Position = (f64, f64);

/// Where text is placed relative to its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

pub(crate) const INK: &str = "#1a1a1a";
pub(crate) const FAINT: &str = "#d9d9d9";
const FAINTER: &str = "#efefef";
const FRAME: &str = "fill=\"none\" stroke=\"#7a7a7a\"";

impl Svg {
    pub(crate) fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut svg = Self { body: String::new(), height };
        let (width, height) = (number(width), number(height));
        let (title, description) = (escaped(title), escaped(description));
        svg.raw(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" font-family=\"sans-serif\" fill=\"{INK}\">\
             <title>{title}</title><desc>{description}</desc>\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
        ));
        svg
    }

    /// Pictures one below the other, in one self-contained document.
    pub(crate) fn stacked(width: f64, title: &str, pictures: Vec<Self>) -> Self {
        let height = pictures.iter().map(|picture| picture.height).sum();
        let mut sheet = Self::new(width, height, title, &format!("{} charts", pictures.len()));
        let mut top = 0.0;
        for picture in pictures {
            let height = picture.height;
            sheet.raw(&picture.nested(top));
            top += height;
        }
        sheet
    }

    /// The document as an element of another one, this far from its top.
    fn nested(self, top: f64) -> String {
        let opening = format!("<svg y=\"{}\" ", number(top));
        self.finish().replacen("<svg ", &opening, 1).trim_end().to_owned()
    }

    pub(crate) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub(crate) fn text(&mut self, (x, y): Position, size: f64, anchor: Anchor, text: &str) {
        let attributes = format!("x=\"{}\" y=\"{}\"", number(x), number(y));
        self.placed_text(&attributes, size, anchor, text);
    }

    /// Text that reads upwards, centred.
    pub(crate) fn upward_text(&mut self, (x, y): Position, size: f64, text: &str) {
        let attributes = format!("transform=\"translate({} {}) rotate(-90)\"", number(x), number(y));
        self.placed_text(&attributes, size, Anchor::Middle, text);
    }

    fn placed_text(&mut self, place: &str, size: f64, anchor: Anchor, text: &str) {
        let (size, anchor, text) = (number(size), anchor.name(), escaped(text));
        self.raw(&format!("<text {place} font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"));
    }

    /// A line of the grid.
    pub(crate) fn rule(&mut self, from: Position, to: Position, minor: bool) {
        self.stroke(from, to, if minor { FAINTER } else { FAINT }, 1.0);
    }

    pub(crate) fn stroke(&mut self, (x1, y1): Position, (x2, y2): Position, colour: &str, width: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.raw(&format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    pub(crate) fn frame(&mut self, corner: Position, width: f64, height: f64) {
        self.rectangle(corner, width, height, FRAME);
    }

    /// A rectangle by its top left corner; `paint` is the attributes that colour it.
    pub(crate) fn rectangle(&mut self, (x, y): Position, width: f64, height: f64, paint: &str) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        self.raw(&format!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" {paint}/>"));
    }

    pub(crate) fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}

/// A number rounded to hundredths of a pixel, which is enough, and keeps the text short and the same everywhere.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = without_trailing_zeros(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A decimal number without the zeros that end its fraction.
pub(crate) fn without_trailing_zeros(decimal: &str) -> &str {
    decimal.trim_end_matches('0').trim_end_matches('.')
}

/// A position as paths and polygons write it.
pub(crate) fn coordinates((x, y): Position) -> String {
    format!("{},{}", number(x), number(y))
}

/// The value of a `points` attribute.
pub(crate) fn points(positions: impl IntoIterator<Item = Position>) -> String {
    let positions: Vec<String> = positions.into_iter().map(coordinates).collect();
    positions.join(" ")
}

/// Text that cannot be mistaken for markup; characters that XML does not allow become spaces.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            symbol if symbol < ' ' || matches!(symbol, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            symbol => out.push(symbol),
        }
    }
    out
}

/// Breaks text into lines of about `width` pixels at this font size.
pub(crate) fn lines(text: &str, size: f64, width: f64) -> Vec<String> {
    // The average letter of a sans-serif face is about half as wide as the font size; this allows for a little more.
    let longest = (width / (0.54 * size)).max(8.0) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= longest => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Narrow, so that text is large: at 400 pixels, [`TEXT`] is 12 pixels high.
pub(crate) const WIDTH: f64 = 500.0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(escaped("<script>\"a\" & b\u{0}"), "&lt;script&gt;&quot;a&quot; &amp; b ");
    }

    /// A picture in a panel of a page is some 28 pixels narrower than a phone's screen of 400.
    #[test]
    fn text_has_eleven_pixels_on_a_phone() {
        assert!(TEXT.min(TITLE) * 372.0 / WIDTH >= 11.0);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, 0.125, -0.001, 10.5].map(number), ["1", "0.12", "0", "10.5"]);
    }

    #[test]
    fn long_text_is_broken_between_words() {
        assert_eq!(lines("one two three four", 10.0, 60.0), ["one two", "three four"]);
    }
}
