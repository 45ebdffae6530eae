//! The page about attacks: every row names tests, and there are such tests.

use std::path::Path;

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
