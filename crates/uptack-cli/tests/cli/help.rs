//! Help, manual pages and completions come from one source.

use crate::run;

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

const COMMANDS: [&str; 22] = [
    "channel",
    "plan",
    "privacy",
    "privatize",
    "tally",
    "estimate",
    "simulate",
    "algebra",
    "audit",
    "evaluate",
    "aggregator",
    "task",
    "pair-secret",
    "serve",
    "ask",
    "queries",
    "result",
    "cancel",
    "backup",
    "verify",
    "completions",
    "man",
];

#[test]
fn every_command_has_examples_that_run() {
    for command in COMMANDS {
        let help = text(&[command, "--help"]);
        let examples = help.split_once("Examples:").unwrap_or_else(|| panic!("{command} has no examples")).1;
        assert!(examples.contains(&format!("uptack {command}")), "{command}");
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
    for command in COMMANDS {
        assert!(page.contains(command), "{command}");
        assert!(script.contains(command), "{command}");
        assert!(text(&["man", command]).contains(".TH"), "{command}");
    }
}
