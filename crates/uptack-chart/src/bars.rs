//! Bars with intervals, one below the other.

use crate::heading::{Heading, TEXT, WIDTH, text_lines};
use crate::look::Look;
use crate::scale::{Ruler, Scale};
use crate::svg::{Anchor, Svg, number};

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it counts.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

/// Bars in the order in which they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What they show.
    pub title: String,
    /// What to know when reading them.
    pub subtitle: String,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
}

/// More bars than that do not fit a page; the rest is counted.
const MOST: usize = 40;
const ROW: f64 = 28.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = WIDTH - 24.0;
/// A longer name is cut off.
const LONGEST_NAME: usize = 20;

impl Bars {
    /// The bars as an SVG document that needs nothing else.
    ///
    /// ```
    /// use uptack_chart::{Bar, Bars};
    /// let bar = |name: &str, value| Bar { name: name.to_owned(), value, low: value - 2.0, high: value + 2.0 };
    /// let bars = vec![bar("north", 12.0), bar("south", -1.0)];
    /// let svg = Bars { title: "By side".to_owned(), subtitle: String::new(), bars }.to_svg();
    /// assert!(svg.contains("north</text>") && svg.matches("<rect").count() >= 3);
    /// ```
    pub fn to_svg(&self) -> String {
        let heading = Heading::new(&self.title, &self.subtitle);
        let shown = &self.bars[..self.bars.len().min(MOST)];
        let (top, left_out) = (heading.height(), self.bars.len() - shown.len());
        let bottom = top + shown.len() as f64 * ROW;
        let mut svg =
            Svg::new(WIDTH, bottom + 34.0 + if left_out > 0 { 24.0 } else { 0.0 }, &self.title, &self.subtitle);
        heading.draw(&mut svg);
        let ends = shown.iter().flat_map(|bar| [bar.low, bar.high, bar.value]);
        let ruler = Ruler::new(Scale::Linear, None, ends.chain([0.0]));
        for tick in ruler.ticks() {
            let x = across(tick.place);
            svg.rule((x, top), (x, bottom), tick.label.is_none());
            if let Some(label) = tick.label {
                svg.text((x, bottom + 20.0), TEXT, Anchor::Middle, &label);
            }
        }
        for (index, bar) in shown.iter().enumerate() {
            bar.draw(&mut svg, &ruler, top + index as f64 * ROW);
        }
        if left_out > 0 {
            text_lines(&mut svg, bottom + 26.0, TEXT, 4.0, &[format!("and {left_out} more, each of them smaller")]);
        }
        svg.finish()
    }
}

impl Bar {
    fn draw(&self, svg: &mut Svg, ruler: &Ruler, top: f64) {
        let look = Look::numbered(0);
        let at = |value: f64| across(ruler.nearest(value));
        let (zero, end, middle) = (at(0.0), at(self.value), top + ROW / 2.0);
        let (x, width) = (zero.min(end), (end - zero).abs());
        svg.raw(&format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.55\"/>",
            number(x),
            number(top + 5.0),
            number(width),
            number(ROW - 10.0),
            look.colour()
        ));
        svg.stroke((at(self.low), middle), (at(self.high), middle), "#1a1a1a", 1.8);
        for end in [self.low, self.high] {
            svg.stroke((at(end), middle - 5.0), (at(end), middle + 5.0), "#1a1a1a", 1.8);
        }
        svg.text((LEFT - 8.0, middle + 5.0), TEXT, Anchor::End, &shortened(&self.name));
    }
}

fn across(place: f64) -> f64 {
    LEFT + place * (RIGHT - LEFT)
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bars_are_counted_and_hostile_names_stay_text() {
        let bar = |index: usize| Bar { name: format!("<b>{index}"), value: 50.0 - index as f64, low: 0.0, high: 60.0 };
        let bars = Bars { title: "t".to_owned(), subtitle: String::new(), bars: (0..MOST + 3).map(bar).collect() };
        let svg = bars.to_svg();
        assert!(svg.contains("and 3 more") && svg.contains("&lt;b&gt;0") && !svg.contains("<b>"));
        assert!(!svg.contains("NaN"));
        let empty = Bars { bars: Vec::new(), ..bars };
        assert!(empty.to_svg().ends_with("</svg>\n"));
    }
}
