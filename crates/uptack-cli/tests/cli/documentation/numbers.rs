//! The numbers of the documentation's text and tables: computed anew, or counted among those that are not.
//!
//! A passage (a paragraph, a list or a table) whose numbers a test recomputes has a comment before it, as a block does:
//! `<!-- checked by FILE: TEST -->`. One that a program of `checks` prints, which is run by hand, has `<!-- printed by PROGRAM -->`.
//! All others are counted here, by page.

use uptack::Mechanism;
use uptack::display::{self, Rounding};
use uptack::estimate::Estimator;
use uptack::plan::{Asked, Over, Prior, Request, least_error, least_sd};
use uptack::privacy::{Epsilon, linked_epsilon};

use super::comparison::{blanket, clones, request, shuffled};
use super::{Page, pages, root};

/// How many numbers of a page nothing recomputes: decimals, percentages, durations and sizes outside of code. Whoever adds one marks it
/// as checked or says so here; whoever finds a way to check one makes this list shorter.
///
/// Those of `docs/evaluation.md` are from the one command that the page names, on traffic that is not part of the repository.
const UNCHECKED: [(&str, usize); 17] = [
    ("README.md", 6),
    ("docs/DATA_MODEL.md", 1),
    ("docs/accounting.md", 46),
    ("docs/algebra.md", 1),
    ("docs/auditing.md", 26),
    ("docs/choosing-parameters.md", 9),
    ("docs/composition.md", 12),
    ("docs/evaluation.md", 306),
    ("docs/faq.md", 6),
    ("docs/glossary.md", 1),
    ("docs/intervals.md", 18),
    ("docs/operations.md", 8),
    ("docs/owner.md", 14),
    ("docs/predicates.md", 2),
    ("docs/python.md", 2),
    ("docs/scale-out.md", 9),
    ("docs/tutorial.md", 1),
];

/// Words that make a whole number a measurement.
const UNITS: [&str; 10] = ["%", "seconds", "milliseconds", "ms", "minutes", "hours", "bytes", "KiB", "MiB", "GiB"];

#[test]
fn every_number_is_recomputed_or_counted_as_unchecked() {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut complaints = Vec::new();
    for page in pages().iter().filter(|page| is_covered(&page.name)) {
        let passages = passages(&page.text);
        complaints.extend(passages.iter().filter_map(|passage| passage.missing_check(page)));
        let unchecked = passages.iter().filter(|passage| passage.note.is_none()).map(|passage| count(&passage.text));
        let unchecked: usize = unchecked.sum();
        if unchecked > 0 {
            found.push((page.name.clone(), unchecked));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let found: Vec<(&str, usize)> = found.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(found, UNCHECKED, "the numbers that nothing recomputes are others than the test knows of");
}

/// What is read by people who decide whether to use this. Speeds are measured by `bench`, and say so.
fn is_covered(name: &str) -> bool {
    ["README.md", "COMPARE.md"].contains(&name) || name.starts_with("docs/")
}

/// Text between blank lines, outside of fenced blocks.
struct Passage {
    text: String,
    note: Option<Check>,
}

/// What recomputes a passage's numbers.
enum Check {
    Test { file: String, test: String },
    Program(String),
}

impl Passage {
    /// What is wrong with the passage's note, if anything.
    fn missing_check(&self, page: &Page) -> Option<String> {
        let (file, needle) = match self.note.as_ref()? {
            Check::Test { file, test } => (file.clone(), format!("fn {test}(")),
            Check::Program(name) => (format!("checks/programs/src/bin/{name}"), "fn main(".to_owned()),
        };
        let named = [file.clone(), format!("{file}.rs"), format!("{file}/main.rs")];
        let sources = named.iter().map(|file| std::fs::read_to_string(root().join(file)).unwrap_or_default());
        let source: String = sources.collect();
        (!source.contains(&needle)).then(|| format!("{}: {file} has no `{needle}`", page.name))
    }
}

fn passages(page: &str) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let (mut fenced, mut text, mut note) = (false, String::new(), None);
    for line in page.lines().chain([""]) {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if let Some(check) = check(line) {
            note = Some(check);
        } else if fenced || is_fence {
            // A note before a block is the block's.
            note = None;
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        } else if !text.is_empty() {
            found.push(Passage { text: std::mem::take(&mut text), note: note.take() });
        }
    }
    found
}

fn check(line: &str) -> Option<Check> {
    let comment = line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    if let Some(program) = comment.strip_prefix("printed by ") {
        return Some(Check::Program(program.to_owned()));
    }
    let (file, test) = comment.strip_prefix("checked by ")?.split_once(": ")?;
    Some(Check::Test { file: file.to_owned(), test: test.to_owned() })
}

/// The decimals, percentages, durations and sizes of a text, without code and addresses.
fn count(text: &str) -> usize {
    let prose: String = text.split('`').step_by(2).collect();
    let words: Vec<&str> = prose.split(|c: char| c.is_whitespace() || "()[]|,;:→–".contains(c)).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let is_digit = |c: char| c.is_ascii_digit();
    let is_decimal = |word: &str| {
        let word = word.trim_end_matches('.').trim_matches(|c: char| !is_digit(c));
        word.split_once('.').is_some_and(|(whole, part)| {
            !whole.is_empty() && !part.is_empty() && (whole.chars().chain(part.chars())).all(is_digit)
        })
    };
    let is_measured = |pair: &[&str]| {
        pair[0].ends_with(is_digit) && UNITS.contains(&pair[1].trim_matches(|c: char| c != '%' && !c.is_alphabetic()))
    };
    let decimals = words.iter().filter(|word| is_decimal(word)).count();
    let whole = words.windows(2).filter(|pair| is_measured(pair) && !is_decimal(pair[0])).count();
    decimals + whole
}

#[test]
fn numbers_are_told_from_words() {
    assert_eq!(count("The error is 4.52, or 95 % of `8.5`, in 3 seconds."), 3);
    assert_eq!(count("| 1.36 | 12 | none |\n| 7.02 and 9.69 |"), 3);
    assert_eq!(count("version 1.2.3 of 50 000 owners (RFC 9457)"), 0);
    let page = "a 1.5\n\n<!-- checked by a.rs: b -->\n\n| 2.5 |\n\n```text\n3.5\n```\nc 4.5\n# 5.5\n";
    let found = passages(page);
    assert_eq!(found.iter().map(|passage| passage.note.is_some()).collect::<Vec<_>>(), [false, true, false]);
}

/// Fails unless a page has this sentence, however its lines are broken.
fn assert_stated(page: &str, sentence: &str) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(sentence), "{page} does not say: {sentence}");
}

fn noisy(owners: u64, yes: Prior, epsilon: f64, linked: Option<f64>) -> Request {
    let request = Request::one_aggregator(owners, yes, Epsilon::new(epsilon).unwrap()).unwrap();
    Request { linked_epsilon: linked, ..request }
}

/// The error for one of 50 000 owners' questions at ε = 1 for one honest aggregator.
fn at_one_aggregator(linked: Option<f64>) -> f64 {
    least_sd(&noisy(50_000, Prior::at(500), 1.0, linked)).unwrap()
}

fn sd(mechanism: &Mechanism) -> f64 {
    Prior::at(500).predicted_sd(&Estimator::new(&mechanism.channel()).unwrap(), 50_000).unwrap()
}

#[test]
fn comparisons_with_other_tools_are_what_is_computed() {
    let ours = least_error(&request(50_000)).unwrap();
    let linked = linked_epsilon(&ours.channel()).unwrap();
    let linked = display::rounded(linked, 3, Rounding::Up);
    assert_stated("COMPARE.md", &format!("at 50 000 owners, ε = 1 at δ = 10⁻⁸ where the local ε is {linked}"));
    let (by_blanket, by_clones) = (shuffled(50_000, blanket).0, shuffled(50_000, clones).0);
    assert_stated("COMPARE.md", &format!("sd {by_blanket:.2} (blanket)"));
    assert_stated(
        "COMPARE.md",
        &format!("{by_clones:.1} and 20.8 (clones, closed forms of 2023 and 2021) | {:.2} |", sd(&ours)),
    );
    let (alone, with_coins) = (at_one_aggregator(None), at_one_aggregator(Some(12.0)));
    assert_stated(
        "COMPARE.md",
        &format!("{alone:.2} for Prio, {with_coins:.2} with coins that leave a linked ε of 12"),
    );
}

#[test]
fn errors_with_noise_are_what_is_computed() {
    let [none, twelve, usual] = [None, Some(12.0), Some(8.0)].map(at_one_aggregator);
    assert_stated(
        "README.md",
        &format!(
            "finds a standard deviation of {none:.2} without a limit on the linked ε, {twelve:.2} if it may be 12, and \
             {usual:.2} if it may be 8, the default."
        ),
    );
    let errors = [None, Some(14.), Some(12.), Some(11.), Some(10.), Some(9.), Some(8.), Some(7.), Some(6.), Some(5.)];
    let errors = errors.into_iter().chain([Some(4.0), Some(3.0)]).map(at_one_aggregator);
    let cells: Vec<String> = errors.map(|sd| format!("{sd:.*}", if sd < 10.0 { 3 } else { 2 })).collect();
    assert_stated("docs/choosing-parameters.md", &format!("| error (sd) | {} |", cells.join(" | ")));
}

/// An owner who moves changes two counts; several contributions share ε and the linked ε.
#[test]
fn the_cost_of_a_ballot_is_what_is_computed() {
    let yes = Prior { low: 0, high: 60, over: Over::Worst };
    let question = noisy(300, yes, 2.0, Some(8.0));
    let asked = |asked: Asked| least_sd(&Request { asked, ..question.clone() }).unwrap();
    let [single, one, two] =
        [Asked::YesNo, Asked::Counts { counts: 12, most: 1 }, Asked::Counts { counts: 12, most: 2 }].map(asked);
    assert_stated("docs/ballots.md", &format!("error grows from {single:.2} vehicles to {one:.2} here"));
    assert_stated("docs/ballots.md", &format!("with two, the error is {two:.2} vehicles"));
}
