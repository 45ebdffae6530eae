//! Bars with intervals, one below the other.

use crate::look::{Look, Marker};
use crate::plot::grid_column;
use crate::scale::{Ruler, Scale};
use crate::svg::{Anchor, Heading, INK, LINE_WIDTH, Svg, TEXT, WIDTH, lines, text_lines};

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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// What they show.
    pub title: String,
    /// What to know when reading them.
    pub subtitle: String,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
    /// What the value of each bar should be, in their order; empty if nobody knows.
    pub truths: Vec<f64>,
    /// What to know about things that have no bar, below the others.
    pub notes: Vec<String>,
}

/// More bars than this do not fit on a page; how many are left out is said below them.
const MOST: usize = 40;
const ROW: f64 = 28.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = WIDTH - 24.0;
const NOTE_GAP: f64 = 4.0;
/// A longer name is cut off.
const LONGEST_NAME: usize = 20;

impl Bars {
    /// The bars as a self-contained SVG document.
    ///
    /// ```
    /// use uptack_chart::{Bar, Bars};
    /// let bar = |name: &str, value| Bar { name: name.to_owned(), value, low: value - 2.0, high: value + 2.0 };
    /// let bars = vec![bar("north", 12.0), bar("south", -1.0)];
    /// let svg = Bars { title: "By side".to_owned(), bars, ..Bars::default() }.to_svg();
    /// assert!(svg.contains("north</text>") && svg.matches("<rect").count() >= 3);
    /// ```
    pub fn to_svg(&self) -> String {
        let heading = Heading::new(&self.title, &self.subtitle);
        let shown = &self.bars[..self.bars.len().min(MOST)];
        let plot = BarPlot::new(shown, &self.truths, heading.height());
        let notes = self.note_lines();
        let note_height = notes.len() as f64 * (TEXT + NOTE_GAP);
        let mut svg = Svg::new(WIDTH, plot.bottom() + 40.0 + note_height, &self.title, &self.subtitle);
        heading.draw(&mut svg);
        plot.draw(&mut svg);
        text_lines(&mut svg, plot.bottom() + 26.0, TEXT, NOTE_GAP, &notes);
        svg.finish()
    }

    fn note_lines(&self) -> Vec<String> {
        let left_out = self.bars.len().saturating_sub(MOST);
        let more = (left_out > 0).then(|| format!("and {left_out} more, each of them smaller"));
        more.iter().chain(&self.notes).flat_map(|note| lines(note, TEXT, LINE_WIDTH)).collect()
    }
}

/// The bars that are shown, on one scale.
struct BarPlot<'a> {
    bars: &'a [Bar],
    truths: &'a [f64],
    top: f64,
    ruler: Ruler,
}

impl<'a> BarPlot<'a> {
    fn new(bars: &'a [Bar], truths: &'a [f64], top: f64) -> Self {
        let truths = &truths[..truths.len().min(bars.len())];
        let values = bars.iter().flat_map(|bar| [bar.low, bar.high, bar.value]);
        let ruler = Ruler::new(Scale::Linear, None, values.chain(truths.iter().copied()).chain([0.0]));
        Self { bars, truths, top, ruler }
    }

    fn bottom(&self) -> f64 {
        self.top + self.bars.len() as f64 * ROW
    }

    fn draw(&self, svg: &mut Svg) {
        for tick in self.ruler.ticks() {
            grid_column(svg, &tick, across(tick.place), (self.top, self.bottom()));
        }
        for (index, bar) in self.bars.iter().enumerate() {
            self.draw_bar(svg, bar, self.top + index as f64 * ROW);
        }
        for (index, &truth) in self.truths.iter().enumerate() {
            let at = (self.x(truth), self.top + (index as f64 + 0.5) * ROW);
            Look::numbered(1).marked(Marker::Diamond).mark(svg, at);
        }
    }

    fn draw_bar(&self, svg: &mut Svg, bar: &Bar, top: f64) {
        let middle = top + ROW / 2.0;
        self.draw_value(svg, bar.value, top);
        self.draw_interval(svg, [bar.low, bar.high], middle);
        svg.text((LEFT - 8.0, middle + 5.0), TEXT, Anchor::End, &shortened(&bar.name));
    }

    /// The bar itself, from zero to its value.
    fn draw_value(&self, svg: &mut Svg, value: f64, top: f64) {
        let (zero, end) = (self.x(0.0), self.x(value));
        let paint = format!("fill=\"{}\" fill-opacity=\"0.55\"", Look::numbered(0).colour());
        svg.rectangle((zero.min(end), top + 5.0), (end - zero).abs(), ROW - 10.0, &paint);
    }

    fn draw_interval(&self, svg: &mut Svg, ends: [f64; 2], y: f64) {
        let [low, high] = ends.map(|end| self.x(end));
        svg.stroke((low, y), (high, y), INK, 1.8);
        for end in [low, high] {
            svg.stroke((end, y - 5.0), (end, y + 5.0), INK, 1.8);
        }
    }

    fn x(&self, value: f64) -> f64 {
        across(self.ruler.nearest(value))
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
        let bars = Bars { title: "t".to_owned(), bars: (0..MOST + 3).map(bar).collect(), ..Bars::default() };
        let svg = bars.to_svg();
        assert!(svg.contains("and 3 more") && svg.contains("&lt;b&gt;0") && !svg.contains("<b>"));
        assert!(!svg.contains("NaN"));
        let empty = Bars { bars: Vec::new(), ..bars };
        assert!(empty.to_svg().ends_with("</svg>\n"));
    }

    #[test]
    fn truths_are_marked_and_notes_are_below() {
        let bar = Bar { name: "a".to_owned(), value: 5.0, low: 3.0, high: 7.0 };
        let plain = Bars { bars: vec![bar; 2], ..Bars::default() };
        let known = Bars { truths: vec![4.0, 6.0, 9.0], notes: vec!["the rest: 12".to_owned()], ..plain.clone() };
        let polygons = |bars: &Bars| bars.to_svg().matches("<polygon").count();
        assert_eq!((polygons(&plain), polygons(&known)), (0, 2), "a truth without a bar is left out");
        assert!(known.to_svg().contains("the rest: 12</text>"));
    }
}
