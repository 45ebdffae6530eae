//! The guide "Choosing parameters": its commands run, print what it shows, and draw its charts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Folder;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Each block that starts with `$ uptack`: the command, and the lines that it shows; `…` stands for what is left out.
fn blocks(guide: &str) -> Vec<(String, Vec<String>)> {
    let blocks = guide.split("```console\n$ uptack ").skip(1);
    let parse = |block: &str| {
        let mut lines = block.split("```").next().unwrap().lines().map(str::to_owned);
        (lines.next().unwrap(), lines.filter(|line| line != "…").collect())
    };
    blocks.map(parse).collect()
}

#[test]
fn every_command_of_the_guide_prints_what_is_shown() {
    let folder = Folder::new("guide");
    let guide = fs::read_to_string(docs().join("choosing-parameters.md")).unwrap();
    let blocks = blocks(&guide);
    assert_eq!(blocks.len(), guide.matches("$ uptack").count());
    assert!(blocks.len() >= 7);
    for (command, shown) in &blocks {
        let output = Command::new(env!("CARGO_BIN_EXE_uptack"))
            .args(command.split_whitespace())
            .current_dir(&folder.0)
            .output()
            .unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.success(), !printed.starts_with("error:"), "{command}: {printed}");
        assert!(shown.len() >= 2, "{command} shows nothing");
        // In their order.
        let mut rest = printed.lines();
        for line in shown {
            assert!(rest.any(|printed| printed.trim_end() == line.trim_end()), "{command}: `{line}` in\n{printed}");
        }
    }
    for (drawn, committed) in [("plan.svg", "choosing-release.svg"), ("answers.svg", "choosing-answers.svg")] {
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
