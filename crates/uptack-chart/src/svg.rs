//! Writing SVG.

/// An SVG document that grows.
pub(crate) struct Svg {
    body: String,
    height: f64,
}

/// Where a text stands with respect to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

pub(crate) const INK: &str = "#1a1a1a";
pub(crate) const FAINT: &str = "#d9d9d9";
const FAINTER: &str = "#efefef";

impl Svg {
    pub(crate) fn new(width: f64, height: f64, title: &str, description: &str) -> Self {
        let tall = height;
        let (width, height) = (number(width), number(height));
        let (title, description) = (escaped(title), escaped(description));
        let body = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" font-family=\"sans-serif\" fill=\"{INK}\">\
             <title>{title}</title><desc>{description}</desc>\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        Self { body, height: tall }
    }

    /// Pictures one below the other, in one document that needs nothing else.
    pub(crate) fn stacked(width: f64, title: &str, pictures: Vec<Self>) -> Self {
        let description = format!("{} charts", pictures.len());
        let mut sheet = Self::new(width, pictures.iter().map(|picture| picture.height).sum(), title, &description);
        let mut top = 0.0;
        for picture in pictures {
            let height = picture.height;
            let nested = picture.finish().replacen("<svg ", &format!("<svg y=\"{}\" ", number(top)), 1);
            sheet.raw(nested.trim_end());
            top += height;
        }
        sheet
    }

    pub(crate) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, text: &str) {
        let attributes = format!("x=\"{}\" y=\"{}\"", number(x), number(y));
        self.any_text(&attributes, size, anchor, text);
    }

    /// Text that reads upwards.
    pub(crate) fn upward_text(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        let attributes = format!("transform=\"translate({} {}) rotate(-90)\"", number(x), number(y));
        self.any_text(&attributes, size, Anchor::Middle, text);
    }

    fn any_text(&mut self, place: &str, size: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (size, text) = (number(size), escaped(text));
        self.raw(&format!("<text {place} font-size=\"{size}\" text-anchor=\"{anchor}\">{text}</text>"));
    }

    pub(crate) fn rule(&mut self, from: (f64, f64), to: (f64, f64), minor: bool) {
        self.stroke(from, to, if minor { FAINTER } else { FAINT }, 1.0);
    }

    pub(crate) fn stroke(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, width: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(number);
        self.raw(&format!(
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    pub(crate) fn frame(&mut self, (x, y): (f64, f64), width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width, height].map(number);
        self.raw(&format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#7a7a7a\"/>"
        ));
    }

    pub(crate) fn finish(mut self) -> String {
        self.body.push_str("</svg>\n");
        self.body
    }
}

/// Hundredths of a pixel are enough, and keep the text short and the same everywhere.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Text that cannot be mistaken for markup; characters that XML does not allow are left out.
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

/// Breaks a text into lines of about `width` pixels at this size of letters.
pub(crate) fn lines(text: &str, size: f64, width: f64) -> Vec<String> {
    // A letter of a sans-serif face is on average about half as wide as the size says; taken a little wider.
    let most = (width / (0.54 * size)).max(8.0) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(escaped("<script>\"a\" & b\u{0}"), "&lt;script&gt;&quot;a&quot; &amp; b ");
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
