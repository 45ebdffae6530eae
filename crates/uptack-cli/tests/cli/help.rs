//! Help, manual pages and completions come from one source, and everything fits the terminal.

use std::collections::BTreeSet;
use std::process::Command;

use crate::{Folder, run};

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `uptack --help` lists.
pub(crate) fn commands() -> Vec<String> {
    let help = text(&["--help"]);
    let listed = help.split_once("Commands:").unwrap().1.lines().skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let commands: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(commands.len() > 25, "{commands:?}");
    commands
}

#[test]
fn every_command_has_examples() {
    for command in commands() {
        let help = text(&[&command, "--help"]);
        assert!(examples(&help).iter().any(|line| line.contains(&format!("uptack {command}"))), "{command}");
    }
    assert!(text(&["--help"]).contains("normal-form(f, r)"));
    assert!(text(&["--version"]).starts_with("uptack "));
}

#[test]
fn examples_in_the_help_of_channel_are_accepted() {
    let help = text(&["channel", "--help"]);
    let quoted = help.lines().filter_map(|line| line.trim().strip_prefix("uptack channel '")?.split_once('\''));
    let mechanisms: Vec<&str> = quoted.map(|(mechanism, _)| mechanism).collect();
    assert!(mechanisms.len() >= 3);
    for mechanism in mechanisms {
        text(&["channel", mechanism]);
    }
}

#[test]
fn manual_pages_and_completions_name_every_command() {
    // A hyphen is escaped on a manual page.
    let page = text(&["man"]).replace("\\-", "-");
    let script = text(&["completions", "bash"]);
    for command in commands() {
        assert!(page.contains(&format!("uptack-{command}(1)")), "{command}");
        assert!(script.contains(&format!("uptack,{command})")), "{command}");
        assert!(text(&["man", &command]).contains(".TH"), "{command}");
    }
}

/// What a command prints where there are so many columns.
fn text_at(columns: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_uptack")).args(arguments).env("COLUMNS", columns).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The words of a text; a line may be broken behind a comma, too.
fn words(text: &str) -> BTreeSet<&str> {
    text.split([' ', '\n', ',']).filter(|word| !word.is_empty()).collect()
}

fn assert_fits(arguments: &[&str]) {
    let wide = text_at("1000", arguments);
    for columns in [80, 120] {
        let text = text_at(&columns.to_string(), arguments);
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > columns).collect();
        assert!(long.is_empty(), "{arguments:?} at {columns}: {long:#?}");
        let (broken, whole) = (words(&text), words(&wide));
        let fragments: Vec<&&str> = broken.difference(&whole).collect();
        assert!(fragments.is_empty(), "{arguments:?} at {columns}: {fragments:?}\n{text}");
        let lost: Vec<&&str> = whole.difference(&broken).collect();
        assert!(lost.is_empty(), "{arguments:?} at {columns} lost {lost:?}\n{text}");
        // A percent sign at the beginning of a line belongs to the number before it.
        assert!(text.lines().all(|line| !line.trim_start().starts_with('%')), "{text}");
    }
}

#[test]
fn tables_and_texts_fit() {
    let folder = Folder::new("terminal");
    let tally = folder.file("tally.json", r#"{"answers":[{"1":4300,"2":4800,"3":3900},{"1":4000,"2":4000,"3":5000}]}"#);
    let card = folder.0.join("card.toml").to_str().unwrap().to_owned();
    let blended = "blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=1e-4,rn=1e-4)";
    let plan = ["plan", "--owners", "300", "--yes", "50", "--epsilon", "1", "--delta", "1e-3"];
    assert_fits(&[&plan[..], &["--answer-epsilon", "1.0986", "--out", &card]].concat());
    assert_fits(&[&plan[..], &["--form", "any"]].concat());
    assert_fits(&["channel", blended]);
    assert_fits(&["privacy", "normal-form(f=0.5,r=0.00205)", "--owners", "2000", "--repeat", "3"]);
    assert_fits(&["verify", &card]);
    assert_fits(&["estimate", "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)", &tally]);
    assert_fits(&["simulate", blended, "--owners", "500", "--yes", "50", "--trials", "20", "--seed", "1"]);
    assert_fits(&["algebra", blended, "--owners", "50000", "--yes", "500"]);
    assert_fits(&["audit", "randomized-response(t=0.8)", "--samples", "50000", "--seed", "1"]);
}

/// The lines from `Examples:` on, up to prose.
fn examples(help: &str) -> Vec<&str> {
    let behind = help.lines().skip_while(|line| !line.starts_with("Example"));
    behind.skip(1).take_while(|line| line.starts_with("  ")).collect()
}

#[test]
fn examples_can_be_pasted_and_help_fits() {
    for command in commands() {
        let wide = text_at("1000", &[&command, "--help"]);
        let narrow = text_at("80", &[&command, "--help"]);
        assert_eq!(examples(&narrow), examples(&wide), "{command}");
        for text in [&narrow, &text_at("80", &[&command, "-h"])] {
            // The parser does not break the line that shows a command's use.
            let mut lines = text.lines().filter(|line| !line.starts_with("Usage: "));
            assert!(lines.all(|line| line.chars().count() <= 80), "{command}: {text}");
        }
    }
    assert!(text_at("80", &["--help"]).lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn help_opens_with_what_uptack_is_for() {
    for flag in ["-h", "--help"] {
        assert!(text_at("80", &[flag]).starts_with("Counts a crowd without learning anyone's answer"), "{flag}");
    }
}
