//! The charts of the guide "Choosing parameters" are what its commands draw.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Folder;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_charts_of_the_guide_are_what_its_commands_draw() {
    let folder = Folder::new("guide");
    let guide = fs::read_to_string(docs().join("choosing-parameters.md")).unwrap();
    for (drawn, committed) in [("plan.svg", "choosing-release.svg"), ("answers.svg", "choosing-answers.svg")] {
        let ending = format!(" --chart {drawn}");
        let command = guide.lines().find(|line| line.starts_with("$ uptack plan") && line.ends_with(&ending)).unwrap();
        let arguments = command.split_whitespace().skip(2);
        let output =
            Command::new(env!("CARGO_BIN_EXE_uptack")).args(arguments).current_dir(&folder.0).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let drawn = fs::read_to_string(folder.0.join(drawn)).unwrap();
        let committed = fs::read_to_string(docs().join("figures").join(committed)).unwrap();
        assert_same_picture(&drawn, &committed);
    }
}

/// The same words, and every number within a pixel: the last digits of a logarithm differ between machines.
fn assert_same_picture(drawn: &str, committed: &str) {
    let words = |svg: &str| svg.split(|c: char| c.is_ascii_digit() || c == '.').collect::<String>();
    assert_eq!(words(drawn), words(committed), "the charts of the guide are not what the tool draws");
    let numbers = |svg: &str| -> Vec<f64> {
        svg.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter_map(|number| number.parse().ok()).collect()
    };
    let (drawn, committed) = (numbers(drawn), numbers(committed));
    assert_eq!(drawn.len(), committed.len());
    assert!(drawn.iter().zip(&committed).all(|(a, b)| (a - b).abs() <= 1.0));
}
