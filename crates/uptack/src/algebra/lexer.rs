//! Words, numbers and signs, and a cursor over them.

use super::fault::{Fault, Result, Span};
use crate::output::shortened;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `let`, `in`, a population, a term, a constant or a bin.
    Word,
    /// A decimal, a fraction or a percentage.
    Number,
    Plus,
    Minus,
    Times,
    Equals,
    Open,
    Close,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) span: Span,
}

impl Token<'_> {
    /// The text as far as an error shows it.
    pub(super) fn shown(&self) -> String {
        shortened(self.text)
    }

    /// What is wrong with this token, and what to do about it.
    pub(super) fn fault(&self, message: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault::syntax(self.span, message, hint)
    }

    /// Another token was expected here.
    pub(super) fn unexpected(&self, what: &str, hint: &str) -> Fault {
        self.fault(format!("expected {what}, found `{}`", self.shown()), hint)
    }
}

/// The tokens of each statement. A line that starts with a sign continues the one before.
pub(super) fn statements(text: &str) -> Result<Vec<Vec<Token<'_>>>> {
    let mut all: Vec<Vec<Token<'_>>> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let tokens = line_tokens(text, start, start + line.len())?;
        start += line.len();
        match (all.last_mut(), tokens.first().map(|token| token.kind)) {
            (_, None) => {}
            (Some(last), Some(TokenKind::Plus | TokenKind::Minus)) => last.extend(tokens),
            _ => all.push(tokens),
        }
    }
    Ok(all)
}

/// The tokens of one line, up to its comment.
fn line_tokens(text: &str, start: usize, end: usize) -> Result<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut at = start;
    while let Some(symbol) = text[at..end].chars().next().filter(|&symbol| symbol != '#') {
        if symbol.is_whitespace() || symbol == '\u{feff}' {
            at += symbol.len_utf8();
            continue;
        }
        let (kind, length) = token(&text[at..end], symbol).ok_or_else(|| strange(at, symbol))?;
        let span = Span { start: at, end: at + length };
        tokens.push(Token { kind, text: &text[span.start..span.end], span });
        at = span.end;
    }
    Ok(tokens)
}

/// The kind and the length in bytes of the token that `rest` starts with.
fn token(rest: &str, symbol: char) -> Option<(TokenKind, usize)> {
    let kind = match symbol {
        '+' => TokenKind::Plus,
        '-' | '−' => TokenKind::Minus,
        '*' | '×' | '·' => TokenKind::Times,
        '=' => TokenKind::Equals,
        '(' => TokenKind::Open,
        ')' => TokenKind::Close,
        '0'..='9' | '.' => return Some((TokenKind::Number, number(rest))),
        _ if is_word(symbol) => return Some((TokenKind::Word, run(rest, is_word))),
        _ => return None,
    };
    Some((kind, symbol.len_utf8()))
}

fn is_word(symbol: char) -> bool {
    symbol.is_alphanumeric() || matches!(symbol, '_' | '\'' | '⊥')
}

/// The length of the longest start of `text` whose symbols all pass.
fn run(text: &str, pass: impl Fn(char) -> bool) -> usize {
    text.find(|symbol| !pass(symbol)).unwrap_or(text.len())
}

/// The length of `0.05`, `5e-3`, `1/20`, `3/2^64`, `5%` or `5 %`.
fn number(text: &str) -> usize {
    let mut length = run(text, |symbol| symbol.is_ascii_digit() || symbol == '.');
    length += exponent(&text[length..]);
    for mark in ['/', '^'] {
        if let Some(rest) = text[length..].strip_prefix(mark) {
            length += 1 + digits(rest);
        }
    }
    let space = run(&text[length..], |symbol| symbol == ' ');
    if text[length + space..].starts_with('%') { length + space + 1 } else { length }
}

/// The length of `e-3`; 0 where no exponent follows.
fn exponent(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let sign = usize::from(rest.starts_with(['+', '-']));
    let digits = digits(&rest[sign..]);
    if digits > 0 { 1 + sign + digits } else { 0 }
}

fn digits(text: &str) -> usize {
    run(text, |symbol| symbol.is_ascii_digit())
}

fn strange(at: usize, symbol: char) -> Fault {
    let span = Span { start: at, end: at + symbol.len_utf8() };
    let hint = match symbol {
        '/' => "write a fraction without spaces, as in 1/3",
        '[' | ']' => "write E[⊥1A] as A1: the answer's letter, then the output",
        ':' | ';' | ',' => "each line is one equation, as in A1 = TOTAL_1 + YES_Y",
        _ => "only names, numbers, = + - * ( ) and comments after # are read",
    };
    Fault::syntax(span, format!("`{}` has no meaning here", symbol.escape_debug()), hint)
}

/// Walks along the tokens of one statement.
pub(super) struct Cursor<'a, 't> {
    pub(super) tokens: &'t [Token<'a>],
    pub(super) at: usize,
    /// How many brackets are open.
    pub(super) depth: usize,
}

impl<'a> Cursor<'a, '_> {
    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    /// Where the next token is, or the end of the statement.
    pub(super) fn here(&self) -> Span {
        let end = self.tokens.last().map_or(0, |last| last.span.end);
        self.peek().map_or(Span { start: end, end }, |token| token.span)
    }

    /// Steps over the next token if it passes.
    pub(super) fn take_if(&mut self, pass: impl Fn(&Token<'a>) -> bool) -> Option<Token<'a>> {
        let taken = self.peek().filter(pass)?;
        self.at += 1;
        Some(taken)
    }

    /// Steps over the next token if it is of this kind.
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        self.take_if(|token| token.kind == kind).is_some()
    }

    /// Steps over `+` (true) or `−` (false).
    pub(super) fn take_sign(&mut self) -> Option<bool> {
        let sign = self.take_if(|token| matches!(token.kind, TokenKind::Plus | TokenKind::Minus))?;
        Some(sign.kind == TokenKind::Plus)
    }

    /// Steps over the next token, which must exist.
    pub(super) fn next(&mut self, what: &str, hint: &str) -> Result<Token<'a>> {
        self.take_if(|_| true)
            .ok_or_else(|| Fault::syntax(self.here(), format!("the line ends where {what} is expected"), hint))
    }

    /// Steps over the next token, which must be of this kind.
    pub(super) fn expect(&mut self, kind: TokenKind, what: &str, hint: &str) -> Result<Token<'a>> {
        let token = self.next(what, hint)?;
        if token.kind == kind { Ok(token) } else { Err(token.unexpected(what, hint)) }
    }

    /// Checks that nothing follows.
    pub(super) fn end(&self, hint: &str) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(token.fault(format!("`{}` is too much", token.shown()), hint)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<Vec<&str>> {
        let all = statements(text).unwrap();
        all.into_iter().map(|tokens| tokens.into_iter().map(|token| token.text).collect()).collect()
    }

    #[test]
    fn numbers_end_where_they_should() {
        let line = "1/3*5 % 0.4-0.1 2e-3 1e 7/2^64 .5YES";
        let parts = ["1/3", "*", "5 %", "0.4", "-", "0.1", "2e-3", "1", "e", "7/2^64", ".5", "YES"];
        assert_eq!(texts(line), [parts]);
    }

    #[test]
    fn signs_continue_a_line_and_comments_end_one() {
        let text = "A1 = X_1 # base\n  # a remark\n   + YES_Y'\r\n\nA⊥ = πX × Y";
        assert_eq!(texts(text), [vec!["A1", "=", "X_1", "+", "YES_Y'"], vec!["A⊥", "=", "πX", "×", "Y"]]);
        assert!(statements("A1 = $").is_err());
    }
}
