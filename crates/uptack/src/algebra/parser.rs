//! From tokens to definitions and equations.

use super::fault::{Fault, Result, Span, line_of};
use super::lexer::{Cursor, Token, TokenKind, statements};
use super::noise;
use super::numbers::{Constants, bounded};
use super::syntax::{Definition, Equation, Mention, Parsed, Population, names_people};
use crate::channel::{Bin, MOST_ANSWERS, Output};
use crate::fraction::Fraction;

/// A text longer than any channel prints to is refused unread.
const LONGEST_TEXT: usize = 1 << 20;
/// More terms than the largest channel prints to.
const MOST_TERMS: usize = 256;

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Parsed> {
    if text.len() > LONGEST_TEXT {
        let start = Span { start: 0, end: 0 };
        return Err(Fault::syntax(start, format!("{} bytes of algebra are too many", text.len()), "is this the file?"));
    }
    let mut reader = StatementReader { text, parsed: Parsed::default(), constants: Constants::default() };
    for tokens in statements(text)? {
        reader.statement(&tokens)?;
    }
    Ok(reader.parsed)
}

struct StatementReader<'a> {
    text: &'a str,
    parsed: Parsed,
    constants: Constants<'a>,
}

impl<'a> StatementReader<'a> {
    fn statement(&mut self, tokens: &[Token<'a>]) -> Result<()> {
        let mut cursor = Cursor { tokens, at: 0, depth: 0 };
        let first = tokens[0];
        match first.kind {
            TokenKind::Word if first.text == "let" => {
                cursor.at = 1;
                self.definition(&mut cursor)
            }
            TokenKind::Word => self.equation(&mut cursor),
            _ => Err(first.fault(
                format!("a line cannot start with `{}`", first.shown()),
                "a line is `let TERM = share * POPULATION` or `A1 = TERM + TERM - TERM`",
            )),
        }
    }

    fn definition(&mut self, cursor: &mut Cursor<'a, '_>) -> Result<()> {
        let name = cursor.expect(TokenKind::Word, "a name", "as in let YES_Y = 0.1 * YES")?;
        self.check_new(name)?;
        cursor.expect(TokenKind::Equals, "=", "as in let YES_Y = 0.1 * YES")?;
        match Population::of_term(name.text) {
            Some(population) => self.term(Head { name, population }, cursor),
            None => self.constant(name, cursor),
        }
    }

    fn check_new(&self, name: Token<'_>) -> Result<()> {
        check_name(name)?;
        let Some(before) = self.defined_at(name.text) else { return Ok(()) };
        let line = line_of(self.text, before);
        let message = format!("{} is defined twice, first in line {line}", name.text);
        Err(name.fault(message, "give the second another name"))
    }

    /// The term of this name, if it is defined above.
    fn term_named(&self, name: &str) -> Option<&Definition> {
        self.parsed.definitions.iter().find(|known| known.name == name)
    }

    /// Where a term or a constant of this name is defined.
    fn defined_at(&self, name: &str) -> Option<Span> {
        self.term_named(name).map(|known| known.span).or_else(|| self.constants.defined_at(name))
    }

    fn constant(&mut self, name: Token<'a>, cursor: &mut Cursor<'a, '_>) -> Result<()> {
        let value = self.constants.sum(cursor)?;
        cursor.end("a constant is a number, as in let f = 0.4 or let rest = 1 - f")?;
        self.constants.define(name, value);
        Ok(())
    }

    /// `share * share * POPULATION`, `share * TERM` or `share * POPULATION in TERM`.
    fn term(&mut self, head: Head<'a>, cursor: &mut Cursor<'a, '_>) -> Result<()> {
        let Head { name, population } = head;
        if self.parsed.definitions.len() == MOST_TERMS {
            let hint = "a channel has at most 64 cells, so fewer terms say the same";
            return Err(name.fault(format!("more than {MOST_TERMS} terms"), hint));
        }
        let (share, whole) = self.share_and_whole(head, cursor)?;
        let (share, implied) = self.resolve_whole(head, share, whole)?;
        let inside = inside(name, implied, cursor)?;
        cursor.end("a definition ends with the population or term that it is a share of")?;
        let (name, span) = (name.text.to_owned(), name.span);
        self.parsed.definitions.push(Definition { name, span, population, share, inside });
        Ok(())
    }

    /// The product of the shares, and the population or term behind them.
    fn share_and_whole(&self, head: Head<'_>, cursor: &mut Cursor<'a, '_>) -> Result<(Fraction, Token<'a>)> {
        let mut share = Fraction::one();
        loop {
            if let Some(whole) = cursor.take_if(|token| token.kind == TokenKind::Word && names_people(token.text)) {
                return Ok((share, whole));
            }
            let (factor, span) = self.constants.factor(cursor)?;
            share = bounded(share.times(&factor), span)?;
            if !cursor.take(TokenKind::Times) {
                return Err(head.lacks_whole(cursor));
            }
        }
    }

    /// The share of the whole population, and the term that it was written as a share of.
    fn resolve_whole(&self, head: Head<'_>, share: Fraction, whole: Token<'_>) -> Result<(Fraction, Inside)> {
        match Population::named(whole.text) {
            Some(named) if named == head.population => Ok((share, None)),
            Some(_) => Err(head.other_population(whole)),
            None => {
                let share = bounded(share.times(&self.defined_above(whole)?.share), whole.span)?;
                Ok((share, Some((whole.text.to_owned(), whole.span))))
            }
        }
    }

    fn defined_above(&self, name: Token<'_>) -> Result<&Definition> {
        self.term_named(name.text).ok_or_else(|| {
            let message = format!("`{}` is not defined yet", name.shown());
            name.fault(message, "define a term above those that are shares of it")
        })
    }

    fn equation(&mut self, cursor: &mut Cursor<'a, '_>) -> Result<()> {
        let left = cursor.tokens[0];
        let bin = bin(left)?;
        self.check_first(left, bin)?;
        cursor.at = 1;
        cursor.expect(TokenKind::Equals, "=", "as in A1 = TOTAL_1 + YES_Y")?;
        let (terms, added) = noise::split(cursor.tokens);
        if let Some(added) = added {
            self.parsed.noise = Some(noise::read(self.text, bin, added)?);
        }
        let mentions = mentions(&mut Cursor { tokens: terms, ..*cursor })?;
        self.parsed.equations.push(Equation { bin, span: left.span, mentions });
        Ok(())
    }

    fn check_first(&self, left: Token<'_>, bin: Bin) -> Result<()> {
        let Some(before) = self.parsed.equations.iter().find(|known| known.bin == bin) else { return Ok(()) };
        let line = line_of(self.text, before.span);
        let message = format!("{} is written twice, first in line {line}", left.text);
        Err(left.fault(message, "put all that an output holds on one line"))
    }
}

/// The term that a definition says it is part of, and where it says so.
type Inside = Option<(String, Span)>;

/// The left side of a term's definition.
#[derive(Clone, Copy)]
struct Head<'a> {
    name: Token<'a>,
    population: Population,
}

impl Head<'_> {
    fn other_population(&self, whole: Token<'_>) -> Fault {
        let message = format!("{} cannot be a share of {}", self.name.text, whole.text);
        let hint = format!("a term is a share of the population in its name: write * {}", self.population.name());
        whole.fault(message, hint)
    }

    fn lacks_whole(&self, cursor: &Cursor<'_, '_>) -> Fault {
        let (name, population) = (self.name.text, self.population.name());
        let sum = cursor.peek().is_some_and(|token| matches!(token.kind, TokenKind::Plus | TokenKind::Minus));
        let (message, hint) = match sum {
            true => (
                format!("the share of {name} is a sum without brackets"),
                format!("write it as in (0.4 - 0.1) * {population}"),
            ),
            false => (
                format!("{name} is a share of what?"),
                format!("end it with * {population}, or with * and a term that it is part of"),
            ),
        };
        Fault::syntax(cursor.here(), message, hint)
    }
}

fn check_name(name: Token<'_>) -> Result<()> {
    if Population::named(name.text).is_some() {
        let message = format!("{} is a whole population and cannot be defined", name.text);
        return Err(name.fault(message, "name a share of it, as in YES_Y or TOTAL_1"));
    }
    if matches!(name.text, "let" | "in") || name.text.ends_with('_') {
        return Err(name.fault(format!("`{}` cannot be a name", name.text), "as in YES_Y, NO_f2 or TOTAL_1"));
    }
    Ok(())
}

/// The term after `in`, or the one that the share implies; never both.
fn inside(name: Token<'_>, implied: Inside, cursor: &mut Cursor<'_, '_>) -> Result<Inside> {
    let Some(parent) = parent(cursor)? else { return Ok(implied) };
    match implied {
        None => Ok(Some((parent.text.to_owned(), parent.span))),
        Some((before, _)) => {
            let message = format!("{} is a share of {before} and therefore in it already", name.text);
            Err(parent.fault(message, "drop `in` and what follows"))
        }
    }
}

/// The term after `in`, if there is one.
fn parent<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Option<Token<'a>>> {
    match cursor.take_if(|token| token.text == "in") {
        Some(_) => cursor.expect(TokenKind::Word, "a term", "as in let NO_f21 = 0.1 * NO in NO_f2").map(Some),
        None => Ok(None),
    }
}

/// `TERM + TERM - TERM`, or `0` for an output that holds nobody.
fn mentions(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Mention>> {
    if cursor.take_if(|token| token.text == "0").is_some() {
        cursor.end("an output that holds nobody is 0 and nothing else")?;
        return Ok(Vec::new());
    }
    let mut mentions = Vec::new();
    let mut sign = Some(!cursor.take(TokenKind::Minus));
    while let Some(plus) = sign {
        let token = cursor.next("a term", "what an output holds is written TOTAL_1 + YES_Y - YES_f1, or 0")?;
        mentions.push(mention(token, plus)?);
        sign = cursor.take_sign();
    }
    match cursor.peek() {
        None => Ok(mentions),
        Some(other) => {
            let hint = "terms are joined by + and -; give a share of one a name of its own with let";
            Err(other.unexpected("+ or -", hint))
        }
    }
}

fn mention(token: Token<'_>, plus: bool) -> Result<Mention> {
    if token.kind == TokenKind::Word && Population::of_term(token.text).is_some() {
        return Ok(Mention { plus, name: token.text.to_owned(), span: token.span });
    }
    let word = token.shown();
    if Population::named(token.text).is_some() {
        let message = format!("{word} is a whole population, not a term");
        return Err(token.fault(message, format!("name it: let {word}_all = 1 * {word}")));
    }
    let hint = match token.kind {
        TokenKind::Number => "give a share of a term a name of its own, as in let YES_g = 0.5 * YES_Y",
        _ => "a term starts with its population: TOTAL_1, YES_Y, NO_f2",
    };
    Err(token.unexpected("a term", hint))
}

/// `A1`, `B⊥` or `Bbottom`.
fn bin(token: Token<'_>) -> Result<Bin> {
    let word = token.shown();
    if names_people(token.text) {
        let message = format!("{word} is a term, and a line starts with an output or `let`");
        return Err(token.fault(message, format!("write let {word} = …")));
    }
    let letter = token.text.chars().next().filter(char::is_ascii_uppercase);
    let output = letter.and_then(|_| token.text[1..].parse::<Output>().ok());
    let (Some(letter), Some(output)) = (letter, output) else {
        let hint = "write the answer's letter and the output, as in A1, C3 or B⊥; definitions start with `let`";
        return Err(token.fault(format!("`{word}` is not an output of an answer"), hint));
    };
    let answer = usize::from(letter as u8 - b'A').min(MOST_ANSWERS - 1);
    Ok(Bin { answer, output })
}
