//! The colour and the marker of every method, the same in every figure.

use uptack_chart::Look;

/// The labels of each method; its place is the number of its look.
///
/// Markers repeat after 13 numbers, so no two methods of one figure are 13 places apart. A method in several settings is
/// one method, and no figure shows it twice.
const METHODS: [&[&str]; 26] = [
    &["planned normal form", "normal form, f = ½"],
    &["planned blended", "blended, f = ½", "blended"],
    &["planned spread", "spread, two pairs"],
    &["randomized response", "randomized response, truth 85 %"],
    &["generalized randomized response"],
    &["optimized local hashing"],
    &["optimized unary encoding"],
    &["basic RAPPOR"],
    &["Hadamard response"],
    &["planned, one answer"],
    &["planned, several answers"],
    &["sampling and noise"],
    &["first attempt (paired)"],
    &["sampling"],
    &["planned with noise, linked ε ≤ 9"],
    &["shuffled randomized response"],
    &[],
    &["planned with noise, linked ε ≤ 7"],
    &["sampling and deniability"],
    &["tuned mechanism"],
    &["cancelling the noise"],
    &[],
    &["curator, discrete Gaussian"],
    &["curator, discrete Laplace"],
    &["Prio with noise, no channel"],
    &["planned with noise, linked ε ≤ 12"],
];

/// The number of an empty place, for anything that is not a method.
const UNKNOWN: usize = 16;

/// The look of a method by its label.
pub(super) fn look(label: &str) -> Look {
    let known = METHODS.iter().position(|labels| labels.contains(&label));
    Look::numbered(known.unwrap_or(UNKNOWN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Comparison, Levels, methods};
    use crate::planned::{Crowd, Plans};

    #[test]
    fn no_two_methods_share_a_colour_and_no_two_of_a_figure_a_marker() {
        let crowd = Crowd { owners: 5000, yes: 4 };
        for comparison in Comparison::ALL {
            let methods = methods(comparison, crowd, 50, &Levels::default(), &Plans::default()).unwrap();
            let labels: Vec<&str> = methods.iter().map(|method| method.label.as_str()).collect();
            for (index, label) in labels.iter().enumerate() {
                assert!(METHODS.iter().any(|known| known.contains(label)), "{label} has no look");
                for other in &labels[index + 1..] {
                    let (one, two) = (look(label), look(other));
                    assert!(one.colour() != two.colour() && one.marker != two.marker, "{label} and {other}");
                }
            }
        }
        let mut colours: Vec<&str> = (0..METHODS.len()).map(|number| Look::numbered(number).colour()).collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), METHODS.len());
    }
}
