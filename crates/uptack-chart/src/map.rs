//! Places with a size each, in panels side by side.

use crate::heading::{Heading, TEXT, WIDTH};
use crate::svg::{Anchor, Svg, number};

/// A place on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Degrees east.
    pub longitude: f64,
    /// Degrees north.
    pub latitude: f64,
    /// What is there; the dot's area is in proportion. Below zero it is drawn as an open dot.
    pub value: f64,
    /// Whether to doubt the value: drawn with a cross.
    pub suspect: bool,
}

/// One of the maps side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// Its places.
    pub dots: Vec<Dot>,
}

/// Maps of the same places side by side, on one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// What it shows.
    pub title: String,
    /// Under which conditions.
    pub subtitle: String,
    /// What the sizes count, for the legend.
    pub unit: String,
    /// The maps, from left to right.
    pub panels: Vec<Panel>,
}

const GAP: f64 = 16.0;
const LARGEST_RADIUS: f64 = 15.0;
const COLOUR: &str = "#0072B2";
const BELOW: &str = "#D55E00";
const SUSPECT: &str = "#000000";

/// The largest circle as a multiple of the distance of places that are spread evenly.
const CROWDED: f64 = 1.5;
/// The smallest circle that is seen.
const SMALLEST_RADIUS: f64 = 0.5;

impl Map {
    /// The maps as an SVG document that needs nothing else.
    pub fn to_svg(&self) -> String {
        let heading = Heading::new(&self.title, &self.subtitle);
        let top = heading.height() + 20.0;
        let count = self.panels.len().max(1) as f64;
        let width = (WIDTH - 28.0 - GAP * (count - 1.0)) / count;
        let frame = Frame::around(self.dots(), width);
        let bottom = top + frame.height;
        let mut svg = Svg::new(WIDTH, bottom + 62.0, &self.title, &self.subtitle);
        heading.draw(&mut svg);
        let sizes = Sizes { largest: self.largest(), radius: self.radius(width * frame.height) };
        for (index, panel) in self.panels.iter().enumerate() {
            let corner = (14.0 + index as f64 * (width + GAP), top);
            panel.draw(&mut svg, corner, width, &frame, &sizes);
        }
        self.legend(&mut svg, bottom + 30.0, &sizes);
        svg.finish()
    }

    fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.panels.iter().flat_map(|panel| &panel.dots)
    }

    /// The largest circle: where there are many places, small enough to tell them apart.
    fn radius(&self, area: f64) -> f64 {
        let most = self.panels.iter().map(|panel| panel.dots.len()).max().unwrap_or(0).max(1);
        (CROWDED * (area / most as f64).sqrt()).clamp(LARGEST_RADIUS / 3.0, LARGEST_RADIUS)
    }

    fn largest(&self) -> f64 {
        self.dots().map(|dot| dot.value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    fn legend(&self, svg: &mut Svg, y: f64, sizes: &Sizes) {
        let power = 10f64.powf(self.largest().max(1.0).log10().floor());
        let mut x = 30.0;
        for value in [power, power / 10.0, power / 100.0].into_iter().filter(|value| *value >= 1.0 || *value == power) {
            sizes.circle(svg, (x, y), value);
            svg.text((x + LARGEST_RADIUS + 4.0, y + 5.0), TEXT, Anchor::Start, &crate::scale::short(value));
            x += 78.0;
        }
        svg.text((x, y + 5.0), TEXT, Anchor::Start, &self.unit);
        if self.dots().any(|dot| dot.suspect) {
            cross(svg, (x + 130.0, y));
            svg.text((x + 142.0, y + 5.0), TEXT, Anchor::Start, "doubtful");
        }
        if self.dots().any(|dot| dot.value < 0.0) {
            sizes.circle(svg, (x + 240.0, y), -power);
            svg.text((x + 258.0, y + 5.0), TEXT, Anchor::Start, "below 0");
        }
    }
}

impl Panel {
    fn draw(&self, svg: &mut Svg, (left, top): (f64, f64), width: f64, frame: &Frame, sizes: &Sizes) {
        svg.text((left, top - 8.0), TEXT, Anchor::Start, &self.title);
        svg.frame((left, top), width, frame.height);
        for dot in &self.dots {
            let (x, y) = frame.place(dot);
            sizes.draw(svg, (left + x, top + y), dot);
        }
    }
}

/// How large values are drawn, on one scale for all panels.
struct Sizes {
    /// The largest value, and its radius.
    largest: f64,
    radius: f64,
}

impl Sizes {
    /// The radius for a value; its square is in proportion.
    fn radius(&self, value: f64) -> f64 {
        (self.radius * (value.abs() / self.largest.max(f64::MIN_POSITIVE)).sqrt()).max(SMALLEST_RADIUS)
    }

    fn draw(&self, svg: &mut Svg, (x, y): (f64, f64), dot: &Dot) {
        if !(dot.value.is_finite() && x.is_finite() && y.is_finite()) {
            return;
        }
        self.circle(svg, (x, y), dot.value);
        if dot.suspect {
            cross(svg, (x, y));
        }
    }

    fn circle(&self, svg: &mut Svg, (x, y): (f64, f64), value: f64) {
        let (fill, stroke) = if value < 0.0 { ("none", BELOW) } else { (COLOUR, COLOUR) };
        let [x, y, size] = [x, y, self.radius(value)].map(number);
        svg.raw(&format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{size}\" fill=\"{fill}\" fill-opacity=\"0.35\" stroke=\"{stroke}\" \
             stroke-width=\"0.8\"/>"
        ));
    }
}

fn cross(svg: &mut Svg, (x, y): (f64, f64)) {
    svg.stroke((x - 3.0, y - 3.0), (x + 3.0, y + 3.0), SUSPECT, 1.2);
    svg.stroke((x - 3.0, y + 3.0), (x + 3.0, y - 3.0), SUSPECT, 1.2);
}

/// What part of the world is shown, and how large.
struct Frame {
    west: f64,
    north: f64,
    /// Pixels a degree.
    across: f64,
    down: f64,
    left: f64,
    top: f64,
    height: f64,
}

impl Frame {
    fn around<'a>(dots: impl Iterator<Item = &'a Dot>, width: f64) -> Self {
        let [west, east, south, north] = ends(dots);
        // A degree of longitude shrinks towards the poles; over a county a plain scaling is a fair map.
        let shrink = ((north + south) / 2.0).to_radians().cos().abs().max(0.05);
        let (wide, tall) = (((east - west) * shrink).max(1e-6), (north - south).max(1e-6));
        let margin = LARGEST_RADIUS + 3.0;
        let scale = ((width - 2.0 * margin) / wide).min(400.0 / tall);
        let height = (tall * scale + 2.0 * margin).clamp(120.0, 440.0);
        let (left, top) = ((width - wide * scale) / 2.0, (height - tall * scale) / 2.0);
        Self { west, north, across: scale * shrink, down: scale, left, top, height }
    }

    fn place(&self, dot: &Dot) -> (f64, f64) {
        (self.left + (dot.longitude - self.west) * self.across, self.top + (self.north - dot.latitude) * self.down)
    }
}

/// West, east, south and north; of nothing, a square at the equator.
fn ends<'a>(dots: impl Iterator<Item = &'a Dot>) -> [f64; 4] {
    let nothing = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY];
    let placed = dots.filter(|dot| dot.longitude.is_finite() && dot.latitude.is_finite());
    let [west, east, south, north] = placed.fold(nothing, |[west, east, south, north], dot| {
        let (x, y) = (dot.longitude, dot.latitude);
        [west.min(x), east.max(x), south.min(y), north.max(y)]
    });
    if west > east { [0.0, 1.0, 0.0, 1.0] } else { [west, east, south, north] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(dots: Vec<Dot>) -> Map {
        let panel = |title: &str| Panel { title: title.to_owned(), dots: dots.clone() };
        Map {
            title: "Stations".to_owned(),
            subtitle: String::new(),
            unit: "vehicles".to_owned(),
            panels: vec![panel("truth"), panel("estimate")],
        }
    }

    #[test]
    fn areas_are_in_proportion_and_panels_share_a_scale() {
        let dot = |longitude, value| Dot { longitude, latitude: 33.5, value, suspect: value == 4.0 };
        let svg = map(vec![dot(-117.9, 100.0), dot(-117.5, 25.0), dot(-117.7, 4.0)]).to_svg();
        assert_eq!(svg.matches("r=\"15\"").count(), 3, "one a panel and one in the legend");
        assert_eq!(svg.matches("r=\"7.5\"").count(), 2);
        assert!(svg.contains("doubtful") && svg.contains("vehicles"));
    }

    #[test]
    fn a_map_of_nothing_or_of_one_place_is_still_a_picture() {
        for dots in [vec![], vec![Dot { longitude: 1.0, latitude: 1.0, value: 0.0, suspect: false }]] {
            let svg = map(dots).to_svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
