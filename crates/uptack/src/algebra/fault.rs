//! Errors that point at the line and the word at fault.

use crate::error::Error;

/// A stretch of the text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a step of reading or compiling the text returns.
pub(super) type Result<T, E = Fault> = std::result::Result<T, E>;

/// What is wrong with a stretch of the text, and what to do about it.
#[derive(Debug)]
pub(super) struct Fault {
    span: Span,
    kind: fn(String) -> Error,
    message: String,
    hint: String,
}

/// Lines longer than this are shown in part.
const WIDEST: usize = 96;

impl Fault {
    /// A text that does not read as algebra.
    pub(super) fn syntax(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { span, kind: |message| Error::syntax(message), message: message.into(), hint: hint.into() }
    }

    /// A share that is out of range.
    pub(super) fn parameter(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { span, kind: |message| Error::parameter(message), message: message.into(), hint: hint.into() }
    }

    /// Populations that are not conserved.
    pub(super) fn law(span: Span, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { span, kind: |message| Error::law(message), message: message.into(), hint: hint.into() }
    }

    /// A parameter that was refused where it is used.
    pub(super) fn refused(span: Span, error: &Error) -> Self {
        Self::parameter(span, error.to_string(), error.hint().unwrap_or_default())
    }

    /// The error with the line it is about, and a caret under the word.
    pub(super) fn render(self, text: &str) -> Error {
        let place = Place::find(text, self.span);
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let carets = format!("{}{}", " ".repeat(place.column), "^".repeat(place.width));
        let message = format!(
            "line {number}: {}\n  {margin} |\n  {number} | {}\n  {margin} | {carets}",
            self.message, place.shown
        );
        (self.kind)(message).with_hint(self.hint)
    }
}

/// The number of the line in which a stretch begins.
pub(super) fn line_of(text: &str, span: Span) -> usize {
    1 + text.as_bytes()[..span.start.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}

/// Where a stretch is, and its line as far as it is shown.
struct Place {
    line: usize,
    shown: String,
    /// Where the caret stands, in characters of what is shown.
    column: usize,
    width: usize,
}

impl Place {
    fn find(text: &str, span: Span) -> Self {
        let (begin, end) = ends_of_line(text, span.start);
        let before = text[begin..span.start].chars().count();
        let width = text[span.start..span.end.clamp(span.start, end)].chars().count().clamp(1, WIDEST / 2);
        // Enough of a long line is left out at its start for the carets to be shown.
        let skipped = (before + width).saturating_sub(WIDEST);
        let dots = usize::from(skipped > 0);
        let shown = excerpt(text[begin..end].trim_end(), skipped);
        Self { line: line_of(text, span), shown, column: before - skipped + dots, width }
    }
}

/// Where the line around a byte begins and ends.
fn ends_of_line(text: &str, at: usize) -> (usize, usize) {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    (begin, end)
}

/// A line as far as it is shown, with dots in place of the characters that are skipped.
fn excerpt(line: &str, skipped: usize) -> String {
    let dots = if skipped > 0 { "…" } else { "" };
    let printable = |symbol: char| if symbol.is_control() { ' ' } else { symbol };
    dots.chars().chain(line.chars().skip(skipped).take(WIDEST).map(printable)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, start: usize, end: usize) -> String {
        Fault::syntax(Span { start, end }, "wrong", "mend it").render(text).to_string()
    }

    #[test]
    fn the_caret_stands_under_the_word() {
        assert_eq!(rendered("a\nbc de\nf", 5, 7), "line 2: wrong\n    |\n  2 | bc de\n    |    ^^");
        assert_eq!(rendered("πY = x", 6, 7), "line 1: wrong\n    |\n  1 | πY = x\n    |      ^");
        assert_eq!(rendered("", 0, 0), "line 1: wrong\n    |\n  1 | \n    | ^");
    }

    #[test]
    fn a_long_line_is_shown_around_the_caret() {
        let text = format!("{}BAD rest", "x".repeat(500));
        let shown = rendered(&text, 500, 503);
        let lines: Vec<&str> = shown.lines().collect();
        let column = lines[3].find('^').unwrap() - lines[3].find('|').unwrap();
        let start = lines[2].find('|').unwrap();
        let line: Vec<char> = lines[2][start..].chars().collect();
        assert_eq!(line[column..column + 3].iter().collect::<String>(), "BAD");
        assert!(line.len() < 120);
    }
}
