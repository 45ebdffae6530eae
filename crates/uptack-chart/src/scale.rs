//! From values to places on an axis.

use crate::svg::without_trailing_zeros;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; values that are not positive cannot be shown and are left out.
    Log,
    /// Equal differences of the square root, with the sign kept, are equally far apart: for counts from none to many.
    Root,
}

/// A tick: its place between 0 and 1, and its label; a minor tick has none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) place: f64,
    pub(crate) label: Option<String>,
}

/// A scale over a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Scale {
    /// Whether a value can be shown.
    pub(crate) fn shows(self, value: f64) -> bool {
        value.is_finite() && (self != Self::Log || value > 0.0)
    }

    fn transform(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
            Self::Root => value.signum() * value.abs().sqrt(),
        }
    }
}

impl Ruler {
    /// A ruler over the wanted range exactly or, without a valid one, over all values with some margin.
    pub(crate) fn new(scale: Scale, wanted: Option<(f64, f64)>, values: impl Iterator<Item = f64>) -> Self {
        match wanted {
            Some((low, high)) if scale.shows(low) && scale.shows(high) && low < high => {
                Self { scale, low: scale.transform(low), high: scale.transform(high) }
            }
            _ => Self::around(scale, values),
        }
    }

    fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let shown = values.filter(|&value| scale.shows(value)).map(|value| scale.transform(value));
        let (low, high) = widened(extent(shown));
        let margin = 0.04 * (high - low);
        // An axis of counts starts at zero rather than a little below it.
        let from_zero = scale != Scale::Log && low >= 0.0 && low < 0.35 * high;
        Self { scale, low: if from_zero { 0.0 } else { low - margin }, high: high + margin }
    }

    /// The place of the value on the axis, from 0 to 1; none if it cannot be shown or is outside.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        self.unbounded_place(value).filter(|place| (-1e-9..=1.0 + 1e-9).contains(place))
    }

    /// Like [`Ruler::place`], but a value outside is moved to the nearer end.
    pub(crate) fn nearest(&self, value: f64) -> f64 {
        self.unbounded_place(value).map_or(0.0, |place| place.clamp(0.0, 1.0))
    }

    fn unbounded_place(&self, value: f64) -> Option<f64> {
        self.scale.shows(value).then(|| (self.scale.transform(value) - self.low) / (self.high - self.low))
    }

    pub(crate) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.even_ticks(self.low, self.high),
            // A range of less than a decade holds hardly any power of ten or simple multiple of one.
            Scale::Log if self.high - self.low < 0.7 => self.even_ticks(10f64.powf(self.low), 10f64.powf(self.high)),
            Scale::Log => self.log_ticks(),
            Scale::Root => self.root_ticks(),
        }
    }

    fn even_ticks(&self, low: f64, high: f64) -> Vec<Tick> {
        let step = round_step((high - low) / 5.0);
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        (first..=last).filter_map(|index| self.tick(index as f64 * step, true)).collect()
    }

    fn log_ticks(&self) -> Vec<Tick> {
        let decades = self.high - self.low;
        let labelled = labelled_units(decades);
        let every = (decades / 7.0).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for power in self.low.floor() as i32..=self.high.ceil() as i32 {
            for unit in 1..=9u32 {
                let label = labelled.contains(&unit) && power % every == 0;
                ticks.extend(self.tick(f64::from(unit) * 10f64.powi(power), label));
            }
        }
        ticks
    }

    /// Zero, and round numbers on both sides of it.
    fn root_ticks(&self) -> Vec<Tick> {
        let mut ticks = Vec::from_iter(self.tick(0.0, true));
        for sign in [1.0, -1.0] {
            ticks.extend(self.root_ticks_on_side(sign));
        }
        ticks
    }

    /// Round numbers of one sign, without those too near the one before.
    fn root_ticks_on_side(&self, sign: f64) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let mut last = self.nearest(0.0);
        for size in (-1..9).flat_map(|power| [1.0, 2.0, 5.0].map(|unit| unit * 10f64.powi(power))) {
            let Some(place) = self.place(sign * size) else { continue };
            if (place - last).abs() >= LABEL_DISTANCE {
                ticks.extend(self.tick(sign * size, true));
                last = place;
            }
        }
        ticks
    }

    fn tick(&self, value: f64, label: bool) -> Option<Tick> {
        let place = self.place(value)?;
        Some(Tick { place, label: label.then(|| short(value)) })
    }
}

/// The least and the largest value; infinities in the wrong order if there is none.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// A range that is not empty, around one that may be.
fn widened(extent: (f64, f64)) -> (f64, f64) {
    match extent {
        (low, high) if low > high => (0.0, 1.0),
        (low, high) if low == high => (low - 0.5, high + 0.5),
        ends => ends,
    }
}

/// The least round number that is not below a rough step.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|unit| unit * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(rough)
}

/// The multiples of a power of ten that carry a label: the fewer, the more decades there are.
fn labelled_units(decades: f64) -> &'static [u32] {
    if decades < 1.2 {
        &[1, 2, 3, 5, 7]
    } else if decades < 2.6 {
        &[1, 2, 5]
    } else {
        &[1]
    }
}

/// The least distance between two labels on a scale of roots, as a share of the axis.
const LABEL_DISTANCE: f64 = 0.085;

/// A value as an axis shows it: 50 k, 5 M, 0.02, 1e-8.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    let (value, unit) = match size {
        size if size >= 0.9999e12 => return format!("{value:.0e}"),
        size if size >= 0.9999e9 => (value / 1e9, " G"),
        size if size >= 0.9999e6 => (value / 1e6, " M"),
        size if size >= 0.9999e4 => (value / 1e3, " k"),
        size if size != 0.0 && size < 0.99e-3 => return trimmed_exponent(value),
        _ => (value, ""),
    };
    let places = if size < 0.01 { 4 } else { 3 };
    let text = format!("{value:.places$}");
    format!("{}{unit}", without_trailing_zeros(&text))
}

fn trimmed_exponent(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{exponent}", without_trailing_zeros(mantissa))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [(0.0, "0"), (50_000.0, "50 k"), (5e7, "50 M"), (0.02, "0.02"), (1e-8, "1e-8"), (1000.0, "1000")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(0.945), "0.945");
    }

    #[test]
    fn ticks_are_inside_and_some_are_labelled() {
        for (scale, values) in [
            (Scale::Linear, vec![0.93, 0.99]),
            (Scale::Linear, vec![0.0, 480.0]),
            (Scale::Root, vec![-9.0, 0.0, 509.0]),
            (Scale::Root, vec![0.0, 3.0]),
            (Scale::Log, vec![50_186.0, 50_186_000.0]),
            (Scale::Log, vec![3.0, 4.0]),
            (Scale::Log, vec![1e-12, 1e3]),
            (Scale::Linear, vec![5.0]),
            (Scale::Log, vec![]),
            (Scale::Log, vec![-1.0, 0.0, f64::NAN]),
        ] {
            let ruler = Ruler::new(scale, None, values.iter().copied());
            let ticks = ruler.ticks();
            let labels = ticks.iter().filter(|tick| tick.label.is_some()).count();
            assert!((2..=10).contains(&labels), "{scale:?} {values:?}: {labels}");
            assert!(ticks.iter().all(|tick| (-1e-6..=1.000_001).contains(&tick.place)));
            for value in values.into_iter().filter(|&value| scale.shows(value)) {
                assert!(ruler.place(value).is_some(), "{scale:?} {value}");
            }
        }
    }

    #[test]
    fn a_wanted_range_is_kept_and_what_is_outside_has_no_place() {
        let ruler = Ruler::new(Scale::Linear, Some((0.0, 10.0)), std::iter::empty());
        assert_eq!((ruler.place(5.0), ruler.place(11.0), ruler.nearest(11.0)), (Some(0.5), None, 1.0));
        assert_eq!(Ruler::new(Scale::Log, None, [1.0].into_iter()).place(0.0), None);
    }
}
