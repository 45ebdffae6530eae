//! Every block of the documentation is run, checked by a test that it names, or says why it is not.
//!
//! What a block is goes by the word behind its fence:
//!
//! - `console`: lines after `$ ` are commands, the others what they print. A line `…` stands for any lines, `…` within a line for
//!   any text. A command fails if and only if a line `error:` is shown.
//! - `sh`: a script, of which every command has to succeed.
//! - `rust`: an example that rustdoc compiles and runs.
//! - `text`: nothing that anybody could run.
//!
//! The commands of a page run in one shell, in a folder of its own, with `uptack` in the path; ports are exchanged for free ones. A
//! page with `<!-- after: OTHER.md -->` goes on in the shell of another page. A block that is something else has a comment before
//! it: `<!-- checked by FILE: TEST -->` or `<!-- not run: REASON -->`.

mod block;
mod comparison;
mod links;
mod numbers;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use self::block::{Block, Note, blocks};

/// How many blocks of a page are not run. Whoever adds one says so here, too.
const NOT_RUN: [(&str, usize); 7] = [
    ("CONTRIBUTING.md", 2),
    ("bench/README.md", 5),
    ("docs/evaluation.md", 1),
    ("docs/intervals.md", 2),
    ("docs/person.md", 1),
    ("docs/scale-out.md", 6),
    ("docs/tutorial.md", 1),
];
/// The pages whose Rust is compiled and run, and where they are included for that.
const DOCTESTS: [(&str, &str); 2] =
    [("README.md", "crates/uptack/src/lib.rs"), ("docs/owner.md", "crates/uptack-owner/src/lib.rs")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A document of the project, by its path from the root.
pub(super) struct Page {
    pub(super) name: String,
    pub(super) text: String,
}

impl Page {
    /// The page whose shell this one goes on in.
    fn predecessor(&self) -> Option<String> {
        let name = self.text.split_once("<!-- after: ")?.1.split_once(" -->")?.0;
        Some(format!("docs/{name}"))
    }
}

/// All Markdown files at the root, in `docs` and in `bench`.
fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "bench"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                pages.push(Page { name, text: fs::read_to_string(path).unwrap() });
            }
        }
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(pages.len() > 25, "only {} pages", pages.len());
    pages
}

/// What is wrong with a block that is not run, if anything.
fn unaccounted(page: &Page, block: &Block) -> Option<String> {
    let complaint = |what: &str| Some(format!("{}:{}: {what}", page.name, block.line));
    match (&block.note, block.language.as_str()) {
        (Some(Note::CheckedBy { file, test }), _) => {
            let source = fs::read_to_string(root().join(file)).unwrap_or_default();
            let defined = source.contains(&format!("fn {test}(")) || source.contains(&format!("\n{test}() {{"));
            if defined { None } else { complaint(&format!("{file} has no `{test}`")) }
        }
        (Some(Note::NotRun { reason }), _) => {
            if reason.len() > 10 {
                None
            } else {
                complaint("says nothing about why it is not run")
            }
        }
        (None, "console" | "sh") => None,
        (None, "rust" | "rust,no_run") => {
            if DOCTESTS.iter().any(|(name, _)| *name == page.name) {
                None
            } else {
                complaint("is Rust that nothing compiles")
            }
        }
        (None, "text") => {
            let is_command =
                |line: &str| ["$ ", "uptack ", "cargo ", "curl "].iter().any(|start| line.starts_with(start));
            if block.body.lines().any(is_command) { complaint("is text with a command in it") } else { None }
        }
        (None, language) => complaint(&format!("nothing runs or checks a block of `{language}`")),
    }
}

#[test]
fn every_block_is_run_or_checked_or_says_why_not() {
    let pages = pages();
    let mut complaints = Vec::new();
    let mut not_run: Vec<(&str, usize)> = Vec::new();
    for page in &pages {
        let blocks = blocks(&page.text);
        complaints.extend(blocks.iter().filter_map(|block| unaccounted(page, block)));
        let left = blocks.iter().filter(|block| matches!(block.note, Some(Note::NotRun { .. }))).count();
        if left > 0 {
            not_run.push((&page.name, left));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert_eq!(not_run, NOT_RUN, "the blocks that are not run are others than the test knows of");
    for (page, source) in DOCTESTS {
        let source = fs::read_to_string(root().join(source)).unwrap();
        assert!(source.contains(&format!("include_str!(\"../../../{page}\")")), "{page}");
    }
}

#[test]
fn every_command_of_the_documentation_does_what_is_shown() {
    let pages = pages();
    let mut chains: Vec<Vec<&Page>> = Vec::new();
    for page in pages.iter().filter(|page| page.predecessor().is_none()) {
        let followers = pages.iter().filter(|other| other.predecessor().as_deref() == Some(&page.name));
        chains.push(std::iter::once(page).chain(followers).collect());
    }
    assert_eq!(chains.iter().map(Vec::len).sum::<usize>(), pages.len(), "a page goes on from one that is not there");
    let complaints: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = chains.iter().map(|chain| scope.spawn(|| shell::run(chain))).collect();
        running.into_iter().flat_map(|chain| chain.join().unwrap()).collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
