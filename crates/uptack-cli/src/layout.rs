//! Text that fits the terminal: lines break between words, never inside a word or a number.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::iter;

/// How many columns there are for output; unlimited if stdout is not a terminal.
///
/// As for help, the variable `COLUMNS` is used if there is no terminal to ask.
pub(crate) fn width() -> usize {
    let columns = terminal_columns().or_else(stated_columns);
    columns.map_or(usize::MAX, |columns| columns.max(NARROWEST))
}

/// Narrower terminals get lines that are too long: a query's name alone has 43 columns.
const NARROWEST: usize = 40;

fn terminal_columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

fn stated_columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// The parts, with the separator between them.
pub(crate) fn joined(parts: impl IntoIterator<Item: Display>, separator: &str) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(separator)
}

/// Breaks the lines that are wider than the terminal.
pub(crate) fn fitted_to_terminal(text: &str) -> String {
    fitted(text, width())
}

/// Breaks the lines that are too long; each part of a line is indented as the line was.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    joined(text.split('\n').flat_map(|line| fitted_line(line, width)), "\n")
}

fn fitted_line(line: &str, width: usize) -> impl Iterator<Item = String> {
    let unindented = line.trim_start_matches(' ');
    let indent = line.len() - unindented.len();
    let parts = wrap(unindented, width.saturating_sub(indent)).into_iter();
    parts.map(move |part| format!("{:indent$}{part}", "").trim_end().to_owned())
}

/// The text in lines of at most `width` columns, as far as its words allow; at least one line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for piece in pieces(text) {
        let line = lines.last_mut().expect("there is always one");
        if line.is_empty() || fits(line, piece, width) {
            line.push_str(piece);
        } else {
            lines.push(piece.to_owned());
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

fn fits(line: &str, piece: &str, width: usize) -> bool {
    columns(line) + columns(piece.trim_end()) <= width
}

/// The widest part of a text that must stay in one piece.
pub(crate) fn longest_piece(text: &str) -> usize {
    pieces(text).map(|piece| columns(piece.trim_end())).max().unwrap_or(0)
}

/// The width of a text: every character that we print takes one column.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The parts between which a line may break: after a blank, and after a comma of a mechanism.
fn pieces(mut remaining: &str) -> impl Iterator<Item = &str> {
    iter::from_fn(move || {
        if remaining.is_empty() {
            return None;
        }
        let (piece, after) = remaining.split_at(first_break(remaining));
        remaining = after;
        Some(piece)
    })
}

/// Where the first piece of a text ends.
fn first_break(text: &str) -> usize {
    let mut ends = text.match_indices([' ', ',']).map(|(index, _)| index + 1);
    ends.find(|&end| may_break(text, end)).unwrap_or(text.len())
}

/// Whether a line may end at `end`: not inside a number, nor between it and its unit or its sign.
fn may_break(text: &str, end: usize) -> bool {
    let (before, after) = (text[..end].trim_end(), &text[end..]);
    if after.is_empty() || after.starts_with([' ', ',']) {
        return false;
    }
    let last = before.rsplit(' ').next().unwrap_or_default();
    let next = after.split([' ', ',', '.', ';', ')']).next().unwrap_or_default();
    let is_bound = matches!(last, "=" | "≤" | "≥" | "±") || matches!(next, "%" | "=" | "≤" | "≥" | "s");
    !is_bound && !is_grouped_number(last, next)
}

/// Whether two words are the groups of one number, as in `50 000`.
fn is_grouped_number(last: &str, next: &str) -> bool {
    let is_digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    next.len() == 3 && is_digits(last) && is_digits(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_keep_their_indent() {
        assert_eq!(fitted("a short line", 80), "a short line");
        assert_eq!(fitted("  one two three\nfour", 10), "  one two\n  three\nfour");
        assert_eq!(fitted("supercalifragilistic", 10), "supercalifragilistic");
        assert_eq!(fitted("", 10), "");
        assert_eq!(fitted("a\n\nb\n", 10), "a\n\nb\n");
    }

    #[test]
    fn a_number_keeps_its_unit_and_a_mechanism_breaks_at_its_commas() {
        assert_eq!(wrap("an ε = 0.5 at 95 % is", 10), ["an ε = 0.5", "at 95 % is"]);
        assert_eq!(wrap("blended(b1=0,b2=0.25,b3=0.25)", 14), ["blended(b1=0,", "b2=0.25,", "b3=0.25)"]);
        assert_eq!(wrap("give or take ± 6.3", 14), ["give or take", "± 6.3"]);
        assert_eq!(longest_piece(&format!("of {} owners", uptack::display::grouped(1_050_000))), 9);
    }

    #[test]
    fn no_text_loses_anything() {
        let text = "With fewer honest owners, ε of the release is 1.0871 with 90 %, 1.2768 with 75 %.";
        for width in 1..100 {
            let lines = wrap(text, width);
            assert_eq!(
                lines.join(" ").split_whitespace().collect::<Vec<_>>(),
                text.split_whitespace().collect::<Vec<_>>()
            );
            let longest = longest_piece(text).max(width);
            assert!(lines.iter().all(|line| columns(line) <= longest), "{width}: {lines:?}");
        }
    }
}
