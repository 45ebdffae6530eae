//! Places with a size each, in panels side by side.

use crate::chart::{TEXT, TITLE, WIDTH, heading, heading_height};
use crate::svg::{Anchor, Svg, lines, number};

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
const SUSPECT: &str = "#D55E00";

impl Map {
    /// The maps as an SVG document that needs nothing else.
    pub fn to_svg(&self) -> String {
        let title = lines(&self.title, TITLE, WIDTH - 30.0);
        let subtitle = lines(&self.subtitle, TEXT, WIDTH - 30.0);
        let top = heading_height(title.len(), subtitle.len()) + 20.0;
        let count = self.panels.len().max(1) as f64;
        let width = (WIDTH - 28.0 - GAP * (count - 1.0)) / count;
        let frame = Frame::around(self.panels.iter().flat_map(|panel| &panel.dots), width);
        let bottom = top + frame.height;
        let mut svg = Svg::new(WIDTH, bottom + 62.0, &self.title, &self.subtitle);
        heading(&mut svg, &title, &subtitle);
        let radius = self.radius();
        for (index, panel) in self.panels.iter().enumerate() {
            let left = 14.0 + index as f64 * (width + GAP);
            svg.text((left, top - 8.0), TEXT, Anchor::Start, &panel.title);
            svg.frame((left, top), width, frame.height);
            for dot in &panel.dots {
                let (x, y) = frame.place(dot);
                draw(&mut svg, (left + x, top + y), dot, &radius);
            }
        }
        self.legend(&mut svg, bottom + 30.0, &radius);
        svg.finish()
    }

    fn largest(&self) -> f64 {
        let values = self.panels.iter().flat_map(|panel| panel.dots.iter().map(|dot| dot.value.abs()));
        values.filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    /// The radius for a value; its square is in proportion.
    fn radius(&self) -> impl Fn(f64) -> f64 + use<> {
        let largest = self.largest().max(f64::MIN_POSITIVE);
        move |value: f64| LARGEST_RADIUS * (value.abs() / largest).sqrt()
    }

    fn legend(&self, svg: &mut Svg, y: f64, radius: &impl Fn(f64) -> f64) {
        let largest = self.largest();
        let power = 10f64.powf(largest.max(1.0).log10().floor());
        let mut x = 30.0;
        for value in [power, power / 10.0, power / 100.0].into_iter().filter(|value| *value >= 1.0 || *value == power) {
            draw(svg, (x, y), &Dot { longitude: 0.0, latitude: 0.0, value, suspect: false }, radius);
            svg.text((x + LARGEST_RADIUS + 4.0, y + 5.0), TEXT, Anchor::Start, &crate::scale::short(value));
            x += 78.0;
        }
        svg.text((x, y + 5.0), TEXT, Anchor::Start, &self.unit);
        if self.panels.iter().any(|panel| panel.dots.iter().any(|dot| dot.suspect)) {
            cross(svg, (x + 130.0, y));
            svg.text((x + 142.0, y + 5.0), TEXT, Anchor::Start, "doubtful");
        }
        if self.panels.iter().any(|panel| panel.dots.iter().any(|dot| dot.value < 0.0)) {
            let below = Dot { longitude: 0.0, latitude: 0.0, value: -power / 10.0, suspect: false };
            draw(svg, (x + 230.0, y), &below, radius);
            svg.text((x + 244.0, y + 5.0), TEXT, Anchor::Start, "below 0");
        }
    }
}

fn draw(svg: &mut Svg, (x, y): (f64, f64), dot: &Dot, radius: &impl Fn(f64) -> f64) {
    if !(dot.value.is_finite() && x.is_finite() && y.is_finite()) {
        return;
    }
    let size = number(radius(dot.value).max(0.5));
    let (fill, opacity) = if dot.value < 0.0 { ("none", "0.8") } else { (COLOUR, "0.35") };
    let (left, top) = (number(x), number(y));
    svg.raw(&format!(
        "<circle cx=\"{left}\" cy=\"{top}\" r=\"{size}\" fill=\"{fill}\" fill-opacity=\"{opacity}\" \
         stroke=\"{COLOUR}\" stroke-width=\"0.7\"/>"
    ));
    if dot.suspect {
        cross(svg, (x, y));
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
        let mut ends = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY];
        for dot in dots.filter(|dot| dot.longitude.is_finite() && dot.latitude.is_finite()) {
            ends[0] = ends[0].min(dot.longitude);
            ends[1] = ends[1].max(dot.longitude);
            ends[2] = ends[2].min(dot.latitude);
            ends[3] = ends[3].max(dot.latitude);
        }
        if ends[0] > ends[1] {
            ends = [0.0, 1.0, 0.0, 1.0];
        }
        let [west, east, south, north] = ends;
        // A degree of longitude shrinks towards the poles; over a county a plain scaling is a fair map.
        let shrink = ((north + south) / 2.0).to_radians().cos().abs().max(0.05);
        let (wide, tall) = (((east - west) * shrink).max(1e-6), (north - south).max(1e-6));
        let margin = LARGEST_RADIUS + 3.0;
        let room = width - 2.0 * margin;
        let scale = (room / wide).min(400.0 / tall);
        let height = (tall * scale + 2.0 * margin).clamp(120.0, 440.0);
        Self {
            west,
            north,
            across: scale * shrink,
            down: scale,
            left: (width - wide * scale) / 2.0,
            top: (height - tall * scale) / 2.0,
            height,
        }
    }

    fn place(&self, dot: &Dot) -> (f64, f64) {
        (self.left + (dot.longitude - self.west) * self.across, self.top + (self.north - dot.latitude) * self.down)
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
