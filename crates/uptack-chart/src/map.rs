//! Places as dots of different sizes, in panels side by side.

use crate::scale::short;
use crate::svg::{Anchor, Heading, Position, Svg, TEXT, number};

/// A place on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Degrees east.
    pub longitude: f64,
    /// Degrees north.
    pub latitude: f64,
    /// The value there; the dot's area is proportional to it. A negative value is drawn as an open dot.
    pub value: f64,
    /// Whether the value is doubtful: drawn with a cross.
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
    /// The unit of the values, for the legend.
    pub unit: String,
    /// The maps, from left to right.
    pub panels: Vec<Panel>,
}

/// Wider than a chart: several maps stand side by side.
const WIDTH: f64 = 640.0;
const GAP: f64 = 16.0;
const LARGEST_RADIUS: f64 = 15.0;
const COLOUR: &str = "#0072B2";
const BELOW: &str = "#D55E00";
const SUSPECT: &str = "#000000";

/// The radius of the largest circle, as a multiple of the distance between places if they were spread evenly.
const CROWDED: f64 = 1.5;
/// The radius of the smallest circle that can be seen.
const SMALLEST_RADIUS: f64 = 0.5;

impl Map {
    /// The maps as a self-contained SVG document.
    pub fn to_svg(&self) -> String {
        let heading = Heading::new(&self.title, &self.subtitle);
        let frame = Frame::around(self.dots(), self.panel_width());
        let sizes = DotSizes { largest: self.largest(), radius: self.largest_radius(&frame) };
        let top = heading.height() + 20.0;
        let bottom = top + frame.height;
        let mut svg = Svg::new(WIDTH, bottom + 62.0, &self.title, &self.subtitle);
        heading.draw(&mut svg);
        for (index, panel) in self.panels.iter().enumerate() {
            let left = 14.0 + index as f64 * (frame.width + GAP);
            panel.draw(&mut svg, (left, top), &frame, &sizes);
        }
        self.draw_legend(&mut svg, bottom + 30.0, &sizes);
        svg.finish()
    }

    fn panel_width(&self) -> f64 {
        let count = self.panels.len().max(1) as f64;
        (WIDTH - 28.0 - GAP * (count - 1.0)) / count
    }

    fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.panels.iter().flat_map(|panel| &panel.dots)
    }

    /// The radius of the largest circle: if there are many places, small enough to tell them apart.
    fn largest_radius(&self, frame: &Frame) -> f64 {
        let most = self.panels.iter().map(|panel| panel.dots.len()).max().unwrap_or(0).max(1);
        let area = frame.width * frame.height / most as f64;
        (CROWDED * area.sqrt()).clamp(LARGEST_RADIUS / 3.0, LARGEST_RADIUS)
    }

    fn largest(&self) -> f64 {
        self.dots().map(|dot| dot.value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    fn draw_legend(&self, svg: &mut Svg, y: f64, sizes: &DotSizes) {
        let power = 10f64.powf(self.largest().max(1.0).log10().floor());
        let x = sizes.draw_samples(svg, (30.0, y), power);
        legend_text(svg, (x, y), &self.unit);
        if self.dots().any(|dot| dot.suspect) {
            cross(svg, (x + 130.0, y));
            legend_text(svg, (x + 142.0, y), "doubtful");
        }
        if self.dots().any(|dot| dot.value < 0.0) {
            sizes.circle(svg, (x + 240.0, y), -power);
            legend_text(svg, (x + 258.0, y), "below 0");
        }
    }
}

fn legend_text(svg: &mut Svg, (x, y): Position, text: &str) {
    svg.text((x, y + 5.0), TEXT, Anchor::Start, text);
}

impl Panel {
    fn draw(&self, svg: &mut Svg, (left, top): Position, frame: &Frame, sizes: &DotSizes) {
        svg.text((left, top - 8.0), TEXT, Anchor::Start, &self.title);
        svg.frame((left, top), frame.width, frame.height);
        for dot in &self.dots {
            let (x, y) = frame.position(dot);
            sizes.draw(svg, (left + x, top + y), dot);
        }
    }
}

/// The sizes of values, on one scale for all panels.
struct DotSizes {
    /// The largest value, and its radius.
    largest: f64,
    radius: f64,
}

impl DotSizes {
    /// The radius for a value, to which its square is proportional.
    fn radius(&self, value: f64) -> f64 {
        (self.radius * (value.abs() / self.largest.max(f64::MIN_POSITIVE)).sqrt()).max(SMALLEST_RADIUS)
    }

    /// Draws circles of round values, the largest a power of ten, and returns where the row ends.
    fn draw_samples(&self, svg: &mut Svg, (left, y): Position, power: f64) -> f64 {
        let values = [power, power / 10.0, power / 100.0].into_iter().filter(|value| *value >= 1.0 || *value == power);
        values.fold(left, |x, value| {
            self.circle(svg, (x, y), value);
            legend_text(svg, (x + LARGEST_RADIUS + 4.0, y), &short(value));
            x + 78.0
        })
    }

    fn draw(&self, svg: &mut Svg, (x, y): Position, dot: &Dot) {
        if !(dot.value.is_finite() && x.is_finite() && y.is_finite()) {
            return;
        }
        self.circle(svg, (x, y), dot.value);
        if dot.suspect {
            cross(svg, (x, y));
        }
    }

    fn circle(&self, svg: &mut Svg, (x, y): Position, value: f64) {
        let (fill, stroke) = if value < 0.0 { ("none", BELOW) } else { (COLOUR, COLOUR) };
        let [x, y, size] = [x, y, self.radius(value)].map(number);
        svg.raw(&format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{size}\" fill=\"{fill}\" fill-opacity=\"0.35\" stroke=\"{stroke}\" \
             stroke-width=\"0.8\"/>"
        ));
    }
}

fn cross(svg: &mut Svg, (x, y): Position) {
    svg.stroke((x - 3.0, y - 3.0), (x + 3.0, y + 3.0), SUSPECT, 1.2);
    svg.stroke((x - 3.0, y + 3.0), (x + 3.0, y - 3.0), SUSPECT, 1.2);
}

/// The part of the world that is shown, and how large.
struct Frame {
    west: f64,
    north: f64,
    /// Pixels per degree of longitude, and of latitude.
    across: f64,
    down: f64,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Frame {
    fn around<'a>(dots: impl Iterator<Item = &'a Dot>, width: f64) -> Self {
        let bounds = MapBounds::around(dots);
        let shrink = bounds.longitude_shrink();
        let wide = ((bounds.east - bounds.west) * shrink).max(1e-6);
        let tall = (bounds.north - bounds.south).max(1e-6);
        let margin = LARGEST_RADIUS + 3.0;
        let scale = ((width - 2.0 * margin) / wide).min(400.0 / tall);
        let height = (tall * scale + 2.0 * margin).clamp(120.0, 440.0);
        let (left, top) = ((width - wide * scale) / 2.0, (height - tall * scale) / 2.0);
        let MapBounds { west, north, .. } = bounds;
        Self { west, north, across: scale * shrink, down: scale, left, top, width, height }
    }

    /// Where a dot is, from the top left corner of its panel.
    fn position(&self, dot: &Dot) -> Position {
        let x = self.left + (dot.longitude - self.west) * self.across;
        let y = self.top + (self.north - dot.latitude) * self.down;
        (x, y)
    }
}

/// The ends of a region, in degrees.
struct MapBounds {
    west: f64,
    east: f64,
    south: f64,
    north: f64,
}

impl MapBounds {
    const NOTHING: Self =
        Self { west: f64::INFINITY, east: f64::NEG_INFINITY, south: f64::INFINITY, north: f64::NEG_INFINITY };
    const AT_EQUATOR: Self = Self { west: 0.0, east: 1.0, south: 0.0, north: 1.0 };

    /// The bounds of all dots; without any, a square at the equator.
    fn around<'a>(dots: impl Iterator<Item = &'a Dot>) -> Self {
        let placed = dots.filter(|dot| dot.longitude.is_finite() && dot.latitude.is_finite());
        let bounds = placed.fold(Self::NOTHING, Self::including);
        if bounds.west > bounds.east { Self::AT_EQUATOR } else { bounds }
    }

    fn including(self, dot: &Dot) -> Self {
        Self {
            west: self.west.min(dot.longitude),
            east: self.east.max(dot.longitude),
            south: self.south.min(dot.latitude),
            north: self.north.max(dot.latitude),
        }
    }

    /// The length of a degree of longitude relative to one of latitude, which shrinks towards the poles. Over a county,
    /// such a plain scaling is a fair map.
    fn longitude_shrink(&self) -> f64 {
        ((self.north + self.south) / 2.0).to_radians().cos().abs().max(0.05)
    }
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
        assert_eq!(svg.matches("r=\"15\"").count(), 3, "one per panel and one in the legend");
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
