//! Ranges of a number as the options of a choice.

use super::MOST_OPTIONS;
use super::options::OptionNames;
use crate::error::{Error, Result};

/// Ranges between rising edges e0 < e1 < …, as the options of a choice: under e0, e0 to e1, …, the last edge or more, and
/// *no value*.
///
/// An owner without the attribute is counted in the last option, so that a missing value is never taken for a zero. An edge belongs
/// to the range above it.
///
/// ```
/// use uptack::contribution::Bins;
/// let bins = Bins::new(vec![0.0, 20.0, 60.0])?;
/// assert_eq!(bins.names().names(), ["under 0", "0 to 20", "20 to 60", "60 or more", "no value"]);
/// assert_eq!([Some(-1.0), Some(0.0), Some(19.5), Some(60.0), None].map(|value| bins.index(value)), [0, 1, 1, 3, 4]);
/// assert_eq!(bins.midpoints(), [None, Some(10.0), Some(40.0), None, None]);
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    edges: Vec<f64>,
}

/// The options besides those between two edges: under the first one, from the last one on, and no value.
const OUTSIDE: usize = 3;

impl Bins {
    /// Refuses fewer than two edges, edges that do not rise, edges that are not finite, and more options than
    /// [`MOST_OPTIONS`].
    pub fn new(edges: Vec<f64>) -> Result<Self> {
        if edges.len() < 2 {
            return Err(Error::parameter(format!("{} edges do not bound a range", edges.len()))
                .with_hint("give at least two edges, such as 0,20"));
        }
        if let Some(index) = edges.iter().position(|edge| !edge.is_finite()) {
            return Err(Error::parameter(format!("edge {} is not a number", index + 1))
                .with_hint("what is under the first edge and over the last one has options of its own"));
        }
        if let Some(index) = edges.windows(2).position(|pair| pair[0] >= pair[1]) {
            let (edge, next) = (edges[index], edges[index + 1]);
            return Err(Error::parameter(format!("edge {} is {next}, which is not above {edge}", index + 2))
                .with_hint("write the edges in rising order"));
        }
        let options = edges.len() - 1 + OUTSIDE;
        if options > MOST_OPTIONS as usize {
            return Err(Error::parameter(format!("{options} ranges are more than {MOST_OPTIONS} options")));
        }
        Ok(Self { edges })
    }

    /// The edges.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// How many options there are, those outside the edges and *no value* included.
    pub fn options(&self) -> usize {
        self.between() + OUTSIDE
    }

    /// How many ranges lie between two edges.
    fn between(&self) -> usize {
        self.edges.len() - 1
    }

    /// The options in the order of their values: all but *no value*.
    pub fn ordered(&self) -> Vec<usize> {
        (0..self.no_value()).collect()
    }

    /// The option of owners without a value.
    pub fn no_value(&self) -> usize {
        self.options() - 1
    }

    /// The option of a value. What is not a number is no value.
    pub fn index(&self, value: Option<f64>) -> usize {
        match value.filter(|value| !value.is_nan()) {
            Some(value) => self.edges.partition_point(|edge| *edge <= value),
            None => self.no_value(),
        }
    }

    /// What the options are called.
    pub fn names(&self) -> OptionNames {
        let (first, last) = (self.edges[0], self.edges[self.between()]);
        let between = self.edges.windows(2).map(|pair| format!("{} to {}", pair[0], pair[1]));
        let names = std::iter::once(format!("under {first}")).chain(between);
        let names = names.chain([format!("{last} or more"), "no value".to_owned()]);
        OptionNames::new(names).expect("different edges have different texts")
    }

    /// The middle of each range. What lies outside the edges has none, and neither has *no value*, so a mean by midpoints is that of
    /// the owners whose value lies between the edges.
    pub fn midpoints(&self) -> Vec<Option<f64>> {
        self.representatives(None)
    }

    /// The midpoints, and values that stand for those under the first edge and from the last one on: then the mean is that of all
    /// owners with a value. Refuses values that lie between the edges.
    pub fn midpoints_with_ends(&self, under: f64, over: f64) -> Result<Vec<Option<f64>>> {
        let (first, last) = (self.edges[0], self.edges[self.between()]);
        let fits = under.is_finite() && over.is_finite() && under <= first && over >= last;
        if !fits {
            return Err(Error::request(format!(
                "{under} and {over} do not stand for values under {first} and from {last} on"
            )));
        }
        Ok(self.representatives(Some((under, over))))
    }

    fn representatives(&self, ends: Option<(f64, f64)>) -> Vec<Option<f64>> {
        let middle = |pair: &[f64]| Some(pair[0] + (pair[1] - pair[0]) / 2.0);
        let (under, over) = ends.unzip();
        std::iter::once(under).chain(self.edges.windows(2).map(middle)).chain([over, None]).collect()
    }

    /// Half of the widest range between two edges: the mean of midpoints is at most this far from that of the values themselves.
    pub fn widest_half(&self) -> f64 {
        self.edges.windows(2).map(|pair| (pair[1] - pair[0]) / 2.0).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_edges_say_what_is_wrong() {
        for (edges, message) in [
            (vec![], "0 edges do not bound a range"),
            (vec![3.0], "1 edges do not bound a range"),
            (vec![0.0, 5.0, 5.0], "edge 3 is 5, which is not above 5"),
            (vec![1.0, 0.0], "edge 2 is 0, which is not above 1"),
            (vec![0.0, f64::INFINITY], "edge 2 is not a number"),
            (vec![f64::NAN, 1.0], "edge 1 is not a number"),
        ] {
            assert_eq!(Bins::new(edges).unwrap_err().to_string(), message);
        }
        let many = (0..MOST_OPTIONS).map(f64::from).collect();
        assert!(Bins::new(many).unwrap_err().is_parameter());
    }

    #[test]
    fn every_value_has_exactly_the_option_that_names_it() {
        let bins = Bins::new(vec![-2.5, 0.0, 0.1, 60.0]).unwrap();
        for (value, name) in [
            (Some(f64::NEG_INFINITY), "under -2.5"),
            (Some(-2.500_001), "under -2.5"),
            (Some(-2.5), "-2.5 to 0"),
            (Some(-0.0), "0 to 0.1"),
            (Some(0.1), "0.1 to 60"),
            (Some(60.0), "60 or more"),
            (Some(f64::INFINITY), "60 or more"),
            (Some(f64::NAN), "no value"),
            (None, "no value"),
        ] {
            assert_eq!(bins.names().name(bins.index(value)), name, "{value:?}");
        }
        assert_eq!(bins.options(), bins.names().len());
        assert_eq!(bins.ordered(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn ends_have_values_only_if_they_are_given() {
        let bins = Bins::new(vec![0.0, 10.0, 30.0]).unwrap();
        assert_eq!(bins.midpoints(), [None, Some(5.0), Some(20.0), None, None]);
        assert_eq!(bins.midpoints_with_ends(0.0, 50.0).unwrap(), [Some(0.0), Some(5.0), Some(20.0), Some(50.0), None]);
        assert_eq!(bins.widest_half(), 10.0);
        for (under, over) in [(1.0, 50.0), (0.0, 29.0), (f64::NAN, 50.0), (0.0, f64::INFINITY)] {
            assert!(bins.midpoints_with_ends(under, over).unwrap_err().is_request());
        }
    }
}
