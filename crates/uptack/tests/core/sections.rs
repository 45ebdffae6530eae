//! Each file of the accountant names the section that proves it, and the section exists.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Rust files below a folder but those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module comment of a file as one line.
fn header(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The names of a document's sections: its headings without numbers, and what starts a paragraph in bold.
fn sections(document: &str) -> Vec<String> {
    let heading = |line: &str| {
        let title = line.strip_prefix('#')?.trim_start_matches('#').trim();
        Some(title.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ' ').to_owned())
    };
    let run_in = |line: &str| {
        let name = line.strip_prefix("**")?.split("**").next()?;
        Some(name.trim_end_matches('.').to_owned())
    };
    document.lines().filter_map(|line| heading(line).or_else(|| run_in(line))).collect()
}

/// What stands in quotation marks behind each mention of a document, up to the end of the sentence.
fn cited(header: &str, document: &str) -> Vec<String> {
    let mut names = Vec::new();
    for mention in header.split(document).skip(1) {
        let sentence = mention.split([')', '.']).next().unwrap_or("");
        names.extend(sentence.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    names
}

#[test]
fn every_file_of_the_accountant_names_a_section_that_exists() {
    let mut files = Vec::new();
    for folder in ["privacy", "certified"] {
        sources(&root().join("crates/uptack/src").join(folder), &mut files);
    }
    assert!(files.len() > 40, "only {} files", files.len());
    let documents = ["accounting.md", "composition.md", "contributions.md"].map(|name| {
        let text = fs::read_to_string(root().join("docs").join(name)).unwrap();
        (name, sections(&text))
    });
    for file in files {
        let header = header(&file);
        assert!(documents.iter().any(|(name, _)| header.contains(name)), "{} names no section", file.display());
        for (name, sections) in &documents {
            for section in cited(&header, name) {
                assert!(sections.contains(&section), "{}: {name} has no section \"{section}\"", file.display());
            }
        }
    }
}

/// The architecture's walks of a truth, a query and a claim, file by file.
#[test]
fn the_files_of_the_three_walks_exist() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let tables: Vec<&str> = text.split("| file of `").skip(1).collect();
    assert_eq!(tables.len(), 3, "a truth, a query and a claim");
    for table in tables {
        let folder = table.split('`').next().unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let first_columns = rows.filter_map(|line| line.split('|').nth(1));
        let files: Vec<&str> = first_columns.flat_map(|column| column.split('`').skip(1).step_by(2)).collect();
        assert!(files.len() > 15, "{files:?}");
        for file in files {
            assert!(root().join(folder).join(file).exists(), "{folder}{file} does not exist");
        }
    }
}

#[test]
fn sections_are_told_from_other_lines() {
    let found =
        sections("# One\n## 2. Two: a b\n### 2.1 Third\n**Fourth.** And **more**.\ntext **bold**\n**Fifth** (1)\n");
    assert_eq!(found, ["One", "Two: a b", "Third", "Fourth", "Fifth"]);
    assert_eq!(cited("see (`docs/x.md`, \"A\" and \"B\") and \"C\"; `docs/x.md` has \"D\".", "x.md"), ["A", "B", "D"]);
}
