//! Links between documents lead somewhere, files that they name exist, charts are what their commands draw, and the tests that
//! SECURITY.md names exist.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Page, pages, root};

/// The text without fenced blocks and code, in which brackets are no links.
fn prose(text: &str) -> String {
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").split('`').step_by(2).collect()
}

/// Where the links and pictures of a page lead.
fn targets(page: &Page) -> Vec<String> {
    let prose = prose(&page.text);
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let anchor = |title: &str| -> String {
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// What is wrong with a link, if anything.
fn dead(page: &Page, target: &str) -> Option<String> {
    if target.starts_with("http://") || target.starts_with("https://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let place = root().join(&page.name);
    let place = if path.is_empty() { place } else { place.parent().unwrap().join(path) };
    if !place.exists() {
        return Some(format!("{}: {target} is not there", page.name));
    }
    let known = anchor.is_empty()
        || anchors(&fs::read_to_string(place).unwrap_or_default()).iter().any(|known| known == anchor);
    (!known).then(|| format!("{}: {target} has no such heading", page.name))
}

#[test]
fn no_link_is_dead() {
    let pages = pages();
    let links: Vec<(&Page, String)> =
        pages.iter().flat_map(|page| targets(page).into_iter().map(move |target| (page, target))).collect();
    assert!(links.len() > 100, "only {} links", links.len());
    let dead: Vec<String> = links.iter().filter_map(|(page, target)| dead(page, target)).collect();
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

#[test]
fn a_dead_link_is_found() {
    let page = Page { name: "docs/README.md".to_owned(), text: String::new() };
    assert!(dead(&page, "tutorial.md").is_none() && dead(&page, "tutorial.md#the-desk").is_none());
    assert!(dead(&page, "tutorial.md#the-disk").is_some() && dead(&page, "../tutorial.md").is_some());
    let page = Page { name: page.name, text: "[a](b.md) `[c](d.md)`\n```\n[e](f.md)\n```\n![g](h.svg)".to_owned() };
    assert_eq!(targets(&page), ["b.md", "h.svg"]);
}

/// The files and folders that a page names in code: with a slash, or with the ending of a source file.
fn named_files(page: &Page) -> Vec<&str> {
    let code = page.text.split("\n```").step_by(2).flat_map(|text| text.split('`').skip(1).step_by(2));
    let is_path = |code: &&str| {
        let plain = code.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c)) && !code.starts_with('/');
        plain && (code.contains('/') || [".rs", ".toml", ".ts", ".py"].iter().any(|ending| code.ends_with(ending)))
    };
    code.filter(is_path).filter(|path| !path.starts_with("target/")).collect()
}

/// Where a page's paths may begin: at the root, in `crates`, in the sources of a crate, and in any folder that the page names.
fn folders(page: &Page) -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let named = named_files(page).into_iter().filter(|path| path.ends_with('/')).map(|path| root().join(path));
    crates.chain(named).chain([root(), root().join("crates")]).collect()
}

#[test]
fn every_file_that_the_documents_for_developers_name_exists() {
    for page in pages().iter().filter(|page| ["ARCHITECTURE.md", "CONTRIBUTING.md", "DESIGN.md"].contains(&&*page.name))
    {
        let (folders, files) = (folders(page), named_files(page));
        let missing = files.iter().filter(|file| !folders.iter().any(|folder| folder.join(file).exists()));
        let missing: Vec<_> = missing.collect();
        assert!(missing.is_empty(), "{} names files that do not exist: {missing:?}", page.name);
    }
}

/// The modules of a folder, with a slash if they are folders themselves.
fn modules(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: PathBuf| {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() { Some(stem + "/") } else { (path.extension()? == "rs").then_some(stem) }
    };
    let mut names: Vec<String> = entries.filter_map(name).filter(|name| !["lib", "mod"].contains(&&**name)).collect();
    names.sort();
    names
}

#[test]
fn the_architecture_names_every_module_of_the_folders_it_describes() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let tables: Vec<&str> = text.split("\n| module of `").skip(1).collect();
    assert_eq!(tables.len(), 5, "the library, taking part, owners, aggregators, desk");
    for table in tables {
        let folder = table.split('`').next().unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let first_columns = rows.filter_map(|line| line.split('|').nth(1));
        let mut named: Vec<&str> = first_columns.flat_map(|column| column.split('`').skip(1).step_by(2)).collect();
        named.sort_unstable();
        assert_eq!(named, modules(folder), "{folder}");
    }
}

#[test]
fn files_are_told_from_other_code() {
    let text = "`a/b.rs`, `c/`, `d.rs`, `cargo fmt`, `x::y`, `/metrics`, `target/e`\n```text\n`f/g`\n```\n`h/i` `j`";
    let page = Page { name: "ARCHITECTURE.md".to_owned(), text: text.to_owned() };
    assert_eq!(named_files(&page), ["a/b.rs", "c/", "d.rs", "h/i"]);
}

/// Whoever reads the index finds every page.
#[test]
fn the_index_names_every_page() {
    let pages = pages();
    let index = pages.iter().find(|page| page.name == "docs/README.md").unwrap();
    for page in pages.iter().filter_map(|page| page.name.strip_prefix("docs/")).filter(|name| *name != "README.md") {
        assert!(index.text.contains(&format!("]({page})")), "{page}");
    }
}

/// What a command of a page draws, and where it is shown from.
const CHARTS: [(&str, &str); 2] = [("plan.svg", "choosing-release.svg"), ("answers.svg", "choosing-answers.svg")];

/// The charts in a folder that are not what the documentation shows.
pub(super) fn changed_charts(folder: &Path) -> Vec<String> {
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

/// The text of all Rust files of a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_row_of_the_attack_table_names_tests_that_exist() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(crates.parent().unwrap().join("SECURITY.md")).unwrap();
    let mut text = String::new();
    sources(crates, &mut text);
    let rows: Vec<&str> = page
        .lines()
        .skip_while(|line| !line.starts_with("| attack | what stops it | tests |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [_, _, tests] = cells[..] else { panic!("not three cells: {row}") };
        let names: Vec<&str> = tests.trim().split(", ").map(|name| name.trim_matches('`')).collect();
        for name in names {
            assert!(!name.is_empty() && text.contains(&format!("fn {name}()")), "`{name}` in the row: {row}");
        }
    }
}
