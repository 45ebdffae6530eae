//! The charts that pages show are what their commands draw.

use std::fs;
use std::path::Path;

use super::root;

/// What a command of a page draws, and where it is shown from.
const CHARTS: [(&str, &str); 2] = [("plan.svg", "choosing-release.svg"), ("answers.svg", "choosing-answers.svg")];

/// The charts in a folder that are not what the documentation shows.
pub(super) fn changed(folder: &Path) -> Vec<String> {
    let is_changed = |drawn: &str, shown: &str| {
        let drawn = fs::read_to_string(folder.join(drawn)).ok()?;
        let shown = fs::read_to_string(root().join("docs/figures").join(shown)).unwrap();
        Some(!is_same_picture(&drawn, &shown))
    };
    let changed = CHARTS.iter().filter(|(drawn, shown)| is_changed(drawn, shown).unwrap_or(false));
    changed.map(|(drawn, shown)| format!("docs/figures/{shown} is not the {drawn} that is drawn")).collect()
}

/// The same words, and every number within a pixel: the last digits of a logarithm differ between machines.
fn is_same_picture(drawn: &str, shown: &str) -> bool {
    let words = |svg: &str| svg.split(|c: char| c.is_ascii_digit() || c == '.').collect::<String>();
    let numbers = |svg: &str| -> Vec<f64> {
        svg.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter_map(|number| number.parse().ok()).collect()
    };
    let (places, expected) = (numbers(drawn), numbers(shown));
    words(drawn) == words(shown)
        && places.len() == expected.len()
        && places.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1.0)
}

#[test]
fn a_changed_picture_is_noticed() {
    let picture = "<svg><line x1=\"3\" y1=\"4.25\"/></svg>";
    assert!(is_same_picture(picture, &picture.replace("4.25", "4.75")));
    assert!(!is_same_picture(picture, &picture.replace("4.25", "6")));
    assert!(!is_same_picture(picture, &picture.replace("line", "rect")));
}
