//! The fenced blocks of a page.

/// A fenced block.
#[derive(Debug)]
pub(super) struct Block {
    /// The line of its first fence.
    pub(super) line: usize,
    /// What stands behind the fence.
    pub(super) language: String,
    pub(super) body: String,
    pub(super) note: Option<Note>,
}

/// What the comment before a block says of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    NotRun { reason: String },
    CheckedBy { file: String, test: String },
}

/// A command, and what is shown of its output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) text: String,
    pub(super) shown: Vec<String>,
}

pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut before = "";
    while let Some((index, line)) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let indent = line.len() - line.trim_start().len();
            let body = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.trim_start().starts_with("```"));
            let body = body.map(|line| format!("{}\n", line.get(indent..).unwrap_or(""))).collect();
            found.push(Block { line: index + 1, language: language.to_owned(), body, note: note(before) });
            before = "";
        } else if !line.trim().is_empty() {
            before = line;
        }
    }
    found
}

fn note(line: &str) -> Option<Note> {
    let comment = line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    if let Some(reason) = comment.strip_prefix("not run: ") {
        return Some(Note::NotRun { reason: reason.to_owned() });
    }
    let (file, test) = comment.strip_prefix("checked by ")?.split_once(": ")?;
    Some(Note::CheckedBy { file: file.to_owned(), test: test.to_owned() })
}

impl Block {
    /// Whether its commands are run.
    pub(super) fn is_run(&self) -> bool {
        self.note.is_none() && ["console", "sh"].contains(&self.language.as_str())
    }

    /// What it has to run, in order: a script is one command.
    pub(super) fn commands(&self) -> Vec<Command> {
        if self.language == "sh" {
            return vec![Command { text: self.body.clone(), shown: Vec::new() }];
        }
        let mut commands: Vec<Command> = Vec::new();
        let mut continues = false;
        for line in self.body.lines() {
            if let Some(text) = line.strip_prefix("$ ") {
                commands.push(Command { text: text.to_owned(), shown: Vec::new() });
                continues = line.ends_with('\\');
                continue;
            }
            let last = commands.last_mut().expect("a block begins with a command");
            // A shell asks for more with `> `.
            let asked = line.strip_prefix("> ").filter(|_| last.shown.is_empty());
            if continues || asked.is_some() {
                last.text = format!("{}\n{}", last.text, asked.unwrap_or(line));
                continues = line.ends_with('\\');
            } else {
                last.shown.push(line.to_owned());
            }
        }
        commands
    }
}

/// Whether a command printed what is shown of it; blank lines do not count.
pub(super) fn shows(shown: &[String], printed: &str) -> bool {
    let filled = |line: &&str| !line.trim().is_empty();
    let shown: Vec<&str> = shown.iter().map(String::as_str).filter(filled).collect();
    match_lines(&shown, &printed.lines().filter(filled).collect::<Vec<_>>())
}

fn match_lines(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| match_lines(rest, &printed[skipped..]))
        }
        Some((first, rest)) => match printed.split_first() {
            Some((line, others)) => fits(first, line) && match_lines(rest, others),
            None => false,
        },
    }
}

/// Whether a line is the one that is shown, where `…` is any text.
fn fits(shown: &str, line: &str) -> bool {
    let (shown, mut rest) = (shown.trim_end(), line.trim_end());
    let Some((start, others)) = shown.split_once('…') else { return shown == rest };
    let Some(after) = rest.strip_prefix(start) else { return false };
    rest = after;
    let mut parts: Vec<&str> = others.split('…').collect();
    let last = parts.pop().expect("a split has a part");
    for part in parts {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn blocks_are_read_with_their_notes() {
    let page = "a\n```console\n$ one \\\n  two\nsaid\n$ three\n> four\n```\n\n<!-- not run: needs a printer -->\n\n  ```sh\n  lp\n  ```\n\
                <!-- checked by a.rs: test -->\n```toml\n```\nb\n```text\n```\n";
    let found = blocks(page);
    let notes: Vec<_> = found.iter().map(|block| (block.line, block.language.as_str(), block.is_run())).collect();
    assert_eq!(notes, [(2, "console", true), (12, "sh", false), (16, "toml", false), (19, "text", false)]);
    let command = |text: &str, shown: &[&str]| Command {
        text: text.to_owned(),
        shown: shown.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(found[0].commands(), [command("one \\\n  two", &["said"]), command("three\nfour", &[])]);
    assert_eq!(found[1].commands(), [command("lp\n", &[])]);
    assert_eq!(found[2].note, Some(Note::CheckedBy { file: "a.rs".to_owned(), test: "test".to_owned() }));
}

#[test]
fn output_is_compared_line_by_line() {
    let shows = |shown: &str, printed: &str| shows(&shown.lines().map(str::to_owned).collect::<Vec<_>>(), printed);
    assert!(shows("a\nb", "a\n\nb\n"));
    assert!(!shows("a\nb", "a\nb\nc"));
    assert!(!shows("a\nb", "a"));
    assert!(shows("a\n…\nc", "a\nc"));
    assert!(shows("a\n…\nc\n…", "a\nb\nb\nc\nd"));
    assert!(!shows("…\nc", "a\nb"));
    assert!(shows("at …: 3 of … s", "at noon: 3 of 7 s"));
    assert!(!shows("at …: 3 of … s", "at noon: 4 of 7 s"));
}
