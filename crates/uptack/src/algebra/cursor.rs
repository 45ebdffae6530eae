//! A place in the tokens of one statement.

use super::fault::{Fault, Result, Span};
use super::lexer::{Kind, Token};

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
    pub(super) fn take(&mut self, kind: Kind) -> bool {
        self.take_if(|token| token.kind == kind).is_some()
    }

    /// Steps over `+` (true) or `−` (false).
    pub(super) fn take_sign(&mut self) -> Option<bool> {
        let sign = self.take_if(|token| matches!(token.kind, Kind::Plus | Kind::Minus))?;
        Some(sign.kind == Kind::Plus)
    }

    /// Steps over the next token, which must exist.
    pub(super) fn next(&mut self, what: &str, hint: &str) -> Result<Token<'a>> {
        self.take_if(|_| true)
            .ok_or_else(|| Fault::syntax(self.here(), format!("the line ends where {what} is expected"), hint))
    }

    /// Steps over the next token, which must be of this kind.
    pub(super) fn expect(&mut self, kind: Kind, what: &str, hint: &str) -> Result<Token<'a>> {
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
