//! Links between documents lead somewhere.

use std::fs;

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

/// Whoever reads the index finds every page.
#[test]
fn the_index_names_every_page() {
    let pages = pages();
    let index = pages.iter().find(|page| page.name == "docs/README.md").unwrap();
    for page in pages.iter().filter_map(|page| page.name.strip_prefix("docs/")).filter(|name| *name != "README.md") {
        assert!(index.text.contains(&format!("]({page})")), "{page}");
    }
}
