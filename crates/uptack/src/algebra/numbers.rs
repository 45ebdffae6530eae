//! Numbers in a text: sums and products of shares and of constants that were defined before, all exact.

use std::collections::HashMap;

use super::fault::{Fault, Result, Span};
use super::lexer::{Cursor, Token, TokenKind};
use super::syntax::names_people;
use crate::fraction::Fraction;

/// How deeply brackets may be nested.
const DEEPEST: usize = 32;
/// Denominators of more bits than this are refused: no honest share needs them, and they would cost time.
const MOST_BITS: u64 = 4096;
/// How a number is written.
const NUMBERS: &str = "a share may be written 0.05, 1/20 or 5%";

/// A sum or product, if it is not absurdly fine.
pub(super) fn bounded(value: Fraction, span: Span) -> Result<Fraction> {
    if value.exact().denom().bits() > MOST_BITS {
        let message = format!("a share with a denominator of more than {MOST_BITS} bits is too fine");
        return Err(Fault::parameter(span, message, "shares are rounded to 2^-64 in the end; write fewer digits"));
    }
    Ok(value)
}

/// The constants defined so far, and where they are defined.
#[derive(Debug, Default)]
pub(super) struct Constants<'a> {
    by_name: HashMap<&'a str, (Fraction, Span)>,
}

impl<'a> Constants<'a> {
    pub(super) fn define(&mut self, name: Token<'a>, value: Fraction) {
        self.by_name.insert(name.text, (value, name.span));
    }

    /// Where a constant is defined.
    pub(super) fn defined_at(&self, name: &str) -> Option<Span> {
        self.by_name.get(name).map(|(_, span)| *span)
    }

    /// Products with + and − between them.
    pub(super) fn sum(&self, cursor: &mut Cursor<'a, '_>) -> Result<Fraction> {
        let (mut sum, mut span) = self.product(cursor)?;
        while let Some(plus) = cursor.take_sign() {
            let (next, end) = self.product(cursor)?;
            span.end = end.end;
            let reached = if plus { sum.plus(&next) } else { sum.minus(&next) };
            let in_range = reached.map_err(|error| {
                Fault::parameter(span, error.to_string(), "shares are between 0 and 1, and so are their sums")
            });
            sum = bounded(in_range?, span)?;
        }
        Ok(sum)
    }

    fn product(&self, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Span)> {
        let (mut product, mut span) = self.factor(cursor)?;
        while cursor.take(TokenKind::Times) {
            let (next, end) = self.factor(cursor)?;
            span.end = end.end;
            product = bounded(product.times(&next), span)?;
        }
        Ok((product, span))
    }

    /// A number, a constant, or a sum in brackets.
    pub(super) fn factor(&self, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Span)> {
        let token = cursor.next("a number", NUMBERS)?;
        match token.kind {
            TokenKind::Number => Ok((number(token)?, token.span)),
            TokenKind::Word if cursor.depth > 0 && names_people(token.text) => Err(token.fault(
                format!("{} stands in a bracket that is not closed before it", token.shown()),
                "brackets hold numbers only, as in (1 - 0.2) * TOTAL",
            )),
            TokenKind::Word => Ok((self.value_of(token)?, token.span)),
            TokenKind::Open => self.bracket(token, cursor),
            _ => Err(token.unexpected("a number", NUMBERS)),
        }
    }

    /// The sum after an opening bracket, up to the closing one.
    fn bracket(&self, open: Token<'_>, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Span)> {
        if cursor.depth == DEEPEST {
            return Err(open.fault("too many brackets within brackets", "name the inner parts with let"));
        }
        cursor.depth += 1;
        let value = self.sum(cursor)?;
        cursor.depth -= 1;
        let close = cursor.expect(TokenKind::Close, ")", "every ( needs a )")?;
        Ok((value, Span { start: open.span.start, end: close.span.end }))
    }

    fn value_of(&self, token: Token<'_>) -> Result<Fraction> {
        match self.by_name.get(token.text) {
            Some((value, _)) => Ok(value.clone()),
            None => Err(not_a_constant(token)),
        }
    }
}

fn not_a_constant(token: Token<'_>) -> Fault {
    let word = token.shown();
    if names_people(token.text) {
        token.fault(
            format!("{word} is people, where a number is needed"),
            "a population or term stands once, at the end of a term's definition",
        )
    } else {
        token.fault(
            format!("the constant `{word}` is not defined"),
            format!("define it above this line, as in let {word} = 0.1"),
        )
    }
}

fn number(token: Token<'_>) -> Result<Fraction> {
    token.text.parse().map_err(|error: crate::Error| {
        let hint = error.hint().unwrap_or(NUMBERS).to_owned();
        match error.is_syntax() {
            true => token.fault(error.to_string(), hint),
            false => Fault::parameter(token.span, error.to_string(), hint),
        }
    })
}
