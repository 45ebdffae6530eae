//! Text that fits the terminal: lines break between words, never inside a word or a number.

use std::io::{self, IsTerminal};

/// How many columns there are for output; unlimited where nobody looks at a terminal.
///
/// As for help, the variable `COLUMNS` counts where there is no terminal to ask.
pub(crate) fn width() -> usize {
    let asked = if io::stdout().is_terminal() { terminal_size::terminal_size() } else { None };
    let stated = || std::env::var("COLUMNS").ok()?.parse::<usize>().ok();
    let columns = asked.map(|(width, _)| usize::from(width.0)).or_else(stated);
    columns.map_or(usize::MAX, |columns| columns.max(NARROWEST))
}

/// Narrower terminals get lines that are too long: a query's name alone has 43 columns.
const NARROWEST: usize = 40;

/// Breaks the lines that are too long; what follows the first part of a line is indented as the line is.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let parts = wrap(line.trim_start_matches(' '), width.saturating_sub(indent));
        lines.extend(parts.into_iter().map(|part| format!("{:indent$}{part}", "").trim_end().to_owned()));
    }
    lines.join("\n")
}

/// The text in lines of at most `width` columns, as far as its words allow; at least one line.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for piece in pieces(text) {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && columns(line) + columns(piece.trim_end()) > width {
            lines.push(piece.to_owned());
        } else {
            line.push_str(piece);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The widest part of a text that must stay in one piece.
pub(crate) fn longest_piece(text: &str) -> usize {
    pieces(text).map(|piece| columns(piece.trim_end())).max().unwrap_or(0)
}

/// Every character that is printed has one column.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The parts between which a line may break: behind a blank, and behind a comma of a mechanism.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let breaks = rest.char_indices().filter(|(_, sign)| matches!(sign, ' ' | ','));
        let end = breaks.map(|(index, _)| index + 1).find(|&end| may_break(rest, end));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(piece)
    })
}

/// Whether a line may end at `end`: not within a number, nor between it and its unit or its sign.
fn may_break(text: &str, end: usize) -> bool {
    let (before, after) = (text[..end].trim_end(), &text[end..]);
    let last = before.rsplit(' ').next().unwrap_or_default();
    let next = after.split([' ', ',', '.', ';', ')']).next().unwrap_or_default();
    let is_thousands =
        next.len() == 3 && [last, next].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let is_bound = matches!(last, "=" | "≤" | "≥" | "±") || matches!(next, "%" | "=" | "≤" | "≥" | "s");
    !after.is_empty() && !after.starts_with([' ', ',']) && !is_bound && !is_thousands
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
